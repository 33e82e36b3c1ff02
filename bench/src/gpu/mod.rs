//! Tables of the kernels of a GPU, beside those of the processor: overlaps and signatures of sets,
//! supports of pairs of items, and the waves in which chunks go to a device.

pub(crate) mod overlap;
pub(crate) mod signatures;
pub(crate) mod supports;
pub(crate) mod waves;

use trommel_kernels::cuda::Device;

/// The first GPU; without one the reason is printed.
fn device() -> Option<Device> {
    Device::probe(0).inspect_err(|reason| println!("no GPU: {reason}\n")).ok()
}
