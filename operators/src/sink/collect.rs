//! Sink that keeps every batch in memory.
//!
//! The sink and its handle share one list in a mutex. The lock is taken once per batch, for one
//! operation on the list, so neither side waits long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};

/// Keeps every batch for its [`Collected`] handle.
///
/// The memory of the batches has no limit: use the sink for tests and for results that fit in
/// memory.
///
/// # Examples
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Generate};
///
/// let mut graph = Graph::new();
/// let items = graph.add("items", Generate::zipf(100, 1.0).items(1_000).batch(250));
/// let (sink, collected) = Collect::new();
/// graph.add_after(items, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// assert_eq!(collected.rows(), 1_000);
/// assert_eq!(collected.take().len(), 4);
/// assert_eq!(collected.rows(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Collect {
    batches: Collected,
}

/// Batches that a [`Collect`] sink has received. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    batches: Arc<Mutex<Vec<RecordBatch>>>,
}

impl Collect {
    /// A sink and the handle to its batches.
    #[must_use]
    pub fn new() -> (Self, Collected) {
        let batches = Collected::default();
        (Self { batches: batches.clone() }, batches)
    }
}

impl Collected {
    /// Copies of the batches that were received and not taken so far; after the run has been
    /// joined, of all batches that were not taken. Copies share the data.
    #[must_use]
    pub fn batches(&self) -> Vec<RecordBatch> {
        self.lock().clone()
    }

    /// Removes and returns the batches received so far.
    #[must_use]
    pub fn take(&self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.lock())
    }

    /// Number of rows received and not taken.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.lock().iter().map(RecordBatch::num_rows).sum()
    }

    /// Locks the list. A poisoned lock is ignored: the list is consistent after each operation.
    fn lock(&self) -> MutexGuard<'_, Vec<RecordBatch>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OperatorSpec for Collect {
    fn operator(&self) -> &'static str {
        "collect"
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
