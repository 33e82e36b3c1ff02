//! The columns of the rows, and the accumulators that make the columns.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use trommel_engine::error::BindError;

use super::operator::Aggregate;
use crate::aggregate::accumulate::{
    Accumulator, Asked, Choice, Distinct, Lists, Quantiles, Sketches, is_quantified, mean_type,
    picked, sum_type, sums,
};
use crate::expressions::{Call, Chosen, Expression, ExpressionError, choose};
use crate::shared::groups::{Encoder, KeyHash, plain};
use crate::shared::names::secret::Secret;
use crate::shared::parameters::{Mistakes, blame, refuse};

/// Names of the functions, for messages.
const FUNCTIONS: &[&str] = &[
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "first",
    "last",
    "count_distinct",
    "approx_count_distinct",
    "quantile",
    "list",
];
const EXPECTED: &str = "expected one call such as `sum(x)` or `count(*) as n`; a `select` after \
                        this stage computes with the results";

/// The origin of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Number of rows.
    Rows,
    /// Number of values of an argument.
    Values(usize),
    /// An accumulator, and its argument.
    Accumulator(usize, usize),
}

/// A column that is computed.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) origin: Origin,
    pub(crate) asked: Asked,
    pub(crate) field: FieldRef,
    /// The call, for messages.
    pub(crate) text: String,
}

/// The values that an accumulator keeps. Calls with equal arguments share accumulators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Sum,
    Picked(Choice),
    Distinct,
    Sketch,
    Quantiles,
    List,
}

impl Kept {
    /// Whether the values depend on the order of rows.
    fn is_of_order(self) -> bool {
        matches!(self, Self::List | Self::Picked(Choice::First | Choice::Last))
    }
}

/// The work of the operator, shared by its parts.
pub(crate) struct Plan {
    /// The expressions of the groups, and the arguments of calls.
    pub(crate) by: Vec<Expression>,
    pub(crate) arguments: Vec<Expression>,
    /// Makes keys of the columns of groups.
    pub(crate) encoder: Encoder,
    pub(crate) hash: KeyHash,
    /// Empty accumulators, and the argument of each.
    pub(crate) accumulators: Vec<(usize, Box<dyn Accumulator>)>,
    pub(crate) computed: Vec<Computed>,
    /// Columns of the rows.
    pub(crate) schema: SchemaRef,
    /// Whether a value depends on the order of rows, so that one worker gets all rows.
    pub(crate) is_of_order: bool,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("computed", &self.computed).finish_non_exhaustive()
    }
}

impl Plan {
    /// The work of an operator with these parameters, for rows of `input`.
    pub(crate) fn new(spec: &Aggregate, input: &SchemaRef) -> Result<Self, BindError> {
        let mut mistakes = Mistakes::default();
        let by = mistakes.check(groups(spec, input));
        let mut calls = Calls::new(input);
        for text in spec.compute.as_slice() {
            let added = calls.add(text).map_err(|error| blame("compute", error));
            mistakes.check(added);
        }
        mistakes.refuse(spec.compute.as_slice().is_empty(), || {
            refuse("compute", "an empty list", "name one call at least, such as `count(*)`")
        });
        let mut names: HashSet<&str> = HashSet::new();
        let of_groups = by.iter().flatten().map(|chosen| ("by", chosen.name.as_str()));
        let of_calls = calls.computed.iter().map(|computed| ("compute", computed.field.name()));
        let of_windows: &[&str] =
            if spec.window.is_some() { &["window_start", "window_end", "complete"] } else { &[] };
        names.extend(of_windows);
        for (parameter, name) in of_groups.chain(of_calls.map(|(at, name)| (at, name.as_str()))) {
            mistakes.refuse(!names.insert(name), || {
                let value = format!("a second column `{name}`");
                refuse(parameter, value, "`as` gives one of both another name")
            });
        }
        let by = mistakes.all(|| by)?;
        let types: Vec<DataType> =
            by.iter().map(|chosen| plain(chosen.expression.data_type())).collect();
        let encoder = Encoder::new(&types).map_err(|error| blame("by", error))?;
        let of_groups = by.iter().zip(types).map(|(chosen, kind)| {
            Arc::new(chosen.expression.field(&chosen.name, input).with_data_type(kind))
        });
        let of_calls = calls.computed.iter().map(|computed| Arc::clone(&computed.field));
        let fields: Vec<FieldRef> = of_groups.chain(of_calls).collect();
        Ok(Self {
            by: by.into_iter().map(|chosen| chosen.expression).collect(),
            encoder,
            hash: calls.hash,
            is_of_order: calls.kept.iter().any(|(kept, _)| kept.is_of_order()),
            arguments: calls.arguments.into_iter().map(|(_, argument)| argument).collect(),
            accumulators: calls.kept.iter().map(|kept| kept.1).zip(calls.accumulators).collect(),
            computed: calls.computed,
            schema: Arc::new(Schema::new(fields)),
        })
    }
}

