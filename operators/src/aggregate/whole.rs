//! The groups of the whole input: of each worker, and of all workers.
//!
//! ```text
//!  batches ──┬► GROUP 1 ─┐ groups
//!            ├► GROUP 2 ─┼────────► MERGE ──► rows
//!            └► GROUP 3 ─┘
//! ```

use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{Counters, Flow, NamedInputs, Operator, OperatorError, Output};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response, Share};

use super::input::Input;
use super::questions::{QUERIES, Question};
use super::state::{State, Unsent};

/// GROUP: the groups of the rows that one worker gets.
pub(crate) struct Worker {
    input: Input,
    /// Taken at the end of the input.
    state: Option<State>,
}

impl Worker {
    pub(crate) fn new(input: Input, state: State) -> Self {
        Self { input, state: Some(state) }
    }

    fn take(&mut self, input: Payload, out: &mut Output) -> Result<(), OperatorError> {
        let observed = self.input.read(&input.into_records(), out)?;
        self.state.as_mut().expect("the input goes on").add(&observed)
    }

    /// The question of a request, and a copy of the groups.
    fn asked(&self, request: &Request) -> Result<(Question, State), QueryError> {
        let question = Question::read(request, self.input.plan())?;
        let Some(state) = &self.state else {
            let (request, awaited) = (request.name().to_owned(), "the last rows are on their way");
            return Err(QueryError::NotYet { request, awaited });
        };
        let copy = question.copy(state)?;
        Ok((question, copy))
    }
}

impl Operator for Worker {
    fn is_copied(&mut self) {
        self.input.is_of_a_copy();
    }

    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.take(input, out)?;
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let state = self.state.take().expect("the input ends once");
        let bytes = state.bytes();
        out.send_chunk(Chunk::new(state, 0, bytes));
        Ok(Flow::NeedInput)
    }

    fn queries(&self) -> &'static [&'static str] {
        QUERIES
    }

    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let (question, state) = self.asked(request)?;
        let combine = move |states: &[&State]| question.answer(states.iter().copied());
        Ok(Response::Share(Share::new(state, combine)))
    }

    fn counters(&self) -> Counters {
        self.input.counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.input.named()
    }
}

/// MERGE: adds the groups of all workers.
#[derive(Default)]
pub(crate) struct Merge {
    state: Option<State>,
    unsent: Option<Unsent>,
    groups: u64,
}

impl Operator for Merge {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        let state = input.into_value::<State>();
        self.state = Some(match self.state.take() {
            None => state,
            Some(known) => {
                // The groups of the smaller state are added to the larger one.
                let is_larger = state.len() > known.len();
                let (mut into, from) = if is_larger { (state, known) } else { (known, state) };
                into.merge(&from)?;
                into
            }
        });
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let state = self.state.take().expect("each worker sends its groups");
        self.groups = state.len() as u64;
        self.unsent = Some(Unsent::new(state)?);
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        send_rows(&mut self.unsent, out)
    }

    fn counters(&self) -> Counters {
        vec![("groups", self.groups)]
    }
}

/// Sends the next rows.
fn send_rows(unsent: &mut Option<Unsent>, out: &mut Output) -> Result<Flow, OperatorError> {
    match unsent.as_mut().map(Unsent::next_rows).transpose()?.flatten() {
        Some(rows) => {
            out.send(rows);
            Ok(Flow::HaveOutput)
        }
        None => {
            *unsent = None;
            Ok(Flow::NeedInput)
        }
    }
}

/// All groups in one place, for values that depend on the order of rows.
pub(crate) struct OnePlace {
    worker: Worker,
    unsent: Option<Unsent>,
    groups: u64,
}

impl OnePlace {
    pub(crate) fn new(worker: Worker) -> Self {
        Self { worker, unsent: None, groups: 0 }
    }
}

impl Operator for OnePlace {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.worker.take(input, out)?;
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let state = self.worker.state.take().expect("the input ends once");
        self.groups = state.len() as u64;
        self.unsent = Some(Unsent::new(state)?);
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        send_rows(&mut self.unsent, out)
    }

    fn queries(&self) -> &'static [&'static str] {
        QUERIES
    }

    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let (question, state) = self.worker.asked(request)?;
        Ok(Response::Compute(Box::new(move || question.answer([&state]))))
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("groups", self.groups)];
        counters.extend(self.worker.counters());
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.worker.named_inputs()
    }
}
