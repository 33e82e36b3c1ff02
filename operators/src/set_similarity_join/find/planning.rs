//! Lengths of posting lists, and signatures of sets, made in tasks that cores can do side by side.
//!
//! ```text
//! collection ──► count: postings of some sets, by token ──► sign: some sets ──► index by postings
//! ```

use std::ops::Range;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::memory::Part;
use trommel_kernels::sets::sign_sets;

use super::posting_join::ListLengths;
use super::signatures::SetSignatures;
use crate::budget::Budget;
use crate::set_similarity_join::similarity::Bounds;
use crate::sets::{SetCollection, Shares};

/// Tokens for each place of the tables of lengths.
const TOKENS_PER_PLACE: usize = 4;

/// Tasks of signing for each core, so that none waits long for the slowest one.
const TASKS_PER_CORE: usize = 2;

/// Sets that are signed at a time.
const SIGNED_SETS: usize = 1 << 10;

/// Data of an index by postings that has been made before it.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(super) lists: Option<ListLengths>,
    pub(super) signatures: Option<SetSignatures>,
}

/// Tasks that make the data of an index.
#[derive(Debug)]
pub(crate) struct Planning {
    collection: Arc<SetCollection>,
    bounds: Bounds,
    isa: Isa,
    shares: Shares,
    budget: Budget,
    /// Tasks that nobody has yet.
    waiting: Vec<PlanningTask>,
    under_way: usize,
    /// Lengths of the lists, as far as tasks have come back.
    lens: Vec<u32>,
    lists: Option<ListLengths>,
    /// By number of the task.
    signed: Vec<Option<Part<u64>>>,
}

/// A task over some sets of a collection.
#[derive(Debug)]
pub(crate) struct PlanningTask {
    collection: Arc<SetCollection>,
    sets: Range<u32>,
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// Counts the postings of the sets.
    Count { bounds: Bounds, lens: Vec<u32> },
    /// Signs the sets.
    Sign { isa: Isa, words: usize, number: usize, part: Part<u64> },
}