/// The columns of the groups.
fn groups(spec: &Aggregate, input: &SchemaRef) -> Result<Vec<Chosen>, BindError> {
    let mut all = Vec::new();
    let mut mistakes = Mistakes::default();
    for text in spec.by.as_slice() {
        let chosen = choose(text, input).map_err(|error| blame("by", error));
        for chosen in mistakes.check(chosen).into_iter().flatten() {
            mistakes.refuse(chosen.is_unnested, || {
                let allowed = "a `select` before this stage makes rows of the values of a list";
                refuse("by", format!("`{text}`"), allowed)
            });
            all.push(chosen);
        }
    }
    mistakes.all(|| Some(all))
}

/// The calls that have been read.
struct Calls<'a> {
    input: &'a SchemaRef,
    hash: KeyHash,
    /// Arguments by their texts.
    arguments: Vec<(String, Expression)>,
    kept: Vec<(Kept, usize)>,
    accumulators: Vec<Box<dyn Accumulator>>,
    computed: Vec<Computed>,
}

impl<'a> Calls<'a> {
    fn new(input: &'a SchemaRef) -> Self {
        Self {
            input,
            hash: KeyHash::new(Secret::random()),
            arguments: Vec::new(),
            kept: Vec::new(),
            accumulators: Vec::new(),
            computed: Vec::new(),
        }
    }

    /// Reads a call.
    fn add(&mut self, text: &str) -> Result<(), ExpressionError> {
        let call = Call::parse(text, EXPECTED)?;
        let function = match (call.function.as_str(), call.is_distinct) {
            ("count", true) => "count_distinct",
            (_, true) => return Err(call.refuse("`distinct` stands in `count(distinct x)` alone")),
            (function, false) => function,
        };
        if !FUNCTIONS.contains(&function) {
            return Err(call.unknown(FUNCTIONS, "aggregate"));
        }
        if function == "count" && call.is_of_rows() {
            self.push(&call, Origin::Rows, Asked::Value, DataType::UInt64);
            return Ok(());
        }
        let wanted = if function == "quantile" { 2 } else { 1 };
        if call.len() != wanted {
            let usage = match function {
                "quantile" => "quantile(x, 0.99)".to_owned(),
                "count" => "count(*)` or `count(x)".to_owned(),
                _ => format!("{function}(x)"),
            };
            let found = call.len();
            let reason = format!("it is called as `{usage}`, and here with {found} arguments");
            return Err(call.refuse(reason));
        }
        let argument = self.argument(&call)?;
        self.compute(&call, function, argument)
    }

