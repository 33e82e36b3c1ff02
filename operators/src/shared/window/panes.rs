//! Panes: immutable parts of the state of a stream, merged as they age.
//!
//! Each micro-batch becomes a pane. A pane that is not much larger than all panes after it is
//! merged with these panes, so that there is a logarithmic number of panes, and each item is copied
//! a logarithmic number of times (O'Neil, Cheng, Gawlick, O'Neil, *The Log-Structured Merge-Tree*,
//! Acta Informatica 33, 1996). No pane crosses the border of a [cell](Extent::cell), so a pane
//! expires as a whole at most one cell after its first item. Without room for a copy, panes are not
//! merged.
//!
//! Panes are merged [at once](Panes::push), or by another thread while the stream continues:
//! [`Panes::run_to_merge`] names the panes, and [`Panes::replace`] replaces the panes by the merged
//! pane when the merge is ready.

use std::ops::{Deref, DerefMut, Range};

use crate::shared::window::Extent;

/// A pane is merged with all panes after it if its weight is at most `GROWTH` times their weight.
const GROWTH: usize = 2;

/// A part of the state of a stream.
pub(crate) trait Pane: Sized {
    /// Cell of all items of the pane.
    fn cell(&self) -> u64;
    /// Latest stamp of the items.
    fn newest(&self) -> u64;
    /// Cost of a copy, in any unit.
    fn weight(&self) -> usize;
    /// Bytes of memory.
    fn bytes(&self) -> usize;
    /// Whether the consecutive panes `parts` fit into one pane, within the limits of the format of
    /// panes.
    fn may_merge(parts: &[Self]) -> bool;
}

/// A pane that is merged in one step.
pub(crate) trait MergePane: Pane {
    /// Error of a merge.
    type Error;

    /// Merges the consecutive panes `parts`, which all belong to one cell, into one pane.
    fn merged(parts: &[Self]) -> Result<Self, Self::Error>;
}

/// The panes of a stream, from the oldest to the newest.
#[derive(Debug)]
pub(crate) struct Panes<P> {
    panes: Vec<P>,
    merges: u64,
}

impl<P> Default for Panes<P> {
    fn default() -> Self {
        Self { panes: Vec::new(), merges: 0 }
    }
}

impl<P: Pane> Panes<P> {
    /// Number of merges so far.
    pub(crate) fn merges(&self) -> u64 {
        self.merges
    }

    /// Adds the newest pane.
    pub(crate) fn add(&mut self, pane: P) {
        self.panes.push(pane);
    }

    /// Range of the panes to merge next, if the copy fits into `room` bytes: the panes of a closed
    /// cell, or else the newest panes.
    pub(crate) fn run_to_merge(&self, room: usize) -> Option<Range<usize>> {
        let newest = self.panes.len().checked_sub(1)?;
        let open = self.panes[newest].cell();
        let mut end = 0;
        for panes in self.panes.chunk_by(|left, right| left.cell() == right.cell()) {
            let begin = end;
            end += panes.len();
            // A closed cell gets no further panes, so all of its panes are merged into one.
            if panes.len() > 1 && panes[0].cell() != open && fits(panes, room) {
                return Some(begin..end);
            }
        }
        let run = self.newest_run(newest, room)..end;
        (run.len() > 1).then_some(run)
    }

    /// Replaces the panes `run` by `merged`, which has the items of these panes.
    pub(crate) fn replace(&mut self, run: Range<usize>, merged: P) {
        self.merges += 1;
        self.panes.splice(run, [merged]);
    }

    /// The first of the panes to merge with the pane at `newest`: earlier panes are included while
    /// they are not much larger and the copy fits into `room` bytes.
    fn newest_run(&self, newest: usize, room: usize) -> usize {
        let cell = self.panes[newest].cell();
        // Each step compares a pane with the total of all panes after it, so one merge takes a
        // whole run of panes and copies each item once.
        let (mut begin, mut weight) = (newest, self.panes[newest].weight());
        while let Some(before) = begin.checked_sub(1) {
            let pane = &self.panes[before];
            let is_small = pane.cell() == cell && pane.weight() <= GROWTH * weight;
            if !is_small || !fits(&self.panes[before..], room) {
                break;
            }
            weight += pane.weight();
            begin = before;
        }
        begin
    }

