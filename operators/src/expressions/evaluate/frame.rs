//! Evaluation of nodes over all rows of a batch, or over some rows.

use std::sync::Arc;

use arrow_arith::boolean::{and_kleene, is_null, not, or_kleene};
use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, UInt32Array, new_null_array,
};
use arrow_buffer::BooleanBuffer;
use arrow_schema::ArrowError;
use arrow_select::interleave::interleave;
use arrow_select::merge::merge;
use arrow_select::take::take;

use super::node::{Arithmetic, NodeId, Op, Program, Truth};
use super::value::{Value, rows_of};
use crate::expressions::error::{EvaluationError, Reason, said};

/// Minimum cost of an operand that is evaluated only for the rows that need the operand.
const COST_WORTH_SELECTING: u32 = 8;

/// Rows over which nodes are evaluated.
enum Source<'a> {
    Batch(&'a RecordBatch),
    /// The selected rows of another frame.
    Selected(&'a Frame<'a>, BooleanArray),
}

/// Values of the nodes of a program over some rows, each computed once.
pub(crate) struct Frame<'a> {
    program: &'a Program,
    source: Source<'a>,
    rows: usize,
    values: Vec<Option<Value>>,
}

impl<'a> Frame<'a> {
    pub(crate) fn of_batch(program: &'a Program, records: &'a RecordBatch) -> Self {
        let values = vec![None; program.len()];
        Self { program, source: Source::Batch(records), rows: records.num_rows(), values }
    }

    /// A frame of the rows for which `rows` is true.
    fn select(&'a self, rows: BooleanArray) -> Self {
        let (count, values) = (rows.true_count(), vec![None; self.program.len()]);
        Self { program: self.program, source: Source::Selected(self, rows), rows: count, values }
    }

    /// The value of a node.
    pub(crate) fn evaluate(&mut self, id: NodeId) -> Result<Value, EvaluationError> {
        if let Some(value) = &self.values[id] {
            return Ok(value.clone());
        }
        let value = match self.known(id) {
            Some(value) => value,
            None => self.compute(id)?,
        };
        self.values[id] = Some(value.clone());
        Ok(value)
    }

    /// The value, if this frame has it, or a selection from the value in the outer frame.
    fn known(&self, id: NodeId) -> Option<Value> {
        if let Some(value) = &self.values[id] {
            return Some(value.clone());
        }
        match (&self.program.node(id).op, &self.source) {
            (Op::Constant(array), _) => Some(Value::Scalar(Arc::clone(array))),
            (Op::Column(index), Source::Batch(records)) => {
                Some(Value::Rows(Arc::clone(records.column(*index))))
            }
            (_, Source::Selected(frame, rows)) => {
                let value = frame.known(id)?;
                Some(value.select(rows).expect("a row is selected or not"))
            }
            (_, Source::Batch(_)) => None,
        }
    }

    fn compute(&mut self, id: NodeId) -> Result<Value, EvaluationError> {
        let program = self.program;
        let fail = |reason: Reason| EvaluationError::new(&program.part(id), reason);
        match &program.node(id).op {
            Op::Column(_) | Op::Constant(_) => unreachable!("they are known"),
            Op::Field(node, field) => {
                let value = self.evaluate(*node)?;
                Ok(value.like(field_of(value.array(), *field)))
            }
            Op::Cast(node, cast) => {
                let value = self.evaluate(*node)?;
                Ok(value.like(cast.apply(value.array()).map_err(fail)?))
            }
            Op::Negate(node) => {
                let value = self.evaluate(*node)?;
                Ok(value.like(numeric::neg(value.array()).map_err(|e| fail(said(&e)))?))
            }
            Op::Arithmetic(kind, left, right) => {
                let (left, right) = (self.evaluate(*left)?, self.evaluate(*right)?);
                let value = arithmetic(*kind, &left, &right).map_err(|e| fail(said(&e)))?;
                Ok(of_both(&left, &right, value))
            }
            Op::Compare(comparison, left, right) => {
                let (left, right) = (self.evaluate(*left)?, self.evaluate(*right)?);
                let value = comparison.apply(&left, &right).map_err(|e| fail(said(&e)))?;
                Ok(of_both(&left, &right, Arc::new(value)))
            }
            Op::Like(text, pattern, like) => {
                let (text, pattern) = (self.evaluate(*text)?, self.evaluate(*pattern)?);
                let value = like.apply(&text, &pattern).map_err(fail)?;
                Ok(of_both(&text, &pattern, Arc::new(value)))
            }
            Op::Not(node) => {
                let value = self.evaluate(*node)?;
                let not = not(value.array().as_boolean()).expect("a column of one length");
                Ok(value.like(Arc::new(not)))
            }
            Op::IsNull(node) => {
                let value = self.evaluate(*node)?;
                Ok(value.like(Arc::new(is_null(value.array()).expect("any column"))))
            }
            Op::IsTruth(node, truth) => {
                let value = self.evaluate(*node)?;
                Ok(value.like(Arc::new(is_truth(value.array().as_boolean(), *truth))))
            }
            Op::In(node, members) => {
                let value = self.evaluate(*node)?;
                Ok(value.like(Arc::new(members.contain(value.array()))))
            }
            Op::And(nodes) => self.chain(nodes, true),
            Op::Or(nodes) => self.chain(nodes, false),
            Op::Case(branches, otherwise) => self.case(id, branches, *otherwise),
            Op::Coalesce(nodes) => self.coalesce(nodes),
            Op::Call(function, nodes) => {
                let arguments =
                    nodes.iter().map(|&node| self.evaluate(node)).collect::<Result<Vec<_>, _>>()?;
                let rows = if nodes.is_empty() { 1 } else { rows_of(&arguments, self.rows) };
                let value = function.call(&arguments, rows).map_err(fail)?;
                let is_scalar = arguments.iter().all(Value::is_scalar);
                Ok(if is_scalar { Value::Scalar(value) } else { Value::Rows(value) })
            }
        }
    }

