//! Lengths of posting lists, signatures of sets, and the sets of each slice of an index, made in
//! tasks that cores can do side by side.
//!
//! ```text
//! collection ──► count: postings of some sets, by token ──┬──► sign: some sets ─────┬──► index by
//!                                                         └──► divide: some sets,  ─┘    postings
//!                                                              by slice of the index
//! ```

use std::iter;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::memory::Part;
use trommel_kernels::sets::sign_sets;

use super::lists::{ListLengths, Planned, Visits};
use super::signatures::SetSignatures;
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::budget::Budget;
use crate::shared::sets::{SetCollection, Shares};
use crate::wave::{Numbered, Round};

/// Minimum number of tokens for each place of the tables of lengths.
const TOKENS_PER_PLACE: usize = 4;

/// Number of tasks for each core in the second round, so that no core waits long for the slowest
/// core.
const TASKS_PER_CORE: usize = 2;

/// Number of sets that are signed in one call of the kernel.
const SIGNED_SETS: usize = 1 << 10;

/// Division of an index into slices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slicing {
    /// Number of cores that search slices.
    pub(crate) cores: usize,
    /// Minimum number of postings of a slice.
    pub(crate) slice_min: usize,
}

/// Tasks that make the data of an index.
#[derive(Debug)]
pub(crate) struct Planning {
    round: Round<Plan, PlannedSets>,
    shares: Shares,
    slicing: Option<Slicing>,
    budget: Budget,
    /// Lengths of the lists, made by the first round.
    lists: Option<ListLengths>,
    words: usize,
    /// Lists of each slice of the index.
    slices: Vec<Range<usize>>,
}

/// Data that all tasks read.
#[derive(Debug)]
pub(crate) struct Plan {
    collection: Arc<SetCollection>,
    bounds: Bounds,
    isa: Isa,
}

/// A task over some sets of a collection.
pub(crate) type PlanningTask = Numbered<Plan, PlannedSets>;

#[derive(Debug)]
pub(crate) struct PlannedSets {
    sets: Range<u32>,
    work: PlanningWork,
}

#[derive(Debug)]
enum PlanningWork {
    /// Counts the postings of the sets.
    Count(Vec<u32>),
    /// Signs the sets by a number of words.
    Sign(usize, Part<u64>),
    /// Finds the slices of each set. `slice_of` is the slice of each list.
    Divide { slice_of: Arc<[u16]>, visits: Vec<Vec<u32>> },
}

impl PlannedSets {
    /// Does the task.
    pub(crate) fn run(&mut self, Plan { collection, bounds, isa }: &Plan) {
        let Self { sets, work } = self;
        match work {
            PlanningWork::Count(lens) => {
                *lens = vec![0; ListLengths::lists(collection)];
                ListLengths::add(collection, *bounds, sets.clone(), lens);
            }
            PlanningWork::Divide { slice_of, visits } => {
                Visits::add(collection, *bounds, sets.clone(), slice_of, visits);
            }
            PlanningWork::Sign(words, part) => {
                let (offsets, tokens) = (collection.sets().offsets(), collection.sets().tokens());
                let offsets = &offsets[sets.start as usize..=sets.end as usize];
                let mut bits = vec![0; SIGNED_SETS * *words];
                for begin in (0..sets.len()).step_by(SIGNED_SETS) {
                    let end = (begin + SIGNED_SETS).min(sets.len());
                    let bits = &mut bits[..(end - begin) * *words];
                    sign_sets(*isa, &offsets[begin..=end], tokens, *words, bits);
                    part.extend_from_slice(bits);
                }
            }
        }
    }
}

/// The work of a task, in tokens, to be compared with the work of other tasks.
pub(crate) fn weight(task: &PlanningTask) -> u64 {
    let (sets, offsets) = (&task.task().sets, task.shared().collection.sets().offsets());
    u64::from(offsets[sets.end as usize] - offsets[sets.start as usize])
}

