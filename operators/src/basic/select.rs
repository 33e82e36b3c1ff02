//! Operator that computes columns.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Counters, Demand, Flow, Fragment, Load, NamedInputs, Operator, OperatorError,
    OperatorSpec, Output,
};
use trommel_engine::registry::Configured;

use super::evaluation::Evaluation;
use crate::expressions::{Chosen, Expression, choose, demand_of};
use crate::shared::parameters::{BATCH_ITEMS, Mistakes, blame, parameters, refuse};
use crate::shared::rejected::OnError;

/// Computes columns from those of its input.
///
/// # Ports
/// In: any columns. Out: the columns of `columns`, in this order. With `on_error` `reject`, a
/// second output `rejected`: `path`, `line_number` and `byte_offset` (null), `column` (the
/// expression), `reason` and `bytes` (the row as JSON).
///
/// # Guarantees
/// Rows keep their order. Each row makes one, or with `unnest` one for each value of its list.
///
/// # State
/// None; a batch is divided where `unnest` makes many rows of it.
///
/// # Cost
/// That of the kernels of Arrow for the expressions; a bare column is not copied.
///
/// # Examples
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Generate, Select};
///
/// let mut graph = Graph::new();
/// let items = graph.add("items", Generate::zipf(100, 1.0).items(1_000));
/// let columns = ["item", "item % 10 as digit", "item > 50 as is_large"];
/// let selected = graph.add_after(items, "columns", Select::new(columns));
/// let (sink, rows) = Collect::new();
/// graph.add_after(selected, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// assert_eq!(rows.batches()[0].schema().field(1).name(), "digit");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct Select {
    /// The columns: `column`, `expression as name`, `*` for all columns, `* except (a, b)`, and
    /// once `unnest(list) as name`, which makes a row of each value of a list.
    #[schemars(length(min = 1))]
    columns: Vec<String>,
    /// Action for a row for which an expression has no value, such as a text in a cast to a number.
    /// When left out, `fail`.
    on_error: Option<OnError>,
}

impl Select {
    fn chosen(&self, schema: &Schema) -> Result<Vec<Chosen>, BindError> {
        let (mut mistakes, mut all) = (Mistakes::default(), Vec::new());
        let mut is_whole = true;
        for text in &self.columns {
            let chosen = choose(text, schema);
            let chosen = chosen.map_err(|error| blame("columns", error));
            let chosen = mistakes.check(chosen);
            is_whole &= chosen.is_some();
            all.extend(chosen.into_iter().flatten());
        }
        let mut names = HashSet::new();
        for Chosen { name, .. } in &all {
            mistakes.refuse(!names.insert(name), || {
                let value = format!("a second column `{name}`");
                refuse("columns", value, "`as` gives one of both another name")
            });
        }
        let unnested = all.iter().filter(|chosen| chosen.is_unnested).count();
        mistakes.refuse(unnested > 1, || {
            let allowed = "one column is unnested; a second `select` unnests another one";
            refuse("columns", "`unnest` twice", allowed)
        });
        mistakes.refuse(is_whole && all.is_empty(), || {
            refuse("columns", "a list without columns", "name one column at least")
        });
        mistakes.all(|| Some(all))
    }
}

impl Configured for Select {
    const NAME: &'static str = "select";
    const SUMMARY: &'static str = "compute columns by expressions";
}

impl OperatorSpec for Select {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn output_ports(&self) -> &'static [&'static str] {
        OnError::output_ports(self.on_error)
    }

    fn reject(&mut self) -> bool {
        OnError::reject(&mut self.on_error)
    }

    fn demand(&self, _: usize, output: &Demand) -> Demand {
        let has_all = self.columns.iter().any(|text| text.trim_start().starts_with('*'));
        // A name in the output may be the name of a computed column.
        let passed = if has_all { output.clone().of_words() } else { Demand::none() };
        let passed = passed.unconditional();
        let read = self.columns.iter().fold(passed, |demand, text| demand_of(text, demand));
        OnError::demand(self.on_error, read)
    }

    fn bind(self: Box<Self>, inputs: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let chosen = self.chosen(&inputs[0])?;
        let unnested = chosen.iter().position(|chosen| chosen.is_unnested);
        let mut fields = Vec::with_capacity(chosen.len());
        for Chosen { name, expression, is_unnested } in &chosen {
            let field = expression.field(name, &inputs[0]);
            fields.push(if *is_unnested { value_field(&field)? } else { Arc::new(field) });
        }
        let schema = Arc::new(Schema::new(fields));
        let expressions: Vec<Expression> =
            chosen.into_iter().map(|chosen| chosen.expression).collect();
        let on_error = self.on_error.unwrap_or_default();
        let evaluation = Evaluation::new(expressions, on_error);
        let outputs = on_error.outputs(Arc::clone(&schema));
        let make = move || {
            let (evaluation, schema) = (evaluation.clone(), Arc::clone(&schema));
            Ok(Selecting { evaluation, schema, unnested, pending: None })
        };
        Fragment::anywhere(Load::Light, make, outputs)
    }
}

