//! Operator that joins several streams into one.
//!
//! Columns are matched by name, so inputs may have their columns in any order. `fill` gives
//! constants for columns that an input lacks. For example, the two outputs of
//! [`HeavyFilter`](crate::HeavyFilter), items and items with a count, become one stream again, and
//! several filters can feed one counter.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array, new_null_array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;
use schemars::{Schema as JsonSchemaOf, SchemaGenerator, json_schema};
use serde_json::Value;
use trommel_engine::batch::Payload;
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};
use trommel_engine::registry::Configured;

use crate::shared::parameters::{Mistakes, parameters};

/// Joins several inputs into one stream, batch by batch, as they arrive.
///
/// # Ports
/// In: any number of inputs. A column has the same type in all inputs that have it; the order of
/// columns may differ. Out: the columns of the first input, then columns of later inputs that it
/// lacks.
///
/// # Guarantees
/// Every input row is output once. Rows of one input keep their order; batches of different
/// inputs come in the order of arrival.
///
/// # State
/// None: rows do not depend on each other.
///
/// # Cost
/// One pointer per column of a batch; a filled column is a slice of a constant array.
///
/// # Examples
/// The outputs of a filter for hot items, counted together; a row of `rest` stands for one item:
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, FrequentItems, Generate, HeavyFilter, Union};
///
/// let mut graph = Graph::new();
/// let items = graph.add("items", Generate::zipf(1_000, 2.0).items(100_000));
/// let heavy = graph.add_after(items, "heavy", HeavyFilter::new());
/// let both = graph.add_after(heavy.port(HeavyFilter::REST), "both", Union::new().fill("count", 1));
/// graph.connect(heavy.port(HeavyFilter::COUNTS), both);
/// let top = graph.add_after(both, "top", FrequentItems::new().weight("count").n(3));
/// let (sink, rows) = Collect::new();
/// graph.add_after(top, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// assert_eq!(rows.rows(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct Union {
    /// Constant for each column that an input lacks, by name: {"count": 1}. A number, a text,
    /// true, false or null. A missing column without a constant is an error.
    #[default]
    #[schemars(schema_with = "fill_schema")]
    #[setter(none)]
    fill: BTreeMap<String, Value>,
}

fn fill_schema(_: &mut SchemaGenerator) -> JsonSchemaOf {
    let value = json_schema!({ "type": ["number", "string", "boolean", "null"] });
    json_schema!({ "type": "object", "additionalProperties": value })
}

impl Union {
    /// Fills `column` with `value` in rows of inputs that lack the column.
    #[must_use]
    pub fn fill(mut self, column: impl Into<String>, value: impl Into<Value>) -> Self {
        self.fill.insert(column.into(), value.into());
        self
    }

    /// Columns of the output: the columns of the first input, then further columns in the order of
    /// the inputs.
    fn output(&self, inputs: &[SchemaRef]) -> Result<SchemaRef, BindError> {
        let (mut mistakes, mut columns) = (Mistakes::default(), Vec::<MergedColumn>::new());
        for (number, input) in (1..).zip(inputs) {
            mistakes.check(check_names(number, input));
            for field in input.fields() {
                match columns.iter_mut().find(|column| column.field.name() == field.name()) {
                    Some(column) if column.input == number => {}
                    Some(column) => {
                        mistakes.check(column.merge(number, field));
                    }
                    None => columns.push(MergedColumn::new(number, field)),
                }
            }
        }
        mistakes.none()?;
        let fields = columns.into_iter().map(|MergedColumn { field, .. }| {
            let is_filled =
                inputs.iter().any(|input| input.column_with_name(field.name()).is_none());
            let is_null = is_filled && self.fill.get(field.name()).is_some_and(Value::is_null);
            let is_nullable = field.is_nullable() || is_null;
            field.with_nullable(is_nullable)
        });
        Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }

    /// Constants of `fill`, each with the index of its output column.
    fn constants(&self, output: &SchemaRef) -> Result<Vec<(usize, Constant)>, BindError> {
        let constant = |(column, value): (&String, &Value)| {
            let Some((index, field)) = output.column_with_name(column) else {
                let (column, schema) = (column.clone(), SchemaRef::clone(output));
                return Err(BindErrorKind::MissingColumn { column, schema }.at("fill"));
            };
            let array = constant(value, field.data_type()).ok_or_else(|| {
                let value = format!("{value} for the column `{column}`");
                let allowed = format!("its type is {}", field.data_type());
                BindErrorKind::Value { value, allowed }.at("fill")
            })?;
            Ok((index, Constant(array)))
        };
        let mut mistakes = Mistakes::default();
        let constants = self.fill.iter().filter_map(|fill| mistakes.check(constant(fill)));
        let constants = constants.collect();
        mistakes.all(|| Some(constants))
    }
}

impl Configured for Union {
    const NAME: &'static str = "union";
    const SUMMARY: &'static str = "join several inputs of one schema into one stream";
}