    /// `and` (or `or`) of operands, from left to right. An operand is evaluated only for rows whose
    /// result is still open.
    fn chain(&mut self, nodes: &[NodeId], is_and: bool) -> Result<Value, EvaluationError> {
        let combine = if is_and { and_kleene } else { or_kleene };
        let mut result: Option<BooleanArray> = None;
        for &node in nodes {
            let Some(so_far) = result.take() else {
                let first = self.evaluate(node)?.into_array(self.rows);
                result = Some(first.as_boolean().clone());
                continue;
            };
            // `false` decides a row in `and`, and `true` decides a row in `or`.
            let open = is_truth(&so_far, Truth { value: !is_and, is_negated: true });
            let left = open.true_count();
            if left == 0 {
                result = Some(so_far);
                break;
            }
            let operand = self.program.node(node);
            let pays = left < self.rows / 4 * 3 && operand.cost >= COST_WORTH_SELECTING;
            if left == self.rows || !(operand.can_fail || pays) {
                let value = self.evaluate(node)?.into_array(self.rows);
                result = Some(combine(&so_far, value.as_boolean()).expect("of one length"));
                continue;
            }
            let value = self.select(open.clone()).evaluate(node)?.into_array(left);
            let of_open = arrow_select::filter::filter(&so_far, &open).expect("of one length");
            let both = combine(of_open.as_boolean(), value.as_boolean()).expect("of one length");
            let decided = not(&open).expect("of one length");
            let of_decided = arrow_select::filter::filter(&so_far, &decided).expect("one length");
            let merged = merge(&open, &both, &of_decided).expect("a row is open or decided");
            result = Some(merged.as_boolean().clone());
        }
        Ok(Value::Rows(Arc::new(result.expect("a chain has operands"))))
    }

    fn case(
        &mut self,
        id: NodeId,
        branches: &[(NodeId, NodeId)],
        otherwise: NodeId,
    ) -> Result<Value, EvaluationError> {
        let mut chosen = Chosen::new(self.rows);
        for &(condition, value) in branches {
            let Some(open) = chosen.open() else { break };
            let holds = {
                let mut frame = self.select(open.clone());
                let holds = frame.evaluate(condition)?.into_array(frame.rows);
                is_truth(holds.as_boolean(), Truth { value: true, is_negated: false })
            };
            if holds.true_count() == 0 {
                continue;
            }
            let rows = widen(&open, &holds);
            let count = rows.true_count();
            let of_rows = self.select(rows.clone()).evaluate(value)?.into_array(count);
            chosen.add(&rows, of_rows);
        }
        if let Some(open) = chosen.open() {
            let count = open.true_count();
            let rest = self.select(open.clone()).evaluate(otherwise)?.into_array(count);
            chosen.add(&open, rest);
        }
        Ok(Value::Rows(chosen.finish(self.program, id)))
    }

    fn coalesce(&mut self, nodes: &[NodeId]) -> Result<Value, EvaluationError> {
        let mut result = self.evaluate(nodes[0])?.into_array(self.rows);
        for &node in &nodes[1..] {
            let open = is_null(&result).expect("any column");
            let count = open.true_count();
            if count == 0 {
                break;
            }
            let value = self.select(open.clone()).evaluate(node)?.into_array(count);
            let is_there = not(&open).expect("of one length");
            let kept = arrow_select::filter::filter(&result, &is_there).expect("of one length");
            result = merge(&open, &value, &kept).expect("of one type");
        }
        Ok(Value::Rows(result))
    }
}

