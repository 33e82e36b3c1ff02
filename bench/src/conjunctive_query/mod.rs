//! Tables of conjunctive queries over synthetic indexes: counts on the processor and beside its
//! peers, and counts and documents on a GPU by the size of a batch, from queries in host memory to
//! answers in host memory. Every answer is checked.

mod gpu;
mod index;
mod processor;

use std::time::Duration;

use trommel_kernels::cuda::queries::{DeviceIndex, Policy, QueryCounts, QueryDocuments, Way};
use trommel_kernels::cuda::{CopyTimes, Device, DeviceError, Memory};

use self::gpu::{Ask, Asked, Measured};
use self::index::{Shape, Workload};

/// Options of `conjunctive-query`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Indexes: terms, documents and postings.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "200000:4194304:64000000,30000:25000:400000"
    )]
    indexes: Vec<Shape>,
    /// Queries of 2 to 8 terms over each index.
    #[arg(long, default_value_t = 128_000)]
    queries: usize,
    /// Queries of a batch.
    #[arg(long, value_delimiter = ',', default_value = "1,64,1000,4000,16000,64000")]
    batches: Vec<usize>,
    /// Queries on the processor, in one batch; 0 leaves it out.
    #[arg(long, default_value_t = 33_337)]
    processor_queries: usize,
    /// Leaves out the paper's block a query, and plain lists.
    #[arg(long)]
    without_paper: bool,
    /// Bytes of a copy that gives the speed of the bus.
    #[arg(long, default_value_t = 256 << 20)]
    copy_bytes: usize,
    /// Rounds; the median is shown.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Measures and prints.
///
/// # Errors
///
/// If a device fails.
pub(crate) fn run(arguments: &Arguments) -> Result<(), DeviceError> {
    let device = Device::probe(0).inspect_err(|reason| println!("processor only: {reason}\n")).ok();
    let bus =
        device.as_ref().map(|device| Bus::measure(device, arguments.copy_bytes)).transpose()?;
    for &shape in &arguments.indexes {
        let workload = Workload::new(shape, arguments.queries.max(1));
        let queries = workload.queries();
        println!(
            "{shape}, {} postings, {:.1} MB, {:.2} B a posting; {queries} queries of {:.1} documents\n",
            workload.segment.postings(),
            megabytes(workload.segment.as_bytes().len()),
            ratio(workload.segment.as_bytes().len(), workload.lists.iter().map(Vec::len).sum()),
            ratio(workload.documents(0, queries), queries),
        );
        if arguments.processor_queries > 0 {
            processor::table(&workload, arguments.processor_queries, arguments.rounds);
        }
        if let (Some(device), Some(bus)) = (&device, &bus) {
            on_device(arguments, device, bus, &workload)?;
        }
    }
    Ok(())
}

/// Bytes a second over the bus, in the slower direction.
struct Bus(f64);

impl Bus {
    #[expect(clippy::cast_precision_loss, reason = "bytes are far below 2^53")]
    fn measure(device: &Device, bytes: usize) -> Result<Self, DeviceError> {
        let bytes = bytes.min(device.properties().memory_bytes / 8);
        let copies = CopyTimes::measure(device, bytes, 3)?;
        let slower = copies.host_to_device.max(copies.device_to_host);
        let rate = copies.bytes as f64 / slower.as_secs_f64();
        println!("{}: bus {:.1} GB/s\n", device.properties().name, rate / 1e9);
        Ok(Self(rate))
    }
}

fn on_device(
    arguments: &Arguments,
    device: &Device,
    bus: &Bus,
    workload: &Workload,
) -> Result<(), DeviceError> {
    // Plain lists have 4 bytes a posting, and a table.
    let bytes = workload.segment.as_bytes().len();
    let plain_bytes = 4 * workload.lists.iter().map(|list| list.len() + 4).sum::<usize>();
    let memory = Memory::new(device, bytes + plain_bytes + (1 << 16), 0);
    let index = DeviceIndex::upload(&memory, &workload.segment)?;
    println!(
        "| {:<27} | {:<9} | {:>6} | latency ms | kernel ms | M queries/s kernel | M queries/s whole | of bus |",
        "index", "answer", "batch"
    );
    println!(
        "|:{:-<27}-|:{:-<9}-|-------:|-----------:|----------:|-------------------:|------------------:|-------:|",
        "", ""
    );
    let table = Table { arguments, device, bus };
    let asked = |index, way| {
        let policy = Policy::of(way);
        Asked { workload, index, policy, rounds: arguments.rounds }
    };
    table.rows::<QueryCounts>("as it is", &asked(&index, Way::Units))?;
    table.rows::<QueryDocuments>("as it is", &asked(&index, Way::Units))?;
    if !arguments.without_paper {
        let plain = DeviceIndex::upload_plain(&memory, &workload.segment)?;
        table.rows::<QueryCounts>("plain ids", &asked(&plain, Way::Units))?;
        table.rows::<QueryCounts>("plain ids, block a query", &asked(&plain, Way::Blocks))?;
        table.rows::<QueryCounts>("as it is, block a query", &asked(&index, Way::Blocks))?;
    }
    println!();
    Ok(())
}

/// A table of batches on a device.
struct Table<'a> {
    arguments: &'a Arguments,
    device: &'a Device,
    bus: &'a Bus,
}

impl Table<'_> {
    /// A row for each size of batches.
    #[expect(clippy::cast_precision_loss, reason = "numbers are far below 2^53")]
    fn rows<P: Ask>(&self, name: &str, asked: &Asked<'_>) -> Result<(), DeviceError> {
        for &batch in &self.arguments.batches {
            let batch = batch.clamp(1, asked.workload.queries());
            let measured = asked.measure::<P>(self.device, batch)?;
            let Measured { latency, kernel, whole, bytes } = measured;
            let rate = |time: Duration| batch as f64 / time.as_secs_f64() / 1e6;
            let on_bus = bytes as f64 / self.bus.0 / whole.as_secs_f64();
            println!(
                "| {name:<27} | {:<9} | {batch:>6} | {:>10.3} | {:>9.3} | {:>18.2} | {:>17.2} | {:>5.1}% |",
                P::NAME,
                latency.as_secs_f64() * 1e3,
                kernel.as_secs_f64() * 1e3,
                rate(kernel),
                rate(whole),
                100.0 * on_bus,
            );
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers are far below 2^53")]
fn ratio(sum: usize, count: usize) -> f64 {
    sum as f64 / count.max(1) as f64
}

fn megabytes(bytes: usize) -> f64 {
    ratio(bytes, 1_000_000)
}
