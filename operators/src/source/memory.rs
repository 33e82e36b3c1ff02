//! Source of batches that the program supplies.

use std::collections::VecDeque;
use std::fmt;
use std::ops::RangeInclusive;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};

use crate::shared::columns::check_schema;

/// Maximum batches, and bytes of batches, that are taken from an iterator when the graph is built.
const LOOK_BATCHES: usize = 64;
const LOOK_BYTES: usize = 4 << 20;

/// Sends the batches of an iterator, one per call.
///
/// The iterator runs on the thread of the source and should not block for long, because other
/// stages may share that thread. If the iterator knows the number of its batches, as that of a list
/// does, up to 64 batches of 4 MiB in total are taken when the graph is built: if there are no
/// more, the stages behind the source run in one place.
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
    batches: Box<dyn Iterator<Item = Item> + Send>,
    /// The first batches, which were taken from the iterator when the graph was built.
    first: VecDeque<Item>,
}

type Item = Result<RecordBatch, OperatorError>;

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
        Self { schema, batches: Box::new(batches.into_iter()), first: VecDeque::new() }
    }

    /// Takes the first batches. Returns the bytes of all batches, if they are few.
    fn look_ahead(&mut self) -> Option<u64> {
        let (_, count) = self.batches.size_hint();
        count.filter(|&count| count <= LOOK_BATCHES)?;
        let mut bytes = 0;
        while bytes < LOOK_BYTES {
            let Some(batch) = self.batches.next() else { return Some(bytes as u64) };
            bytes += batch.as_ref().map_or(0, RecordBatch::get_array_memory_size);
            self.first.push_back(batch);
        }
        None
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

    fn bind(mut self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let (schema, bytes) = (SchemaRef::clone(&self.schema), self.look_ahead());
        Ok(Fragment::source(Load::Light, *self, schema).with_input_bytes(bytes))
    }
}

impl Source for Memory {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        let next = self.first.pop_front().or_else(|| self.batches.next());
        let Some(records) = next else { return Ok(SourceFlow::Finished) };
        let records = records?;
        check_schema("memory source", &records, &self.schema)?;
        out.send(records);
        Ok(SourceFlow::HaveOutput)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, UInt32Array};
    use trommel_engine::graph::Graph;
    use trommel_engine::operator::{Body, Output};
    use trommel_engine::runtime::RunOptions;

    use super::*;
    use crate::sink::Collect;

    fn numbers(count: u32) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..count));
        RecordBatch::try_from_iter([("item", numbers)]).unwrap()
    }

    /// Bytes that a source states, and its batches.
    fn stated(memory: Memory) -> (Option<u64>, Vec<RecordBatch>) {
        let bound = Box::new(memory).bind(&[], BindContext::new(0)).unwrap();
        let Body::Source(mut source) = bound.parts.into_iter().next().unwrap().body else {
            panic!("a source")
        };
        let (mut out, mut batches) = (Output::new(), Vec::new());
        while source.next(&mut out).unwrap() != SourceFlow::Finished {
            batches.extend(out.drain_sent().map(|(_, batch)| batch.into_records()));
        }
        (bound.input_bytes, batches)
    }

    #[test]
    fn few_batches_state_their_bytes() {
        let of = |batches: Vec<RecordBatch>| {
            let (bytes, found) = stated(Memory::new(numbers(0).schema(), batches.clone()));
            assert_eq!(found, batches);
            bytes
        };
        assert_eq!(of(Vec::new()), Some(0));
        let bytes = of(vec![numbers(1_000); 10]).unwrap();
        assert!((40_000..100_000).contains(&bytes), "{bytes}");
        assert_eq!(of(vec![numbers(1_000); 65]), None);
        assert_eq!(of(vec![numbers(500_000); 4]), None);
        // An iterator that does not know its length is read by the run alone.
        let mut left = 3;
        let unknown = std::iter::from_fn(move || {
            left -= 1;
            (left >= 0).then(|| numbers(7))
        });
        let found = stated(Memory::new(numbers(0).schema(), unknown));
        assert_eq!(found, (None, vec![numbers(7); 3]));
    }

    /// An error of the iterator is one of the run, also if it is found when the graph is built.
    #[test]
    fn an_error_comes_after_the_batches_before_it() {
        let batches = vec![Ok(numbers(5)), Err("no more".into())];
        let mut graph = Graph::new();
        let source = graph.add("source", Memory::fallible(numbers(0).schema(), batches));
        let (sink, rows) = Collect::new();
        graph.add_after(source, "rows", sink);
        let error = graph.build().unwrap().run(RunOptions::new()).unwrap_err();
        assert_eq!(error.to_string(), "stage `source` (memory): no more");
        assert_eq!(rows.batches(), [numbers(5)]);
    }
}