/// The column of the values of a list.
fn value_field(list: &Field) -> Result<FieldRef, BindError> {
    match list.data_type() {
        DataType::List(item) => Ok(Arc::new(item.as_ref().clone().with_name(list.name()))),
        found => {
            let value = format!("`unnest` of {found}");
            Err(refuse("columns", value, "expected a list"))
        }
    }
}

struct Selecting {
    evaluation: Evaluation,
    schema: SchemaRef,
    /// The column of lists whose values become rows.
    unnested: Option<usize>,
    /// Columns of the batch that is being unnested, and the number of its next value.
    pending: Option<(Vec<ArrayRef>, usize)>,
}

impl Operator for Selecting {
    fn is_copied(&mut self) {
        self.evaluation.is_of_a_copy();
    }

    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = input.into_records();
        let (records, columns) = self.evaluation.of(&records, out)?;
        if self.unnested.is_some() {
            self.pending = Some((columns, 0));
            return self.resume(out);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(records.num_rows()));
        let schema = Arc::clone(&self.schema);
        out.send(RecordBatch::try_new_with_options(schema, columns, &options)?);
        Ok(Flow::NeedInput)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let (Some((columns, begin)), Some(unnested)) = (self.pending.take(), self.unnested) else {
            return Ok(Flow::NeedInput);
        };
        let lists = columns[unnested].as_list::<i32>();
        let others: Vec<&ArrayRef> =
            columns.iter().enumerate().filter(|at| at.0 != unnested).map(|at| at.1).collect();
        let places = UnnestedValues::new(lists, begin, &others)?;
        let rows = take_rows(&columns, unnested, &places, &self.schema)?;
        if rows.num_rows() > 0 {
            out.send(rows);
        }
        if places.is_last {
            return Ok(Flow::NeedInput);
        }
        self.pending = Some((columns, places.end));
        Ok(Flow::HaveOutput)
    }

    fn counters(&self) -> Counters {
        self.evaluation.counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.evaluation.named()
    }
}

/// Maximum bytes of the copies of rows in a batch of values.
const UNNESTED_BYTES: usize = 16 << 20;

/// Some values of a column of lists, and the row of each value.
struct UnnestedValues {
    values: Vec<u32>,
    rows: Vec<u32>,
    /// Number of values before the next part, over all lists that are not null.
    end: usize,
    is_last: bool,
}

impl UnnestedValues {
    /// At most a batch of values, from value number `begin` on. Each value gets a copy of its row
    /// in the `others` columns, so that rows with long texts make smaller batches.
    fn new(
        lists: &arrow_array::ListArray,
        begin: usize,
        others: &[&ArrayRef],
    ) -> Result<Self, ArrowError> {
        let (mut values, mut rows) = (Vec::new(), Vec::new());
        let mut bytes_left = UNNESTED_BYTES;
        let mut number = 0;
        for row in 0..lists.len() {
            if lists.is_null(row) {
                continue;
            }
            let ends = &lists.value_offsets()[row..row + 2];
            let (first, last) = (ends[0].unsigned_abs(), ends[1].unsigned_abs());
            let len = (last - first) as usize;
            let skipped = begin.saturating_sub(number).min(len);
            let mut room = BATCH_ITEMS - values.len();
            if skipped < len {
                let bytes = row_bytes(others, row)?;
                // Each batch has at least one value, so that each call advances.
                let fitting = bytes_left / bytes.max(1);
                room = room.min(if values.is_empty() { fitting.max(1) } else { fitting });
                bytes_left =
                    bytes_left.saturating_sub(bytes.saturating_mul(room.min(len - skipped)));
            }
            let taken = (len - skipped).min(room);
            let start = first + u32::try_from(skipped).expect("within a list");
            values.extend((start..last).take(taken));
            let row = u32::try_from(row).expect("a batch has fewer rows than 2^32");
            rows.extend(std::iter::repeat_n(row, taken));
            if skipped + taken < len {
                let end = number + skipped + taken;
                return Ok(Self { values, rows, end, is_last: false });
            }
            number += len;
        }
        Ok(Self { values, rows, end: number, is_last: true })
    }
}

/// Bytes of a row of these columns.
fn row_bytes(columns: &[&ArrayRef], row: usize) -> Result<usize, ArrowError> {
    columns.iter().map(|column| column.slice(row, 1).to_data().get_slice_memory_size()).sum()
}

fn take_rows(
    columns: &[ArrayRef],
    unnested: usize,
    places: &UnnestedValues,
    schema: &SchemaRef,
) -> Result<RecordBatch, OperatorError> {
    let (values, rows) =
        (UInt32Array::from(places.values.clone()), UInt32Array::from(places.rows.clone()));
    let column = |(number, column): (usize, &ArrayRef)| {
        if number == unnested {
            take(column.as_list::<i32>().values(), &values, None)
        } else {
            take(column, &rows, None)
        }
    };
    let columns = columns.iter().enumerate().map(column).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
