//! Rounds over rows of bits.

use std::hint;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trommel_kernels::cuda::supports::{
    BitRows, Job, PAIRS_MIN, PairLimits, Policy, RowLimits, TILE, TidBlocks, Tile, TilePairs,
};
use trommel_kernels::cuda::{DeviceError, Kernels, Lane, Memory, PinnedBuffer, Slot};
use trommel_kernels::supports::Pair;

use super::matrix::{Answer, Matrix, Workload};

/// Times of one round.
#[derive(Clone, Copy, Default)]
pub(super) struct Round {
    pub(super) rows: Duration,
    pub(super) kernel: Duration,
}

/// A workload in pinned memory and its buffers on a device.
pub(super) struct Gpu<'a> {
    pub(super) workload: &'a Workload,
    kernels: Arc<Kernels<TilePairs>>,
    lane: Arc<Lane>,
    offsets: PinnedBuffer<u32>,
    tids: PinnedBuffer<u16>,
    pub(super) rows: Arc<BitRows>,
    pub(super) tiles: Vec<Tile>,
    /// Ends of the parts, and the tiles of each.
    ends: Vec<u32>,
    parts: Vec<Vec<Tile>>,
}

impl<'a> Gpu<'a> {
    pub(super) fn new(memory: &Arc<Memory>, workload: &'a Workload) -> Result<Self, DeviceError> {
        let Matrix { items, transactions, .. } = workload.matrix;
        let offsets_len = TidBlocks::offsets_len(items, transactions);
        let mut offsets = memory.pinned_buffer(offsets_len)?;
        let mut tids = memory.pinned_buffer(workload.tids.len())?;
        TidBlocks::cut(workload.lists(), transactions, &mut offsets, &mut tids);
        let limits = RowLimits { items, transactions, tids: tids.len() };
        let ends = workload.matrix.ends();
        Ok(Self {
            workload,
            kernels: Kernels::load(memory.device())?,
            lane: Arc::new(Lane::new(memory.device())?),
            offsets,
            tids,
            rows: Arc::new(BitRows::with_room(memory, limits)?),
            tiles: workload.matrix.tiles(),
            parts: workload.matrix.parts(&ends),
            ends,
        })
    }

    /// A slot for the tiles of each part.
    pub(super) fn slots(&self, memory: &Arc<Memory>) -> Result<Vec<Slot<TilePairs>>, DeviceError> {
        // A part has all tiles of its right items.
        let mut sides = self.workload.parts.iter();
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        let slot = |((begin, end), tiles): ((u32, &u32), &Vec<Tile>)| {
            let sides = sides.by_ref().take((end.div_ceil(TILE) - begin / TILE) as usize);
            let pairs = usize::try_from(sides.map(|side| side.pairs).sum::<u64>());
            let pairs = pairs.expect("they fit the memory").max(PAIRS_MIN);
            Slot::new(memory, PairLimits { tiles: tiles.len(), pairs })
        };
        begins.zip(&self.ends).zip(&self.parts).map(slot).collect()
    }

    pub(super) fn slot(&self, memory: &Arc<Memory>) -> Result<Slot<TilePairs>, DeviceError> {
        let pairs = usize::try_from(self.workload.answer.pairs).expect("they fit the memory");
        Slot::new(memory, PairLimits { tiles: self.tiles.len(), pairs: pairs.max(PAIRS_MIN) })
    }

    /// From lists in pinned memory to pairs in pinned memory, part by part; the answer is checked.
    pub(super) fn whole_round(
        &mut self,
        slots: Vec<Slot<TilePairs>>,
        policy: Policy,
    ) -> Result<(Vec<Slot<TilePairs>>, Duration), DeviceError> {
        let Matrix { items, transactions, least, .. } = self.workload.matrix;
        let lists = TidBlocks::new(items, transactions, &self.offsets, &self.tids);
        let rows = Arc::get_mut(&mut self.rows).expect("no chunk is in flight");
        let (mut parts, mut free) = (self.parts.iter(), slots.into_iter());
        let mut flights = Vec::with_capacity(self.parts.len());
        let start = Instant::now();
        rows.load_in_parts(&self.kernels, &self.lane, &lists, &self.ends, |rows| {
            let tiles = parts.next().expect("as many parts as ends");
            let slot = free.next().expect("a slot for each part");
            let job = Job { tiles, rows, least, policy };
            flights.push(slot.submit(&self.lane, &self.kernels, &job)?);
            Ok(())
        })?;
        let mut slots = Vec::with_capacity(flights.len());
        for flight in flights {
            // A sleeping thread would need longer to wake up than the last part takes.
            while !flight.is_done()? {
                hint::spin_loop();
            }
            slots.push(flight.collect()?);
        }
        let whole = start.elapsed();
        let mut answer = Answer::default();
        for slot in &slots {
            answer.add(slot.pairs());
            assert!(slot.unfinished().is_empty(), "there is room for all pairs");
        }
        assert_eq!(answer, self.workload.answer, "wrong pairs of parts");
        Ok((slots, whole))
    }

    /// Rows, then pairs, each waited for; the answer is checked.
    pub(super) fn round(
        &mut self,
        slot: Slot<TilePairs>,
        policy: Policy,
    ) -> Result<(Slot<TilePairs>, Round), DeviceError> {
        let Matrix { items, transactions, least, .. } = self.workload.matrix;
        let lists = TidBlocks::new(items, transactions, &self.offsets, &self.tids);
        let rows = Arc::get_mut(&mut self.rows).expect("no chunk is in flight");
        let start = Instant::now();
        rows.load(&self.kernels, &self.lane, &lists)?;
        let loaded = start.elapsed();
        let job = Job { tiles: &self.tiles, rows: &self.rows, least, policy };
        let slot = slot.submit(&self.lane, &self.kernels, &job)?.collect()?;
        let mut answer = Answer::default();
        answer.add(slot.pairs());
        assert!(slot.unfinished().is_empty(), "there is room for all pairs");
        assert_eq!(answer, self.workload.answer, "wrong pairs");
        let round = Round { rows: loaded, kernel: slot.times().kernel };
        Ok((slot, round))
    }

    /// Bytes of the lists and of the pairs.
    pub(super) fn bytes(&self) -> [usize; 2] {
        let lists = size_of_val(&self.offsets[..]) + size_of_val(&self.tids[..]);
        let pairs = usize::try_from(self.workload.answer.pairs).expect("they fit the memory");
        [lists, pairs * size_of::<Pair>()]
    }
}
