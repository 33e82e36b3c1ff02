//! Conditions on the least and the greatest value of each column, for blocks of rows whose bounds a
//! file states.
//!
//! ```text
//! status >= 500 and day = '2024-02-29' and path like '/a%'
//!     ──► max(status) >= 500 and (min(day) <= '2024-02-29' and max(day) >= '2024-02-29')
//! ```
//!
//! Only comparisons of a column with a literal are kept. The condition on bounds is therefore
//! weaker: a block whose bounds fail has no row for which the condition is true.

use std::collections::BTreeSet;

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use sqlparser::ast::{BinaryOperator as Op, Expr, Ident, InTarget, UnaryOperator, Value};

use crate::expressions::Expression;
use crate::expressions::compile::parse;

/// Maximum values of a list that are compared with the bounds one by one.
const LIST_MAX: usize = 100;

/// Name of the column of the least values, or of the greatest values, of a column.
fn bound(name: &str, is_greatest: bool) -> String {
    format!("{} {name}", if is_greatest { "greatest" } else { "least" })
}

/// Conditions on bounds.
#[derive(Debug)]
pub(crate) struct Bounds {
    conditions: Vec<Expr>,
    /// Columns whose bounds are needed.
    columns: BTreeSet<String>,
}

impl Bounds {
    /// The conditions on bounds that follow from `conditions` on rows of `schema`.
    pub(crate) fn new(conditions: &[String], schema: &Schema) -> Self {
        let mut rewriting = Rewriting { schema, columns: BTreeSet::new() };
        let mut rewritten = Vec::new();
        for condition in conditions {
            // The error is reported when the condition is compiled.
            let Ok(tree) = parse::expression(condition) else { continue };
            rewritten.extend(rewriting.condition(&tree));
        }
        Self { conditions: rewritten, columns: rewriting.columns }
    }

    /// Names of the columns whose bounds are needed.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &String> {
        self.columns.iter()
    }

    /// The names of the bounds of a column in the rows that [`Self::may_pass`] gets.
    pub(crate) fn names(column: &str) -> [String; 2] {
        [bound(column, false), bound(column, true)]
    }

    /// Whether a row of each block may make the conditions true. `bounds` has a row for each block,
    /// with nulls where a bound is unknown.
    pub(crate) fn may_pass(&self, bounds: &RecordBatch) -> Vec<bool> {
        let mut passes = vec![true; bounds.num_rows()];
        for condition in &self.conditions {
            let schema = bounds.schema_ref();
            let text = condition.to_string();
            let found = Expression::of_tree(&text, condition, schema)
                .ok()
                .filter(|expression| *expression.data_type() == DataType::Boolean)
                .and_then(|expression| expression.evaluate(bounds).ok());
            // If the comparison cannot be made, the block is kept, and its rows decide.
            let Some(found) = found else { continue };
            let found = found.as_boolean();
            for (block, passes) in passes.iter_mut().enumerate() {
                *passes &= found.is_null(block) || found.value(block);
            }
        }
        passes
    }
}

struct Rewriting<'a> {
    schema: &'a Schema,
    columns: BTreeSet<String>,
}

