//! Rows: items or pairs of items, each with the transactions that hold it.

use crate::sets::Sets;

/// A row: one item, or a pair of items; columns before the first item are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    /// [`Pair::right`](super::Pair::right) of its answers.
    pub(super) number: u32,
    /// The items, ascending; both are equal for a row of one item.
    pub(super) items: [u32; 2],
    /// The transactions that hold the items.
    pub(super) list: &'a [u32],
}

/// A pair of items as a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RowPair {
    /// Number of the row in the answers.
    pub number: u32,
    /// The items, ascending.
    pub items: [u32; 2],
}

/// The rows of a question: items, for which pairs are found, or pairs, for which triples are found.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sets::Sets;
/// use trommel_kernels::supports::{FoundPairs, Pair, RowPair, Rows, SlicedColumns};
///
/// // Items 0, 1, 2 are in transactions {0, 1, 2}, {0, 2}, {1, 2}; items 1 and 2 both in {2}.
/// let lists = Sets::new(&[0, 3, 5, 7], &[0, 1, 2, 0, 2, 1, 2]);
/// let pairs = [RowPair { number: 7, items: [1, 2] }];
/// let rows = Rows::pairs(lists, Sets::new(&[0, 1], &[2]), &pairs);
/// let mut found = FoundPairs::new(1, 1 << 16);
/// let columns = SlicedColumns::new(lists, 3, 0..3);
/// assert_eq!(columns.count(Isa::Scalar, rows, 0..1, &mut found), 1);
/// assert_eq!(found.pairs(), [Pair { left: 0, right: 7, support: 1 }]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Tid lists of all items.
    items: Sets<'a>,
    lists: Sets<'a>,
    /// Items of the rows; `None` if row `r` is item `r`.
    pairs: Option<&'a [RowPair]>,
}

impl<'a> Rows<'a> {
    /// The pairs `pairs` as rows, by ascending first item.
    ///
    /// # Shapes
    ///
    /// `items`: tid lists of all items. `lists`: for each pair the transactions that hold both
    /// items, ascending.
    ///
    /// # Panics
    ///
    /// If there are not as many lists as pairs, or pairs or their items are not in order.
    #[must_use]
    pub fn pairs(items: Sets<'a>, lists: Sets<'a>, pairs: &'a [RowPair]) -> Self {
        let [lists_len, len] = [lists.len(), pairs.len()];
        assert!(lists_len == len, "{lists_len} lists of {len} pairs");
        let is_ordered = |pair: &RowPair| pair.items[0] < pair.items[1];
        assert!(pairs.iter().all(is_ordered), "the items of a pair ascend");
        assert!(pairs.is_sorted_by_key(|pair| pair.items[0]), "pairs ascend by the first item");
        Self { items, lists, pairs: Some(pairs) }
    }

    /// The tid lists of all items.
    pub(super) fn items(&self) -> Sets<'a> {
        self.items
    }

    /// The tid lists of the rows.
    pub(super) fn lists(&self) -> Sets<'a> {
        self.lists
    }

    /// # Panics
    ///
    /// If there is no such row.
    #[inline(always)]
    pub(super) fn row(&self, row: u32) -> Row<'a> {
        let list = self.lists.set(row as usize);
        match self.pairs {
            None => Row { number: row, items: [row; 2], list },
            Some(pairs) => {
                let RowPair { number, items } = pairs[row as usize];
                Row { number, items, list }
            }
        }
    }
}

/// All items as rows: row `r` is item `r`.
impl<'a> From<Sets<'a>> for Rows<'a> {
    fn from(items: Sets<'a>) -> Self {
        Self { items, lists: items, pairs: None }
    }
}

impl Row<'_> {
    /// Number of columns from `first` on that are counted, at most `len`.
    #[inline(always)]
    pub(super) fn before(&self, first: u32, len: usize) -> usize {
        len.min(self.items[0].saturating_sub(first) as usize)
    }

    /// Whether the row is a single item.
    #[inline(always)]
    pub(super) fn is_item(&self) -> bool {
        self.items[0] == self.items[1]
    }
}
