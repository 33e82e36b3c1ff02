//! Tables of batches on a device.

pub(super) mod ask;
mod batches;

use std::sync::Arc;
use std::time::Duration;

use trommel_kernels::cuda::queries::{
    DeviceIndex, Policy, QueryCounts, QueryDocuments, SerialCounts, Streamed, Way,
};
use trommel_kernels::cuda::{CopyTimes, Device, DeviceError, Memory};

use self::ask::{Ask, Asked};
use self::batches::Measured;
use super::workload::Workload;
use crate::runner::report;

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

/// Memory for the index of a workload in two forms: the segment as it is, and plain lists.
pub(super) fn memory(device: &Device, workload: &Workload) -> Arc<Memory> {
    let bytes = workload.segment.as_bytes().len();
    // A plain list has 4 bytes a posting, and a row of 16 bytes in the table of the lists.
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
}

impl Table<'_> {
    /// Measures all kinds of answers, and prints the table.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn print(&self, workload: &Workload) -> Result<(), DeviceError> {
        let memory = memory(self.device, workload);
        let index = DeviceIndex::upload(&memory, &workload.segment)?;
        let plain = DeviceIndex::upload_plain(&memory, &workload.segment)?;
        let mut table = report::Table::new(
            "index                       | answer    | batch: | latency ms: | kernel ms: | \
             M queries/s kernel: | M queries/s whole: | of bus:",
        );
        let asked = |index, way| {
            let policy = Policy::of(way);
            Asked { workload, index, policy, rounds: self.rounds }
        };
        let (resident, blocks) = (asked(&index, Way::Units), asked(&index, Way::Blocks));
        let (units, plain) = (asked(&plain, Way::Units), asked(&plain, Way::Blocks));
        let (table, all) = (&mut table, self.batches);
        self.rows::<QueryCounts>(table, "as it is", all, &resident)?;
        self.rows::<QueryDocuments>(table, "as it is", all, &resident)?;
        self.rows::<Streamed<QueryCounts>>(table, "lists come along", all, &resident)?;
        self.rows::<Streamed<QueryDocuments>>(table, "lists come along", all, &resident)?;
        self.rows::<QueryCounts>(table, "plain ids", all, &units)?;
        self.rows::<QueryCounts>(table, "plain ids, block a query", all, &plain)?;
        self.rows::<QueryCounts>(table, "as it is, block a query", all, &blocks)?;
        self.rows::<SerialCounts>(table, "plain ids, a query a time", &[1], &units)
    }

    /// Adds a row for each size of batches.
    fn rows<P: Ask>(
        &self,
        table: &mut report::Table,
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
            table.row(format!(
                "{name} | {} | {batch} | {:.3} | {:.3} | {:.2} | {:.2} | {:.1}%",
                P::NAME,
                latency.as_secs_f64() * 1e3,
                kernel.as_secs_f64() * 1e3,
                rate(kernel),
                rate(whole),
                100.0 * on_bus,
            ));
        }
        Ok(())
    }
}