impl Rewriting<'_> {
    /// The condition on bounds that follows from a condition on rows; `None` if no such condition
    /// follows.
    fn condition(&mut self, tree: &Expr) -> Option<Expr> {
        match tree {
            Expr::Nested(inner) => self.condition(inner),
            Expr::BinaryOp { left, op: Op::And, right } => {
                match (self.condition(left), self.condition(right)) {
                    (Some(left), Some(right)) => Some(joined(left, Op::And, right)),
                    (left, right) => left.or(right),
                }
            }
            Expr::BinaryOp { left, op: Op::Or, right } => {
                let (left, right) = (self.condition(left)?, self.condition(right)?);
                Some(joined(left, Op::Or, right))
            }
            Expr::BinaryOp { left, op, right } => match self.column(left) {
                Some(column) => self.comparison(&column, op, right),
                None => self.comparison(&self.column(right)?, &turned(op)?, left),
            },
            Expr::Between { negated: false, expr, low, high } => {
                let column = self.column(expr)?;
                let low = self.comparison(&column, &Op::GtEq, low);
                let high = self.comparison(&column, &Op::LtEq, high);
                match (low, high) {
                    (Some(low), Some(high)) => Some(joined(low, Op::And, high)),
                    (low, high) => low.or(high),
                }
            }
            Expr::In { negated: false, expr, target: InTarget::List(list), .. }
                if list.len() <= LIST_MAX =>
            {
                let column = self.column(expr)?;
                let mut values = list.iter().map(|value| self.comparison(&column, &Op::Eq, value));
                let first = values.next()??;
                values.try_fold(first, |all, value| Some(joined(all, Op::Or, value?)))
            }
            _ => None,
        }
    }

    /// The column, if the tree is a column.
    fn column(&self, tree: &Expr) -> Option<Field> {
        match tree {
            Expr::Nested(inner) => self.column(inner),
            Expr::Identifier(name) => self.schema.field_with_name(&name.value).ok().cloned(),
            _ => None,
        }
    }

    fn comparison(&mut self, column: &Field, op: &Op, value: &Expr) -> Option<Expr> {
        if !fits(column.data_type(), value) {
            return None;
        }
        let compared = |is_greatest, op: &Op| {
            let name = Ident::with_quote('"', bound(column.name(), is_greatest));
            joined(Expr::Identifier(name), op.clone(), value.clone())
        };
        // NaN is greater than each number, and no bound includes NaN.
        let has_greatest = !column.data_type().is_floating();
        let condition = match op {
            Op::Eq => joined(compared(false, &Op::LtEq), Op::And, compared(true, &Op::GtEq)),
            Op::Lt | Op::LtEq => compared(false, op),
            Op::Gt | Op::GtEq if has_greatest => compared(true, op),
            _ => return None,
        };
        self.columns.insert(column.name().clone());
        Some(condition)
    }
}

fn joined(left: Expr, op: Op, right: Expr) -> Expr {
    let binary = Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) };
    Expr::Nested(Box::new(binary))
}

/// The operator for operands in the opposite order.
fn turned(op: &Op) -> Option<Op> {
    Some(match op {
        Op::Eq => Op::Eq,
        Op::Lt => Op::Gt,
        Op::LtEq => Op::GtEq,
        Op::Gt => Op::Lt,
        Op::GtEq => Op::LtEq,
        _ => return None,
    })
}

/// Whether the order of values of a column is also the order in which values are compared with this
/// literal.
fn fits(kind: &DataType, value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) => fits(kind, inner),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => {
            matches!(**expr, Expr::Value(_)) && is_number(kind) && fits(kind, expr)
        }
        Expr::Value(value) => match &value.value {
            Value::Number(..) => is_number(kind),
            Value::SingleQuotedString(_) => {
                is_time(kind) || matches!(kind, DataType::Utf8 | DataType::LargeUtf8)
            }
            _ => false,
        },
        Expr::TypedString(_) => is_time(kind),
        _ => false,
    }
}

fn is_number(kind: &DataType) -> bool {
    kind.is_integer()
        || matches!(kind, DataType::Float32 | DataType::Float64 | DataType::Decimal128(..))
}

