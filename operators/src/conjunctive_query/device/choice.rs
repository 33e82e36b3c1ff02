//! The choice between a GPU and the CPU for a batch of queries.
//!
//! The choice takes each batch by its modelled cost: a cheap batch stays on the CPU, a costly batch
//! goes to the device. With `auto`, a kernel opens the device and sends the present segments;
//! meanwhile the CPU answers queries.

use std::sync::{Arc, Weak};

use super::resident::are_resident;
use super::streamed::ListBytes;
use crate::conjunctive_query::data::index::Index;
use crate::conjunctive_query::data::segments::IndexSegment;
use crate::conjunctive_query::parameters::options::QueryOutput;
use crate::conjunctive_query::plan::cost;
use crate::conjunctive_query::plan::limits::{ChunkLimits, DeviceRoom, Room};
use crate::conjunctive_query::plan::queries::QueryBlock;
use crate::wave::{Access, DeviceChoice, Estimate, SEND_NS_PER_BYTE};

/// Sizes on which the choice depends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchRules {
    pub(crate) output: QueryOutput,
    pub(crate) limits: ChunkLimits,
    /// Number of kernels, which share the batches of the CPU.
    pub(crate) kernels: usize,
}

/// Progress of the opening of a device, with `auto`.
#[derive(Debug)]
enum Opening {
    NotPaid,
    /// A kernel is to open the device and to send this index.
    Due(Arc<Index>),
    UnderWay,
    /// The device is open, or cannot be opened.
    Done,
}

/// Chooses between the device and the CPU, batch by batch.
#[derive(Debug)]
pub(crate) struct BatchChoice {
    choice: DeviceChoice,
    rules: BatchRules,
    room: DeviceRoom,
    opening: Opening,
    /// The segments that have been paid for.
    sent: Vec<Weak<IndexSegment>>,
    list_bytes: ListBytes,
}

impl BatchChoice {
    pub(crate) fn new(choice: DeviceChoice, rules: BatchRules, room: DeviceRoom) -> Self {
        let opening = if choice.is_asked_for() { Opening::Done } else { Opening::NotPaid };
        Self { choice, rules, room, opening, sent: Vec::new(), list_bytes: ListBytes::default() }
    }

    /// The index to be sent to the device, if a kernel is to open the device now. Returned once.
    pub(crate) fn next_opening(&mut self) -> Option<Arc<Index>> {
        let Opening::Due(index) = &self.opening else { return None };
        let index = Arc::clone(index);
        self.opening = Opening::UnderWay;
        Some(index)
    }

    /// Notes that a kernel has opened the device, or has tried to.
    pub(crate) fn opened(&mut self) {
        self.opening = Opening::Done;
    }

    /// Number of devices that the operator uses.
    pub(crate) fn devices(&self) -> usize {
        self.choice.devices()
    }

    /// Whether the device is to answer `queries` over `index`.
    pub(crate) fn takes(&mut self, index: &Arc<Index>, queries: &QueryBlock) -> bool {
        if index.len() == 0 || !self.rules.limits.hold(queries) {
            return false;
        }
        let BatchRules { output, kernels, .. } = self.rules;
        let work = Estimate {
            device_ns: cost::on_device(queries, output, index.len()),
            ..Estimate::on_cpu(queries.cost_ns as f64 / kernels as f64)
        };
        // This question comes first, because opening the device and looking up lists cost time.
        if !self.choice.may_pay(&work) {
            self.choice.charge(&work);
            return false;
        }
        match self.opening {
            Opening::NotPaid => self.pay_opening(index, work),
            Opening::Due(_) | Opening::UnderWay => self.choice.charge(&work),
            Opening::Done => return self.pays(index, queries, work),
        }
        false
    }

    /// Pays for the device and for `index`, unless too little time is saved so far. The number of
    /// segments that have room is known only when the device is open.
    fn pay_opening(&mut self, index: &Arc<Index>, work: Estimate) {
        let bytes = index.list_bytes().min(self.room.most()) as u64;
        if self.choice.pays(&Estimate { bytes, ..work }) {
            self.sent.extend(index.segments().map(Arc::downgrade));
            self.opening = Opening::Due(Arc::clone(index));
        }
    }

    /// Whether an open device saves time, including the time for sending lists, and the time saved
    /// so far pays for the segments that stay.
    fn pays(&mut self, index: &Arc<Index>, queries: &QueryBlock, work: Estimate) -> bool {
        let room = match self.room.room().map_err(|reason| self.choice.refused(&reason)) {
            Ok(room) => room,
            Err(access) => return matches!(access, Access::Refused),
        };
        let Some(list_bytes) = self.list_bytes.of(index, queries, room) else {
            self.choice.charge(&work);
            return false;
        };
        let new = self.new_segments(index, room);
        let bytes = new.iter().map(|segment| segment.lists.as_bytes().len() as u64).sum();
        let device_ns = work.device_ns + list_bytes as f64 * SEND_NS_PER_BYTE;
        let pays = self.choice.pays(&Estimate { device_ns, bytes, ..work });
        if pays {
            self.sent.extend(new.iter().map(Arc::downgrade));
        }
        pays
    }

