//! Calls of functions that an operator knows, such as the aggregates of `aggregate`: a call stands
//! alone in its text, and the arguments of the call are expressions.

use std::ops::Range;

use arrow_schema::Schema;
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    SelectItem, Spanned,
};

use super::select::before_alias;
use crate::expressions::Expression;
use crate::expressions::compile::parse;
use crate::expressions::error::{ExpressionError, hint};

/// A call with its name as a column.
#[derive(Debug)]
pub(crate) struct Call {
    text: String,
    /// The text without ` as name`.
    call_text: String,
    at: Range<usize>,
    /// Name of the column: the name after `as`, or the text of the call.
    pub(crate) name: String,
    /// Name of the function, in lower case.
    pub(crate) function: String,
    /// Whether the arguments begin with `distinct`.
    pub(crate) is_distinct: bool,
    arguments: Vec<Argument>,
}

/// An argument of a call.
#[derive(Debug)]
enum Argument {
    /// `*`, for whole rows.
    Star,
    Value(Box<Expr>, Range<usize>),
}

impl Call {
    /// Reads the call in a text. `expected` describes the calls that are allowed.
    ///
    /// # Errors
    /// If the text is no call, with or without a name.
    pub(crate) fn parse(text: &str, expected: &str) -> Result<Self, ExpressionError> {
        let (tree, alias) = match parse::column(text)? {
            SelectItem::UnnamedExpr(tree) => (tree, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
            _ => return Err(ExpressionError::new(text, 0..0, expected)),
        };
        let places = parse::Text::new(text);
        let shown = match &alias {
            Some(alias) => before_alias(text, places.range(alias.span).start),
            None => text.trim(),
        };
        let at = places.range(tree.span());
        let refuse = |reason: &str| Err(ExpressionError::new(text, at.clone(), reason));
        let Expr::Function(call) = &tree else { return refuse(expected) };
        if call.filter.is_some() {
            return refuse(
                "`filter (where ...)` is not allowed; `case when ... end` in the call is",
            );
        }
        let has_only_arguments = call.over.is_none()
            && call.filter.is_none()
            && call.within_group.is_empty()
            && matches!(call.parameters, FunctionArguments::None);
        let arguments = has_only_arguments.then(|| arguments(call, &places)).flatten();
        let Some((arguments, is_distinct)) = arguments else { return refuse(expected) };
        Ok(Self {
            text: text.to_owned(),
            call_text: shown.to_owned(),
            name: alias.map_or_else(|| shown.to_owned(), |alias| alias.value),
            function: call.name.to_string().to_lowercase(),
            at,
            is_distinct,
            arguments,
        })
    }

    /// The text without the name of the column.
    pub(crate) fn call_text(&self) -> &str {
        &self.call_text
    }

    /// Number of arguments.
    pub(crate) fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Whether the only argument is `*`.
    pub(crate) fn is_of_rows(&self) -> bool {
        matches!(self.arguments[..], [Argument::Star])
    }

    /// A text that is the same for equal arguments.
    pub(crate) fn argument_text(&self, number: usize) -> String {
        match &self.arguments[number] {
            Argument::Value(tree, _) => tree.to_string(),
            Argument::Star => "*".to_owned(),
        }
    }

    /// An argument as an expression over the columns of `schema`.
    ///
    /// # Errors
    /// As [`Expression::new`], and if the argument is `*`.
    pub(crate) fn argument(
        &self,
        number: usize,
        schema: &Schema,
    ) -> Result<Expression, ExpressionError> {
        match &self.arguments[number] {
            Argument::Value(tree, _) => Expression::of_tree(&self.text, tree, schema),
            Argument::Star => Err(self.refuse("`*` stands in `count(*)` alone")),
        }
    }

    /// An error of the whole call.
    pub(crate) fn refuse(&self, reason: impl Into<String>) -> ExpressionError {
        ExpressionError::new(&self.text, self.at.clone(), reason)
    }

    /// An error of an argument.
    pub(crate) fn refuse_argument(
        &self,
        number: usize,
        reason: impl Into<String>,
    ) -> ExpressionError {
        ExpressionError::new(&self.text, self.argument_at(number), reason)
    }

    /// An error of the name of the function, which is none of `names`.
    pub(crate) fn unknown(&self, names: &[&str], what: &str) -> ExpressionError {
        let near = hint(&self.function, names.iter().copied());
        let known = names.join(", ");
        self.refuse(format!("there is no {what} `{}`; there are {known}{near}", self.function))
    }

    fn argument_at(&self, number: usize) -> Range<usize> {
        match &self.arguments[number] {
            Argument::Value(_, at) => at.clone(),
            Argument::Star => self.at.clone(),
        }
    }
}

/// The arguments of a call, and whether `distinct` comes before the arguments; `None` if the call
/// has other parts.
fn arguments(call: &Function, places: &parse::Text<'_>) -> Option<(Vec<Argument>, bool)> {
    let FunctionArguments::List(list) = &call.args else { return None };
    if !list.clauses.is_empty() {
        return None;
    }
    let read = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => Some(Argument::Star),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(tree)) => {
            Some(Argument::Value(Box::new(tree.clone()), places.range(tree.span())))
        }
        _ => None,
    };
    let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    Some((list.args.iter().map(read).collect::<Option<_>>()?, is_distinct))
}
