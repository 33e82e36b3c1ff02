//! The state of the operator: the table, and the rows of the stream that wait for its end.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_select::filter::{filter, filter_record_batch};
use thiserror::Error;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{
    Counters, Ending, Flow, NamedInputs, Operator, OperatorError, Output,
};

use super::filling::Filling;
use super::plan::Plan;
use super::table::{NO_ROW, Table};
use super::unsent::Unsent;
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::rejected::{BadRows, PORT};

/// The memory of the stage is full.
#[derive(Debug, Error)]
#[error(
    "{full}; the table has {table} bytes, and the rows of the stream that wait for the end of the \
     table have {waiting}"
)]
struct MemoryFull {
    full: BudgetFull,
    table: usize,
    waiting: usize,
}

/// The table.
enum State {
    /// The table has not ended.
    Filling(Filling),
    /// The table has ended, and its rows have no form yet in which keys are looked up.
    Ended(Filling),
    Whole(Table),
    /// The run was stopped before the end of the table, so that no row can be looked up.
    CutOff,
}

/// Looks up the rows of the stream.
pub(super) struct LookingUp {
    plan: Arc<Plan>,
    budget: Budget,
    bad: BadRows,
    state: State,
    /// Batches of the stream that wait, with their bytes.
    waiting: VecDeque<(RecordBatch, usize)>,
    waiting_bytes: usize,
    unsent: Option<Unsent>,
    /// The numbers of the keys of a batch.
    numbers: Vec<u32>,
    counts: Counts,
}

/// Numbers of rows.
#[derive(Debug, Default)]
struct Counts {
    table: u64,
    matched: u64,
    unmatched: u64,
    /// Rows that have waited for the end of the table.
    waited: u64,
    /// Rows that no table was there for when the run was stopped.
    unanswered: u64,
}

impl LookingUp {
    pub(super) fn new(plan: Plan, budget: Budget, bad: BadRows) -> Self {
        let plan = Arc::new(plan);
        Self {
            state: State::Filling(Filling::new(&plan)),
            plan,
            budget,
            bad,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            unsent: None,
            numbers: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// `error` with the uses of the memory, if the memory is full.
    fn with_uses(&self, error: OperatorError) -> OperatorError {
        match error.downcast::<BudgetFull>() {
            Ok(full) => {
                let waiting = self.waiting_bytes;
                MemoryFull { full: *full, table: self.budget.used() - waiting, waiting }.into()
            }
            Err(other) => other,
        }
    }

    /// Lets a batch of the stream wait.
    fn wait(&mut self, records: RecordBatch) -> Result<(), OperatorError> {
        let bytes = records.get_array_memory_size() + size_of::<(RecordBatch, usize)>();
        self.budget.take("the rows that wait for the end of the table", bytes)?;
        self.waiting_bytes += bytes;
        self.waiting.push_back((records, bytes));
        Ok(())
    }

    /// Takes a batch of either input.
    fn take(
        &mut self,
        port: usize,
        records: RecordBatch,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        match &mut self.state {
            State::Filling(table) if port == 1 => {
                table.add(&records, &mut self.bad, &mut self.budget, out)?;
                self.counts.table = table.len() as u64;
                Ok(Flow::NeedInput)
            }
            State::Filling(_) => {
                self.counts.waited += records.num_rows() as u64;
                self.wait(records)?;
                Ok(Flow::NeedInput)
            }
            State::Ended(_) | State::Whole(_) | State::CutOff => {
                if self.waiting.is_empty() {
                    self.unsent = self.look_up(records, out)?;
                } else {
                    self.wait(records)?;
                }
                self.advance(out)
            }
        }
    }

    /// Gives a table that has ended the form in which keys are looked up.
    fn end_table(&mut self) -> Result<(), OperatorError> {
        self.state = match mem::replace(&mut self.state, State::CutOff) {
            State::Ended(table) => State::Whole(table.end(&mut self.budget)?),
            other => other,
        };
        Ok(())
    }

    /// Sends the next rows.
    fn advance(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        if self.unsent.is_none()
            && let Some((records, bytes)) = self.waiting.pop_front()
        {
            self.waiting_bytes -= bytes;
            self.budget.give_back(bytes);
            self.unsent = self.look_up(records, out)?;
        }
        if let (Some(unsent), State::Whole(table)) = (&mut self.unsent, &self.state) {
            if !unsent.is_sent() {
                out.send(unsent.next(table, &self.plan)?);
            }
            if unsent.is_sent() {
                self.unsent = None;
            }
        }
        let is_done = self.unsent.is_none() && self.waiting.is_empty();
        Ok(if is_done { Flow::NeedInput } else { Flow::HaveOutput })
    }

    /// Looks up the rows of a batch.
    fn look_up(
        &mut self,
        records: RecordBatch,
        out: &mut Output,
    ) -> Result<Option<Unsent>, OperatorError> {
        self.end_table()?;
        let State::Whole(table) = &mut self.state else {
            self.counts.unanswered += records.num_rows() as u64;
            return Ok(None);
        };
        let mut faults = self.bad.faults();
        let mut keys = self.plan.keys_of(0, &records, &mut faults)?;
        self.bad.settle(0, &records, &faults)?;
        self.bad.take_rejected().into_iter().for_each(|rows| out.send_to(PORT, rows));
        let records = match faults.usable(records.num_rows()) {
            None => records,
            Some(usable) => {
                keys = keys.iter().map(|key| filter(key, &usable)).collect::<Result<_, _>>()?;
                filter_record_batch(&records, &usable)?
            }
        };
        table.find(&self.plan, &keys, &mut self.numbers)?;
        let unmatched = self.numbers.iter().filter(|&&number| number == NO_ROW).count() as u64;
        self.counts.unmatched += unmatched;
        self.counts.matched += self.numbers.len() as u64 - unmatched;
        Ok(Some(Unsent::new(records, &self.numbers, table, self.plan.mode)?))
    }
}

impl Operator for LookingUp {
    fn process(
        &mut self,
        port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.take(port, input.into_records(), out).map_err(|error| self.with_uses(error))
    }

    fn port_ended(&mut self, port: usize, ending: Ending) {
        if port == 0 {
            return;
        }
        if let State::Filling(table) = mem::replace(&mut self.state, State::CutOff) {
            match ending {
                Ending::Whole => self.state = State::Ended(table),
                Ending::Stopped => {
                    tracing::warn!(
                        "stopped before the end of the table: rows that wait are left out"
                    );
                }
            }
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        // This time has passed, so the call comes as soon as no input waits.
        let is_ready = matches!(self.state, State::Ended(_) | State::CutOff);
        (is_ready && !self.waiting.is_empty()).then(Instant::now)
    }

    fn wake(&mut self, _: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        self.resume(out)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.advance(out).map_err(|error| self.with_uses(error))
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![
            ("table_rows", self.counts.table),
            ("matched", self.counts.matched),
            ("unmatched", self.counts.unmatched),
            ("waited", self.counts.waited),
        ];
        if self.counts.unanswered > 0 {
            counters.push(("unanswered", self.counts.unanswered));
        }
        counters.extend(self.bad.counters());
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.bad.named()
    }
}
