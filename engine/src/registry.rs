//! The operators that a configuration may name: their names, summaries and parameters, and the
//! functions that make them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::operator::OperatorSpec;

/// An operator whose specification is also its configuration: the struct that a stage's `with`
/// object fills.
///
/// Ranges, choices and defaults are stated once, as attributes of the struct's fields; the checks
/// of a configuration, the published JSON Schema and `trommel operators` all follow from them.
pub trait Configured: OperatorSpec + DeserializeOwned + JsonSchema + 'static {
    /// The operator's name in configurations.
    const NAME: &'static str;
    /// Its purpose, in one line.
    const SUMMARY: &'static str;
}

/// One operator of a [`Registry`].
#[derive(Clone, Copy)]
pub struct RegisteredOperator {
    name: &'static str,
    summary: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    load: fn(Value) -> Result<Box<dyn OperatorSpec>, ParameterError>,
}

/// The reason why a parameter does not fit.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
#[non_exhaustive]
pub struct ParameterError {
    /// The path of the parameter, from the outside: names and indices.
    pub path: Vec<String>,
    /// The error of serde.
    pub source: serde_json::Error,
}

impl From<serde_path_to_error::Error<serde_json::Error>> for ParameterError {
    fn from(error: serde_path_to_error::Error<serde_json::Error>) -> Self {
        let step = |segment: &Segment| match segment {
            Segment::Seq { index } => index.to_string(),
            other => other.to_string(),
        };
        Self { path: error.path().iter().map(step).collect(), source: error.into_inner() }
    }
}

impl fmt::Debug for RegisteredOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredOperator").field("name", &self.name).finish_non_exhaustive()
    }
}

impl RegisteredOperator {
    /// The operator's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its purpose, in one line.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// The JSON Schema of its parameters.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }

    /// Makes the operator from parameters that fit the schema.
    ///
    /// # Errors
    /// The error of serde for a parameter that does not fit.
    pub fn load(&self, parameters: Value) -> Result<Box<dyn OperatorSpec>, ParameterError> {
        (self.load)(parameters)
    }
}

/// Operators by name.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use trommel_engine::registry::{Configured, Registry};
/// # use std::ops::RangeInclusive;
/// # use arrow_schema::SchemaRef;
/// # use trommel_engine::error::BindError;
/// # use trommel_engine::operator::{BindContext, Fragment, Load, OperatorSpec};
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct UpTo {
///     end: u64,
/// }
/// # impl OperatorSpec for UpTo {
/// #     fn operator(&self) -> &'static str { Self::NAME }
/// #     fn input_ports(&self) -> RangeInclusive<usize> { 0..=0 }
/// #     fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
/// #         Ok(Fragment::source(Load::Light, Numbers(0, self.end), numbers([]).schema()))
/// #     }
/// # }
///
/// impl Configured for UpTo {
///     const NAME: &'static str = "up_to";
///     const SUMMARY: &'static str = "numbers from 0";
/// }
///
/// let mut registry = Registry::new();
/// registry.register::<UpTo>();
/// let entry = registry.entry("up_to").unwrap();
/// assert_eq!(entry.summary(), "numbers from 0");
/// assert!(entry.load(serde_json::json!({ "end": 5 })).is_ok());
/// assert!(entry.load(serde_json::json!({ "end": -5 })).is_err());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Registry {
    entries: BTreeMap<&'static str, RegisteredOperator>,
}

impl Registry {
    /// A registry without operators.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an operator, in place of an operator of the same name.
    pub fn register<T: Configured>(&mut self) -> &mut Self {
        let entry = RegisteredOperator {
            name: T::NAME,
            summary: T::SUMMARY,
            schema: |generator| generator.subschema_for::<T>(),
            load: |parameters| Ok(Box::new(serde_path_to_error::deserialize::<_, T>(parameters)?)),
        };
        self.entries.insert(T::NAME, entry);
        self
    }

    /// The operator of this name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&RegisteredOperator> {
        self.entries.get(name)
    }

    /// All operators, by name.
    pub fn entries(&self) -> impl Iterator<Item = &RegisteredOperator> {
        self.entries.values()
    }
}
