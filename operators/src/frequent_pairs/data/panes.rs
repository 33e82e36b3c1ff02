//! The blocks of transactions, by pane.
//!
//! ```text
//!            collected   numbering   numbered   away: transposed   here, transposed
//!   blocks   6 5      ─► 5 5      ─► 4       ─► 4 4 3           ─► 3 3 2 2, each with its pane
//!
//!   closed   2..3: can be counted when all blocks of pane 3 are here
//! ```
//!
//! Blocks whose items have numbers when they arrive are numbered at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::collector::TransactionBlock;
use super::transposed::TransposedBlock;
use crate::shared::window::borders::{Borders, WindowSpan};
use crate::shared::window::slides::Slides;

/// A window that has closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Closed {
    /// The last pane of the window.
    pane: u64,
    /// Whether the stream has ended within the last pane.
    pub(crate) is_last: bool,
    pub(crate) span: WindowSpan,
}

/// Blocks on their way from the collector to the windows. The blocks have the order of the stream
/// at each step.
#[derive(Debug)]
pub(crate) struct PaneBlocks {
    /// Panes of a window.
    panes: usize,
    /// Borders of the windows, if there are windows.
    borders: Option<Borders>,
    /// The live pane.
    pane: u64,
    /// Number of transactions of each pane of the present window; the live pane is at the end.
    counts: VecDeque<u64>,
    collected: VecDeque<(u64, TransactionBlock)>,
    /// Panes of the blocks whose items are being looked up, each with the bytes that the block
    /// takes meanwhile.
    numbering: VecDeque<(u64, usize)>,
    numbered: VecDeque<(u64, TransactionBlock)>,
    /// Panes of the blocks that are being transposed, each with the bytes that the block takes
    /// meanwhile.
    away: VecDeque<(u64, usize)>,
    here: VecDeque<(u64, Arc<TransposedBlock>)>,
    here_bytes: usize,
    closed: VecDeque<Closed>,
}

impl PaneBlocks {
    /// Without `slides`, the whole stream is one window.
    pub(crate) fn new(slides: Option<Slides>) -> Self {
        Self {
            panes: slides.map_or(1, |slides| slides.panes),
            borders: slides.map(|slides| slides.borders),
            pane: 0,
            counts: VecDeque::from([0]),
            collected: VecDeque::new(),
            numbering: VecDeque::new(),
            numbered: VecDeque::new(),
            away: VecDeque::new(),
            here: VecDeque::new(),
            here_bytes: 0,
            closed: VecDeque::new(),
        }
    }

    /// Adds a block of the live pane.
    pub(crate) fn push(&mut self, block: TransactionBlock) {
        let is_first = self.collected.is_empty() && self.numbering.is_empty();
        let is_numbered = is_first && block.items.is_numbered();
        let blocks = if is_numbered { &mut self.numbered } else { &mut self.collected };
        blocks.push_back((self.pane, block));
    }

    /// Counts a transaction of the live pane; returns whether the pane is full now.
    pub(crate) fn count_transaction(&mut self) -> bool {
        *self.live_count() += 1;
        self.borders.as_mut().is_some_and(|borders| borders.advance(1).1)
    }

    fn live_count(&mut self) -> &mut u64 {
        self.counts.back_mut().expect("there is a live pane")
    }

    /// Notes that a batch entered the stream.
    pub(crate) fn enter(&mut self, entered: Instant) {
        self.borders.iter_mut().for_each(|borders| borders.enter(entered));
    }

    /// Whether the live pane ended before `now`, and the window has transactions. If the window has
    /// no transaction, the windows until `now` are skipped.
    pub(crate) fn has_passed(&mut self, now: Instant) -> bool {
        let Some(borders) = &mut self.borders else { return false };
        let Some(live) = borders.passed(now) else { return false };
        let has_transactions = self.counts.iter().any(|&count| count > 0);
        if !has_transactions {
            borders.skip_to(live);
        }
        has_transactions
    }

    /// The time at which the live pane ends, if the window has transactions.
    pub(crate) fn end(&self) -> Option<Instant> {
        let has_transactions = self.counts.iter().any(|&count| count > 0);
        self.borders.filter(|_| has_transactions)?.end()
    }

    /// Whether the live pane has transactions.
    pub(crate) fn is_live(&self) -> bool {
        self.counts.back().is_some_and(|&count| count > 0)
    }