    fn compute(
        &mut self,
        call: &Call,
        function: &str,
        argument: usize,
    ) -> Result<(), ExpressionError> {
        let kind = plain(self.arguments[argument].1.data_type());
        let (kept, asked, of) = match function {
            "count" => {
                self.push(call, Origin::Values(argument), Asked::Value, DataType::UInt64);
                return Ok(());
            }
            "sum" => (Kept::Sum, Asked::Value, sum_type(&kind)),
            "avg" => (Kept::Sum, Asked::Mean, mean_type(&kind)),
            "min" => (Kept::Picked(Choice::Least), Asked::Value, Some(kind.clone())),
            "max" => (Kept::Picked(Choice::Greatest), Asked::Value, Some(kind.clone())),
            "first" => (Kept::Picked(Choice::First), Asked::Value, Some(kind.clone())),
            "last" => (Kept::Picked(Choice::Last), Asked::Value, Some(kind.clone())),
            "count_distinct" => (Kept::Distinct, Asked::Value, Some(DataType::UInt64)),
            "approx_count_distinct" => (Kept::Sketch, Asked::Value, Some(DataType::UInt64)),
            "quantile" => {
                let of = is_quantified(&kind).then_some(DataType::Float64);
                (Kept::Quantiles, Asked::Quantile(share(call, self.input)?), of)
            }
            _ => (Kept::List, Asked::Value, Some(Lists::list_type(&kind))),
        };
        let Some(of) = of else {
            let allowed = match kept {
                Kept::Quantiles => "a number",
                _ => "a number or a duration",
            };
            let reason = format!("expected {allowed}, and this is {kind}; a `cast` makes one");
            return Err(call.refuse_argument(0, reason));
        };
        let place = match self.kept.iter().position(|known| *known == (kept, argument)) {
            Some(place) => place,
            None => {
                let accumulator = self.accumulator(kept, &kind);
                let accumulator = accumulator
                    .map_err(|error| call.refuse_argument(0, format!("this is {kind}: {error}")))?;
                self.kept.push((kept, argument));
                self.accumulators.push(accumulator);
                self.kept.len() - 1
            }
        };
        self.push(call, Origin::Accumulator(place, argument), asked, of);
        Ok(())
    }

    fn accumulator(
        &self,
        kept: Kept,
        kind: &DataType,
    ) -> Result<Box<dyn Accumulator>, arrow_schema::ArrowError> {
        Ok(match kept {
            Kept::Sum => sums(kind).expect("the type of sums was found"),
            Kept::Picked(choice) => picked(choice, kind)?,
            Kept::Distinct => Box::new(Distinct::new(kind, self.hash.clone())?),
            Kept::Sketch => Box::new(Sketches::new(kind)?),
            Kept::Quantiles => Box::new(Quantiles::default()),
            Kept::List => Box::new(Lists::new(kind)),
        })
    }

    /// The number of the argument of a call.
    fn argument(&mut self, call: &Call) -> Result<usize, ExpressionError> {
        let text = call.argument_text(0);
        if let Some(known) = self.arguments.iter().position(|(known, _)| *known == text) {
            return Ok(known);
        }
        self.arguments.push((text, call.argument(0, self.input)?));
        Ok(self.arguments.len() - 1)
    }

    fn push(&mut self, call: &Call, origin: Origin, asked: Asked, kind: DataType) {
        let has_nulls = match origin {
            Origin::Rows | Origin::Values(_) => false,
            Origin::Accumulator(place, _) => {
                !matches!(self.kept[place].0, Kept::Distinct | Kept::Sketch)
            }
        };
        let field = Arc::new(Field::new(&call.name, kind, has_nulls));
        self.computed.push(Computed { origin, asked, field, text: call.call_text().to_owned() });
    }
}

/// The share of a quantile.
fn share(call: &Call, input: &SchemaRef) -> Result<f64, ExpressionError> {
    let refuse = || call.refuse_argument(1, "expected a constant from 0 to 1, such as 0.99");
    let share = call.argument(1, input)?.constant().ok_or_else(refuse)?;
    let share = arrow_cast::cast(&share, &DataType::Float64).map_err(|_| refuse())?;
    use arrow_array::cast::AsArray;
    let share = share.as_primitive::<arrow_array::types::Float64Type>().iter().next().flatten();
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(refuse)
}
