//! Nodes of a compiled expression.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::cast::Cast;
use super::compare::Comparison;
use super::membership::Members;
use super::pattern::Like;
use crate::expressions::functions::Function;

/// Maximum nodes of a program up to which equal nodes are searched.
const COMPARED_MAX: usize = 1_000;

/// Place of a node in its program. Operands have smaller places than the nodes that use them.
pub(crate) type NodeId = usize;

/// Arithmetic of two numbers of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    /// The quotient of floats.
    Divide,
    /// The quotient of integers, towards zero.
    DivideWhole,
    Remainder,
    /// A power of floats.
    Power,
}

/// Truth value that `is` tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) value: bool,
    pub(crate) is_negated: bool,
}

/// The work of a node.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// A column of the batch.
    Column(usize),
    /// An array of one value.
    Constant(ArrayRef),
    /// A field of a struct.
    Field(NodeId, usize),
    Cast(NodeId, Cast),
    Arithmetic(Arithmetic, NodeId, NodeId),
    Negate(NodeId),
    Compare(Comparison, NodeId, NodeId),
    /// True if all operands are true. Later operands are evaluated for the rows that are still
    /// open.
    And(Vec<NodeId>),
    /// True if some operand is true.
    Or(Vec<NodeId>),
    Not(NodeId),
    IsNull(NodeId),
    IsTruth(NodeId, Truth),
    Like(NodeId, NodeId, Like),
    In(NodeId, Arc<Members>),
    /// The value of the first branch whose condition is true, or the last value if no condition is
    /// true.
    Case(Vec<(NodeId, NodeId)>, NodeId),
    /// The first value that is not null.
    Coalesce(Vec<NodeId>),
    Call(Function, Vec<NodeId>),
}

impl Op {
    /// Calls `visit` with each operand.
    fn operands(&self, mut visit: impl FnMut(NodeId)) {
        match self {
            Self::Column(_) | Self::Constant(_) => {}
            Self::Field(node, _)
            | Self::Cast(node, _)
            | Self::Negate(node)
            | Self::Not(node)
            | Self::IsNull(node)
            | Self::IsTruth(node, _)
            | Self::In(node, _) => visit(*node),
            Self::Arithmetic(_, left, right)
            | Self::Compare(_, left, right)
            | Self::Like(left, right, _) => {
                visit(*left);
                visit(*right);
            }
            Self::And(nodes) | Self::Or(nodes) | Self::Coalesce(nodes) | Self::Call(_, nodes) => {
                nodes.iter().copied().for_each(visit);
            }
            Self::Case(branches, otherwise) => {
                for (condition, value) in branches {
                    visit(*condition);
                    visit(*value);
                }
                visit(*otherwise);
            }
        }
    }

    /// Whether both operations do the same with the same operands.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Column(a), Self::Column(b)) => a == b,
            (Self::Constant(a), Self::Constant(b)) => a.to_data() == b.to_data(),
            (Self::Field(a, i), Self::Field(b, j)) => a == b && i == j,
            (Self::Cast(a, i), Self::Cast(b, j)) => a == b && i == j,
            (Self::Negate(a), Self::Negate(b))
            | (Self::Not(a), Self::Not(b))
            | (Self::IsNull(a), Self::IsNull(b)) => a == b,
            (Self::IsTruth(a, i), Self::IsTruth(b, j)) => a == b && i == j,
            (Self::Arithmetic(i, a, c), Self::Arithmetic(j, b, d)) => i == j && a == b && c == d,
            (Self::Compare(i, a, c), Self::Compare(j, b, d)) => i == j && a == b && c == d,
            (Self::Like(a, c, i), Self::Like(b, d, j)) => i == j && a == b && c == d,
            (Self::And(a), Self::And(b)) | (Self::Or(a), Self::Or(b)) => a == b,
            (Self::Call(i, a), Self::Call(j, b)) => a == b && i.is_same(j),
            // Other operations are rare, and their operands are shared.
            _ => false,
        }
    }
}

/// A node with the properties that are known before a batch arrives.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) op: Op,
    pub(crate) data_type: DataType,
    /// Whether the evaluation of some row may fail.
    pub(crate) can_fail: bool,
    /// Relative time per row, including operands; a comparison of numbers takes 1.
    pub(crate) cost: u32,
    /// The part of the text that the node stands for, in characters.
    pub(crate) at: Range<usize>,
}

/// The nodes of an expression. Equal nodes are stored once and evaluated once.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    text: String,
    nodes: Vec<Node>,
}

impl Program {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), nodes: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    pub(crate) fn data_type(&self, id: NodeId) -> &DataType {
        &self.nodes[id].data_type
    }

    /// Adds a node that itself costs `cost`, and can fail if `fails`; or finds an equal node.
    pub(crate) fn add(
        &mut self,
        op: Op,
        data_type: DataType,
        fails: bool,
        cost: u32,
        at: Range<usize>,
    ) -> NodeId {
        let same = |node: &Node| node.data_type == data_type && node.op.is_same(&op);
        // In a long list of constants, a search for an equal node does not pay.
        if self.nodes.len() < COMPARED_MAX
            && let Some(place) = self.nodes.iter().position(same)
        {
            return place;
        }
        let (mut can_fail, mut total) = (fails, cost);
        op.operands(|operand| {
            can_fail |= self.nodes[operand].can_fail;
            total = total.saturating_add(self.nodes[operand].cost);
        });
        self.nodes.push(Node { op, data_type, can_fail, cost: total, at });
        self.nodes.len() - 1
    }

    /// The value of a node that is a constant.
    pub(crate) fn constant(&self, id: NodeId) -> Option<&ArrayRef> {
        match &self.nodes[id].op {
            Op::Constant(array) => Some(array),
            _ => None,
        }
    }

    /// Whether all operands are constants, and the node itself is not a constant.
    pub(crate) fn is_foldable(&self, id: NodeId) -> bool {
        let node = &self.nodes[id];
        if matches!(&node.op, Op::Column(_) | Op::Constant(_))
            || matches!(&node.op, Op::Call(function, _) if !function.is_fixed())
        {
            return false;
        }
        let mut all = true;
        node.op.operands(|operand| all &= self.constant(operand).is_some());
        all
    }

    /// Replaces a node by its value.
    pub(crate) fn fold(&mut self, id: NodeId, value: ArrayRef) {
        let node = &mut self.nodes[id];
        node.op = Op::Constant(value);
        node.can_fail = false;
        node.cost = 0;
    }

    /// Place of the column, if the node is a column of the batch.
    pub(crate) fn column(&self, id: NodeId) -> Option<usize> {
        match self.nodes[id].op {
            Op::Column(index) => Some(index),
            _ => None,
        }
    }

    /// The text of a node.
    pub(crate) fn part(&self, id: NodeId) -> String {
        let at = &self.nodes[id].at;
        self.text.chars().skip(at.start).take(at.len()).collect()
    }
}
