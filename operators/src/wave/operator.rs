//! Makes an operator of a producer, a kernel and a consumer.

use std::borrow::Cow;

use arrow_schema::SchemaRef;
use trommel_engine::operator::{Body, Fragment, Load, Operator, Part};

use super::consumer::{CollectPart, Consumer};
use super::kernel::Kernel;
use super::limits::{CHUNKS_MAX, Wave};
use super::parts::feeder::Feeder;
use super::parts::kernel_part::KernelPart;
use super::parts::queues::Queues;
use super::producer::{PreparePart, Producer};

/// An operator of three parts: `prepare`, the part that the kernel [names](Kernel::NAME), and
/// `collect`. `make` makes an empty chunk, and `outputs` are the schemas of the rows of
/// `consumer`. Rows of [`Producer::take_rejected`] need an [early
/// output](Fragment::with_early_outputs) of the fragment.
///
/// # Panics
/// As [`parallel`].
///
/// # Examples
/// See [the module](super#examples).
pub fn operator<P, K, C>(
    producer: P,
    kernel: K,
    consumer: C,
    make: impl FnMut() -> P::Chunk + Send + 'static,
    wave: Wave,
    outputs: Vec<SchemaRef>,
) -> Fragment
where
    P: Producer,
    K: Kernel<Chunk = P::Chunk>,
    C: Consumer<Chunk = P::Chunk>,
{
    parallel(producer, vec![kernel], consumer, make, wave, outputs)
}

/// As [`operator`], with a part for each of `kernels`: on the CPU, each kernel answers a share of
/// the chunks. The first device belongs to the first kernel, and so on: an operator uses at most as
/// many devices as it has kernels. Meanwhile the other kernels answer the chunks that are not for a
/// device.
///
/// # Panics
/// If [`Wave::chunks`] is out of range, or there is no kernel.
pub fn parallel<P, K, C>(
    producer: P,
    kernels: Vec<K>,
    consumer: C,
    make: impl FnMut() -> P::Chunk + Send + 'static,
    wave: Wave,
    outputs: Vec<SchemaRef>,
) -> Fragment
where
    P: Producer,
    K: Kernel<Chunk = P::Chunk>,
    C: Consumer<Chunk = P::Chunk>,
{
    let chunks = wave.chunks;
    assert!(!kernels.is_empty(), "an operator needs a kernel");
    assert!(
        (1..=CHUNKS_MAX).contains(&chunks),
        "invalid number of chunks {chunks}: expected 1 to {CHUNKS_MAX}"
    );
    wave.session.share_among(kernels.len());
    let prepare = PreparePart::new(producer, Feeder::new(wave.clone(), kernels.len(), make));
    // With several kernels, prepare has little to do and shares the thread of the part before it.
    let load = if kernels.len() > 1 { Load::Light } else { Load::Heavy };
    let mut parts = vec![part("prepare".into(), load, prepare)];
    let queues = || Queues::of(kernels.len(), chunks);
    let queues = queues().zip(queues());
    for (worker, (kernel, queues)) in kernels.into_iter().zip(queues).enumerate() {
        let name = match worker {
            0 => K::NAME.into(),
            later => format!("{} {}", K::NAME, later + 1).into(),
        };
        let (load, device) = (kernel.load(), wave.session.at(worker));
        parts.push(part(name, load, KernelPart::new(kernel, device, chunks, queues)));
    }
    parts.push(part("collect".into(), Load::Light, CollectPart::new(consumer)));
    Fragment::with_workers(parts, outputs)
}

fn part(name: Cow<'static, str>, load: Load, operator: impl Operator + 'static) -> Part {
    Part { name, load, body: Body::Operator(Box::new(operator)) }
}
