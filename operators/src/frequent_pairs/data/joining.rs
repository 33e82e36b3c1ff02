//! Joins the lists of blocks: one tid list for each frequent item of a window, in tasks that cores
//! can do side by side.
//!
//! ```text
//! blocks ──► supports, ranks ──► join ──► vertical data
//!                                a task for some ranks
//! ```

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use trommel_engine::operator::OperatorError;
use trommel_kernels::memory::Part;
use trommel_kernels::sets::SetStore;

use super::transposed::TransposedBlock;
use super::vertical::{TooMany, VerticalData, narrow};
use crate::frequent_pairs::parameters::options::Support;
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::names::ItemNames;
use crate::shared::window::borders::WindowSpan;
use crate::wave::{Numbered, Round};

/// The rank of an item that is not frequent.
const NO_RANK: u32 = u32::MAX;

/// Number of tasks for each kernel. Each task passes over the ranks of all items.
const TASKS_PER_KERNEL: usize = 4;

/// Name of the memory in errors.
const LISTS: &str = "the joined lists";

/// Bytes of a frequent item while lists are joined: the item's number, once sorted and once by
/// rank; the item's place; room to sort the places; the begin of the item's list; and in a task,
/// the item's number, its rank and the next place of its list.
const ITEM_BYTES: usize = 7 * size_of::<u32>() + size_of::<usize>();

/// The blocks of a window, and the places of their items.
#[derive(Debug)]
pub(crate) struct Ranked {
    blocks: Vec<Arc<TransposedBlock>>,
    /// Rank of each item by number, or [`NO_RANK`].
    ranks: Vec<u32>,
    /// Begin of each list by rank, and the end of the last list.
    offsets: Vec<u32>,
}

/// Lists on their way from blocks to [`VerticalData`].
#[derive(Debug)]
pub(crate) struct Joining {
    round: Round<Ranked, JoinedRanks>,
    /// The items by rank.
    items: ArrayRef,
    /// Per rank: the place among the frequent items, sorted.
    places: Vec<u32>,
    transactions: u32,
    least: u32,
    window: WindowSpan,
    /// The lists, when all tasks have returned.
    done: Vec<JoinedRanks>,
    /// Bytes of the lists, and of the blocks that only these tasks still hold.
    bytes: usize,
}

/// A task: the lists of some ranks.
pub(crate) type JoinTask = Numbered<Ranked, JoinedRanks>;

/// The lists of some ranks.
#[derive(Debug)]
pub(crate) struct JoinedRanks {
    ranks: Range<usize>,
    tids: Part<u32>,
}

impl JoinedRanks {
    /// Joins the lists.
    pub(crate) fn join(&mut self, ranked: &Ranked) {
        let Self { ranks, tids } = self;
        let begin = ranked.offsets[ranks.start];
        let in_task = (0..).zip(&ranked.ranks).filter_map(|(number, &rank)| {
            // Items of other tasks and infrequent items have no place in this task.
            let rank = (rank as usize).wrapping_sub(ranks.start);
            (rank < ranks.len()).then_some((number, rank))
        });
        let (numbers, of_task): (Vec<u32>, Vec<usize>) = in_task.unzip();
        // The places of the next transactions, by ascending numbers.
        let place = |rank: usize| ranked.offsets[ranks.start + rank] - begin;
        let mut places: Vec<u32> = of_task.into_iter().map(place).collect();
        let joined = &mut tids[..];
        let mut first = 0;
        for block in &ranked.blocks {
            block.select(&numbers, |at, tids| {
                let place = &mut places[at];
                let list = &mut joined[*place as usize..][..tids.len()];
                list.iter_mut().zip(tids).for_each(|(to, &tid)| *to = first + u32::from(tid));
                *place += narrow(tids.len());
            });
            first += block.transactions();
        }
    }
}

/// Number of transactions in the lists of a task.
pub(crate) fn tids(task: &JoinTask) -> u32 {
    let (ranks, offsets) = (&task.task().ranks, &task.shared().offsets);
    offsets[ranks.end] - offsets[ranks.start]
}

