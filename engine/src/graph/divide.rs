//! The number of copies of each stage: see [`Division`].
//!
//! Stages that can be divided and follow each other are joined to regions. A region is divided if
//! this pays: if one of its stages is heavy, or the program asks for workers. All stages of a
//! region have the same number of copies: the number that the program asks for or, without one, a
//! copy for each thread that the pipeline may use, but no more than there are pieces of the input.

use super::OutputPort;
use super::bind::BoundStage;
use crate::error::BindError;
use crate::operator::{Body, Copies, Division, Load};

/// The copies of one stage, in addition to the first.
#[derive(Default)]
pub(super) struct StageCopies {
    /// The number of the region of the stage: the index of its first stage.
    pub(super) region: usize,
    /// The bodies of the further copies; none if the stage is in one place.
    pub(super) more: Vec<Body>,
}

/// A copy that could not be made although the program asks for that many workers.
pub(super) struct CopyError {
    /// Index of the stage.
    pub(super) stage: usize,
    pub(super) error: BindError,
}

/// Makes the copies of all stages, which come in topological order. A pipeline may use `threads`
/// threads.
pub(super) fn divide(
    stages: &mut [BoundStage],
    threads: usize,
) -> Result<Vec<StageCopies>, CopyError> {
    let mut regions = Regions((0..stages.len()).collect());
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); stages.len()];
    for index in 0..stages.len() {
        regions.join_inputs(stages, index);
    }
    let mut copies = Vec::new();
    for (index, stage) in stages.iter().enumerate() {
        let region = regions.of(index);
        copies.push(StageCopies { region, more: Vec::new() });
        if stage.can_be_copied() {
            members[region].push(index);
        }
    }
    for members in members {
        let count = count(stages, &members, threads);
        for _ in 1..count {
            match make_lane(stages, &members) {
                Ok(lane) => {
                    for (&stage, body) in members.iter().zip(lane) {
                        copies[stage].more.push(body);
                    }
                }
                Err(error) if stages[error.stage].workers.is_some() => return Err(error),
                // The memory has no room for another copy.
                Err(_) => break,
            }
        }
    }
    Ok(copies)
}

/// A further copy of each of these stages.
fn make_lane(stages: &mut [BoundStage], members: &[usize]) -> Result<Vec<Body>, CopyError> {
    let copy = |&stage: &usize| {
        let copies = stages[stage].copies_mut().expect("a member of a region can be copied");
        (copies.make)().map_err(|error| CopyError { stage, error })
    };
    members.iter().map(copy).collect()
}

/// For each stage, an earlier stage of its region, or the stage itself if it is the first one.
struct Regions(Vec<usize>);

impl Regions {
    /// The first stage of the region of a stage.
    fn of(&mut self, mut stage: usize) -> usize {
        while self.0[stage] != stage {
            // Each look halves the path of later looks.
            self.0[stage] = self.0[self.0[stage]];
            stage = self.0[stage];
        }
        stage
    }

    /// Joins a stage with the stages whose copies it reads.
    fn join_inputs(&mut self, stages: &[BoundStage], index: usize) {
        if !stages[index].enters_copies() {
            return;
        }
        for &input in &stages[index].inputs {
            if stages[input.stage.0].leaves_copies(input) {
                let (one, other) = (self.of(index), self.of(input.stage.0));
                self.0[one.max(other)] = one.min(other);
            }
        }
    }
}

/// Number of copies of the stages of a region.
fn count(stages: &[BoundStage], members: &[usize], threads: usize) -> usize {
    let members = || members.iter().map(|&stage| &stages[stage]);
    // A source that could be divided and has one piece has little input, for later stages too.
    let inputs = members().flat_map(|stage| &stage.inputs);
    let mut inputs = inputs.map(|input| &stages[input.stage.0]);
    let is_small = inputs.clone().next().is_some() && inputs.all(BoundStage::is_small_source);
    let asked = members().filter_map(BoundStage::asked).max();
    let pays = members().any(|stage| matches!(stage.copied_load(), Load::Heavy | Load::Worker));
    let sources = members().filter_map(|stage| match stage.copies() {
        Some(Copies { division: Division::Pieces, most, .. }) => Some(*most),
        _ => None,
    });
    // Without a source, the region gets its input from one place, in as many pieces as come.
    let most = sources.max().unwrap_or(usize::MAX);
    match asked {
        Some(asked) => asked.min(most.max(1)),
        None if pays && !is_small => threads.min(most).max(1),
        None => 1,
    }
}

impl BoundStage {
    pub(super) fn copies(&self) -> Option<&Copies> {
        self.fragment.copies.as_ref()
    }

    fn copies_mut(&mut self) -> Option<&mut Copies> {
        self.fragment.copies.as_mut()
    }

    /// Whether the stage is a source whose input is a single piece.
    fn is_small_source(&self) -> bool {
        self.copies().is_some_and(|copies| copies.division == Division::Pieces && copies.most < 2)
    }

    /// Number of copies that the program asks for.
    fn asked(&self) -> Option<usize> {
        self.workers.or_else(|| Some(self.cores.len()).filter(|&cores| cores > 0))
    }

    fn copied_load(&self) -> Load {
        self.copies().map_or(Load::Light, |copies| self.fragment.parts[copies.part].load)
    }

    /// Whether the stage can run in several copies, given its inputs.
    pub(super) fn can_be_copied(&self) -> bool {
        let Some(copies) = self.copies() else { return false };
        if self.asked() == Some(1) || copies.most < 2 {
            return false;
        }
        // Pieces of different streams have no common order. A stage whose rows leave in the order
        // of the pieces therefore has one input.
        let keeps_order = copies.division != Division::Partial || self.fragment.early_outputs > 0;
        self.inputs.len() < 2 || !keeps_order || copies.part > 0
    }

    /// Whether the inputs enter the part that can be copied.
    fn enters_copies(&self) -> bool {
        self.can_be_copied() && self.copies().is_some_and(|copies| copies.part == 0)
    }

    /// Whether the rows of an output leave the part that can be copied.
    fn leaves_copies(&self, output: OutputPort) -> bool {
        let Some(copies) = self.copies().filter(|_| self.can_be_copied()) else { return false };
        let parts = self.fragment.parts.len();
        let is_early = output.port >= self.fragment.outputs.len() - self.fragment.early_outputs;
        copies.part == if is_early { 0 } else { parts - 1 }
    }
}
