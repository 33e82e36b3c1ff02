//! The chunks of a filter: which one is filled next, how large it may be, and where it is verified.

use trommel_engine::batch::Chunk;
use trommel_engine::operator::{Counters, Output};

use super::candidates::Candidates;
use super::chunk::JoinedSets;
use super::operator::JoinOutput;
use super::price::Price;
use crate::wave::Buffers;

/// How a filter makes chunks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunks {
    /// How many there are.
    pub(super) count: usize,
    /// Bytes of one for the CPU, and for a device.
    pub(super) bytes: [usize; 2],
    /// What is asked of them.
    pub(super) output: JoinOutput,
    /// Whether a device is used from the first one on.
    pub(super) is_device_wanted: bool,
}

/// Where a filter takes its chunks from and sends them.
#[derive(Debug)]
pub(super) struct Outbox {
    chunks: Chunks,
    buffers: Buffers<Candidates>,
    price: Price,
    sent: u64,
}

impl Outbox {
    pub(super) fn new(chunks: Chunks) -> Self {
        Self { chunks, buffers: Buffers::new(chunks.count), price: Price::default(), sent: 0 }
    }

    /// An empty chunk to be filled; `None` while all are under way.
    pub(super) fn take(&mut self) -> Option<Box<Candidates>> {
        let Chunks { bytes, output, .. } = self.chunks;
        let bytes = bytes[usize::from(self.pays())];
        let mut chunk = self.buffers.take(|| Candidates::new(output))?;
        chunk.empty(bytes);
        Some(chunk)
    }

    /// Takes a chunk that was not needed.
    pub(super) fn keep(&mut self, chunk: Box<Candidates>) {
        self.buffers.give_back(chunk);
    }

    /// Takes a chunk that comes back.
    pub(super) fn give_back(&mut self, reply: Chunk) {
        self.buffers.give_back(reply.into_box());
    }

    /// Sends candidates of these sets.
    pub(super) fn send(&mut self, mut chunk: Box<Candidates>, sets: JoinedSets, out: &mut Output) {
        self.price.turn_to(&sets);
        let pays = self.pays();
        self.price.spend(chunk.len());
        self.sent += 1;
        chunk.begin_way(sets, pays);
        out.send_chunk(chunk.into_message());
    }

    /// Sends a chunk that has come back unfinished.
    pub(super) fn send_again(&mut self, chunk: Box<Candidates>, out: &mut Output) {
        self.sent += 1;
        out.send_chunk(chunk.into_message());
    }

    /// Whether no chunk is under way.
    pub(super) fn is_all_home(&self) -> bool {
        self.buffers.are_home()
    }

    /// So many pairs of these sets will be tested in tiles.
    pub(super) fn expect_tiles(&mut self, sets: &JoinedSets, pairs: u64, words: usize) {
        self.price.turn_to(sets);
        self.price.spend_on_tiles(pairs, words);
    }

    fn pays(&self) -> bool {
        self.chunks.is_device_wanted || self.price.is_paid()
    }

    pub(super) fn counters(&self) -> Counters {
        vec![("chunks", self.sent), ("chunk_buffers", self.buffers.made() as u64)]
    }
}