    /// Closes the window that ends with the live pane, whose last block is `block`. The pane
    /// `is_whole` unless the stream has ended within the pane.
    pub(crate) fn close(&mut self, block: Option<TransactionBlock>, is_whole: bool) {
        block.into_iter().for_each(|block| self.push(block));
        let is_last = !is_whole;
        let span = match &mut self.borders {
            Some(borders) => borders.span(self.panes, is_whole),
            None => WindowSpan::default(),
        };
        self.closed.push_back(Closed { pane: self.pane, is_last, span });
        if is_last {
            // A later run continues within this pane.
            return;
        }
        self.borders.iter_mut().for_each(Borders::turn);
        self.pane += 1;
        self.counts.push_back(0);
        if self.counts.len() > self.panes {
            self.counts.pop_front();
        }
    }

    /// Maximum bytes of the lists of the next block, if `items` items are known; `None` if no block
    /// waits.
    pub(crate) fn next_bytes(&self, items: usize) -> Option<usize> {
        self.numbered.front().map(|(_, block)| TransposedBlock::bytes_max(block, items))
    }

    /// Number of items that are looked up in the next block, and maximum bytes of their numbers;
    /// `None` if no block waits.
    pub(crate) fn next_to_look_up(&self) -> Option<(usize, usize)> {
        let block = self.collected.front();
        block.map(|(_, block)| (block.items.waiting(), block.items.bytes_of_look_up()))
    }

    /// The next block whose items are looked up; `bytes` are reserved for their numbers.
    pub(crate) fn next_look_up(&mut self, bytes: usize) -> Option<TransactionBlock> {
        let (pane, block) = self.collected.pop_front()?;
        self.numbering.push_back((pane, block.bytes() + bytes));
        Some(block)
    }

    /// Takes a block whose items have numbers now. Blocks return in order.
    pub(crate) fn looked_up(&mut self, block: TransactionBlock) {
        let (pane, _) = self.numbering.pop_front().expect("it was away");
        self.numbered.push_back((pane, block));
    }

    /// The next block to be transposed; `list_bytes` are reserved for its lists.
    pub(crate) fn next_block(&mut self, list_bytes: usize) -> Option<TransactionBlock> {
        let (pane, block) = self.numbered.pop_front()?;
        self.away.push_back((pane, block.bytes() + list_bytes));
        Some(block)
    }

    /// Takes a transposed block. Blocks return in order, so this block is the block that was away
    /// for longest.
    pub(crate) fn landed(&mut self, block: TransposedBlock) {
        let (pane, _) = self.away.pop_front().expect("it was away");
        self.here_bytes += block.bytes();
        self.here.push_back((pane, Arc::new(block)));
    }

    /// Whether blocks are being looked up or transposed.
    pub(crate) fn are_away(&self) -> bool {
        !self.numbering.is_empty() || !self.away.is_empty()
    }

    /// The next window that has closed and whose blocks are all here.
    pub(crate) fn next_closed(&mut self) -> Option<Closed> {
        let closed = *self.closed.front()?;
        // Blocks go through each step in order, so the first block that is not here has the oldest
        // pane.
        let away = |blocks: &VecDeque<(u64, usize)>| blocks.front().map(|(pane, _)| *pane);
        let waiting =
            |blocks: &VecDeque<(u64, TransactionBlock)>| blocks.front().map(|(pane, _)| *pane);
        let first = away(&self.away).or_else(|| waiting(&self.numbered));
        let first = first.or_else(|| away(&self.numbering)).or_else(|| waiting(&self.collected));
        if first.is_some_and(|pane| pane <= closed.pane) {
            return None;
        }
        self.closed.pop_front()
    }

    /// The blocks of a window.
    pub(crate) fn blocks(&self, closed: Closed) -> Vec<Arc<TransposedBlock>> {
        let panes = (closed.pane + 1).saturating_sub(self.panes as u64)..=closed.pane;
        let here = self.here.iter().filter(|(pane, _)| panes.contains(pane));
        here.map(|(_, block)| Arc::clone(block)).collect()
    }

    /// Drops the blocks that belong to no window after `closed`; drops all blocks if `closed` is
    /// the last window. Returns the bytes of the dropped blocks, because the lists of `closed` may
    /// still hold these blocks.
    pub(crate) fn drop_before(&mut self, closed: Closed) -> usize {
        let first = match closed.is_last {
            true => u64::MAX,
            false => (closed.pane + 2).saturating_sub(self.panes as u64),
        };
        let before = self.here_bytes;
        while self.here.front().is_some_and(|&(pane, _)| pane < first) {
            let dropped = self.here.pop_front();
            self.here_bytes -= dropped.map_or(0, |(_, block)| block.bytes());
        }
        before - self.here_bytes
    }

    /// The progress of the windows, and each block with the age of its pane, 0 for the live pane.
    /// All blocks of the last window have returned.
    pub(crate) fn state(&self) -> (u64, impl ExactSizeIterator<Item = (u32, &TransposedBlock)>) {
        let progress = self.borders.map_or(0, Borders::progress);
        let age = |pane| u32::try_from(self.pane - pane).expect("fewer than the panes of a window");
        (progress, self.here.iter().map(move |(pane, block)| (age(pane), &**block)))
    }