impl Joining {
    /// Begins to join the lists of the items that reach `support` in `blocks`, which have the items
    /// by number. With several `kernels`, a task has at least about `task_tids` transactions.
    /// `budget` is the memory that is left after all present data.
    ///
    /// # Errors
    /// If there are too many transactions, or the lists do not fit the budget.
    pub(crate) fn new(
        blocks: Vec<Arc<TransposedBlock>>,
        names: &ItemNames,
        support: Support,
        window: WindowSpan,
        (kernels, task_tids): (usize, u32),
        mut budget: Budget,
    ) -> Result<Self, OperatorError> {
        let transactions = blocks.iter().map(|block| u64::from(block.transactions())).sum();
        let transactions = TooMany::check("transactions", transactions)?;
        let mut bytes = names.len() * size_of::<u32>();
        budget.take(LISTS, bytes)?;
        let mut supports = vec![0_u32; names.len()];
        for (number, tids) in blocks.iter().flat_map(|block| block.lists()) {
            supports[number as usize] += narrow(tids.len());
        }
        let least = support.least_count(transactions);
        let Ranking { numbers, places } = Ranking::new(names, &supports, least, &mut budget)?;
        let items_bytes = names.column_bytes(&numbers);
        budget.take(LISTS, items_bytes)?;
        let ends = numbers.iter().scan(0, |end, &number| {
            *end += u64::from(supports[number as usize]);
            Some(*end)
        });
        let total = TooMany::check("items of transactions", ends.clone().last().unwrap_or(0))?;
        let tids_bytes = total as usize * size_of::<u32>();
        budget.take(LISTS, tids_bytes)?;
        bytes += numbers.len() * ITEM_BYTES + items_bytes + tids_bytes;
        let mut offsets: Vec<u32> = Vec::with_capacity(numbers.len() + 1);
        offsets.push(0);
        offsets.extend(ends.map(|end| u32::try_from(end).expect("at most the total")));
        let mut ranks = supports;
        ranks.fill(NO_RANK);
        for (rank, &number) in (0..).zip(&numbers) {
            ranks[number as usize] = rank;
        }
        let count = if kernels > 1 { TASKS_PER_KERNEL * kernels } else { 1 };
        let count = count.min(1 + (total / task_tids) as usize);
        let ranges = ranges(&offsets, count);
        let lens = ranges.iter().map(|ranks| offsets[ranks.end] - offsets[ranks.start]);
        let parts = Part::zeros(lens.map(|len| len as usize));
        let tasks = ranges.into_iter().zip(parts).map(|(ranks, tids)| JoinedRanks { ranks, tids });
        let round = Round::new(Ranked { blocks, ranks, offsets }, tasks);
        let items = names.column(&numbers);
        let done = Vec::new();
        Ok(Self { round, items, places, transactions, least, window, done, bytes })
    }