impl Planning {
    /// Begins to count the postings of `collection`, with tasks for the cores of `shares`. `None`
    /// if such tasks do not pay, or if there is not enough memory for the tables.
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        isa: Isa,
        shares: Shares,
        slicing: Option<Slicing>,
    ) -> Option<Self> {
        let (tokens, places) = (collection.tokens(), ListLengths::lists(collection).max(1));
        let tables = (tokens / TOKENS_PER_PLACE / places).min(tokens / shares.tokens_min.max(1));
        let tables = tables.min(shares.cores);
        let budget = collection.budget();
        let bytes = tables * places * size_of::<u32>();
        if tables < 2 || budget.clone().take("the index", bytes).is_err() {
            return None;
        }
        let count = |sets| PlannedSets { sets, work: PlanningWork::Count(Vec::new()) };
        let plan = Plan { collection: Arc::clone(collection), bounds, isa };
        Some(Self {
            round: Round::new(plan, cut(collection, tables).into_iter().map(count)),
            shares,
            slicing,
            budget,
            lists: None,
            words: 0,
            slices: Vec::new(),
        })
    }

    /// The next task; none until a task returns.
    pub(crate) fn task(&mut self) -> Option<PlanningTask> {
        self.round.task()
    }

    /// Takes back a task that has been done. Returns the data of the index if this task was the
    /// last task.
    pub(crate) fn landed(&mut self, task: PlanningTask) -> Option<Planned> {
        let done = self.round.landed(task)?;
        if self.lists.is_some() {
            return Some(self.planned(done));
        }
        let lists = ListLengths::new(&self.round.shared().collection, sum(done));
        let words = lists.counts.words(&self.round.shared().collection, self.round.shared().bounds);
        let mut tasks = self.sign(words);
        tasks.extend(self.divide(&lists));
        self.lists = Some(lists);
        if tasks.is_empty() {
            return Some(self.planned(tasks));
        }
        self.round.begin(tasks);
        None
    }

    /// The runs of sets that the cores share.
    fn parts(&self) -> Vec<Range<u32>> {
        cut(&self.round.shared().collection, TASKS_PER_CORE * self.shares.cores)
    }

    /// Tasks that sign the sets, if signatures pay and fit the memory.
    fn sign(&mut self, words: usize) -> Vec<PlannedSets> {
        let bytes = SetSignatures::bytes(&self.round.shared().collection, words);
        if words == 0 || self.budget.take("the index", bytes).is_err() {
            return Vec::new();
        }
        self.words = words;
        let parts = self.parts();
        let split = Part::split(parts.iter().map(|sets| words * sets.len()));
        let sign = |(sets, part)| PlannedSets { sets, work: PlanningWork::Sign(words, part) };
        parts.into_iter().zip(split).map(sign).collect()
    }

    /// Tasks that find the sets of each slice, if there are several slices and the result fits the
    /// memory.
    fn divide(&mut self, lists: &ListLengths) -> Vec<PlannedSets> {
        let collection = &self.round.shared().collection;
        let Some(Slicing { cores, slice_min }) = self.slicing else { return Vec::new() };
        let slices = lists.slices(collection, slice_min, cores).slices;
        let postings = usize::try_from(lists.counts.postings).unwrap_or(usize::MAX);
        // A vector that grows can be twice as long as needed.
        let bytes = postings.saturating_mul(2 * size_of::<u32>())
            + ListLengths::lists(collection) * size_of::<u16>();
        let is_range = (2..usize::from(u16::MAX)).contains(&slices.len());
        if !is_range || self.budget.clone().take("the index", bytes).is_err() {
            return Vec::new();
        }
        let mut slice_of = vec![0; ListLengths::lists(collection)];
        for (slice, lists) in (0..).zip(&slices) {
            slice_of[lists.clone()].fill(slice);
        }
        let slice_of: Arc<[u16]> = slice_of.into();
        let parts = self.parts();
        // All slices have about the same number of postings.
        let expected = postings / slices.len() / parts.len();
        let divide = |sets| {
            let room = || Vec::with_capacity(expected);
            let visits = iter::repeat_with(room).take(slices.len()).collect();
            PlannedSets {
                sets,
                work: PlanningWork::Divide { slice_of: Arc::clone(&slice_of), visits },
            }
        };
        let tasks = parts.into_iter().map(divide).collect();
        self.slices = slices;
        tasks
    }

    /// The data of the index, made by the tasks of the last round.
    fn planned(&mut self, done: Vec<PlannedSets>) -> Planned {
        let (mut parts, mut sets) = (Vec::new(), Vec::new());
        for PlannedSets { work, .. } in done {
            match work {
                PlanningWork::Sign(_, part) => parts.push(part),
                PlanningWork::Divide { visits, .. } => sets.push(visits),
                PlanningWork::Count(_) => unreachable!("lists are counted in the first round"),
            }
        }
        let words = self.words;
        let signatures = (words > 0).then(|| SetSignatures { words, bits: Part::join(parts) });
        let slices = mem::take(&mut self.slices);
        let visits = (!slices.is_empty()).then_some(Visits { slices, sets });
        Planned { lists: self.lists.take(), signatures, visits }
    }
}