    /// Continues from a [state](Self::state), whose blocks have descending ages.
    pub(crate) fn resume(&mut self, progress: u64, blocks: Vec<(u32, TransposedBlock)>) {
        self.borders.iter_mut().for_each(|borders| borders.resume(progress));
        self.pane = self.panes as u64 - 1;
        self.counts = (0..self.panes).map(|_| 0).collect();
        for (age, block) in blocks {
            self.counts[self.panes - 1 - age as usize] += u64::from(block.transactions());
            self.here_bytes += block.bytes();
            self.here.push_back((self.pane - u64::from(age), Arc::new(block)));
        }
    }

    /// Visits the item numbers of all blocks that have numbers. No block is away, and no other
    /// owner holds a block.
    pub(crate) fn for_each_item(&mut self, mut visit: impl FnMut(&mut u32)) {
        debug_assert!(!self.are_away());
        for (_, block) in self.collected.iter_mut().chain(&mut self.numbered) {
            block.items.numbers_mut().iter_mut().for_each(&mut visit);
        }
        for (_, block) in &mut self.here {
            let block = Arc::get_mut(block).expect("no lists are joined");
            block.items_mut().iter_mut().for_each(&mut visit);
        }
    }

    /// Bytes of all blocks.
    pub(crate) fn bytes(&self) -> usize {
        let waiting = self.collected.iter().chain(&self.numbered);
        let away = self.numbering.iter().chain(&self.away);
        self.here_bytes
            + waiting.map(|(_, block)| block.bytes()).sum::<usize>()
            + away.map(|(_, bytes)| bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::frequent_pairs::data::transposed::Transposition;

    fn block(transactions: usize) -> TransactionBlock {
        TransactionBlock { ends: vec![0; transactions], ..TransactionBlock::default() }
    }

    fn transposed(transactions: usize) -> TransposedBlock {
        Transposition::default().transpose(&mut block(transactions))
    }

    fn sizes(panes: &PaneBlocks, closed: Closed) -> Vec<u32> {
        panes.blocks(closed).iter().map(|block| block.transactions()).collect()
    }

    #[test]
    fn a_window_waits_for_the_blocks_of_its_panes() {
        let mut panes = PaneBlocks::new(Some(Slides::of_items(6, Some(3.0)).unwrap()));
        panes.push(block(2));
        let full = [(); 3].map(|()| panes.count_transaction());
        assert_eq!(full, [false, false, true]);
        panes.close(Some(block(1)), true);
        panes.push(block(3));
        assert_eq!([(); 3].map(|()| panes.count_transaction()), [false, false, true]);
        panes.close(None, true);
        assert!(panes.next_closed().is_none());
        assert!(panes.next_block(0).is_some() && panes.next_block(0).is_some() && panes.are_away());
        panes.landed(transposed(2));
        assert!(panes.next_closed().is_none());
        panes.landed(transposed(1));
        let first = panes.next_closed().unwrap();
        assert_eq!(sizes(&panes, first), [2, 1]);
        panes.drop_before(first);
        assert!(panes.next_closed().is_none());
        assert!(panes.next_block(0).is_some() && panes.next_block(0).is_none());
        panes.landed(transposed(3));
        let second = panes.next_closed().unwrap();
        assert_eq!(sizes(&panes, second), [2, 1, 3]);
        panes.drop_before(second);
        assert_eq!(panes.here.len(), 1);
        assert_eq!(panes.here_bytes, panes.here[0].1.bytes());
    }

    #[test]
    fn windows_of_time_close_when_it_has_passed() {
        let mut panes = PaneBlocks::new(Some(Slides::of_time(10.0, Some(5.0)).unwrap()));
        let begin = Instant::now();
        panes.enter(begin);
        assert_eq!(panes.end(), None, "there is nothing to wait for");
        assert!(!panes.has_passed(begin + Duration::from_secs(100)));
        panes.enter(begin + Duration::from_secs(100));
        assert!(!panes.count_transaction());
        let end = panes.end().unwrap();
        assert!(end > begin + Duration::from_secs(90) && end <= begin + Duration::from_secs(105));
        assert!(!panes.has_passed(end - Duration::from_millis(1)));
        // The transaction is in two windows, and no later window has a transaction.
        for _ in 0..2 {
            assert!(panes.has_passed(end + Duration::from_secs(60)));
            panes.close(Some(block(1)), true);
        }
        assert!(!panes.has_passed(end + Duration::from_secs(60)));
        assert_eq!((panes.closed.len(), panes.end()), (2, None));
        assert!(!panes.is_live());
    }
}
