//! The number of copies of each stage: see [`Division`].
//!
//! Stages that can be divided and follow each other are joined to regions. A region is divided if
//! this pays: if one of its stages is heavy, or the program asks for workers. All stages of a
//! region have the same number of copies: the number that the program asks for or, without one, a
//! copy for each thread that the pipeline may use, but no more than there are pieces of the input.
//! A region whose input is small ([`Fragment::input_bytes`]) is divided only if the program asks
//! for workers.
//!
//! [`Fragment::input_bytes`]: crate::operator::Fragment::input_bytes

use super::OutputPort;
use super::bind::BoundStage;
use crate::error::BindError;
use crate::operator::{Body, Copies, Division, Load};

/// Minimum bytes of an input at which further threads pay.
const INPUT_BYTES_MIN: u64 = 4 << 20;

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
    let are_small = are_small(stages);
    let mut copies = Vec::new();
    for (index, stage) in stages.iter().enumerate() {
        let region = regions.of(index);
        copies.push(StageCopies { region, more: Vec::new() });
        if stage.can_be_copied() {
            members[region].push(index);
        }
    }
    for members in members {
        let is_small = members.iter().all(|&stage| are_small[stage]);
        let count = count(stages, &members, if is_small { 1 } else { threads });
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

/// Whether each stage has little input: it is a source that has, or makes rows of the rows of such
/// stages one by one.
fn are_small(stages: &[BoundStage]) -> Vec<bool> {
    let mut are_small: Vec<bool> = Vec::new();
    for stage in stages {
        let of_inputs = || stage.inputs.iter().all(|input| are_small[input.stage.0]);
        let is_small = match stage.fragment.input_bytes {
            Some(bytes) => bytes < INPUT_BYTES_MIN,
            None => !stage.inputs.is_empty() && stage.copies().is_some() && of_inputs(),
        };
        are_small.push(is_small);
    }
    are_small
}

/// Number of copies of the stages of a region, without a wish of the program at most one for each
/// of these threads.
fn count(stages: &[BoundStage], members: &[usize], threads: usize) -> usize {
    let members = || members.iter().map(|&stage| &stages[stage]);
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
        None if pays => threads.min(most).max(1),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{Schema, SchemaRef};

    use super::*;
    use crate::batch::Payload;
    use crate::graph::StageId;
    use crate::operator::{Flow, Fragment, Operator, OperatorError, Output, Source, SourceFlow};

    /// A source without rows, and an operator that drops its rows.
    struct Nothing;

    impl Source for Nothing {
        fn next(&mut self, _: &mut Output) -> Result<SourceFlow, OperatorError> {
            Ok(SourceFlow::Finished)
        }
    }

    impl Operator for Nothing {
        fn process(&mut self, _: usize, _: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
            Ok(Flow::NeedInput)
        }
    }

    fn schema() -> SchemaRef {
        Arc::new(Schema::empty())
    }

    fn stage(inputs: &[usize], fragment: Fragment) -> BoundStage {
        BoundStage {
            id: String::new(),
            operator: "nothing",
            inputs: inputs.iter().map(|&input| StageId(input).port(0)).collect(),
            has_one_port: true,
            output_ports: &[""],
            reads_stdin: false,
            cores: Vec::new(),
            workers: None,
            fragment,
        }
    }

    fn anywhere(inputs: &[usize]) -> BoundStage {
        stage(inputs, Fragment::anywhere(Load::Heavy, || Ok(Nothing), vec![schema()]).unwrap())
    }

    fn source(bytes: Option<u64>) -> BoundStage {
        let source = Fragment::source(Load::Light, Nothing, schema());
        stage(&[], source.with_input_bytes(bytes))
    }

    /// Number of workers of each stage on eight threads.
    fn workers(mut stages: Vec<BoundStage>) -> Vec<usize> {
        let Ok(copies) = divide(&mut stages, 8) else { panic!("all copies can be made") };
        copies.iter().map(|copies| copies.more.len() + 1).collect()
    }

    #[test]
    fn stages_with_little_input_stay_in_one_place() {
        let behind = |bytes| workers(vec![source(bytes), anywhere(&[0]), anywhere(&[1])]);
        assert_eq!(behind(Some(1 << 20)), [1, 1, 1]);
        assert_eq!(behind(Some(INPUT_BYTES_MIN)), [1, 8, 8]);
        assert_eq!(behind(None), [1, 8, 8]);
    }

    #[test]
    fn one_large_input_is_enough() {
        let joined = |bytes| workers(vec![source(Some(5)), source(bytes), anywhere(&[0, 1])]);
        // Streams without a common order are read in one place.
        assert_eq!(joined(Some(1 << 30)), [1, 1, 1]);
        let partial = |bytes| {
            let fragment = Fragment::operator(Load::Heavy, Nothing, vec![schema()]);
            let make = || Ok(Body::Operator(Box::new(Nothing)));
            let fragment = fragment.divided(Division::Partial, 0, usize::MAX, make);
            workers(vec![source(Some(5)), source(bytes), stage(&[0, 1], fragment)])
        };
        assert_eq!(partial(Some(6)), [1, 1, 1]);
        assert_eq!(partial(Some(1 << 30)), [1, 1, 8]);
    }

    #[test]
    fn a_stage_that_is_no_copy_may_make_many_rows_of_few() {
        let join = stage(&[0], Fragment::operator(Load::Heavy, Nothing, vec![schema()]));
        assert_eq!(workers(vec![source(Some(5)), join, anywhere(&[1])]), [1, 1, 8]);
    }

    #[test]
    fn a_program_that_asks_for_workers_gets_them() {
        let mut asked = anywhere(&[0]);
        asked.workers = Some(3);
        assert_eq!(workers(vec![source(Some(5)), asked]), [1, 3]);
    }
}