/// The lengths of all lists: the sum of the counts of `tasks`.
fn sum(tasks: Vec<PlannedSets>) -> Vec<u32> {
    let counted = tasks.into_iter().filter_map(|task| match task.work {
        PlanningWork::Count(lens) => Some(lens),
        PlanningWork::Sign(..) | PlanningWork::Divide { .. } => None,
    });
    let add = |mut all: Vec<u32>, lens: Vec<u32>| {
        all.iter_mut().zip(lens).for_each(|(all, len)| *all += len);
        all
    };
    counted.reduce(add).unwrap_or_default()
}

/// At most `runs` runs of sets, each with about the same number of tokens.
fn cut(collection: &SetCollection, runs: usize) -> Vec<Range<u32>> {
    let offsets = collection.sets().offsets();
    let (sets, tokens) = (offsets.len() - 1, collection.tokens());
    let mut begin = 0;
    let mut run = |number: usize| {
        let end = tokens * number / runs;
        let end = offsets.partition_point(|&offset| (offset as usize) < end).min(sets);
        let run = begin..u32::try_from(end).expect("sets have 32-bit numbers");
        begin = run.end;
        run
    };
    (1..=runs).map(&mut run).filter(|run| !run.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lists::PostingCounts;
    use super::*;
    use crate::set_similarity_join::similarity::{Similarity, Threshold};
    use crate::shared::sets::{SetCollector, Side};
    use crate::testing::sets::families;

    fn collection(count: u32) -> Arc<SetCollection> {
        let mut sets = SetCollector::new(1 << 30);
        for (id, set) in (0..).zip(families(count, 9, 1)) {
            sets.push(Side::Left, id, &set.into_iter().collect::<Vec<_>>()).unwrap();
        }
        Arc::new(sets.finish().unwrap())
    }

    #[test]
    fn estimates_are_near_the_counts() {
        for count in [1000, 10_000, 100_000] {
            let sets = collection(count);
            let bounds = Bounds::new(Similarity::Jaccard, Threshold::new(1, 2).unwrap()).unwrap();
            let lists = ListLengths::count(&sets, bounds, &mut sets.budget()).unwrap();
            let found = PostingCounts::estimate(&sets, bounds, &sets.budget()).unwrap();
            for (found, all) in
                [(found.postings, lists.counts.postings), (found.pairs, lists.counts.pairs)]
            {
                assert!(found.abs_diff(all) <= all / 4, "{count} sets: {found} of {all}");
            }
        }
    }

    #[test]
    fn tasks_make_what_one_core_makes() {
        let (sets, isa) = (collection(3000), Isa::selected().unwrap());
        for (numerator, cores) in [(1, 2), (1, 7), (2, 3)] {
            let threshold = Threshold::new(numerator, 2).unwrap();
            let bounds = Bounds::new(Similarity::Jaccard, threshold).unwrap();
            let shares = Shares { cores, tokens_min: 64 };
            let slicing = Slicing { cores, slice_min: 100 };
            let mut planning = Planning::new(&sets, bounds, isa, shares, Some(slicing)).unwrap();
            let mut tasks = 0;
            let planned = loop {
                let mut task = planning.task().unwrap();
                task.run(PlannedSets::run);
                tasks += 1;
                if let Some(planned) = planning.landed(task) {
                    break planned;
                }
            };
            assert!(tasks > cores, "{tasks}");
            let lists = planned.lists.unwrap();
            let expected = ListLengths::count(&sets, bounds, &mut sets.budget()).unwrap();
            assert_eq!(lists, expected);
            let visits = planned.visits.unwrap();
            assert!(visits.slices.len() > 2, "{:?}", visits.slices);
            for (slice, lists) in visits.slices.iter().enumerate() {
                let has_one = |set: &u32| {
                    let prefix = bounds.probe_prefix(sets.size(*set)) as usize;
                    let list = |token: &u32| token.checked_sub(sets.unshared());
                    let mut found = sets.set(*set)[..prefix].iter().filter_map(list);
                    found.any(|list| lists.contains(&(list as usize)))
                };
                let expected = (0..u32::try_from(sets.len()).unwrap()).filter(has_one);
                let found = visits.sets.iter().flat_map(|sets| &sets[slice]).copied();
                assert!(found.eq(expected), "slice {slice}");
            }
            let words = lists.counts.words(&sets, bounds);
            let expected = SetSignatures::new(&sets, words, isa, &mut sets.budget()).unwrap();
            assert_eq!(planned.signatures.unwrap().bits, expected.bits);
        }
        // One core needs no tasks, and few tokens are not worth any.
        let bounds = Bounds::new(Similarity::Jaccard, Threshold::new(1, 2).unwrap()).unwrap();
        for (cores, tokens_min) in [(1, 1), (4, 1 << 30)] {
            assert!(
                Planning::new(&sets, bounds, isa, Shares { cores, tokens_min }, None).is_none()
            );
        }
    }
}