/// The values that rows have got, from the arrays of several branches.
struct Chosen {
    arrays: Vec<ArrayRef>,
    /// Array and place of the value of each row; `None` for a row that is still open.
    places: Vec<Option<(usize, usize)>>,
}

impl Chosen {
    fn new(rows: usize) -> Self {
        Self { arrays: Vec::new(), places: vec![None; rows] }
    }

    /// The rows without a value; `None` if every row has a value.
    fn open(&self) -> Option<BooleanArray> {
        let open = BooleanBuffer::collect_bool(self.places.len(), |row| self.places[row].is_none());
        let open = BooleanArray::new(open, None);
        (open.true_count() > 0).then_some(open)
    }

    /// Gives the values of `array`, in order, to the rows that `rows` selects.
    fn add(&mut self, rows: &BooleanArray, array: ArrayRef) {
        for (place, row) in rows.values().set_indices().enumerate() {
            self.places[row] = Some((self.arrays.len(), place));
        }
        self.arrays.push(array);
    }

    fn finish(self, program: &Program, id: NodeId) -> ArrayRef {
        if self.arrays.is_empty() {
            return new_null_array(program.data_type(id), self.places.len());
        }
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(AsRef::as_ref).collect();
        let places: Vec<(usize, usize)> = self.places.into_iter().flatten().collect();
        interleave(&arrays, &places).expect("the branches have one type")
    }
}

/// The rows of `outer` for which `inner` is true. `inner` has a value for each row that `outer`
/// selects.
fn widen(outer: &BooleanArray, inner: &BooleanArray) -> BooleanArray {
    let mut place = 0;
    let rows = BooleanBuffer::collect_bool(outer.len(), |row| {
        let is_selected = outer.value(row);
        let holds = is_selected && inner.value(place);
        place += usize::from(is_selected);
        holds
    });
    BooleanArray::new(rows, None)
}

/// Whether each value is (or is not) the truth value; the result is never null.
fn is_truth(values: &BooleanArray, truth: Truth) -> BooleanArray {
    let bits = if truth.value { values.values().clone() } else { !values.values() };
    let bits = match values.nulls() {
        None => bits,
        Some(valid) => &bits & valid.inner(),
    };
    BooleanArray::new(if truth.is_negated { !&bits } else { bits }, None)
}

/// A field of structs; null where the struct is null.
fn field_of(structs: &ArrayRef, field: usize) -> ArrayRef {
    let structs = structs.as_struct();
    let column = structs.column(field);
    if structs.null_count() == 0 {
        return Arc::clone(column);
    }
    let row = |row: usize| {
        structs.is_valid(row).then(|| u32::try_from(row).expect("a batch has fewer rows than 2^32"))
    };
    let places: UInt32Array = (0..structs.len()).map(row).collect();
    take(column, &places, None).expect("places are rows")
}

fn arithmetic(kind: Arithmetic, left: &Value, right: &Value) -> Result<ArrayRef, ArrowError> {
    match kind {
        Arithmetic::Add => numeric::add(left, right),
        Arithmetic::Subtract => numeric::sub(left, right),
        Arithmetic::Multiply => numeric::mul(left, right),
        Arithmetic::Divide | Arithmetic::DivideWhole => numeric::div(left, right),
        Arithmetic::Remainder => numeric::rem(left, right),
        Arithmetic::Power => Ok(power(left, right)),
    }
}

fn power(left: &Value, right: &Value) -> ArrayRef {
    let (bases, exponents) = (left.array(), right.array());
    let (bases, exponents) =
        (bases.as_primitive::<Float64Type>(), exponents.as_primitive::<Float64Type>());
    let rows = if left.is_scalar() { exponents.len() } else { bases.len() };
    let value = |row: usize| {
        let (base, exponent) = (left.place(row), right.place(row));
        (bases.is_valid(base) && exponents.is_valid(exponent))
            .then(|| bases.value(base).powf(exponents.value(exponent)))
    };
    Arc::new((0..rows).map(value).collect::<Float64Array>())
}

/// The result of a kernel over both operands: a scalar if both operands are scalars.
fn of_both(left: &Value, right: &Value, result: ArrayRef) -> Value {
    if left.is_scalar() && right.is_scalar() { Value::Scalar(result) } else { Value::Rows(result) }
}
