//! Resources of kernels: the assembler's report as a table.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

/// 32-bit registers of a multiprocessor, of every capability that images are made for.
const REGISTERS: u32 = 65_536;
/// Threads of a multiprocessor, of both capabilities that cubins are made for.
const THREADS: u32 = 2048;
/// Number of registers that are allocated to a warp at a time.
const REGISTER_UNIT: u32 = 256;
const WARP: u32 = 32;

/// The resources of one kernel on one kind of machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) machine: String,
    registers: u32,
    static_shared_bytes: u32,
    spill_bytes: u32,
    /// Maximum threads of a block.
    threads: u32,
}

impl Kernel {
    /// Reads the assembler's report, and the largest block from the PTX.
    pub(crate) fn all(report: &str, ptx: &str) -> Vec<Self> {
        let mut kernels = Vec::<Self>::new();
        for line in report.lines() {
            if let Some((_, names)) = line.split_once("Compiling entry function '") {
                let mut names = names.split('\'');
                let name = names.next().unwrap_or_default().to_owned();
                let machine = names.nth(1).unwrap_or_default().to_owned();
                let threads = block_max(ptx, &name);
                kernels.push(Self {
                    name,
                    machine,
                    registers: 0,
                    static_shared_bytes: 0,
                    spill_bytes: 0,
                    threads,
                });
            } else if let Some(kernel) = kernels.last_mut() {
                kernel.registers = before(line, " registers").unwrap_or(kernel.registers);
                kernel.static_shared_bytes =
                    before(line, " bytes smem").unwrap_or(kernel.static_shared_bytes);
                kernel.spill_bytes += before(line, " bytes spill stores").unwrap_or(0)
                    + before(line, " bytes spill loads").unwrap_or(0);
            }
        }
        kernels
    }

    /// Whether it keeps registers in memory.
    pub(crate) fn spills(&self) -> bool {
        self.spill_bytes > 0
    }

    /// The share of a multiprocessor's threads that its registers allow, in full blocks.
    fn occupancy_percent(&self) -> u32 {
        let warps = self.threads.div_ceil(WARP);
        let registers = (self.registers * WARP).next_multiple_of(REGISTER_UNIT) * warps;
        let blocks = (REGISTERS / registers.max(1)).min(THREADS / self.threads);
        100 * blocks * self.threads / THREADS
    }
}

/// The number before `unit` in a line.
fn before(line: &str, unit: &str) -> Option<u32> {
    let (start, _) = line.split_once(unit)?;
    start.rsplit([' ', ',']).next()?.parse().ok()
}

/// The `__launch_bounds__` of a kernel; a block's limit where there is none.
fn block_max(ptx: &str, name: &str) -> u32 {
    let entry = ptx.split_once(&format!(".entry {name}(")).map_or("", |(_, rest)| rest);
    let head = entry.split_once('{').map_or(entry, |(head, _)| head);
    let bounds = head.split_once(".maxntid ").and_then(|(_, bounds)| bounds.split(',').next());
    bounds.and_then(|threads| threads.trim().parse().ok()).unwrap_or(1024)
}

/// A table with a line for each kernel.
pub(crate) fn table(kernels: &[Kernel]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header([
        "kernel",
        "machine",
        "registers",
        "static shared B",
        "spilled B",
        "threads a block",
        "occupancy %",
    ]);
    for kernel in kernels {
        table.add_row([
            kernel.name.clone(),
            kernel.machine.clone(),
            kernel.registers.to_string(),
            kernel.static_shared_bytes.to_string(),
            kernel.spill_bytes.to_string(),
            kernel.threads.to_string(),
            kernel.occupancy_percent().to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
        ptxas info    : 0 bytes gmem\n\
        ptxas info    : Compiling entry function 'plain' for 'sm_90'\n\
        ptxas info    : Function properties for plain\n    \
        0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
        ptxas info    : Used 32 registers, 128 bytes smem, 432 bytes cmem[0]\n\
        ptxas info    : Compiling entry function 'spilling' for 'sm_90'\n    \
        8 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads\n\
        ptxas info    : Used 40 registers\n";
    const PTX: &str =
        ".visible .entry plain(\n)\n.maxntid 256, 1, 1\n{\n}\n.visible .entry spilling(\n)\n{}";

    #[test]
    fn registers_shared_memory_and_spills_are_read() {
        let [plain, spilling] = Kernel::all(REPORT, PTX).try_into().unwrap();
        assert_eq!((plain.name.as_str(), plain.machine.as_str()), ("plain", "sm_90"));
        assert_eq!((plain.registers, plain.static_shared_bytes, plain.threads), (32, 128, 256));
        assert!(!plain.spills());
        assert_eq!((spilling.registers, spilling.threads), (40, 1024));
        assert!(spilling.spills());
    }

    #[test]
    fn occupancy_counts_full_blocks() {
        let kernels = Kernel::all(REPORT, PTX);
        assert_eq!(kernels[0].occupancy_percent(), 100);
        assert_eq!(kernels[1].occupancy_percent(), 50);
    }
}
