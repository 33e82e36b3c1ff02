//! A function of the program as an operator.

use std::fmt;
use std::ops::RangeInclusive;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};

use crate::columns::check_schema;

type MapFn = Box<dyn FnMut(RecordBatch) -> Result<RecordBatch, OperatorError> + Send>;

/// Applies a function to every batch.
///
/// # Ports
/// In: any. Out: the schema it was made with; a batch without rows is not sent.
///
/// # Examples
/// ```
/// use trommel_operators::Map;
/// # use std::sync::Arc;
/// # use arrow_schema::{DataType, Field, Schema};
/// let schema = Arc::new(Schema::new(vec![Field::new("item", DataType::UInt32, false)]));
/// let first_ten = Map::new(schema, |records| Ok(records.slice(0, records.num_rows().min(10))));
/// ```
pub struct Map {
    output: SchemaRef,
    load: Load,
    function: MapFn,
}

impl Map {
    /// Calls `function` for every batch; what it returns must have the schema `output`.
    pub fn new(
        output: SchemaRef,
        function: impl FnMut(RecordBatch) -> Result<RecordBatch, OperatorError> + Send + 'static,
    ) -> Self {
        Self { output, load: Load::Light, function: Box::new(function) }
    }

    /// Gives the function a core of its own while there are cores: for functions that cost more
    /// than a hop.
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

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
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
