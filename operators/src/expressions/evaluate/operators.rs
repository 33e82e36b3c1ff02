//! Operators: arithmetic, comparisons, tests and logic.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use arrow_select::concat::concat;
use sqlparser::ast::{BinaryOperator, Expr, InTarget, UnaryOperator, Value};

use super::compare::Comparison;
use super::membership::Members;
use super::node::{Arithmetic, NodeId, Op, Truth};
use super::pattern::Like;
use crate::expressions::compile::tree::{Compiled, Compiler};
use crate::expressions::compile::types::{
    common, common_number, computed_integer, is_float, is_integer, is_number, is_text, is_time,
};
use crate::expressions::error::both;

impl Compiler<'_> {
    /// An operator with its operands.
    pub(crate) fn operator(&mut self, tree: &Expr, at: &Range<usize>) -> Compiled {
        match tree {
            Expr::BinaryOp { op: BinaryOperator::And, .. } => self.logic(tree, true, at),
            Expr::BinaryOp { op: BinaryOperator::Or, .. } => self.logic(tree, false, at),
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right, at),
            Expr::UnaryOp { op, expr } => self.unary(*op, expr, at),
            Expr::IsNull(node) => self.is_null(node, false, at),
            Expr::IsNotNull(node) => self.is_null(node, true, at),
            Expr::IsUnknown(node) => self.is_null(node, false, at),
            Expr::IsNotUnknown(node) => self.is_null(node, true, at),
            Expr::IsTrue(node) => self.is_truth(node, true, false, at),
            Expr::IsNotTrue(node) => self.is_truth(node, true, true, at),
            Expr::IsFalse(node) => self.is_truth(node, false, false, at),
            Expr::IsNotFalse(node) => self.is_truth(node, false, true, at),
            Expr::IsDistinctFrom(left, right) => {
                self.compared(Comparison::Distinct, left, right, at)
            }
            Expr::IsNotDistinctFrom(left, right) => {
                self.compared(Comparison::NotDistinct, left, right, at)
            }
            Expr::Between { expr, negated, low, high } => {
                let above = self.compared(Comparison::GreaterOrEqual, expr, low, at)?;
                let below = self.compared(Comparison::LessOrEqual, expr, high, at)?;
                let cost = 1;
                let both =
                    self.add(Op::And(vec![above, below]), DataType::Boolean, false, cost, at)?;
                self.negated_if(*negated, both, at)
            }
            Expr::In { expr, target: InTarget::List(list), negated, .. } => {
                let found = self.is_in(expr, list, at)?;
                self.negated_if(*negated, found, at)
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                let escape = self.escape(escape_char.as_deref(), at)?;
                let like = Like { is_negated: *negated, ignores_case: false, escape };
                self.like(expr, pattern, like, at)
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char } => {
                let escape = self.escape(escape_char.as_deref(), at)?;
                let like = Like { is_negated: *negated, ignores_case: true, escape };
                self.like(expr, pattern, like, at)
            }
            Expr::Exists { .. } | Expr::Subquery(_) | Expr::In { .. } => {
                self.refuse(at, "an expression has no queries inside; `lookup` joins a table")
            }
            _ => self.refuse(at, "this operator is not known"),
        }
    }

    /// `and` or `or` of the operands of a chain, which may be long.
    fn logic(&mut self, tree: &Expr, is_and: bool, at: &Range<usize>) -> Compiled {
        let chained = if is_and { BinaryOperator::And } else { BinaryOperator::Or };
        let (mut rest, mut trees) = (tree, Vec::new());
        while let Expr::BinaryOp { left, op, right } = rest
            && *op == chained
        {
            trees.push(right.as_ref());
            rest = left;
        }
        trees.push(rest);
        let nodes = trees.iter().rev().map(|tree| self.condition(tree));
        let nodes = nodes.collect::<Compiled<Vec<_>>>()?;
        let op = if is_and { Op::And(nodes) } else { Op::Or(nodes) };
        self.add(op, DataType::Boolean, false, 1, at)
    }

    fn binary(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        at: &Range<usize>,
    ) -> Compiled {
        use BinaryOperator as B;
        let arithmetic = match op {
            B::Eq => return self.compared(Comparison::Equal, left, right, at),
            B::NotEq => return self.compared(Comparison::NotEqual, left, right, at),
            B::Lt => return self.compared(Comparison::Less, left, right, at),
            B::LtEq => return self.compared(Comparison::LessOrEqual, left, right, at),
            B::Gt => return self.compared(Comparison::Greater, left, right, at),
            B::GtEq => return self.compared(Comparison::GreaterOrEqual, left, right, at),
            B::StringConcat => return self.joined(left, right, at),
            B::Plus => Arithmetic::Add,
            B::Minus => Arithmetic::Subtract,
            B::Multiply => Arithmetic::Multiply,
            B::Divide => Arithmetic::Divide,
            B::DuckIntegerDivide => Arithmetic::DivideWhole,
            B::Modulo => Arithmetic::Remainder,
            B::PGExp | B::BitwiseXor => Arithmetic::Power,
            _ => return self.refuse(at, format!("the operator `{op}` is not known")),
        };
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        self.arithmetic(arithmetic, left, right, at)
    }

    /// Concatenates texts; null if an operand is null. Other values are written as texts.
    fn joined(&mut self, left: &Expr, right: &Expr, at: &Range<usize>) -> Compiled {
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        let is_there = [left, right].map(|node| is_text(self.program.data_type(node)));
        if is_there == [false, false] {
            let found = both(self.program.data_type(left), self.program.data_type(right));
            return self.refuse(at, format!("`||` joins texts, and these are {found}"));
        }
        let left = self.cast(left, DataType::Utf8, false, at)?;
        let right = self.cast(right, DataType::Utf8, false, at)?;
        self.bind_call("||", vec![left, right], at)
    }

    fn arithmetic(
        &mut self,
        kind: Arithmetic,
        left: NodeId,
        right: NodeId,
        at: &Range<usize>,
    ) -> Compiled {
        let (left, right) = self.adapted(left, right, at)?;
        let types = [self.data_type(left), self.data_type(right)];
        let [of_left, of_right] = &types;
        if *of_left == DataType::Null || *of_right == DataType::Null {
            let kind = if *of_left == DataType::Null { of_right } else { of_left };
            return self.null(kind.clone(), at);
        }
        if types.iter().any(is_time) && types.iter().all(|kind| is_time(kind) || is_number(kind)) {
            let reason = "points in time are compared, cut by `date_trunc` and taken apart by \
                          `date_part('epoch', ...)`, not added";
            return self.refuse(at, reason);
        }
        if !types.iter().all(is_number) {
            let found = both(of_left, of_right);
            return self.refuse(at, format!("arithmetic is for numbers, and these are {found}"));
        }
        let are_whole = types.iter().all(is_integer);
        let computed = match kind {
            Arithmetic::Power => DataType::Float64,
            Arithmetic::Divide => match common_number(of_left, of_right) {
                DataType::Float32 => DataType::Float32,
                _ => DataType::Float64,
            },
            Arithmetic::DivideWhole if !are_whole => {
                return self.refuse(at, "`//` divides integers; `/` divides other numbers");
            }
            _ if are_whole => computed_integer(of_left, of_right),
            _ => common_number(of_left, of_right),
        };
        let left = self.cast(left, computed.clone(), false, at)?;
        let right = self.cast(right, computed.clone(), false, at)?;
        let can_fail = !is_float(&computed);
        let result = match (&computed, kind) {
            // Kernels widen decimals to the digits of their results.
            (DataType::Decimal128(..), _) => self.decimal_result(kind, &computed),
            _ => computed.clone(),
        };
        self.add(Op::Arithmetic(kind, left, right), result, can_fail, 1, at)
    }

    /// The type that the kernel gives to an operation on two decimals of one type.
    fn decimal_result(&self, kind: Arithmetic, of: &DataType) -> DataType {
        use arrow_array::new_empty_array;
        let empty = new_empty_array(of);
        let result = match kind {
            Arithmetic::Add => arrow_arith::numeric::add(&empty, &empty),
            Arithmetic::Subtract => arrow_arith::numeric::sub(&empty, &empty),
            Arithmetic::Multiply => arrow_arith::numeric::mul(&empty, &empty),
            Arithmetic::Remainder => arrow_arith::numeric::rem(&empty, &empty),
            _ => arrow_arith::numeric::div(&empty, &empty),
        };
        result.map_or_else(|_| of.clone(), |array| array.data_type().clone())
    }

    fn null(&mut self, kind: DataType, at: &Range<usize>) -> Compiled {
        let null = self.constant(arrow_array::new_null_array(&DataType::Null, 1), at)?;
        self.cast(null, kind, false, at)
    }

    fn unary(&mut self, op: UnaryOperator, tree: &Expr, at: &Range<usize>) -> Compiled {
        if op == UnaryOperator::Not {
            let node = self.condition(tree)?;
            return self.add(Op::Not(node), DataType::Boolean, false, 1, at);
        }
        // The digits of the least integer do not fit into 64 bits without the sign.
        if op == UnaryOperator::Minus && *tree == least_integer(tree) {
            let least: ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![i64::MIN]));
            return self.constant(least, at);
        }
        let node = self.operand(tree)?;
        let found = self.data_type(node);
        match op {
            UnaryOperator::Plus if is_number(&found) => Ok(node),
            UnaryOperator::Minus if is_integer(&found) => {
                let wide = computed_integer(&found, &DataType::Int8);
                let node = self.cast(node, wide.clone(), false, at)?;
                self.add(Op::Negate(node), wide, true, 1, at)
            }
            UnaryOperator::Minus if is_number(&found) => {
                self.add(Op::Negate(node), found, false, 1, at)
            }
            UnaryOperator::Plus | UnaryOperator::Minus => {
                self.refuse(at, format!("arithmetic is for numbers, and this is {found}"))
            }
            _ => self.refuse(at, format!("the operator `{op}` is not known")),
        }
    }

    fn is_null(&mut self, tree: &Expr, is_negated: bool, at: &Range<usize>) -> Compiled {
        let node = self.expression(tree)?;
        let is_null = self.add(Op::IsNull(node), DataType::Boolean, false, 1, at)?;
        self.negated_if(is_negated, is_null, at)
    }

    fn is_truth(
        &mut self,
        tree: &Expr,
        value: bool,
        is_negated: bool,
        at: &Range<usize>,
    ) -> Compiled {
        let node = self.condition(tree)?;
        let op = Op::IsTruth(node, Truth { value, is_negated });
        self.add(op, DataType::Boolean, false, 1, at)
    }

    fn negated_if(&mut self, is_negated: bool, node: NodeId, at: &Range<usize>) -> Compiled {
        if is_negated {
            return self.add(Op::Not(node), DataType::Boolean, false, 1, at);
        }
        Ok(node)
    }

    /// Gives a literal the type of the other operand, if the literal has a value of that type.
    fn adapted(
        &mut self,
        left: NodeId,
        right: NodeId,
        at: &Range<usize>,
    ) -> Compiled<(NodeId, NodeId)> {
        Ok((self.adapt(left, right, at)?, self.adapt(right, left, at)?))
    }

    fn adapt(&mut self, literal: NodeId, to: NodeId, at: &Range<usize>) -> Compiled {
        let Some(value) = self.program.constant(literal).cloned() else { return Ok(literal) };
        let (from, to) = (self.data_type(literal), self.data_type(to));
        if is_integer(&from) && is_integer(&to) {
            let fits = arrow_cast::cast(&value, &to).is_ok_and(|cast| cast.is_valid(0));
            let fits = fits && value.is_valid(0);
            return if fits { self.cast(literal, to, false, at) } else { Ok(literal) };
        }
        let is_other = !is_text(&to) && !matches!(to, DataType::Null);
        if is_text(&from) && is_other && common(&from, &to).is_none() {
            return self.cast(literal, to, false, &self.program.node(literal).at.clone());
        }
        Ok(literal)
    }

    fn compared(
        &mut self,
        comparison: Comparison,
        left: &Expr,
        right: &Expr,
        at: &Range<usize>,
    ) -> Compiled {
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        self.compare(comparison, left, right, at)
    }

    /// Whether two expressions are equal.
    pub(crate) fn equal(&mut self, left: &Expr, right: &Expr) -> Compiled {
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        let at = self.program.node(right).at.clone();
        self.compared_nodes(left, right, &at)
    }

    /// Whether two nodes are equal.
    pub(crate) fn compared_nodes(
        &mut self,
        left: NodeId,
        right: NodeId,
        at: &Range<usize>,
    ) -> Compiled {
        self.compare(Comparison::Equal, left, right, at)
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: NodeId,
        right: NodeId,
        at: &Range<usize>,
    ) -> Compiled {
        let (left, right) = self.adapted(left, right, at)?;
        let (of_left, of_right) = (self.data_type(left), self.data_type(right));
        let Some(met) = common(&of_left, &of_right) else {
            let found = both(&of_left, &of_right);
            let reason = format!("{found} are not compared; write `cast(... as ...)` around one");
            return self.refuse(at, reason);
        };
        if met.is_nested() {
            return self.refuse(at, format!("values of type {met} are not compared"));
        }
        // Both sides may be untyped null literals.
        let met = if met == DataType::Null { DataType::Boolean } else { met };
        let left = self.cast(left, met.clone(), false, at)?;
        let right = self.cast(right, met.clone(), false, at)?;
        let cost = if is_text(&met) { 4 } else { 1 };
        self.add(Op::Compare(comparison, left, right), DataType::Boolean, false, cost, at)
    }

    fn is_in(&mut self, tree: &Expr, list: &[Expr], at: &Range<usize>) -> Compiled {
        let value = self.operand(tree)?;
        let mut nodes = Vec::with_capacity(list.len());
        for tree in list {
            let node = self.operand(tree)?;
            nodes.push(self.adapt(node, value, at)?);
        }
        let all: Vec<NodeId> = nodes.iter().copied().chain([value]).collect();
        let met = self.meet(&all, at)?;
        let value = self.cast(value, met.clone(), false, at)?;
        let cast = |node| self.cast(node, met.clone(), false, at);
        let nodes = nodes.into_iter().map(cast).collect::<Compiled<Vec<_>>>()?;
        let constants: Option<Vec<&dyn Array>> =
            nodes.iter().map(|&node| self.program.constant(node).map(AsRef::as_ref)).collect();
        // A long list of constants is looked up in a table, since a comparison with each constant
        // would take longer.
        if let Some(constants) = constants
            && let Ok(constants) = concat(&constants)
            && let Some(members) = Members::new(&constants)
        {
            return self.add(Op::In(value, Arc::new(members)), DataType::Boolean, false, 4, at);
        }
        let equal = |node| self.compare(Comparison::Equal, value, node, at);
        let equal = nodes.into_iter().map(equal).collect::<Compiled<Vec<_>>>()?;
        self.add(Op::Or(equal), DataType::Boolean, false, 1, at)
    }

    fn like(&mut self, text: &Expr, pattern: &Expr, like: Like, at: &Range<usize>) -> Compiled {
        let mut operands = [0; 2];
        for (operand, tree) in operands.iter_mut().zip([text, pattern]) {
            let node = self.operand(tree)?;
            let at = self.program.node(node).at.clone();
            *operand = match self.data_type(node) {
                DataType::Utf8 => node,
                DataType::Null => self.cast(node, DataType::Utf8, false, &at)?,
                found => {
                    return self.refuse(&at, format!("expected a text, and this is {found}"));
                }
            };
        }
        let [text, pattern] = operands;
        // Only a pattern that is not a constant can fail later, by ending with its escape.
        let can_fail = like.escape.is_some() && self.program.constant(pattern).is_none();
        self.add(Op::Like(text, pattern, like), DataType::Boolean, can_fail, 8, at)
    }

    fn escape(&self, escape: Option<&Expr>, at: &Range<usize>) -> Compiled<Option<char>> {
        let Some(escape) = escape else { return Ok(None) };
        if let Expr::Value(value) = escape
            && let Value::SingleQuotedString(text) = &value.value
        {
            let mut chars = text.chars();
            return match (chars.next(), chars.next()) {
                (None, _) => Ok(None),
                (Some(char), None) => Ok(Some(char)),
                _ => self.refuse(at, "an escape is one character"),
            };
        }
        self.refuse(at, "an escape is a text of one character")
    }
}

/// The tree of 2^63, if `tree` is that tree. The negative of 2^63 is the least integer.
fn least_integer(tree: &Expr) -> Expr {
    match tree {
        Expr::Value(value) if value.value == Value::Number("9223372036854775808".into(), false) => {
            tree.clone()
        }
        _ => Expr::Identifier("".into()),
    }
}
