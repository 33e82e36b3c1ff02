//! Tables of batches on a device.

use std::sync::Arc;
use std::time::Duration;

use trommel_kernels::cuda::queries::{
    DeviceIndex, Policy, QueryCounts, QueryDocuments, SerialCounts, Streamed, Way,
};
use trommel_kernels::cuda::{CopyTimes, Device, DeviceError, Memory};

use super::ask::{Ask, Asked};
use super::gpu::Measured;
use super::index::Workload;

/// Bytes a second over the bus, in the slower direction.
pub(super) struct Bus(f64);

impl Bus {
    pub(super) fn measure(device: &Device, bytes: usize) -> Result<Self, DeviceError> {
        let bytes = bytes.min(device.properties().memory_bytes / 8);
        let copies = CopyTimes::measure(device, bytes, 3)?;
        let slower = copies.host_to_device.max(copies.device_to_host);
        let rate = copies.bytes as f64 / slower.as_secs_f64();
        println!("{}: bus {:.1} GB/s\n", device.properties().name, rate / 1e9);
        Ok(Self(rate))
    }
}

/// Memory for the index of a workload in our form and as plain lists.
pub(super) fn memory(device: &Device, workload: &Workload) -> Arc<Memory> {
    let bytes = workload.segment.as_bytes().len();
    // Plain lists have 4 bytes a posting, and a table.
    let plain_bytes = 4 * workload.lists.iter().map(|list| list.len() + 4).sum::<usize>();
    Memory::new(device, bytes + plain_bytes + (1 << 16), 0)
}

/// A table of batches on a device.
pub(super) struct Table<'a> {
    pub(super) device: &'a Device,
    pub(super) bus: &'a Bus,
    /// Queries of a batch.
    pub(super) batches: &'a [usize],
    pub(super) rounds: usize,
    /// Whether the paper's block a query is measured, too.
    pub(super) has_paper: bool,
}

impl Table<'_> {
    /// Measures and prints.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn print(&self, workload: &Workload) -> Result<(), DeviceError> {
        let memory = memory(self.device, workload);
        let index = DeviceIndex::upload(&memory, &workload.segment)?;
        println!(
            "| {:<27} | {:<9} | {:>6} | latency ms | kernel ms | M queries/s kernel | M queries/s whole | of bus |",
            "index", "answer", "batch"
        );
        println!(
            "|:{:-<27}-|:{:-<9}-|-------:|-----------:|----------:|-------------------:|------------------:|-------:|",
            "", ""
        );
        let asked = |index, way| {
            let policy = Policy::of(way);
            Asked { workload, index, policy, rounds: self.rounds }
        };
        let resident = asked(&index, Way::Units);
        self.rows::<QueryCounts>("as it is", self.batches, &resident)?;
        self.rows::<QueryDocuments>("as it is", self.batches, &resident)?;
        self.rows::<Streamed<QueryCounts>>("lists come along", self.batches, &resident)?;
        self.rows::<Streamed<QueryDocuments>>("lists come along", self.batches, &resident)?;
        if self.has_paper {
            let plain = DeviceIndex::upload_plain(&memory, &workload.segment)?;
            let [units, blocks] = [Way::Units, Way::Blocks].map(|way| asked(&plain, way));
            self.rows::<QueryCounts>("plain ids", self.batches, &units)?;
            self.rows::<QueryCounts>("plain ids, block a query", self.batches, &blocks)?;
            let blocks = asked(&index, Way::Blocks);
            self.rows::<QueryCounts>("as it is, block a query", self.batches, &blocks)?;
            self.rows::<SerialCounts>("plain ids, a query a time", &[1], &units)?;
        }
        println!();
        Ok(())
    }

    /// A row for each size of batches.
    fn rows<P: Ask>(
        &self,
        name: &str,
        batches: &[usize],
        asked: &Asked<'_>,
    ) -> Result<(), DeviceError> {
        for &batch in batches {
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
