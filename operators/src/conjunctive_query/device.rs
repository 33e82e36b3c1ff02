//! The choice between a GPU and the CPU for a batch of queries.
//!
//! Batches are chosen one by one, by modelled costs: a short one stays on the CPU, a long one goes
//! to the device. The device is opened, and a segment sent to it, when the batches so far would
//! have saved as much time (the *ski rental* rule, see `wave::price`). With `auto`, a kernel opens
//! it and sends the segments that there are, and the CPU answers queries meanwhile.

use std::sync::{Arc, Weak};

use trommel_kernels::cuda::NoDevice;

use super::cost;
use super::index::Index;
use super::limits::{ChunkLimits, DeviceRoom, Room};
use super::options::QueryOutput;
use super::queries::QueryBlock;
use super::resident::are_resident;
use super::segments::IndexSegment;
use super::streamed::ListBytes;
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

/// Progress of the opening of a device, with `auto`.
#[derive(Debug)]
enum Opening {
    NotPaid,
    /// It is to be opened, and to be sent this index.
    Due(Arc<Index>),
    UnderWay,
    /// The device is open, or cannot be opened.
    Done,
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
    opening: Opening,
    list_bytes: ListBytes,
    /// Whether there is no device, or not any more.
    is_gone: bool,
}

impl DeviceChoice {
    pub(super) fn new(rules: DeviceRules, room: DeviceRoom) -> Self {
        Self {
            rules,
            room,
            saved_ns: 0,
            spent_ns: rules.opening_ns,
            sent: Vec::new(),
            opening: Opening::NotPaid,
            list_bytes: ListBytes::default(),
            is_gone: rules.device == Device::Cpu,
        }
    }

    /// The index to be sent to the device, if a kernel is to open that now; once.
    pub(super) fn next_opening(&mut self) -> Option<Arc<Index>> {
        let Opening::Due(index) = &self.opening else { return None };
        let index = Arc::clone(index);
        self.opening = Opening::UnderWay;
        Some(index)
    }

    /// Notes that a kernel has opened the device, or has tried to.
    pub(super) fn opened(&mut self) {
        self.opening = Opening::Done;
    }

    /// Notes that the CPU has answered a batch that was for the device.
    pub(super) fn fell_back(&mut self) {
        self.is_gone = true;
    }

    /// Whether the device is to answer `queries` over `index`.
    pub(super) fn takes(&mut self, index: &Arc<Index>, queries: &QueryBlock) -> bool {
        if self.is_gone || index.len() == 0 || !self.rules.limits.hold(queries) {
            return false;
        }
        if self.rules.device == Device::Auto && !self.rules.is_forced {
            return self.pays(index, queries);
        }
        match self.room() {
            Ok(room) => self.list_bytes.of(index, queries, room).is_some(),
            Err(is_taken) => is_taken,
        }
    }

    /// Whether the device saves time, with the time to send lists that come along, and the batches
    /// so far pay for it and for the segments that stay.
    fn pays(&mut self, index: &Arc<Index>, queries: &QueryBlock) -> bool {
        let device = cost::on_device(queries, self.rules.output, index.len());
        let saved = (queries.cost_ns / self.rules.kernels as u64).saturating_sub(device);
        self.saved_ns = self.saved_ns.saturating_add(saved);
        // Asked before the device is opened and lists are looked up.
        if saved == 0 || self.saved_ns < self.spent_ns {
            return false;
        }
        if !matches!(self.opening, Opening::Done) {
            self.pay_opening(index);
            return false;
        }
        let room = match self.room() {
            Ok(room) => room,
            Err(is_taken) => return is_taken,
        };
        let lists = self.list_bytes.of(index, queries, room);
        lists.is_some_and(|bytes| cost::send(bytes) < saved) && self.pay(index, room)
    }

    /// Pays for the device and for `index`, unless that has been done or too little is saved. Only
    /// an open device says how many segments have room.
    fn pay_opening(&mut self, index: &Arc<Index>) {
        let bytes = index.list_bytes().min(self.room.most());
        let spent = self.spent_ns.saturating_add(cost::send(bytes));
        if matches!(self.opening, Opening::NotPaid) && self.saved_ns >= spent {
            self.spent_ns = spent;
            self.sent.extend(index.segments().map(Arc::downgrade));
            self.opening = Opening::Due(Arc::clone(index));
        }
    }

    /// Pays for the segments that stay and have not been sent; false if too little is saved.
    fn pay(&mut self, index: &Index, room: Room) -> bool {
        self.sent.retain(|sent| sent.strong_count() > 0);
        let is_new = |segment: &Arc<IndexSegment>| {
            !self.sent.iter().any(|sent| std::ptr::eq(sent.as_ptr(), Arc::as_ptr(segment)))
        };
        let new: Vec<&Arc<IndexSegment>> = are_resident(index, room.index_bytes)
            .filter(|(segment, stays)| *stays && is_new(segment))
            .map(|(segment, _)| segment)
            .collect();
        let bytes = new.iter().map(|segment| segment.lists.as_bytes().len()).sum();
        let spent = self.spent_ns.saturating_add(cost::send(bytes));
        let is_paid = self.saved_ns >= spent;
        if is_paid {
            self.spent_ns = spent;
            self.sent.extend(new.into_iter().map(Arc::downgrade));
        }
        is_paid
    }

