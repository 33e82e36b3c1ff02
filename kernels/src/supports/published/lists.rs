//! Tid lists as they are: pairs are intersected by merging blocks of sixteen transactions.

use std::ops::Range;

use crate::Isa;
use crate::overlap::{Chunk, Entry, Pairs, REJECTED, verify};
use crate::supports::answer::{FoundPairs, Pair};
use crate::supports::rows::Rows;

/// Items whose tid lists are intersected with the lists of rows.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sets::Sets;
/// use trommel_kernels::supports::{FoundPairs, ListColumns, Pair};
///
/// // Items 0, 1, 2 are in transactions {0, 1, 2}, {0, 2}, {1, 2}.
/// let lists = Sets::new(&[0, 3, 5, 7], &[0, 1, 2, 0, 2, 1, 2]);
/// let mut found = FoundPairs::new(1, 1 << 16);
/// assert_eq!(ListColumns::new(1..2).count(Isa::Scalar, lists, 2..3, &mut found), 3);
/// assert_eq!(found.pairs(), [Pair { left: 1, right: 2, support: 1 }]);
/// ```
#[derive(Clone, Debug)]
pub struct ListColumns {
    columns: Range<u32>,
    candidates: Vec<u32>,
    required: Vec<u32>,
    supports: Vec<u32>,
}

impl ListColumns {
    /// The items `columns`.
    #[must_use]
    pub fn new(columns: Range<u32>) -> Self {
        Self { candidates: columns.clone().collect(), columns, required: vec![], supports: vec![] }
    }

    /// Finds the frequent pairs of the items `rows` with the columns before each of them, until
    /// `found` is full. Returns the row after the last one counted.
    ///
    /// # Shapes
    ///
    /// `lists`: tid lists of all items, or [pairs](Rows::pairs) of items.
    ///
    /// # Cost
    ///
    /// Reads both lists of each pair, until the least support is out of reach; see
    /// [`overlap::verify`](crate::overlap::verify).
    ///
    /// # Panics
    ///
    /// If `isa` is not available, or an item is not in `lists`.
    pub fn count<'a>(
        &mut self,
        isa: Isa,
        lists: impl Into<Rows<'a>>,
        rows: Range<u32>,
        found: &mut FoundPairs,
    ) -> u32 {
        let lists = lists.into();
        self.required.clear();
        self.required.resize(self.candidates.len(), found.least());
        self.supports.resize(self.candidates.len(), 0);
        for next in rows.clone() {
            if found.is_full() {
                return next;
            }
            let row = lists.row(next);
            let before = ..row.before(self.columns.start, self.columns.len());
            let end = u32::try_from(before.end).expect("columns have 32 bits");
            let entries = [Entry { probe: next, begin: 0, end }];
            let chunk = Chunk {
                entries: &entries,
                candidates: &self.candidates[before],
                required: &self.required[before],
                starts: &[],
            };
            let supports = &mut self.supports[before];
            verify(
                isa,
                Pairs { probes: lists.lists(), candidates: lists.items(), chunk },
                supports,
            );
            let pairs = self.candidates.iter().zip(supports).filter(|(_, s)| **s != REJECTED);
            for (&left, &mut support) in pairs {
                found.push(Pair { left, right: row.number, support });
            }
        }
        rows.end.max(rows.start)
    }
}