impl OperatorSpec for Union {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=usize::MAX
    }

    fn bind(self: Box<Self>, inputs: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let output = self.output(inputs)?;
        let mut mistakes = Mistakes::default();
        let constants = mistakes.check(self.constants(&output));
        let has_fill = |field: &Field| self.fill.contains_key(field.name());
        let mut ports = Vec::with_capacity(inputs.len());
        for (number, input) in (1..).zip(inputs) {
            let column = |(index, field): (usize, &Arc<Field>)| {
                if let Some((column, _)) = input.column_with_name(field.name()) {
                    return Some(Column::Input(column));
                }
                // A constant that does not fit its column has been reported.
                mistakes.refuse(!has_fill(field), || lacks(number, field));
                let mut constants = constants.iter().flatten();
                constants.position(|(column, _)| *column == index).map(Column::Constant)
            };
            ports.push(output.fields().iter().enumerate().filter_map(column).collect());
        }
        let (constants, ports) = mistakes.all(|| Some((constants?, ports)))?;
        let constants = constants.into_iter().map(|(_, constant)| constant).collect();
        let joining = Joining { output: SchemaRef::clone(&output), ports, constants };
        Ok(Fragment::operator(Load::Light, joining, vec![output]))
    }
}

/// Output column, with the number of the first input that has the column.
struct MergedColumn {
    input: usize,
    field: Field,
}

impl MergedColumn {
    fn new(input: usize, field: &Field) -> Self {
        Self { input, field: field.clone() }
    }

    /// Merges the column of input `number` that has the same name.
    fn merge(&mut self, number: usize, other: &Field) -> Result<(), BindError> {
        let (ours, theirs) = (self.field.data_type(), other.data_type());
        if ours != theirs {
            let value = format!("column `{}` of input {number}, of type {theirs},", other.name());
            let allowed = format!("it is {ours} in input {}", self.input);
            return Err(BindErrorKind::Value { value, allowed }.into());
        }
        self.field.set_nullable(self.field.is_nullable() || other.is_nullable());
        Ok(())
    }
}

fn check_names(number: usize, input: &SchemaRef) -> Result<(), BindError> {
    for (index, field) in input.fields().iter().enumerate() {
        if input.column_with_name(field.name()).is_some_and(|(first, _)| first != index) {
            let value = format!("a second column `{}` in input {number}", field.name());
            let allowed = "columns are matched by name".to_owned();
            return Err(BindErrorKind::Value { value, allowed }.into());
        }
    }
    Ok(())
}

fn lacks(number: usize, field: &Field) -> BindError {
    let (name, data_type) = (field.name(), field.data_type());
    let value = format!("input {number} without the column `{name}` ({data_type})");
    let allowed = format!("name a value for it, such as {{\"{name}\": null}}");
    BindErrorKind::Value { value, allowed }.at("fill")
}

/// Array of one value; `None` if the value does not fit `data_type`.
fn constant(value: &Value, data_type: &DataType) -> Option<ArrayRef> {
    let array: ArrayRef = match value {
        Value::Null => return Some(new_null_array(data_type, 1)),
        Value::Bool(value) if *data_type == DataType::Boolean => {
            Arc::new(BooleanArray::from(vec![*value]))
        }
        Value::String(text) if *data_type == DataType::Utf8 => {
            Arc::new(StringArray::from(vec![text.as_str()]))
        }
        Value::Number(number) if data_type.is_integer() => match number.as_u64() {
            Some(number) => Arc::new(UInt64Array::from(vec![number])),
            None => Arc::new(Int64Array::from(vec![number.as_i64()?])),
        },
        Value::Number(number) if data_type.is_floating() => {
            Arc::new(Float64Array::from(vec![number.as_f64()?]))
        }
        _ => return None,
    };
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&array, data_type, &strict).ok()
}

/// Array of one repeated value: at least 1 row, and as many rows as the longest batch so far.
#[derive(Debug)]
struct Constant(ArrayRef);

impl Constant {
    fn rows(&mut self, rows: usize) -> Result<ArrayRef, ArrowError> {
        // The array grows to the longest batch and is then sliced, so that no batch allocates.
        if self.0.len() < rows {
            self.0 = take(&self.0, &UInt32Array::from(vec![0; rows]), None)?;
        }
        Ok(self.0.slice(0, rows))
    }
}

/// Origin of an output column.
#[derive(Debug, Clone, Copy)]
enum Column {
    Input(usize),
    Constant(usize),
}

/// Operator of the union, bound to its inputs.
#[derive(Debug)]
struct Joining {
    output: SchemaRef,
    /// Origins of the output columns, per input port.
    ports: Vec<Vec<Column>>,
    constants: Vec<Constant>,
}

impl Operator for Joining {
    fn process(
        &mut self,
        port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = input.into_records();
        let column = |&column: &Column| match column {
            Column::Input(index) => Ok(ArrayRef::clone(records.column(index))),
            Column::Constant(index) => self.constants[index].rows(records.num_rows()),
        };
        let columns = self.ports[port].iter().map(column).collect::<Result<_, _>>()?;
        out.send(RecordBatch::try_new(SchemaRef::clone(&self.output), columns)?);
        Ok(Flow::NeedInput)
    }
}
