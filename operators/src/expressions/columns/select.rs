//! Columns of `select`: expressions with names, all columns, and lists whose values become rows.

use std::ops::Range;

use arrow_schema::Schema;
use sqlparser::ast::{
    ExceptSelectItem, ExcludeSelectItem, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    SelectItem, Spanned, WildcardAdditionalOptions,
};

use crate::expressions::Expression;
use crate::expressions::compile::parse;
use crate::expressions::error::{ExpressionError, no_column};

/// A column of the output.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) name: String,
    pub(crate) expression: Expression,
    /// Whether each value of the list makes a row.
    pub(crate) is_unnested: bool,
}

/// The columns that a text of `select` stands for.
///
/// # Errors
/// As [`Expression::new`].
pub(crate) fn choose(text: &str, schema: &Schema) -> Result<Vec<Chosen>, ExpressionError> {
    match parse::column(text)? {
        SelectItem::UnnamedExpr(tree) => Ok(vec![chosen(text, &tree, None, schema)?]),
        SelectItem::ExprWithAlias { expr, alias } => {
            let text = before_alias(text, parse::Text::new(text).range(alias.span).start);
            Ok(vec![chosen(text, &expr, Some(alias.value), schema)?])
        }
        SelectItem::Wildcard(options) => all_but(text, &options, schema),
        _ => Err(ExpressionError::new(text, 0..0, "expected an expression, or `*`")),
    }
}

/// The expression before ` as name`; the alias begins at `alias`. Errors show the expression alone.
pub(super) fn before_alias(text: &str, alias: usize) -> &str {
    let before = text[..alias].trim_end();
    let end = before.len().saturating_sub(2);
    match before.get(end..) {
        Some(word) if word.eq_ignore_ascii_case("as") => before[..end].trim_end(),
        _ => before,
    }
}

fn chosen(
    text: &str,
    tree: &Expr,
    name: Option<String>,
    schema: &Schema,
) -> Result<Chosen, ExpressionError> {
    let (tree, is_unnested) = match unnested(tree) {
        Some(list) => (list, true),
        None => (tree, false),
    };
    let name = name.unwrap_or_else(|| match tree {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(names) => names.last().expect("a path").value.clone(),
        _ => text.trim().to_owned(),
    });
    // Lists of any layout get one form before their values become rows.
    let expression = match is_unnested {
        true => Expression::of_operand(text, tree, schema)?,
        false => Expression::of_tree(text, tree, schema)?,
    };
    Ok(Chosen { name, expression, is_unnested })
}

/// The list in `unnest(list)`.
fn unnested(tree: &Expr) -> Option<&Expr> {
    let Expr::Function(call) = tree else { return None };
    if !call.name.to_string().eq_ignore_ascii_case("unnest") {
        return None;
    }
    let FunctionArguments::List(list) = &call.args else { return None };
    match &list.args[..] {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] => Some(list),
        _ => None,
    }
}

/// All columns but the columns that `except` or `exclude` names.
fn all_but(
    text: &str,
    options: &WildcardAdditionalOptions,
    schema: &Schema,
) -> Result<Vec<Chosen>, ExpressionError> {
    let places = parse::Text::new(text);
    let mut left_out: Vec<(String, Range<usize>)> = Vec::new();
    if let Some(ExceptSelectItem { first_element, additional_elements }) = &options.opt_except {
        for name in [first_element].into_iter().chain(additional_elements) {
            left_out.push((name.value.clone(), places.range(name.span)));
        }
    }
    match &options.opt_exclude {
        None => {}
        Some(ExcludeSelectItem::Single(name)) => {
            left_out.push((unquoted(&name.to_string()), places.range(name.span())));
        }
        Some(ExcludeSelectItem::Multiple(names)) => {
            for name in names {
                left_out.push((unquoted(&name.to_string()), places.range(name.span())));
            }
        }
    }
    for (name, at) in &left_out {
        if schema.column_with_name(name).is_none() {
            return Err(ExpressionError::new(text, at.clone(), no_column(name, schema)));
        }
    }
    let kept = schema
        .fields()
        .iter()
        .filter(|field| left_out.iter().all(|(name, _)| name != field.name()));
    kept.map(|field| {
        let name = field.name().clone();
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let expression = Expression::new(&quoted, schema)?;
        Ok(Chosen { name, expression, is_unnested: false })
    })
    .collect()
}

fn unquoted(name: &str) -> String {
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(name) => name.replace("\"\"", "\""),
        None => name.to_owned(),
    }
}
