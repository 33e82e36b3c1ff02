//! Sink that calls a function of the program.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};

type SinkFn = Box<dyn FnMut(RecordBatch) -> Result<(), OperatorError> + Send>;

/// Calls a function with every batch. The function may block, which holds up all earlier stages.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{ForEach, Generate};
///
/// let rows = Arc::new(AtomicUsize::new(0));
/// let counter = Arc::clone(&rows);
/// let mut graph = Graph::new();
/// let items = graph.add("items", Generate::zipf(100, 1.0).items(1_000));
/// graph.add_after(items, "count", ForEach::new(move |batch| {
///     counter.fetch_add(batch.num_rows(), Ordering::Relaxed);
///     Ok(())
/// }));
/// graph.build()?.run(RunOptions::new())?;
/// assert_eq!(rows.load(Ordering::Relaxed), 1_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ForEach {
    function: SinkFn,
}

impl ForEach {
    /// Calls `function` with every batch. An error that `function` returns ends the run.
    pub fn new(
        function: impl FnMut(RecordBatch) -> Result<(), OperatorError> + Send + 'static,
    ) -> Self {
        Self { function: Box::new(function) }
    }
}

impl fmt::Debug for ForEach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForEach").finish_non_exhaustive()
    }
}

impl OperatorSpec for ForEach {
    fn operator(&self) -> &'static str {
        "for_each"
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::operator(Load::Light, *self, Vec::new()))
    }
}

impl Operator for ForEach {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        (self.function)(input.into_records())?;
        Ok(Flow::NeedInput)
    }
}
