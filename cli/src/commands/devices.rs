//! `trommel devices`: what pipelines run on.

use trommel::Isa;
use trommel::placement::available_cores;

use crate::failure::Failure;

pub(super) fn run() -> Result<u8, Failure> {
    let selected = Isa::selected().map_err(Failure::usage)?;
    let available: Vec<&str> = Isa::available().map(Isa::name).collect();
    let cores: Vec<String> = available_cores().iter().map(ToString::to_string).collect();
    crate::print(&format!(
        "CPU    {selected} instructions; this machine has {}, TROMMEL_ISA chooses\n\
         cores  {}: {}\n\
         GPUs   none: this version has no CUDA support\n",
        available.join(", "),
        cores.len(),
        cores.join(", "),
    ))?;
    Ok(0)
}
