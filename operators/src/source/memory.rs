//! Batches of the program as a source.

use std::fmt;
use std::ops::RangeInclusive;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};

use crate::columns::check_schema;

/// Sends the batches of an iterator, one by one.
///
/// The iterator runs on the source's thread and should not block for long.
pub struct Memory {
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = RecordBatch> + Send>,
}

impl Memory {
    /// Sends `batches`, which must all have the given schema: another one ends the run with an
    /// error.
    pub fn new<I>(schema: SchemaRef, batches: I) -> Self
    where
        I: IntoIterator<Item = RecordBatch>,
        I::IntoIter: Send + 'static,
    {
        Self { schema, batches: Box::new(batches.into_iter()) }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl OperatorSpec for Memory {
    fn operator(&self) -> &'static str {
        "memory"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let schema = SchemaRef::clone(&self.schema);
        Ok(Fragment::source(Load::Light, *self, schema))
    }
}

impl Source for Memory {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        let Some(records) = self.batches.next() else { return Ok(SourceFlow::Finished) };
        check_schema("memory source", &records, &self.schema)?;
        out.send(records);
        Ok(SourceFlow::HaveOutput)
    }
}
