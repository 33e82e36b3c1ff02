//! Tasks of a join that kernels do on the CPU, side by side: collecting and sorting the sets, and
//! making and searching slices of the index.

use trommel_kernels::Isa;

use super::answers::OverlapAnswer;
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::candidates::joined_sets::JoinedSets;
use crate::set_similarity_join::find::searching::SearchTask;
use crate::set_similarity_join::parameters::options::JoinOutput;
use crate::set_similarity_join::plan::costs;
use crate::set_similarity_join::postings::planning::{PlannedSets, PlanningTask, weight};
use crate::shared::sets::{GatheringTask, SortingTask};
use crate::wave::{DeviceSession, OPENING_NS};

/// Number of chunks of candidates that one call verifies to count the similar pairs. The number is
/// small, so that the parts that share the thread wait only a few milliseconds.
const CHUNKS_PER_CALL: usize = 8;

/// Work of a chunk that has neither pairs nor tiles of its own.
#[derive(Debug)]
pub(crate) enum JoinWork {
    /// Opens a device that will be needed, while sets are read.
    Open(DeviceSession),
    Gather(GatheringTask),
    Sort(SortingTask),
    Plan(PlanningTask),
    Search(Box<Search>),
    /// No work: this number of pairs of copies is known already.
    Copies(u64),
}

/// The search of a slice or of a share of a slice, and the verification of the candidates.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) task: SearchTask,
    sets: JoinedSets,
    /// Number of candidates that the last call verified, and number of similar pairs, if the output
    /// is the number of pairs.
    pub(crate) verified: u64,
    pub(crate) count: u64,
    /// Whether a device is to verify the candidates.
    is_for_device: bool,
    /// Whether the candidates of the last call are to be verified by a device.
    has_found: bool,
}

impl Search {
    pub(crate) fn new(task: SearchTask, sets: JoinedSets, is_for_device: bool) -> Self {
        Self { task, sets, verified: 0, count: 0, is_for_device, has_found: false }
    }

    /// Finds candidates for a device, or verifies them if no device is left.
    fn run_for_device(
        &mut self,
        isa: Isa,
        output: JoinOutput,
        pairs: &mut CandidateChunk,
        answer: &mut OverlapAnswer,
    ) {
        (self.verified, self.count) = (0, 0);
        if self.has_found {
            self.has_found = false;
            self.verified = pairs.len() as u64;
            match output {
                JoinOutput::Count => self.count = pairs.count(isa, &self.sets),
                JoinOutput::Pairs => answer.overlaps = pairs.verify(isa, &self.sets),
            }
        } else {
            pairs.clear();
            answer.overlaps.clear();
            self.task.fill(pairs);
            self.has_found = !pairs.is_empty();
        }
    }

    /// Finds and verifies candidates: one chunk if the output is pairs, or several chunks if the
    /// output is their number.
    fn run(
        &mut self,
        isa: Isa,
        output: JoinOutput,
        pairs: &mut CandidateChunk,
        answer: &mut OverlapAnswer,
    ) {
        (self.verified, self.count) = (0, 0);
        let chunks = if output == JoinOutput::Count { CHUNKS_PER_CALL } else { 1 };
        for _ in 0..chunks {
            pairs.clear();
            let has_more = self.task.fill(pairs);
            self.verified += pairs.len() as u64;
            match output {
                JoinOutput::Count => self.count += pairs.count(isa, &self.sets),
                JoinOutput::Pairs => answer.overlaps = pairs.verify(isa, &self.sets),
            }
            if !has_more {
                break;
            }
        }
    }
}

impl JoinWork {
    /// Does the work, as far as there is room for the answer. The last chunk of candidates stays in
    /// `pairs`, and the overlaps of these candidates go to `answer`.
    pub(crate) fn run(
        &mut self,
        isa: Isa,
        output: JoinOutput,
        pairs: &mut CandidateChunk,
        answer: &mut OverlapAnswer,
    ) {
        match self {
            Self::Open(session) => drop(session.open()),
            Self::Gather(task) => task.run(),
            Self::Sort(task) => task.run(),
            Self::Plan(task) => task.run(PlannedSets::run),
            Self::Search(search) if search.is_for_device => {
                search.run_for_device(isa, output, pairs, answer);
            }
            Self::Search(search) => search.run(isa, output, pairs, answer),
            Self::Copies(_) => {}
        }
    }

    /// The sets of the candidates, if the work finds candidates.
    pub(crate) fn sets(&self) -> Option<&JoinedSets> {
        match self {
            Self::Search(search) => Some(&search.sets),
            _ => None,
        }
    }

    /// Whether a device is to verify the candidates that the work has found, or has done so.
    pub(crate) fn has_found(&self) -> bool {
        matches!(self, Self::Search(search) if search.has_found)
    }

    /// Forgets candidates that a device has verified.
    pub(crate) fn forget_found(&mut self) {
        if let Self::Search(search) = self {
            search.has_found = false;
        }
    }

    /// Whether the work has to continue in another call.
    pub(crate) fn has_more(&self) -> bool {
        match self {
            Self::Open(_) | Self::Gather(_) | Self::Sort(_) | Self::Plan(_) | Self::Copies(_) => {
                false
            }
            Self::Search(search) => search.task.has_more(),
        }
    }

    /// Modelled nanoseconds of a core.
    pub(crate) fn cpu_ns(&self) -> f64 {
        match self {
            Self::Open(_) => OPENING_NS,
            Self::Gather(task) => task.weight() as f64 * costs::GATHERED_TOKEN,
            Self::Sort(task) => task.weight() as f64 * costs::SORTED_TOKEN,
            Self::Plan(task) => weight(task) as f64 * costs::PLANNED_TOKEN,
            Self::Search(search) => search.task.weight() as f64 * costs::SEARCHED_PAIR,
            Self::Copies(_) => 0.0,
        }
    }
}
