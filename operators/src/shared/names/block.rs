//! Items that wait for their numbers, and the numbers of blocks of items that several threads look
//! up.
//!
//! ```text
//!               look up, in a copy of the names           new names, in the order of the blocks
//!  block 0 ──────► kernel ─┐
//!  block 1 ──────► kernel ─┼─────────────────────────────► resolve ──► numbers
//!  block 2 ──────► kernel ─┘
//! ```
//!
//! The owner of the names resolves the blocks in the order of the stream, and so items get the
//! numbers that one thread would give them. The owner looks up only items that are missing in the
//! copy, each once for a block. When many items were missing, the owner makes a new copy.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_select::take::take;

use super::{ItemNames, UNKNOWN};
use crate::shared::budget::{Budget, BudgetFull, bytes_with};
use crate::shared::items::to_native;

/// A new copy is made when the items that were missing in the copy are more than this part of its
/// items: the look-up of an item takes the time in which several items are copied.
const MISSING_PART: usize = 8;

/// A batch has few new items if they are less than this part of its items.
const NEW_PART: usize = 5;

/// Maximum number of items that are looked up at the same time, for each item that has a number.
const UNDER_WAY: usize = 2;

/// The items of a batch.
pub(crate) enum BatchItems {
    /// The values, which have the counted type.
    Arrived(ArrayRef),
    /// Their numbers.
    Numbered(Vec<u32>),
}

/// The items of rows that follow each other: as they have arrived, or as numbers.
#[derive(Debug, Default)]
pub(crate) struct ItemBlock {
    arrived: Vec<ArrayRef>,
    /// Number of the items that have arrived and have no number, and of the items that have been
    /// looked up.
    waiting: usize,
    looked_up: usize,
    numbers: Vec<u32>,
    /// Number of items of the copy: larger numbers stand for items that the copy lacks.
    known: u32,
    /// The items that the copy lacks, in the order of their first occurrence.
    missing: Option<ArrayRef>,
    /// The numbers of these items.
    resolved: Vec<u32>,
}

impl ItemBlock {
    /// Bytes for each item while its number is looked up: the number, the place of a missing item,
    /// the item itself, and the names of the missing items.
    const LOOKED_UP_BYTES: usize = 64;

    /// A block of numbers.
    #[cfg(test)]
    pub(crate) fn of(numbers: Vec<u32>) -> Self {
        Self { numbers, ..Self::default() }
    }

    /// Adds the items `range` of a batch.
    pub(crate) fn extend(&mut self, items: &BatchItems, range: Range<usize>) {
        match items {
            BatchItems::Numbered(numbers) => self.numbers.extend_from_slice(&numbers[range]),
            BatchItems::Arrived(_) if range.is_empty() => {}
            BatchItems::Arrived(values) => {
                self.waiting += range.len();
                self.arrived.push(values.slice(range.start, range.len()));
            }
        }
    }

