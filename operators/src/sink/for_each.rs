//! A function of the program as a sink.

use std::fmt;
use std::ops::RangeInclusive;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};

type SinkFn = Box<dyn FnMut(RecordBatch) -> Result<(), OperatorError> + Send>;

/// Hands every batch to a function. The function may block: that holds back everything before it.
pub struct ForEach {
    function: SinkFn,
}

impl ForEach {
    /// Calls `function` for every batch; an error of it ends the run.
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

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
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
