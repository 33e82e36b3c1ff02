//! A sink that keeps every batch in memory.
//!
//! The sink and its handle share one list behind a mutex. The lock is taken once a batch and never
//! while anything else is done, so neither side waits for the other for long.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};

/// Keeps every batch, to be read through its [`Collected`] handle.
///
/// Nothing limits what it keeps: it is meant for results that fit in memory, and for tests.
#[derive(Debug)]
pub struct Collect {
    batches: Collected,
}

/// What a [`Collect`] sink has received. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    batches: Arc<Mutex<Vec<RecordBatch>>>,
}

impl Collect {
    /// A sink, and the handle that reads what it received.
    #[must_use]
    pub fn new() -> (Self, Collected) {
        let batches = Collected::default();
        (Self { batches: batches.clone() }, batches)
    }
}

impl Collected {
    /// The batches received so far; all of them once the run has been joined.
    #[must_use]
    pub fn batches(&self) -> Vec<RecordBatch> {
        self.lock().clone()
    }

    /// Takes the batches received so far out of the list.
    #[must_use]
    pub fn take(&self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.lock())
    }

    /// How many rows were received and not taken.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.lock().iter().map(RecordBatch::num_rows).sum()
    }

    /// A list of batches is whole after every operation on it, so a panic elsewhere does not spoil
    /// it.
    fn lock(&self) -> MutexGuard<'_, Vec<RecordBatch>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OperatorSpec for Collect {
    fn operator(&self) -> &'static str {
        "collect"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::operator(Load::Light, *self, Vec::new()))
    }
}

impl Operator for Collect {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        self.batches.lock().push(input.into_records());
        Ok(Flow::NeedInput)
    }
}