    /// Makes room for exactly `items` further numbers.
    pub(crate) fn reserve_exact(&mut self, items: usize) {
        self.numbers.reserve_exact(items);
    }

    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.waiting + self.numbers.len()
    }

    /// Maximum bytes that are allocated while `items` items are added.
    pub(crate) fn bytes_while_extended(&self, items: usize) -> usize {
        let numbers = &self.numbers;
        let all = bytes_with(numbers.capacity(), numbers.len(), items, size_of::<u32>());
        all - size_of_val(&numbers[..]).min(all)
    }

    /// Number of items that wait for a number.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether no item waits for a number.
    pub(crate) fn is_numbered(&self) -> bool {
        self.arrived.is_empty()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let arrived = self.arrived.iter().map(|items| {
            let data = items.to_data();
            data.get_slice_memory_size().unwrap_or_else(|_| items.get_array_memory_size())
        });
        let missing = self.missing.as_ref().map_or(0, |items| items.get_array_memory_size());
        let numbers = self.numbers.capacity() + self.resolved.capacity();
        arrived.sum::<usize>() + missing + numbers * size_of::<u32>()
    }

    /// Maximum bytes of memory that [`look_up`](Self::look_up) takes.
    pub(crate) fn bytes_of_look_up(&self) -> usize {
        self.waiting * Self::LOOKED_UP_BYTES + self.bytes()
    }

    /// Looks up the numbers of the items that wait, in a copy of the names.
    pub(crate) fn look_up(&mut self, copy: &ItemNames) {
        self.known = u32::try_from(copy.len()).expect("items have numbers of 32 bits");
        let mut missing = ItemNames::new(copy.item_type()).expect("names have names");
        let (mut found, mut places, mut new) = (Vec::new(), Vec::new(), Vec::new());
        self.numbers.reserve_exact(self.waiting);
        self.looked_up = std::mem::take(&mut self.waiting);
        for items in self.arrived.drain(..) {
            copy.find(&items, &mut found);
            places.clear();
            places
                .extend((0..).zip(&found).filter(|(_, n)| **n == UNKNOWN).map(|(place, _)| place));
            if !places.is_empty() {
                let unknown = take(&items, &UInt32Array::from(places.clone()), None);
                let unknown = unknown.expect("places within the items");
                let unlimited = Budget::new(usize::MAX);
                missing.number(&unknown, &mut new, unlimited).expect("the budget has no limit");
                for (&place, number) in places.iter().zip(&new) {
                    found[place as usize] = self.known + number;
                }
            }
            self.numbers.extend_from_slice(&found);
        }
        let all: Vec<u32> = (0..).take(missing.len()).collect();
        let items = to_native(&missing.column(&all)).expect("items have a counted type");
        self.missing = (!all.is_empty()).then_some(items);
    }

    /// Gives numbers to the items that the copy lacks. Other blocks have been resolved in the order
    /// of the stream.
    fn resolve(&mut self, names: &mut ItemNames, budget: Budget) -> Result<usize, BudgetFull> {
        if let Some(missing) = self.missing.take() {
            names.number(&missing, &mut self.resolved, budget)?;
        }
        Ok(self.resolved.len())
    }

    /// The numbers of all items. No item waits, and the block is resolved.
    pub(crate) fn numbers_mut(&mut self) -> &mut Vec<u32> {
        if !self.resolved.is_empty() {
            // A null may have any number.
            let begin = self.numbers.len() - self.looked_up;
            for number in &mut self.numbers[begin..] {
                if let Some(missing) = number.checked_sub(self.known) {
                    *number = self.resolved.get(missing as usize).copied().unwrap_or(0);
                }
            }
            self.resolved = Vec::new();
        }
        &mut self.numbers
    }

    /// Removes all items; memory of numbers is kept.
    pub(crate) fn clear(&mut self) {
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        *self = Self { numbers, ..Self::default() };
    }
}

/// Names, and a copy of the names in which other threads look up numbers.
#[derive(Debug)]
pub(crate) struct SharedNames {
    names: ItemNames,
    /// Memory for the numbers of a batch.
    numbers: Vec<u32>,
    copy: Option<Arc<ItemNames>>,
    /// Number of items that were missing in the copy, once for each block.
    missing: usize,
    /// Whether few items of a batch are new, so that kernels look up blocks.
    are_few_new: bool,
    /// Number of items of the blocks that are being looked up, and of all items that have numbers.
    under_way: usize,
    resolved: usize,
}

impl SharedNames {
    pub(crate) fn new(names: ItemNames) -> Self {
        Self {
            names,
            numbers: Vec::new(),
            copy: None,
            missing: 0,
            are_few_new: false,
            under_way: 0,
            resolved: 0,
        }
    }

    pub(crate) fn names(&self) -> &ItemNames {
        &self.names
    }

    /// The names, which may change in any way. No block is looked up in the present copy.
    pub(crate) fn names_mut(&mut self) -> &mut ItemNames {
        self.copy = None;
        &mut self.names
    }

    /// Bytes of the names and of their copies: an earlier copy may still be in use.
    pub(crate) fn bytes(&self) -> usize {
        let numbers = self.numbers.capacity() * size_of::<u32>();
        self.names.bytes() + numbers + self.copy.as_ref().map_or(0, |copy| 2 * copy.bytes())
    }

    /// The items of a batch. The items get numbers here if `kernels` is 1, if there is no memory
    /// for copies, and while many items of a batch are new: a new item costs more as an item that a
    /// copy lacks. All other memory has been taken from `budget`.
    ///
    /// # Errors
    /// If new items do not fit the budget.
    pub(crate) fn of_batch(
        &mut self,
        values: ArrayRef,
        kernels: usize,
        mut budget: Budget,
    ) -> Result<BatchItems, BudgetFull> {
        if self.are_few_new && kernels > 1 {
            // The names with the present copy and the next one. Where memory is short, the items
            // get their numbers here, and no copy is needed.
            if budget.reserve("copies of the items", 3 * self.names.bytes()).is_ok() {
                return Ok(BatchItems::Arrived(values));
            }
            self.copy = None;
        }
        let known = self.names.len();
        self.names.number(&values, &mut self.numbers, budget)?;
        self.resolved += values.len();
        self.are_few_new = (self.names.len() - known) * NEW_PART < values.len();
        Ok(BatchItems::Numbered(std::mem::take(&mut self.numbers)))
    }

