//! From trees to nodes: names, fields, conditional expressions, calls.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, ListArray, NullArray, RecordBatch, RecordBatchOptions, new_empty_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat;
use sqlparser::ast::{
    AccessExpr, CaseWhen, CastKind, CeilFloorKind, DataType as NamedType, Expr, Function as Call,
    FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Spanned, Subscript, TrimWhereField,
};

use super::literals;
use super::parse::Text;
use super::types::{common, keeps_all, plain};
use crate::expressions::error::{ExpressionError, both, hint, no_column};
use crate::expressions::evaluate::cast::{self, Cast};
use crate::expressions::evaluate::frame::Frame;
use crate::expressions::evaluate::node::{NodeId, Op, Program};
use crate::expressions::functions::{self, Argument, Refusal};
use crate::shared::columns::{TYPE_NAMES, type_named};

/// Maximum depth of operators inside each other. Chains of `and` and of `or` count as one operator.
const DEPTH_MAX: usize = 200;

pub(crate) type Compiled<T = NodeId> = Result<T, ExpressionError>;

/// Compiles a tree for batches of `schema`.
pub(crate) fn compile(text: &str, tree: &Expr, schema: &Schema) -> Compiled<(Program, NodeId)> {
    let mut compiler = Compiler::new(text, schema);
    let root = compiler.expression(tree)?;
    Ok((compiler.program, root))
}

/// As [`compile`]; the node has the form that functions compute with.
pub(crate) fn compile_operand(
    text: &str,
    tree: &Expr,
    schema: &Schema,
) -> Compiled<(Program, NodeId)> {
    let mut compiler = Compiler::new(text, schema);
    let root = compiler.operand(tree)?;
    Ok((compiler.program, root))
}

pub(crate) struct Compiler<'a> {
    pub(crate) text: Text<'a>,
    schema: &'a Schema,
    pub(crate) program: Program,
    depth: usize,
}

impl<'a> Compiler<'a> {
    fn new(text: &'a str, schema: &'a Schema) -> Self {
        Self { text: Text::new(text), schema, program: Program::new(text), depth: 0 }
    }
}

