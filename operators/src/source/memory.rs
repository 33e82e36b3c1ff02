//! Source of batches that the program supplies.

use std::fmt;
use std::ops::RangeInclusive;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};

use crate::shared::columns::check_schema;

/// Sends the batches of an iterator, one per call.
///
/// The iterator runs on the thread of the source and should not block for long, because other
/// stages may share that thread.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::{RecordBatch, StringArray};
/// use arrow_schema::{DataType, Field, Schema};
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Memory};
///
/// let schema = Arc::new(Schema::new(vec![Field::new("line", DataType::Utf8, false)]));
/// let lines = Arc::new(StringArray::from(vec!["to be", "or not"]));
/// let batch = RecordBatch::try_new(schema.clone(), vec![lines])?;
///
/// let mut graph = Graph::new();
/// let lines = graph.add("lines", Memory::new(schema, [batch]));
/// let (sink, rows) = Collect::new();
/// graph.add_after(lines, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// assert_eq!(rows.rows(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Memory {
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, OperatorError>> + Send>,
}

impl Memory {
    /// Sends `batches`, each of which must have the given `schema`. A batch with another schema
    /// ends the run with [`SchemaMismatch`](crate::SchemaMismatch).
    pub fn new<I>(schema: SchemaRef, batches: I) -> Self
    where
        I: IntoIterator<Item = RecordBatch>,
        I::IntoIter: Send + 'static,
    {
        Self::fallible(schema, batches.into_iter().map(Ok))
    }

    /// As [`Memory::new`]; an error of the iterator ends the run.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use arrow_schema::Schema;
    /// use trommel_engine::graph::Graph;
    /// use trommel_engine::runtime::RunOptions;
    /// use trommel_operators::{Discard, Memory};
    ///
    /// let mut graph = Graph::new();
    /// let lines = [Err("line 7 is not valid".into())];
    /// let lines = graph.add("lines", Memory::fallible(Arc::new(Schema::empty()), lines));
    /// graph.add_after(lines, "end", Discard::new());
    /// let error = graph.build()?.run(RunOptions::new()).unwrap_err();
    /// assert_eq!(error.to_string(), "stage `lines` (memory): line 7 is not valid");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fallible<I>(schema: SchemaRef, batches: I) -> Self
    where
        I: IntoIterator<Item = Result<RecordBatch, OperatorError>>,
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
        let records = records?;
        check_schema("memory source", &records, &self.schema)?;
        out.send(records);
        Ok(SourceFlow::HaveOutput)
    }
}