    /// Keeps the memory of the numbers of a batch for the next batch, if that memory has at most
    /// about `most` numbers: a few large sets make it grow, and later batches need not have such
    /// sets.
    pub(crate) fn end_batch(&mut self, items: BatchItems, most: usize) {
        if let BatchItems::Numbered(numbers) = items
            && numbers.capacity() <= most
        {
            self.numbers = numbers;
        }
    }

    /// Whether `items` items of a block may be looked up now. Blocks that are looked up at the same
    /// time miss the same new items, so such blocks have few more items than came before.
    pub(crate) fn may_look_up(&self, items: usize) -> bool {
        self.under_way == 0 || self.under_way + items <= UNDER_WAY * self.resolved
    }

    /// The copy in which a block of `items` items is looked up.
    pub(crate) fn copy(&mut self, items: usize) -> Arc<ItemNames> {
        self.under_way += items;
        if let Some(copy) = &self.copy
            && self.missing * MISSING_PART <= copy.len()
        {
            return Arc::clone(copy);
        }
        self.missing = 0;
        Arc::clone(self.copy.insert(Arc::new(self.names.clone())))
    }

    /// Gives numbers to the items of a block that its copy lacks. Earlier blocks of the stream have
    /// been resolved.
    ///
    /// # Errors
    /// If new items do not fit the budget, from which all other memory has been taken.
    pub(crate) fn resolve(
        &mut self,
        block: &mut ItemBlock,
        budget: Budget,
    ) -> Result<(), BudgetFull> {
        self.under_way -= block.looked_up;
        self.resolved += block.looked_up;
        self.missing += block.resolve(&mut self.names, budget)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};
    use arrow_cast::cast;
    use arrow_schema::DataType;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Blocks that are looked up at any time and resolved in their order have the numbers that
        /// one thread gives, for integers, texts and texts of a dictionary.
        #[test]
        fn numbers_are_those_of_one_thread(
            blocks in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(0_u32..60, 0..20), 1..4), 1..12),
            early in 1..5_usize,
            kind in 0..4_usize,
        ) {
            let array = |items: &[u32]| -> ArrayRef {
                let wide = items.iter().map(|item| i64::from(*item) << 20);
                let wide: ArrayRef = Arc::new(Int64Array::from_iter_values(wide));
                // Some texts are longer than a text that is kept whole.
                let text = |item: &u32| {
                    format!("{item}").repeat(if item.is_multiple_of(5) { 1_000 } else { 1 })
                };
                let texts = StringArray::from_iter_values(items.iter().map(text));
                let texts: ArrayRef = Arc::new(texts);
                let [key, text] = [DataType::UInt32, DataType::Utf8].map(Box::new);
                let keys = DataType::Dictionary(key, text);
                match kind {
                    0 => Arc::new(UInt32Array::from(items.to_vec())),
                    1 => to_native(&wide).unwrap(),
                    2 => texts,
                    _ => cast(&texts, &keys).unwrap(),
                }
            };
            let kinds = [DataType::UInt32, DataType::Int64, DataType::Utf8, DataType::Utf8];
            let kind = kinds[kind].clone();
            let names = || ItemNames::new(&kind).unwrap();
            let (mut shared, mut alone) = (SharedNames::new(names()), names());
            // In half of the cases, no batch gets its numbers when it arrives.
            shared.are_few_new = early.is_multiple_of(2);
            let unlimited = || Budget::new(usize::MAX);
            let mut away: Vec<(ItemBlock, Vec<u32>)> = Vec::new();
            let land = |shared: &mut SharedNames, away: (ItemBlock, Vec<u32>)| {
                let (mut block, expected) = away;
                shared.resolve(&mut block, unlimited()).unwrap();
                assert_eq!(block.numbers_mut(), &expected);
            };
            for arrays in &blocks {
                let (mut block, mut expected) = (ItemBlock::default(), Vec::new());
                let mut numbers = Vec::new();
                for items in arrays {
                    let values = array(items);
                    alone.number(&values, &mut numbers, unlimited()).unwrap();
                    let batch = shared.of_batch(values, 2, unlimited()).unwrap();
                    let half = items.len() / 2;
                    block.extend(&batch, 0..half);
                    block.extend(&batch, half..items.len());
                    expected.extend_from_slice(&numbers);
                }
                block.look_up(&shared.copy(block.waiting()));
                away.push((block, expected));
                if away.len() > early {
                    land(&mut shared, away.remove(0));
                }
            }
            away.drain(..).for_each(|block| land(&mut shared, block));
            let all: Vec<u32> = (0..).take(alone.len()).collect();
            prop_assert_eq!(shared.names().len(), alone.len());
            prop_assert_eq!(&shared.names().column(&all), &alone.column(&all));
        }
    }
}