    /// Removes and returns the panes whose items have all left the window at `stamp`.
    pub(crate) fn expire(
        &mut self,
        window: Extent,
        stamp: u64,
    ) -> impl ExactSizeIterator<Item = P> + '_ {
        let is_live = |pane: &P| window.reaches(pane.newest(), stamp);
        let expired = self.panes.iter().position(is_live).unwrap_or(self.panes.len());
        self.panes.drain(..expired)
    }
}

impl<P: MergePane> Panes<P> {
    /// Adds the newest pane, and merges it with earlier panes that are not much larger, as far as
    /// the copy fits into `room` bytes.
    pub(crate) fn push(&mut self, pane: P, room: usize) -> Result<(), P::Error> {
        self.add(pane);
        let newest = self.panes.len() - 1;
        self.merge(self.newest_run(newest, room)..newest + 1)
    }

    /// Merges the panes of the last cell into one pane if `open` is another cell and the copy fits
    /// into `room` bytes.
    pub(crate) fn close_cells(&mut self, open: u64, room: usize) -> Result<(), P::Error> {
        let Some(cell) = self.panes.last().map(P::cell).filter(|&cell| cell != open) else {
            return Ok(());
        };
        let begin = self.panes.partition_point(|pane| pane.cell() < cell);
        if fits(&self.panes[begin..], room) { self.merge(begin..self.panes.len()) } else { Ok(()) }
    }

    fn merge(&mut self, run: Range<usize>) -> Result<(), P::Error> {
        if run.len() > 1 {
            let merged = P::merged(&self.panes[run.clone()])?;
            self.replace(run, merged);
        }
        Ok(())
    }
}

/// Whether the copy of `parts` fits into `room` bytes and into one pane.
fn fits<P: Pane>(parts: &[P], room: usize) -> bool {
    parts.iter().map(P::bytes).sum::<usize>() <= room && P::may_merge(parts)
}

impl<P> Deref for Panes<P> {
    type Target = [P];

    fn deref(&self) -> &[P] {
        &self.panes
    }
}

impl<P> DerefMut for Panes<P> {
    fn deref_mut(&mut self) -> &mut [P] {
        &mut self.panes
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Stamps of items.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Stamps(Vec<u64>);

    const WINDOW: Extent = Extent::Items(40);

    impl Pane for Stamps {
        fn cell(&self) -> u64 {
            WINDOW.cell(self.0[0])
        }

        fn newest(&self) -> u64 {
            *self.0.last().unwrap()
        }

        fn weight(&self) -> usize {
            self.0.len()
        }

        fn bytes(&self) -> usize {
            8 * self.0.len()
        }

        fn may_merge(parts: &[Self]) -> bool {
            parts.iter().map(Self::weight).sum::<usize>() <= 9
        }
    }

    impl MergePane for Stamps {
        type Error = Infallible;

        fn merged(parts: &[Self]) -> Result<Self, Infallible> {
            let stamps: Vec<u64> = parts.iter().flat_map(|part| part.0.clone()).collect();
            assert!(stamps.is_sorted() && parts.iter().all(|part| part.cell() == parts[0].cell()));
            Ok(Self(stamps))
        }
    }

    /// Every item stays until its window has passed, and at most a cell longer, for any number of
    /// panes.
    #[test]
    fn panes_hold_the_window_and_at_most_a_cell_more() {
        for room in [0, 40, usize::MAX] {
            let mut panes = Panes::default();
            for stamp in 0..500 {
                let expired: Vec<Stamps> = panes.expire(WINDOW, stamp).collect();
                assert!(expired.iter().all(|pane| !WINDOW.reaches(pane.newest(), stamp)));
                let Ok(()) = panes.close_cells(WINDOW.cell(stamp), room);
                let Ok(()) = panes.push(Stamps(vec![stamp]), room);
                let held: Vec<u64> = panes.iter().flat_map(|pane| pane.0.clone()).collect();
                assert_eq!(
                    held,
                    ((stamp + 1).saturating_sub(held.len() as u64)..=stamp).collect::<Vec<_>>()
                );
                assert!(
                    (0..=stamp)
                        .filter(|&old| WINDOW.reaches(old, stamp))
                        .all(|old| held.contains(&old))
                );
                assert!(held.len() <= 40 + 10, "{stamp}: {}", held.len());
                assert!(panes.iter().all(|pane| pane.0.len() <= 9));
                assert!(room < usize::MAX || panes.len() <= 5 * 4, "{}", panes.len());
            }
            assert_eq!(panes.merges() > 0, room > 8);
        }
    }
}