impl PlanningTask {
    /// Does the task.
    pub(crate) fn run(&mut self) {
        let Self { collection, sets, work } = self;
        match work {
            Work::Count { bounds, lens } => {
                *lens = vec![0; ListLengths::lists(collection)];
                ListLengths::add(collection, *bounds, sets.clone(), lens);
            }
            Work::Sign { isa, words, part, .. } => {
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

    /// Its share of all the work, to be compared with that of other tasks.
    pub(crate) fn weight(&self) -> u64 {
        let offsets = self.collection.sets().offsets();
        u64::from(offsets[self.sets.end as usize] - offsets[self.sets.start as usize])
    }
}

impl Planning {
    /// Begins to count the postings of `collection`, with tasks for the cores of `shares`. `None`
    /// if it is not worth them, or there is not enough memory for tables.
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        isa: Isa,
        shares: Shares,
    ) -> Option<Self> {
        let (tokens, places) = (collection.tokens(), ListLengths::lists(collection).max(1));
        let tables = (tokens / TOKENS_PER_PLACE / places).min(tokens / shares.tokens_min.max(1));
        let tables = tables.min(shares.cores);
        let budget = collection.budget();
        let bytes = tables * places * size_of::<u32>();
        if tables < 2 || budget.clone().take("the index", bytes).is_err() {
            return None;
        }
        let count = |sets| {
            let work = Work::Count { bounds, lens: Vec::new() };
            PlanningTask { collection: Arc::clone(collection), sets, work }
        };
        Some(Self {
            waiting: cut(collection, tables).into_iter().map(count).collect(),
            collection: Arc::clone(collection),
            bounds,
            isa,
            shares,
            budget,
            under_way: 0,
            lens: Vec::new(),
            lists: None,
            signed: Vec::new(),
        })
    }

    /// The next task; none until one comes back.
    pub(crate) fn task(&mut self) -> Option<PlanningTask> {
        let task = self.waiting.pop()?;
        self.under_way += 1;
        Some(task)
    }

    /// Takes a task back that has been done. The data of the index, if it was the last one.
    pub(crate) fn landed(&mut self, task: PlanningTask) -> Option<Planned> {
        self.under_way -= 1;
        match task.work {
            Work::Count { lens, .. } if self.lens.is_empty() => self.lens = lens,
            Work::Count { lens, .. } => {
                self.lens.iter_mut().zip(lens).for_each(|(all, len)| *all += len);
            }
            Work::Sign { number, part, .. } => self.signed[number] = Some(part),
        }
        if self.under_way > 0 || !self.waiting.is_empty() {
            return None;
        }
        let Self { collection, bounds, .. } = self;
        let Some(lists) = self.lists.take() else {
            let lists = ListLengths::new(collection, std::mem::take(&mut self.lens));
            let words = lists.words(collection, *bounds);
            self.lists = Some(lists);
            self.sign(words);
            return self.waiting.is_empty().then(|| self.planned(0));
        };
        let words = lists.words(collection, *bounds);
        self.lists = Some(lists);
        Some(self.planned(words))
    }

    /// Begins to sign the sets, if signatures pay and fit the memory.
    fn sign(&mut self, words: usize) {
        let Self { collection, isa, shares, budget, .. } = self;
        let bytes = SetSignatures::bytes(collection, words);
        if words == 0 || budget.take("the index", bytes).is_err() {
            return;
        }
        let parts = cut(collection, TASKS_PER_CORE * shares.cores);
        let split = Part::split(parts.iter().map(|sets| words * sets.len()));
        let sign = |(number, (sets, part))| {
            let work = Work::Sign { isa: *isa, words, number, part };
            PlanningTask { collection: Arc::clone(collection), sets, work }
        };
        self.signed = parts.iter().map(|_| None).collect();
        self.waiting = parts.into_iter().zip(split).enumerate().map(sign).collect();
    }

    fn planned(&mut self, words: usize) -> Planned {
        let parts: Vec<Part<u64>> =
            std::mem::take(&mut self.signed).into_iter().flatten().collect();
        let signatures = (words > 0).then(|| SetSignatures { words, bits: Part::join(parts) });
        Planned { lists: self.lists.take(), signatures }
    }
}

/// Runs of sets with about the same number of tokens, at most `runs` of them.
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
    use super::*;
    use crate::set_similarity_join::similarity::{Similarity, Threshold};
    use crate::sets::{SetCollector, Side};
    use crate::testing::sets::families;

    #[test]
    fn tasks_make_what_one_core_makes() {
        let mut sets = SetCollector::new(1 << 30);
        for (id, set) in (0..).zip(families(3000, 9, 1)) {
            sets.push(Side::Left, id, &set.into_iter().collect::<Vec<_>>()).unwrap();
        }
        let (sets, isa) = (Arc::new(sets.finish().unwrap()), Isa::selected().unwrap());
        for (numerator, cores) in [(1, 2), (1, 7), (2, 3)] {
            let threshold = Threshold::new(numerator, 2).unwrap();
            let bounds = Bounds::new(Similarity::Jaccard, threshold).unwrap();
            let shares = Shares { cores, tokens_min: 64 };
            let mut planning = Planning::new(&sets, bounds, isa, shares).unwrap();
            let mut tasks = 0;
            let planned = loop {
                let mut task = planning.task().unwrap();
                task.run();
                tasks += 1;
                if let Some(planned) = planning.landed(task) {
                    break planned;
                }
            };
            assert!(tasks > cores, "{tasks}");
            let lists = planned.lists.unwrap();
            let expected = ListLengths::count(&sets, bounds, &mut sets.budget()).unwrap();
            assert_eq!(lists, expected);
            let words = lists.words(&sets, bounds);
            let expected = SetSignatures::new(&sets, words, isa, &mut sets.budget()).unwrap();
            assert_eq!(planned.signatures.unwrap().bits, expected.bits);
        }
        // One core needs no tasks, and few tokens are not worth any.
        let bounds = Bounds::new(Similarity::Jaccard, Threshold::new(1, 2).unwrap()).unwrap();
        for (cores, tokens_min) in [(1, 1), (4, 1 << 30)] {
            assert!(Planning::new(&sets, bounds, isa, Shares { cores, tokens_min }).is_none());
        }
    }
}
