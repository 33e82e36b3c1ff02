//! The choice between a GPU and the CPU for a batch of queries.
//!
//! Batches are chosen one by one, by modelled costs: a short one stays on the CPU, a long one goes
//! to the device. The device is opened, and a segment sent to it, when the batches so far would
//! have saved as much time (the *ski rental* rule, see `wave::price`).

use std::sync::{Arc, Weak};

use trommel_kernels::cuda::NoDevice;

use super::cost;
use super::index::Index;
use super::limits::{ChunkLimits, DeviceRoom};
use super::options::QueryOutput;
use super::queries::QueryBlock;
use super::resident::are_resident;
use super::segments::IndexSegment;
use crate::wave::Device;

/// Rules of the choice.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceRules {
    pub(super) device: Device,
    pub(super) output: QueryOutput,
    pub(super) limits: ChunkLimits,
    /// Kernels of the CPU, which share its batches.
    pub(super) kernels: usize,
    /// Whether `auto` takes the device without a comparison of costs.
    pub(super) is_forced: bool,
    /// Time to open the device.
    pub(super) opening_ns: u64,
}

/// Chooses, batch by batch.
#[derive(Debug)]
pub(super) struct DeviceChoice {
    rules: DeviceRules,
    room: DeviceRoom,
    /// Modelled nanoseconds that the device would have saved so far.
    saved_ns: u64,
    /// Nanoseconds to open the device and to send the segments that it has.
    spent_ns: u64,
    /// These segments.
    sent: Vec<Weak<IndexSegment>>,
    /// Whether there is no device, or not any more.
    is_gone: bool,
}

impl DeviceChoice {
    pub(super) fn new(rules: DeviceRules, room: DeviceRoom) -> Self {
        let (sent, spent_ns) = (Vec::new(), rules.opening_ns);
        Self { rules, room, saved_ns: 0, spent_ns, sent, is_gone: rules.device == Device::Cpu }
    }

    /// Notes that the CPU has answered a batch that was for the device.
    pub(super) fn fell_back(&mut self) {
        self.is_gone = true;
    }

    /// Whether the device is to answer `queries` over `index`.
    pub(super) fn takes(&mut self, index: &Index, queries: &QueryBlock) -> bool {
        if self.is_gone || index.len() == 0 || !self.rules.limits.hold(queries) {
            return false;
        }
        if self.rules.device == Device::Auto && !self.rules.is_forced {
            return self.pays(index, queries);
        }
        self.can_take(index)
    }

    /// Whether there is a device with room for the index. A device that cannot be opened for a
    /// reason that a user must know is taken, so that the kernel meets the same reason.
    fn can_take(&mut self, index: &Index) -> bool {
        match self.room.bytes() {
            Ok(bytes) => are_resident(index, bytes).all(|(_, is_resident)| is_resident),
            Err(NoDevice::UnknownSetting { .. } | NoDevice::Failed(_)) => true,
            Err(_) => {
                self.is_gone = self.rules.device == Device::Auto;
                !self.is_gone
            }
        }
    }

    /// Whether the device saves time, and the batches so far pay for it and for the segments.
    fn pays(&mut self, index: &Index, queries: &QueryBlock) -> bool {
        let device = cost::on_device(queries, self.rules.output, index.len());
        let cpu = queries.cost_ns / self.rules.kernels as u64;
        let saved = cpu.saturating_sub(device);
        self.saved_ns = self.saved_ns.saturating_add(saved);
        if saved == 0 || self.saved_ns < self.spent_ns {
            return false;
        }
        self.sent.retain(|sent| sent.strong_count() > 0);
        let is_new = |segment: &&Arc<IndexSegment>| {
            !self.sent.iter().any(|sent| std::ptr::eq(sent.as_ptr(), Arc::as_ptr(segment)))
        };
        let new: Vec<&Arc<IndexSegment>> = index.segments().filter(is_new).collect();
        let bytes = new.iter().map(|segment| segment.lists.as_bytes().len()).sum();
        let spent = self.spent_ns.saturating_add(cost::upload(bytes));
        if self.saved_ns < spent || !self.can_take(index) {
            return false;
        }
        self.spent_ns = spent;
        self.sent.extend(new.into_iter().map(Arc::downgrade));
        true
    }
}