    /// The memory of the device. If it cannot be opened, whether it is taken all the same: for a
    /// reason that a user must know, so that the kernel meets the same reason.
    fn room(&mut self) -> Result<Room, bool> {
        self.room.room().map_err(|reason| {
            let is_told = matches!(reason, NoDevice::UnknownSetting { .. } | NoDevice::Failed(_));
            let is_taken = is_told || self.rules.device != Device::Auto;
            self.is_gone = !is_taken;
            is_taken
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use arrow_array::RecordBatch;
    use arrow_schema::Schema;

    use super::*;
    use crate::conjunctive_query::queries::Origin;
    use crate::conjunctive_query::segments::{DocumentBlock, SegmentFactory};
    use crate::conjunctive_query::tuning::Tuning;
    use crate::wave::DeviceSession;

    /// An index of two segments, of 1,000 documents with one term each.
    fn index() -> Arc<Index> {
        let mut factory = SegmentFactory::default();
        let mut segment = || {
            let (terms, ends) = (vec![0; 1000], (1..=1000).collect());
            Arc::new(factory.build(&mut DocumentBlock { terms, ends, ..DocumentBlock::default() }))
        };
        Arc::new(Index::new([segment(), segment()]))
    }

    /// A query of the term, whose modelled time is `cost_ns`.
    fn queries(cost_ns: u64) -> QueryBlock {
        let carried = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let origin = Origin { number: 0, first: 0, entered: Instant::now(), carried };
        let mut block = QueryBlock::default();
        block.push(&origin, 0, &[0], (10, cost_ns));
        block
    }

    fn choice(device: Device, index_bytes: usize, list_words: usize) -> DeviceChoice {
        let (output, tuning) = (QueryOutput::Count, Tuning::default());
        let limits = ChunkLimits::new(output, 10, &tuning);
        let (kernels, is_forced, opening_ns) = (2, false, 1_000_000);
        let rules = DeviceRules { device, output, limits, kernels, is_forced, opening_ns };
        let session = DeviceSession::new(device);
        let room = DeviceRoom::known(session, Room { index_bytes, list_words });
        DeviceChoice::new(rules, room)
    }

    #[test]
    fn batches_save_until_they_have_paid_for_the_device_and_the_segments() {
        let (index, large) = (index(), 1 << 20);
        let device = cost::on_device(&queries(0), QueryOutput::Count, 2);
        let sent = index.list_bytes();
        let mut auto = choice(Device::Auto, large, large);
        let mut takes = |cpu: u64| auto.takes(&index, &queries(cpu));
        assert!(!takes(device), "nothing is saved");
        assert!(!takes(2 * device), "two kernels take half the time");
        let half = 2 * (device + 500_000);
        assert!(!takes(half), "half of the device");
        assert!(auto.next_opening().is_none());
        // A two-hundredth of the time of the CPU is that of the device.
        let rest = half + half / 20;
        assert!(!auto.takes(&index, &queries(rest)), "it is not open");
        assert_eq!(auto.spent_ns, 1_000_000 + cost::send(sent));
        assert!(auto.next_opening().is_some_and(|opened| Arc::ptr_eq(&opened, &index)));
        assert!(!auto.takes(&index, &queries(3 * device)), "it is being opened");
        assert!(auto.next_opening().is_none());
        auto.opened();
        let mut takes = |cpu: u64| auto.takes(&index, &queries(cpu));
        assert!(!takes(device), "it costs more");
        assert!(takes(3 * device), "the segments are there");
    }

    #[test]
    fn lists_that_come_along_are_sent_with_each_batch() {
        let index = index();
        let saves = |cost_ns: u64, list_words: usize| {
            let mut auto = choice(Device::Auto, 0, list_words);
            (auto.saved_ns, auto.opening) = (1 << 30, Opening::Done);
            auto.takes(&index, &queries(cost_ns))
        };
        let device = cost::on_device(&queries(0), QueryOutput::Count, 2);
        // A bit for each of 1,000 documents, a header, a row and a margin: twice 80 words.
        let lists = cost::send(2 * 4 * 80);
        assert!(!saves(2 * (device + lists), 1000));
        assert!(saves(2 * (device + lists) + 2 * (device + lists) / 50, 1000));
        assert!(!saves(1 << 30, 79), "the lists of the query have no room");
        let mut cuda = choice(Device::Cuda(0), 0, 79);
        assert!(!cuda.takes(&index, &queries(0)));
        cuda = choice(Device::Cuda(0), 0, 80);
        assert!(cuda.takes(&index, &queries(0)), "without a comparison");
        cuda.fell_back();
        assert!(!cuda.takes(&index, &queries(0)));
        assert!(!choice(Device::Cpu, 1 << 20, 80).takes(&index, &queries(1 << 30)));
    }
}
