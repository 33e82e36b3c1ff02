//! Operator that calls a function of the program.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};

use crate::shared::columns::check_schema;

type MapFn = Box<dyn FnMut(RecordBatch) -> Result<RecordBatch, OperatorError> + Send>;

/// Applies a function to every batch.
///
/// # Ports
/// In: any columns. Out: the columns of the schema `output`; a batch without rows is not sent.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_schema::{DataType, Field, Schema};
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Generate, Map};
///
/// let schema = Arc::new(Schema::new(vec![Field::new("item", DataType::UInt32, false)]));
/// let first_ten = Map::new(schema, |records| Ok(records.slice(0, records.num_rows().min(10))));
///
/// let mut graph = Graph::new();
/// let items = graph.add("items", Generate::zipf(100, 1.0).items(200).batch(100));
/// let first = graph.add_after(items, "first", first_ten);
/// let (sink, rows) = Collect::new();
/// graph.add_after(first, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// assert_eq!(rows.rows(), 2 * 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Map {
    output: SchemaRef,
    load: Load,
    function: MapFn,
}

impl Map {
    /// Calls `function` with every batch. The batches that `function` returns must have the schema
    /// `output`.
    pub fn new(
        output: SchemaRef,
        function: impl FnMut(RecordBatch) -> Result<RecordBatch, OperatorError> + Send + 'static,
    ) -> Self {
        Self { output, load: Load::Light, function: Box::new(function) }
    }

    /// Runs the function on a core of its own if a core is free, for functions that cost more than
    /// passing a batch to another thread.
    #[must_use]
    pub fn heavy(mut self) -> Self {
        self.load = Load::Heavy;
        self
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map")
            .field("output", &self.output)
            .field("load", &self.load)
            .finish_non_exhaustive()
    }
}

impl OperatorSpec for Map {
    fn operator(&self) -> &'static str {
        "map"
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let outputs = vec![SchemaRef::clone(&self.output)];
        Ok(Fragment::operator(self.load, *self, outputs))
    }
}

impl Operator for Map {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = (self.function)(input.into_records())?;
        check_schema("map", &records, &self.output)?;
        out.send(records);
        Ok(Flow::NeedInput)
    }
}
