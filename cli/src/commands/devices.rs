//! `trommel devices`: the processor and the GPUs.

use trommel::Isa;
use trommel::placement::available_cores;
use trommel::unstable::cuda::{Device, NoDevice};

use crate::failure::Failure;
use crate::units::counted;

pub(super) fn run() -> Result<u8, Failure> {
    let selected = Isa::selected().map_err(Failure::usage)?;
    let available: Vec<&str> = Isa::available().map(Isa::name).collect();
    let cores: Vec<String> = available_cores().iter().map(ToString::to_string).collect();
    let gpus = match Device::count() {
        Ok(count) => (0..count).map(gpu).collect::<Vec<_>>().join("\n       "),
        Err(setting @ NoDevice::UnknownSetting { .. }) => return Err(Failure::usage(setting)),
        Err(reason) => format!("none: {reason}"),
    };
    crate::print(&format!(
        "CPU    {selected} instructions; this machine has {}, TROMMEL_ISA chooses\n\
         cores  {}: {}\n\
         GPUs   {gpus}\n",
        available.join(", "),
        cores.len(),
        cores.join(", "),
    ))?;
    Ok(0)
}

/// A line about a device, or the reason why it cannot be used.
fn gpu(ordinal: usize) -> String {
    let device = match Device::probe(ordinal) {
        Ok(device) => device,
        Err(reason) => return format!("{ordinal}: not usable: {reason}"),
    };
    let properties = device.properties();
    let (major, minor) = properties.capability;
    let version = properties.driver_version;
    format!(
        "{ordinal}: {}, capability {major}.{minor}, {}, {} MiB; the driver is for CUDA {}.{}",
        properties.name,
        counted(properties.multiprocessors.into(), "multiprocessor"),
        properties.memory_bytes >> 20,
        version / 1000,
        version % 1000 / 10,
    )
}