fn is_time(kind: &DataType) -> bool {
    matches!(kind, DataType::Date32 | DataType::Timestamp(..))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;

    /// For each block with these bounds, whether the block may have rows for `condition`.
    fn passing(condition: &str, blocks: &[RecordBatch]) -> Vec<bool> {
        let schema = blocks[0].schema();
        let bounds = Bounds::new(&[condition.to_owned()], &schema);
        let mut columns: Vec<(String, ArrayRef)> = vec![(
            "block".into(),
            Arc::new(Int64Array::from_iter_values(
                (0..blocks.len()).map(|block| i64::try_from(block).unwrap()),
            )),
        )];
        for name in bounds.columns() {
            let [least, greatest] = Bounds::names(name);
            let ends = blocks.iter().map(|block| ends(block.column_by_name(name).unwrap()));
            let (lows, highs): (Vec<ArrayRef>, Vec<ArrayRef>) = ends.unzip();
            for (name, parts) in [(least, lows), (greatest, highs)] {
                let parts: Vec<&dyn arrow_array::Array> =
                    parts.iter().map(|part| &**part).collect();
                columns.push((name, arrow_select::concat::concat(&parts).unwrap()));
            }
        }
        bounds.may_pass(
            &RecordBatch::try_from_iter_with_nullable(
                columns.into_iter().map(|(name, column)| (name, column, true)),
            )
            .unwrap(),
        )
    }

    /// The least and the greatest value without NaN, as arrays of one value.
    fn ends(column: &ArrayRef) -> (ArrayRef, ArrayRef) {
        match column.data_type() {
            DataType::Int64 => {
                let values =
                    || column.as_primitive::<arrow_array::types::Int64Type>().iter().flatten();
                let one = |value: Option<i64>| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
                (one(values().min()), one(values().max()))
            }
            DataType::Float64 => {
                let column = column.as_primitive::<arrow_array::types::Float64Type>();
                let values = || column.iter().flatten().filter(|value| !value.is_nan());
                let one = |value| Arc::new(Float64Array::from(vec![value])) as ArrayRef;
                (one(values().reduce(f64::min)), one(values().reduce(f64::max)))
            }
            _ => {
                let values = || column.as_string::<i32>().iter().flatten();
                let one =
                    |value: Option<&str>| Arc::new(StringArray::from(vec![value])) as ArrayRef;
                (one(values().min()), one(values().max()))
            }
        }
    }

    type Row = (Option<i64>, Option<f64>, Option<String>);

    fn block(rows: &[Row]) -> RecordBatch {
        let columns: [(&str, ArrayRef); 3] = [
            ("i", Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>())),
            ("f", Arc::new(rows.iter().map(|row| row.1).collect::<Float64Array>())),
            ("t", Arc::new(rows.iter().map(|row| row.2.clone()).collect::<StringArray>())),
        ];
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap()
    }

    fn condition() -> impl Strategy<Value = String> {
        let op = prop::sample::select(vec!["=", "<", "<=", ">", ">=", "<>"]);
        let value = prop_oneof![
            (-3_i64..4).prop_map(|value| value.to_string()),
            (-3_i64..4).prop_map(|value| format!("{value}.5")),
            "[a-c]{0,2}".prop_map(|text| format!("'{text}'")),
        ];
        let column = prop::sample::select(vec!["i", "f", "t"]);
        let leaf =
            (column, op, value.clone(), value, 0..5).prop_map(
                |(column, op, a, b, form)| match form {
                    0 => format!("{a} {op} {column}"),
                    1 => format!("{column} between {a} and {b}"),
                    2 => format!("{column} in ({a}, {b})"),
                    3 => format!("({column}) {op} ({a})"),
                    _ => format!("{column} {op} {a}"),
                },
            );
        leaf.prop_recursive(3, 8, 2, |inner| {
            (inner.clone(), inner, 0..4).prop_map(|(left, right, form)| match form {
                0 => format!("({left}) or ({right})"),
                1 => format!("not ({left})"),
                _ => format!("({left}) and ({right})"),
            })
        })
    }

    proptest! {
        #[test]
        fn no_block_with_a_row_that_passes_is_left_out(
            condition in condition(),
            blocks in prop::collection::vec(prop::collection::vec((
                prop::option::of(-4_i64..5),
                prop::option::of(prop::sample::select(vec![-2.5, -0.0, 0.0, 1.5, 3.0, f64::NAN, f64::INFINITY])),
                prop::option::of("[a-c]{0,2}"),
            ), 0..4), 1..5),
        ) {
            let blocks: Vec<RecordBatch> = blocks.iter().map(|rows| block(rows)).collect();
            let Ok(expression) = Expression::new(&condition, blocks[0].schema_ref()) else {
                return Ok(());
            };
            for (block, passes) in blocks.iter().zip(passing(&condition, &blocks)) {
                let Ok(rows) = expression.evaluate(block) else { continue };
                let rows: &BooleanArray = rows.as_boolean();
                prop_assert!(passes || rows.true_count() == 0, "{condition} for {block:?}");
            }
        }
    }

    #[test]
    fn blocks_without_a_row_that_passes_are_left_out() {
        let row = |i: i64| (Some(i), Some(1.5), Some(format!("t{i}")));
        let blocks =
            [block(&[row(1), row(3)]), block(&[row(5), row(9)]), block(&[(None, None, None)])];
        let cases = [
            ("i >= 5", [false, true, true]),
            ("5 > i", [true, false, true]),
            ("i = 4 or i = 7", [false, true, true]),
            ("i between 4 and 4.5", [false, false, true]),
            ("i in (2, 10)", [true, false, true]),
            ("t >= 't4' and i < 9", [false, true, true]),
            ("f < 1.5", [false, false, true]),
            // NaN is greater than each number.
            ("f > 2", [true, true, true]),
            ("not (i >= 5)", [true, true, true]),
            ("abs(i) >= 5 and i < 2", [true, false, true]),
            // A text literal does not compare in the order of numbers.
            ("i = '4'", [true, true, true]),
        ];
        for (condition, expected) in cases {
            assert_eq!(passing(condition, &blocks), expected, "{condition}");
        }
    }
}
