//! Functions by their names in DuckDB.
//!
//! A function is bound once to the types and constants of its arguments, and called with columns.
//!
//! | file | functions |
//! |---|---|
//! | `text` | `lower`, `trim`, `substr`, `replace`, ... |
//! | `regexp` | `regexp_matches`, `regexp_extract`, `regexp_replace` |
//! | `numbers` | `abs`, `round`, `floor`, `ceil`, `greatest`, `least`, `hash` |
//! | `time` | `strptime`, `to_timestamp`, `date_trunc`, `date_part`, `now` |
//! | `lists` | `len`, `list_contains`, `list_distinct`, `list_extract`, `words`, `qgrams` |
//! | `json` | `json_extract_string` |

mod json;
mod lists;
mod numbers;
mod regexp;
mod text;
mod time;

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::compile::types::{common, is_integer, is_text};
use super::error::{Reason, hint};
use super::evaluate::value::Value;

/// An argument, with the properties that are known when an expression is compiled.
pub(super) struct Argument<'a> {
    pub(super) data_type: &'a DataType,
    pub(super) constant: Option<&'a ArrayRef>,
}

/// Reason why a function refuses its arguments, and the argument at fault.
pub(super) struct Refusal {
    pub(super) argument: Option<usize>,
    pub(super) reason: String,
}

impl Refusal {
    fn new(argument: usize, reason: impl Into<String>) -> Self {
        Self { argument: Some(argument), reason: reason.into() }
    }
}

/// The computation of a function: a column of `rows` values from its arguments.
type Work = dyn Fn(&[Value], usize) -> Result<ArrayRef, Reason> + Send + Sync;

/// A function that is bound to the types of its arguments.
#[derive(Clone)]
pub(super) struct Function {
    name: &'static str,
    is_fixed: bool,
    work: Arc<Work>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Function {
    /// Whether equal arguments always give the same value.
    pub(super) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Whether both functions give the same values for the same arguments and the same batch. The
    /// caller compares the arguments.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
    }

    pub(super) fn call(&self, arguments: &[Value], rows: usize) -> Result<ArrayRef, Reason> {
        (self.work)(arguments, rows)
    }
}

/// A function with the types to which its arguments are converted.
pub(super) struct Bound {
    pub(super) function: Function,
    pub(super) arguments: Vec<DataType>,
    pub(super) data_type: DataType,
    pub(super) can_fail: bool,
    pub(super) cost: u32,
}

impl Bound {
    /// A function of `arguments` that never fails.
    fn new(
        arguments: Vec<DataType>,
        data_type: DataType,
        cost: u32,
        work: impl Fn(&[Value], usize) -> Result<ArrayRef, Reason> + Send + Sync + 'static,
    ) -> Self {
        let function = Function { name: "", is_fixed: true, work: Arc::new(work) };
        Self { function, arguments, data_type, can_fail: false, cost }
    }

    /// Marks a function that can fail for some arguments.
    fn failing(mut self) -> Self {
        self.can_fail = true;
        self
    }
}

type Bind = fn(&[Argument<'_>]) -> Result<Bound, Refusal>;

/// A function with its names.
struct NamedFunction {
    names: &'static [&'static str],
    /// Arguments in the words of messages.
    usage: &'static str,
    /// Minimum and maximum number of arguments.
    count: (usize, usize),
    bind: Bind,
}

const MANY: usize = usize::MAX;

const fn entry(
    names: &'static [&'static str],
    usage: &'static str,
    count: (usize, usize),
    bind: Bind,
) -> NamedFunction {
    NamedFunction { names, usage, count, bind }
}

const FUNCTIONS: &[NamedFunction] = &[
    entry(&["lower", "lcase"], "lower(text)", (1, 1), text::lower),
    entry(&["upper", "ucase"], "upper(text)", (1, 1), text::upper),
    entry(&["trim"], "trim(text[, characters])", (1, 2), text::trim),
    entry(&["ltrim"], "ltrim(text[, characters])", (1, 2), text::ltrim),
    entry(&["rtrim"], "rtrim(text[, characters])", (1, 2), text::rtrim),
    entry(&["length", "len"], "length(text or list)", (1, 1), lists::len),
    entry(&["substr", "substring"], "substr(text, begin[, length])", (2, 3), text::substr),
    entry(&["split_part"], "split_part(text, separator, number)", (3, 3), text::split_part),
    entry(&["replace"], "replace(text, from, to)", (3, 3), text::replace),
    entry(&["starts_with"], "starts_with(text, prefix)", (2, 2), text::starts_with),
    entry(&["ends_with", "suffix"], "ends_with(text, suffix)", (2, 2), text::ends_with),
    entry(&["contains"], "contains(text, part) or contains(list, value)", (2, 2), lists::contains),
    entry(&["concat"], "concat(value, ...)", (1, MANY), text::concat),
    entry(&["||"], "text || text", (2, 2), text::joined),
    entry(&["regexp_matches"], "regexp_matches(text, pattern[, options])", (2, 3), regexp::matches),
    entry(
        &["regexp_extract"],
        "regexp_extract(text, pattern[, group[, options]])",
        (2, 4),
        regexp::extract,
    ),
    entry(
        &["regexp_replace"],
        "regexp_replace(text, pattern, replacement[, options])",
        (3, 4),
        regexp::replace,
    ),
    entry(&["abs"], "abs(number)", (1, 1), numbers::abs),
    entry(&["round"], "round(number[, digits])", (1, 2), numbers::round),
    entry(&["floor"], "floor(number)", (1, 1), numbers::floor),
    entry(&["ceil", "ceiling"], "ceil(number)", (1, 1), numbers::ceil),
    entry(&["greatest"], "greatest(value, ...)", (1, MANY), numbers::greatest),
    entry(&["least"], "least(value, ...)", (1, MANY), numbers::least),
    entry(&["hash"], "hash(value, ...)", (1, MANY), numbers::hash),
    entry(&["to_timestamp"], "to_timestamp(seconds since 1970)", (1, 1), time::to_timestamp),
    entry(&["strptime"], "strptime(text, format)", (2, 2), time::strptime),
    entry(&["date_trunc", "datetrunc"], "date_trunc(part, time)", (2, 2), time::date_trunc),
    entry(&["date_part", "datepart"], "date_part(part, time)", (2, 2), time::date_part),
    entry(&["now", "current_timestamp"], "now()", (0, 0), time::now),
    entry(
        &["list_contains", "list_has", "array_contains"],
        "list_contains(list, value)",
        (2, 2),
        lists::contains,
    ),
    entry(&["list_distinct", "array_distinct"], "list_distinct(list)", (1, 1), lists::distinct),
    entry(
        &["list_extract", "list_element", "array_extract"],
        "list_extract(list, number)",
        (2, 2),
        lists::extract,
    ),
    entry(&["words"], "words(text)", (1, 1), lists::words),
    entry(&["qgrams"], "qgrams(text, q)", (2, 2), lists::qgrams),
    entry(
        &["json_extract_string"],
        "json_extract_string(text, path)",
        (2, 2),
        json::extract_string,
    ),
];