impl Compiler<'_> {
    /// An error at the part `at` of the text.
    pub(crate) fn refuse<T>(&self, at: &Range<usize>, reason: impl Into<String>) -> Compiled<T> {
        Err(ExpressionError::new(self.text.as_str(), at.clone(), reason))
    }

    pub(crate) fn data_type(&self, id: NodeId) -> DataType {
        self.program.data_type(id).clone()
    }

    /// Adds a node. If its operands are constants, the value of the node replaces the node.
    pub(crate) fn add(
        &mut self,
        op: Op,
        data_type: DataType,
        fails: bool,
        cost: u32,
        at: &Range<usize>,
    ) -> Compiled {
        let id = self.program.add(op, data_type, fails, cost, at.clone());
        if !self.program.is_foldable(id) {
            return Ok(id);
        }
        // One row without columns suffices, since the operands are the same in every row.
        let value = {
            let options = RecordBatchOptions::new().with_row_count(Some(1));
            let row =
                RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options);
            let row = row.expect("a row without columns");
            Frame::of_batch(&self.program, &row).evaluate(id).map(|value| value.into_array(1))
        };
        match value {
            Ok(value) => self.program.fold(id, value),
            Err(error) => return self.refuse(at, error.reason()),
        }
        Ok(id)
    }

    pub(crate) fn constant(&mut self, value: ArrayRef, at: &Range<usize>) -> Compiled {
        let data_type = value.data_type().clone();
        self.add(Op::Constant(value), data_type, false, 0, at)
    }

    /// A node of the form that operators and functions compute with.
    pub(crate) fn operand(&mut self, tree: &Expr) -> Compiled {
        let id = self.expression(tree)?;
        match plain(self.program.data_type(id)) {
            None => Ok(id),
            Some(to) => self.cast(id, to, false, &self.program.node(id).at.clone()),
        }
    }

    /// Converts a node to a type. A node that already has the type is returned.
    pub(crate) fn cast(
        &mut self,
        id: NodeId,
        to: DataType,
        is_try: bool,
        at: &Range<usize>,
    ) -> Compiled {
        let from = self.data_type(id);
        if from == to {
            return Ok(id);
        }
        if !cast::exists(&from, &to) {
            return self.refuse(at, format!("there is no cast from {from} to {to}"));
        }
        // A cast that cannot fail may be evaluated for all rows, also for rows that `and` and
        // `case` leave out.
        let fails = !is_try && !keeps_all(&from, &to);
        let cost = if from == DataType::Utf8 || to == DataType::Utf8 { 8 } else { 1 };
        self.add(Op::Cast(id, Cast { to: to.clone(), is_try }), to, fails, cost, at)
    }

    pub(crate) fn expression(&mut self, tree: &Expr) -> Compiled {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let reason = format!(
                "more than {DEPTH_MAX} operators stand inside each other; `in (...)` replaces long \
                 chains of comparisons"
            );
            return self.refuse(&(0..0), reason);
        }
        let id = self.inner(tree);
        self.depth -= 1;
        id
    }

    fn inner(&mut self, tree: &Expr) -> Compiled {
        let at = || self.text.range(tree.span());
        match tree {
            Expr::Nested(inner) => self.expression(inner),
            Expr::Value(value) => match literals::array(&value.value) {
                Some(array) => self.constant(array, &self.text.range(value.span)),
                None => self.refuse(&at(), "this literal is not known"),
            },
            Expr::Identifier(name) => self.path(std::slice::from_ref(name)),
            Expr::CompoundIdentifier(names) => self.path(names),
            Expr::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            Expr::Cast { kind, expr, data_type, format: None } => {
                let is_try = matches!(kind, CastKind::TryCast | CastKind::SafeCast);
                let to = self.named_type(data_type, &at())?;
                let (at, id) = (at(), self.operand(expr)?);
                self.cast(id, to, is_try, &at)
            }
            Expr::TypedString(typed) => {
                let (at, to) = (at(), self.named_type(&typed.data_type, &at())?);
                let text = literals::array(&typed.value.value);
                let Some(text) = text else { return self.refuse(&at, "expected a text") };
                let id = self.constant(text, &at)?;
                self.cast(id, to, false, &at)
            }
            Expr::Array(list) => self.list(&list.elem, &at()),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.branches(operand.as_deref(), conditions, else_result.as_deref(), &at())
            }
            Expr::Function(call) => self.call(call, &at()),
            Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(_) } => {
                self.named_call("ceil", &[expr], &at())
            }
            Expr::Floor { expr, field: CeilFloorKind::DateTimeField(_) } => {
                self.named_call("floor", &[expr], &at())
            }
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let parts = [Some(expr), substring_from.as_ref(), substring_for.as_ref()];
                let parts: Vec<&Expr> = parts.into_iter().flatten().map(AsRef::as_ref).collect();
                self.named_call("substr", &parts, &at())
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    _ => "trim",
                };
                let mut parts: Vec<&Expr> = vec![expr];
                parts.extend(trim_what.as_deref());
                parts.extend(trim_characters.iter().flatten());
                self.named_call(name, &parts, &at())
            }
            Expr::Extract { field, expr, .. } => {
                let at = at();
                let part: ArrayRef = Arc::new(arrow_array::StringArray::from(vec![
                    field.to_string().to_lowercase(),
                ]));
                let part = self.constant(part, &at)?;
                let value = self.operand(expr)?;
                self.bind_call("date_part", vec![part, value], &at)
            }
            _ => self.operator(tree, &at()),
        }
    }

    /// A list of constants.
    fn list(&mut self, values: &[Expr], at: &Range<usize>) -> Compiled {
        let mut nodes = Vec::with_capacity(values.len());
        let mut kind = DataType::Null;
        for value in values {
            let node = self.operand(value)?;
            let (found, at) = (self.data_type(node), self.program.node(node).at.clone());
            if self.program.constant(node).is_none() {
                return self.refuse(&at, "a list has constants only");
            }
            kind = match common(&kind, &found) {
                Some(kind) => kind,
                None => {
                    let reason = format!("a list of {kind} has no value of {found}");
                    return self.refuse(&at, reason);
                }
            };
            nodes.push(node);
        }
        let mut constants = Vec::with_capacity(nodes.len());
        for node in nodes {
            let at = self.program.node(node).at.clone();
            let node = self.cast(node, kind.clone(), false, &at)?;
            constants.extend(self.program.constant(node).cloned());
        }
        let constants: Vec<&dyn Array> = constants.iter().map(AsRef::as_ref).collect();
        let values = match &constants[..] {
            [] => new_empty_array(&kind),
            some => concat(some).expect("values of one type"),
        };
        let field = Arc::new(Field::new_list_field(kind, true));
        let offsets = OffsetBuffer::from_lengths([values.len()]);
        self.constant(Arc::new(ListArray::new(field, offsets, values, None)), at)
    }

    /// A `case`, with an operand to compare or with conditions.
    fn branches(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
        at: &Range<usize>,
    ) -> Compiled {
        let mut branches = Vec::with_capacity(conditions.len());
        for branch in conditions {
            let condition = match operand {
                None => self.condition(&branch.condition)?,
                Some(operand) => self.equal(operand, &branch.condition)?,
            };
            branches.push((condition, self.operand(&branch.result)?));
        }
        let otherwise = match otherwise {
            Some(value) => self.operand(value)?,
            None => self.constant(Arc::new(NullArray::new(1)), at)?,
        };
        self.case(branches, otherwise, at)
    }

    /// A column, and fields of structs in it.
    fn path(&mut self, names: &[Ident]) -> Compiled {
        let (first, fields) = names.split_first().expect("a path has a name");
        let at = self.text.range(first.span);
        let Some((index, field)) = self.schema.column_with_name(&first.value) else {
            return self.refuse(&at, no_column(&first.value, self.schema));
        };
        let mut id = self.add(Op::Column(index), field.data_type().clone(), false, 0, &at)?;
        for name in fields {
            id = self.field(id, &name.value, &self.text.range(name.span))?;
        }
        Ok(id)
    }

    fn field(&mut self, id: NodeId, name: &str, at: &Range<usize>) -> Compiled {
        let DataType::Struct(fields) = self.data_type(id) else {
            let found = self.data_type(id);
            return self
                .refuse(at, format!("`{name}` is a field of a struct, and this is {found}"));
        };
        let Some((index, field)) = fields.find(name) else {
            let names: Vec<String> = fields.iter().map(|f| format!("`{}`", f.name())).collect();
            let near = hint(name, fields.iter().map(|field| field.name().as_str()));
            let reason =
                format!("the struct has no field `{name}`; it has {}{near}", names.join(", "));
            return self.refuse(at, reason);
        };
        self.add(Op::Field(id, index), field.data_type().clone(), false, 1, at)
    }

    fn access(&mut self, root: &Expr, chain: &[AccessExpr]) -> Compiled {
        let mut id = self.operand(root)?;
        for access in chain {
            id = match access {
                AccessExpr::Dot(Expr::Identifier(name)) => {
                    self.field(id, &name.value, &self.text.range(name.span))?
                }
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    let at = self.text.range(index.span());
                    let index = self.operand(index)?;
                    // DuckDB writes the field of a struct in the same way as the value of a list.
                    if let DataType::Struct(_) = self.data_type(id)
                        && let Some(name) = self.text_of(index)
                    {
                        self.field(id, &name, &at)?
                    } else {
                        self.bind_call("list_extract", vec![id, index], &at)?
                    }
                }
                _ => {
                    let at = self.text.range(root.span());
                    return self.refuse(&at, "expected `.field`, `['field']` or `[number]`");
                }
            };
        }
        Ok(id)
    }

    /// The text of a constant, if the node is one.
    fn text_of(&self, id: NodeId) -> Option<String> {
        let array = self.program.constant(id)?;
        let texts = array.as_any().downcast_ref::<arrow_array::StringArray>()?;
        texts.is_valid(0).then(|| texts.value(0).to_owned())
    }

    fn named_type(&self, name: &NamedType, at: &Range<usize>) -> Compiled<DataType> {
        if let NamedType::Array(inner) = name {
            use sqlparser::ast::ArrayElemTypeDef as Elements;
            if let Elements::AngleBracket(item) | Elements::SquareBracket(item, None) = inner {
                return Ok(DataType::new_list(self.named_type(item, at)?, true));
            }
        }
        if let NamedType::Decimal(info) | NamedType::Numeric(info) = name {
            use sqlparser::ast::ExactNumberInfo as Info;
            let (precision, scale) = match info {
                Info::None => (18, 3),
                Info::Precision(precision) => (*precision, 0),
                Info::PrecisionAndScale(precision, scale) => (*precision, *scale),
            };
            if (1..=38).contains(&precision) && (0..=38).contains(&scale) {
                let (precision, scale) = (u8::try_from(precision), i8::try_from(scale));
                let fit = "compared with the range";
                return Ok(DataType::Decimal128(precision.expect(fit), scale.expect(fit)));
            }
            return self.refuse(at, "a decimal has 1 to 38 digits, and 0 to 38 after the point");
        }
        let words = name.to_string().to_lowercase();
        type_named(&words).map_or_else(
            || {
                let near = hint(&words, TYPE_NAMES.iter().copied());
                self.refuse(
                    at,
                    format!("`{words}` is no type; types are {}{near}", TYPE_NAMES.join(", ")),
                )
            },
            Ok,
        )
    }

    /// A node that gives a truth value.
    pub(crate) fn condition(&mut self, tree: &Expr) -> Compiled {
        let id = self.operand(tree)?;
        let at = self.program.node(id).at.clone();
        match self.data_type(id) {
            DataType::Boolean => Ok(id),
            DataType::Null => self.cast(id, DataType::Boolean, false, &at),
            found => self.refuse(&at, format!("expected a truth value, and this is {found}")),
        }
    }

    /// The type that all nodes can be converted to, or an error at `at`.
    pub(crate) fn meet(&self, nodes: &[NodeId], at: &Range<usize>) -> Compiled<DataType> {
        let mut met = DataType::Null;
        for &node in nodes {
            let found = self.program.data_type(node);
            met = match common(&met, found) {
                Some(kind) => kind,
                None => {
                    let reason = format!("{} have no common type; a cast helps", both(&met, found));
                    return self.refuse(at, reason);
                }
            };
        }
        Ok(met)
    }

    pub(crate) fn case(
        &mut self,
        branches: Vec<(NodeId, NodeId)>,
        otherwise: NodeId,
        at: &Range<usize>,
    ) -> Compiled {
        let values: Vec<NodeId> =
            branches.iter().map(|(_, value)| *value).chain([otherwise]).collect();
        let kind = self.meet(&values, at)?;
        let mut converted = Vec::with_capacity(branches.len());
        for (condition, value) in branches {
            converted.push((condition, self.cast(value, kind.clone(), false, at)?));
        }
        let otherwise = self.cast(otherwise, kind.clone(), false, at)?;
        self.add(Op::Case(converted, otherwise), kind, false, 8, at)
    }

    fn call(&mut self, call: &Call, at: &Range<usize>) -> Compiled {
        let name = call.name.to_string().to_lowercase();
        // Aggregates and windows of SQL have parts besides the list of arguments.
        let is_plain = call.over.is_none()
            && call.filter.is_none()
            && call.within_group.is_empty()
            && matches!(call.parameters, FunctionArguments::None);
        let list = match &call.args {
            FunctionArguments::List(list) if is_plain && list.duplicate_treatment.is_none() => list,
            FunctionArguments::None => return self.bind_call(&name, Vec::new(), at),
            _ => return self.refuse(at, "a function takes a list of expressions"),
        };
        let mut nodes = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(tree)) = argument else {
                return self.refuse(at, "a function takes a list of expressions");
            };
            nodes.push(self.operand(tree)?);
        }
        self.bind_call(&name, nodes, at)
    }

    fn named_call(&mut self, name: &str, trees: &[&Expr], at: &Range<usize>) -> Compiled {
        let nodes = trees.iter().map(|tree| self.operand(tree)).collect::<Compiled<Vec<_>>>()?;
        self.bind_call(name, nodes, at)
    }

    /// The call of a function.
    pub(crate) fn bind_call(
        &mut self,
        name: &str,
        nodes: Vec<NodeId>,
        at: &Range<usize>,
    ) -> Compiled {
        match (name, &nodes[..]) {
            ("coalesce", [_, ..]) => {
                let kind = self.meet(&nodes, at)?;
                let cast = |node| self.cast(node, kind.clone(), false, at);
                let nodes = nodes.into_iter().map(cast).collect::<Compiled<Vec<_>>>()?;
                return self.add(Op::Coalesce(nodes), kind, false, 4, at);
            }
            // Null if both are equal: a `case`, so that the value is evaluated once.
            ("nullif", &[value, other]) => {
                let equal = self.compared_nodes(value, other, at)?;
                let null = self.constant(Arc::new(NullArray::new(1)), at)?;
                return self.case(vec![(equal, null)], value, at);
            }
            _ => {}
        }
        let arguments: Vec<Argument<'_>> = nodes
            .iter()
            .map(|&node| Argument {
                data_type: self.program.data_type(node),
                constant: self.program.constant(node),
            })
            .collect();
        let bound = match functions::bind(name, &arguments) {
            Ok(bound) => bound,
            Err(Refusal { argument, reason }) => {
                let node = argument.and_then(|argument| nodes.get(argument));
                let at =
                    node.map_or_else(|| at.clone(), |&node| self.program.node(node).at.clone());
                return self.refuse(&at, reason);
            }
        };
        let converted = nodes.iter().zip(&bound.arguments).map(|(&node, to)| {
            let at = self.program.node(node).at.clone();
            self.cast(node, to.clone(), false, &at)
        });
        let converted = converted.collect::<Compiled<Vec<_>>>()?;
        let op = Op::Call(bound.function, converted);
        self.add(op, bound.data_type, bound.can_fail, bound.cost, at)
    }
}