    /// The segments of `index` that stay on the device and that have not been paid for.
    fn new_segments(&mut self, index: &Index, room: Room) -> Vec<Arc<IndexSegment>> {
        self.sent.retain(|sent| sent.strong_count() > 0);
        let is_new = |segment: &Arc<IndexSegment>| {
            !self.sent.iter().any(|sent| std::ptr::eq(sent.as_ptr(), Arc::as_ptr(segment)))
        };
        let staying = are_resident(index, room.index_bytes).filter(|(_, stays)| *stays);
        staying.map(|(segment, _)| Arc::clone(segment)).filter(is_new).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use arrow_array::RecordBatch;
    use arrow_schema::Schema;

    use super::*;
    use crate::conjunctive_query::data::segments::{DocumentBlock, SegmentFactory};
    use crate::conjunctive_query::parameters::tuning::Tuning;
    use crate::conjunctive_query::plan::queries::Origin;
    use crate::shared::names::block::ItemBlock;
    use crate::wave::{Device, DevicePrice, DeviceSession, whole};

    /// An index of two segments, of 1,000 documents with one term each.
    fn index() -> Arc<Index> {
        let mut factory = SegmentFactory::default();
        let mut segment = || {
            let (terms, ends) = (ItemBlock::of(vec![0; 1000]), (1..=1000).collect());
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

    /// A choice whose device takes 1 ms to open and has room for `index_bytes` and `list_words`.
    fn choice(device: Device, index_bytes: usize, list_words: usize) -> BatchChoice {
        let (output, tuning) = (QueryOutput::Count, Tuning::default());
        let limits = ChunkLimits::new(output, 10, &tuning);
        let session = DeviceSession::with_free_bytes(device, 1 << 40);
        let price = DevicePrice { opening_ns: 1e6, ..DevicePrice::MEASURED };
        let choice = DeviceChoice::new(session.clone(), price);
        let room = DeviceRoom::new(session, &limits, index_bytes, list_words);
        BatchChoice::new(choice, BatchRules { output, limits, kernels: 2 }, room)
    }

    /// Nanoseconds to send `bytes` bytes.
    fn sending_ns(bytes: usize) -> u64 {
        (bytes as u64).div_ceil(6)
    }

    fn device_ns() -> u64 {
        whole(cost::on_device(&queries(0), QueryOutput::Count, 2)) as u64
    }

    #[test]
    fn batches_save_until_they_have_paid_for_the_device_and_the_segments() {
        let (index, large, device) = (index(), 1 << 20, device_ns());
        let mut auto = choice(Device::Auto, large, large);
        assert!(!auto.takes(&index, &queries(device)), "nothing is saved");
        assert!(!auto.takes(&index, &queries(2 * device)), "two kernels take half the time");
        let half = 2 * (device + 500_000);
        assert!(!auto.takes(&index, &queries(half)), "half of the device");
        assert!(auto.next_opening().is_none());
        // The device takes a two-hundredth of the time of the CPU.
        let rest = half + half / 20 + 2 * sending_ns(index.list_bytes());
        assert!(!auto.takes(&index, &queries(rest)), "it is not open");
        assert!(auto.next_opening().is_some_and(|opened| Arc::ptr_eq(&opened, &index)));
        assert!(!auto.takes(&index, &queries(3 * device)), "it is being opened");
        assert!(auto.next_opening().is_none());
        auto.opened();
        assert!(!auto.takes(&index, &queries(device)), "it costs more");
        assert!(auto.takes(&index, &queries(3 * device)), "the segments are there");
    }

    #[test]
    fn lists_that_come_along_are_sent_with_each_batch() {
        let index = index();
        let saves = |cost_ns: u64, list_words: usize| {
            let mut auto = choice(Device::Auto, 0, list_words);
            auto.choice.charge(&Estimate::on_cpu(1e9));
            auto.opening = Opening::Done;
            auto.takes(&index, &queries(cost_ns))
        };
        let device = device_ns();
        // Lists of both segments, 80 words each: a bit for each of 1,000 documents, a header, a row
        // and a margin.
        let lists = sending_ns(2 * 4 * 80);
        assert!(!saves(2 * (device + lists), 1000));
        assert!(saves(2 * (device + lists) + 2 * (device + lists) / 50, 1000));
        assert!(!saves(1 << 30, 79), "the lists of the query have no room");
        let mut cuda = choice(Device::Cuda(0), 0, 79);
        assert!(!cuda.takes(&index, &queries(0)));
        cuda = choice(Device::Cuda(0), 0, 80);
        assert!(cuda.takes(&index, &queries(0)), "without a comparison");
        cuda.room.first().leave();
        assert!(!cuda.takes(&index, &queries(0)));
        assert!(!choice(Device::Cpu, 1 << 20, 80).takes(&index, &queries(1 << 30)));
    }
}