    /// Takes over `bytes` of blocks that only these lists still hold.
    pub(crate) fn keep(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Bytes of the lists, of the temporary memory, and of the blocks that only these lists still
    /// hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next task.
    pub(crate) fn task(&mut self) -> Option<JoinTask> {
        self.round.task()
    }

    /// Takes back a task that has been done.
    pub(crate) fn landed(&mut self, task: JoinTask) {
        self.done.extend(self.round.landed(task).into_iter().flatten());
    }

    /// The data, when all tasks have returned.
    ///
    /// # Panics
    /// If a task is missing.
    pub(crate) fn finish(self) -> VerticalData {
        let Self { round, items, places, transactions, least, window, done, .. } = self;
        let tids = Part::join(done.into_iter().map(|task| task.tids).collect());
        let lists = SetStore::new(round.into_shared().offsets, tids);
        VerticalData::new(lists, items, places, transactions, least, window)
    }

    /// The data; all tasks run in this call.
    #[cfg(test)]
    pub(crate) fn run(mut self) -> VerticalData {
        while let Some(mut task) = self.task() {
            task.run(JoinedRanks::join);
            self.landed(task);
        }
        self.finish()
    }
}

/// The frequent items by descending support. Items of equal support are in their own order, so that
/// ranks do not depend on the order of arrival.
struct Ranking {
    /// Number of the item of each rank.
    numbers: Vec<u32>,
    /// Per rank: the place among the frequent items, sorted.
    places: Vec<u32>,
}

impl Ranking {
    fn new(
        names: &ItemNames,
        supports: &[u32],
        least: u32,
        budget: &mut Budget,
    ) -> Result<Self, BudgetFull> {
        let frequent = (0..).zip(supports).filter(|(_, support)| **support >= least);
        let len = frequent.clone().count();
        budget.take(LISTS, len * ITEM_BYTES)?;
        let mut sorted: Vec<u32> = Vec::with_capacity(len);
        sorted.extend(frequent.map(|(number, _)| number));
        names.sort(&mut sorted);
        let mut places: Vec<u32> = (0..narrow(sorted.len())).collect();
        let number = |place: u32| sorted[place as usize];
        // The sort is stable, so items of equal support stay sorted.
        places.sort_by_key(|&place| Reverse(supports[number(place) as usize]));
        Ok(Self { numbers: places.iter().map(|&place| number(place)).collect(), places })
    }
}

/// The ranks in 1 to `count` ranges. The lists of each range have about the same total length.
fn ranges(offsets: &[u32], count: usize) -> Vec<Range<usize>> {
    let (ranks, total) = (offsets.len() - 1, offsets[offsets.len() - 1] as usize);
    let mut begin = 0;
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for part in 1..count {
        let enough = total * part / count;
        let end = offsets.partition_point(|&offset| (offset as usize) < enough);
        if begin < end {
            ranges.push(begin..end);
            begin = end;
        }
    }
    ranges.push(begin..ranks);
    ranges
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow_array::UInt32Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt32Type;
    use arrow_schema::DataType;
    use proptest::prelude::*;

    use super::*;
    use crate::frequent_pairs::data::collector::Collector;
    use crate::frequent_pairs::data::transposed::Transposition;
    use crate::shared::budget::Budget;

    proptest! {
        #[test]
        fn lists_are_those_of_a_map(
            transactions in prop::collection::vec(prop::collection::vec(0_u32..30, 0..9), 0..80),
            least in 1..6_u32,
            kernels in 1..5_usize,
            task_tids in 1..40_u32,
            block_items in 1..100_usize,
        ) {
            let mut names = ItemNames::new(&DataType::UInt32).unwrap();
            let (mut collector, mut blocks) = (Collector::new(block_items), Vec::new());
            let mut expected: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (tid, transaction) in (0..).zip(&transactions) {
                // The order of the items differs from the order of the numbers.
                let items = UInt32Array::from_iter_values(transaction.iter().map(|item| 90 - item));
                for &item in items.values() {
                    let tids = expected.entry(item).or_default();
                    if tids.last() != Some(&tid) {
                        tids.push(tid);
                    }
                }
                let (items, mut numbers): (ArrayRef, _) = (Arc::new(items), Vec::new());
                names.number(&items, &mut numbers, Budget::new(usize::MAX)).unwrap();
                blocks.extend(collector.push_numbers(&numbers));
            }
            blocks.extend(collector.close());
            let mut memory = Transposition::default();
            let blocks =
                blocks.iter_mut().map(|block| Arc::new(memory.transpose(block))).collect();
            let blocks: Vec<_> = blocks;
            let begin = |allowed| {
                let (support, window) = (Support::Count(least), WindowSpan::default());
                let budget = Budget::new(allowed);
                Joining::new(blocks.clone(), &names, support, window, (kernels, task_tids), budget)
            };
            let joining = begin(usize::MAX).unwrap();
            let bytes = joining.bytes();
            if bytes > 0 {
                let error = begin(bytes - 1).unwrap_err().to_string();
                prop_assert!(error.contains("not enough memory for the joined lists"), "{}", error);
            }
            begin(bytes).unwrap();
            let data = joining.run();
            let lists = size_of_val(data.lists().tokens()) + size_of_val(data.lists().offsets());
            prop_assert!(lists + 4 * names.len() <= bytes + 4, "{} of {}", lists, bytes);
            prop_assert!(data.bytes() <= bytes + 4, "{} of {}", data.bytes(), bytes);
            let items = data.items().as_primitive::<UInt32Type>().values();
            let lists = (0..items.len()).map(|rank| data.lists().set(rank));
            let lens: Vec<usize> = lists.clone().map(<[u32]>::len).collect();
            let ranked = items.iter().zip(lists);
            let found: BTreeMap<u32, Vec<u32>> =
                ranked.map(|(&item, tids)| (item, tids.to_vec())).collect();
            expected.retain(|_, tids| tids.len() >= least as usize);
            prop_assert_eq!(found, expected);
            prop_assert!(lens.is_sorted_by(|one, next| one >= next));
        }
    }

    #[test]
    fn ranges_have_all_ranks_once() {
        let cases: [&[u32]; 5] = [&[0], &[0, 0, 0], &[0, 9], &[0, 100, 101, 102], &[0, 1, 2, 3, 4]];
        for offsets in cases {
            for count in 1..7 {
                let ranges = ranges(offsets, count);
                assert!((1..=count).contains(&ranges.len()), "{offsets:?}, {count}");
                let ranks: Vec<usize> = ranges.into_iter().flatten().collect();
                assert!(ranks.into_iter().eq(0..offsets.len() - 1), "{offsets:?}, {count}");
            }
        }
        assert_eq!(ranges(&[0, 100, 101, 102], 2), [0..1, 1..3]);
        assert_eq!(ranges(&[0, 1, 2, 3, 4], 2), [0..2, 2..4]);
    }
}