/// Functions that are compiled to nodes of their own, and `unnest`, which only `select` knows.
const OTHERS: &[&str] = &["coalesce", "nullif", "unnest"];

/// Binds a function to its arguments.
pub(super) fn bind(name: &str, arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let Some(entry) = FUNCTIONS.iter().find(|entry| entry.names.contains(&name)) else {
        return Err(Refusal { argument: None, reason: unknown(name) });
    };
    let (least, most) = entry.count;
    if !(least..=most).contains(&arguments.len()) {
        let found = arguments.len();
        let reason = format!("it is called as `{}`, and here with {found} arguments", entry.usage);
        return Err(Refusal { argument: None, reason });
    }
    let mut bound = (entry.bind)(arguments)?;
    bound.function.name = entry.names[0];
    Ok(bound)
}

fn unknown(name: &str) -> String {
    match name {
        "unnest" => "`unnest` stands at the top of a column of `select`".to_owned(),
        "coalesce" | "nullif" => format!("`{name}` is called with its values, `nullif` with two"),
        _ => {
            let names = FUNCTIONS.iter().flat_map(|entry| entry.names).copied();
            let near = hint(name, names.chain(OTHERS.iter().copied()));
            format!("there is no function `{name}`{near}")
        }
    }
}

/// The type Utf8 for an argument that is a text or null.
fn text_type(arguments: &[Argument<'_>], number: usize) -> Result<DataType, Refusal> {
    let found = arguments[number].data_type;
    if is_text(found) || *found == DataType::Null {
        return Ok(DataType::Utf8);
    }
    let reason = format!("expected a text, and this is {found}; `cast(... as text)` makes one");
    Err(Refusal::new(number, reason))
}

/// The type Utf8 for each of the first `count` arguments, which have to be texts.
fn texts(arguments: &[Argument<'_>], count: usize) -> Result<Vec<DataType>, Refusal> {
    (0..count.min(arguments.len())).map(|number| text_type(arguments, number)).collect()
}

/// The type Int64 for an argument that is an integer or null.
fn integer_type(arguments: &[Argument<'_>], number: usize) -> Result<DataType, Refusal> {
    let found = arguments[number].data_type;
    if is_integer(found) || *found == DataType::Null {
        return Ok(DataType::Int64);
    }
    Err(Refusal::new(number, format!("expected an integer, and this is {found}")))
}

/// The text of an argument that has to be a constant; `None` if the argument is null or left out.
fn constant_text<'a>(
    arguments: &[Argument<'a>],
    number: usize,
) -> Result<Option<&'a str>, Refusal> {
    let Some(argument) = arguments.get(number) else { return Ok(None) };
    let Some(constant) = argument.constant else {
        return Err(Refusal::new(number, "expected a constant text"));
    };
    if *argument.data_type == DataType::Null {
        return Ok(None);
    }
    text_type(arguments, number)?;
    let texts = constant.as_string::<i32>();
    Ok(texts.is_valid(0).then(|| texts.value(0)))
}

/// The integer of an argument that has to be a constant; `None` if the argument is left out.
fn constant_integer(arguments: &[Argument<'_>], number: usize) -> Result<Option<i64>, Refusal> {
    let Some(argument) = arguments.get(number) else { return Ok(None) };
    integer_type(arguments, number)?;
    let whole = argument.constant.and_then(|c| arrow_cast::cast(c, &DataType::Int64).ok());
    match whole {
        Some(whole) if whole.is_valid(0) => Ok(Some(whole.as_primitive::<Int64Type>().value(0))),
        _ => Err(Refusal::new(number, "expected a constant integer")),
    }
}

/// The type to which all arguments can be converted.
fn met(arguments: &[Argument<'_>]) -> Result<DataType, Refusal> {
    let mut met = DataType::Null;
    for (number, argument) in arguments.iter().enumerate() {
        let found = argument.data_type;
        met = common(&met, found).ok_or_else(|| {
            Refusal::new(number, format!("this is {found}, and the arguments before are {met}"))
        })?;
    }
    Ok(met)
}
