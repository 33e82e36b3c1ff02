//! Checks of parameters that Rust programs set. A configuration is checked against its schema
//! before.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
pub(crate) use trommel_engine::error::BindError;
use trommel_engine::error::BindErrorKind;
use trommel_engine::operator::OperatorError;
use trommel_kernels::Isa;
pub(crate) use trommel_macros::parameters;

/// Default items per batch: few enough for the second-level cache, and many enough to hide the
/// engine's cost of some 110 ns per stage and batch (`trommel-bench engine`).
pub(crate) const BATCH_ITEMS: usize = 16_384;
/// Bytes of text, or of tokens of sets, at which a batch is sent before the batch has all its
/// items.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// The mistakes of one stage. All checks that do not depend on each other are made, so that one
/// round reports all mistakes. A check that needs the value of a failed check is left out, since
/// its mistake might follow from the first mistake.
#[derive(Debug, Default)]
pub(crate) struct Mistakes(Vec<BindError>);

impl Mistakes {
    /// The value of a check; `None` if the check has found a mistake, which is kept.
    pub(crate) fn check<T>(&mut self, checked: Result<T, BindError>) -> Option<T> {
        checked.map_err(|mistake| self.0.push(mistake)).ok()
    }

    /// Keeps the mistake `mistake` if `is_wrong`.
    pub(crate) fn refuse(&mut self, is_wrong: bool, mistake: impl FnOnce() -> BindError) {
        self.0.extend(is_wrong.then(mistake));
    }

    /// The values of all checks, if no check has found a mistake.
    ///
    /// # Errors
    /// All mistakes, as one error.
    ///
    /// # Panics
    /// If no check has found a mistake, and a value is missing nevertheless.
    pub(crate) fn all<T>(self, values: impl FnOnce() -> Option<T>) -> Result<T, BindError> {
        BindError::collect(self.0.into_iter().map(Err))?;
        Ok(values().expect("a check without a mistake has a value"))
    }

    /// Success, if no check has found a mistake.
    ///
    /// # Errors
    /// All mistakes, as one error.
    pub(crate) fn none(self) -> Result<(), BindError> {
        self.all(|| Some(()))
    }
}

/// Error for an invalid `value` of `parameter`; `allowed` describes valid values.
pub(crate) fn refuse(
    parameter: &'static str,
    value: impl Into<String>,
    allowed: impl Into<String>,
) -> BindError {
    BindErrorKind::Value { value: value.into(), allowed: allowed.into() }.at(parameter)
}

/// The `error` of checking `parameter`.
pub(crate) fn blame(parameter: &'static str, error: impl Into<OperatorError>) -> BindError {
    BindErrorKind::Other(error.into()).at(parameter)
}

/// The instruction set that kernels use.
///
/// # Errors
/// If `TROMMEL_ISA` names one that this machine does not have.
pub(crate) fn selected_isa() -> Result<Isa, BindError> {
    Isa::selected().map_err(|error| BindErrorKind::Other(error.into()).into())
}

/// Checks that the `value` of `parameter` is in the range `allowed`.
pub(crate) fn check_range<T: PartialOrd + Display>(
    parameter: &'static str,
    value: &T,
    allowed: &RangeInclusive<T>,
) -> Result<(), BindError> {
    if allowed.contains(value) {
        return Ok(());
    }
    let allowed = format!("expected {} to {}", allowed.start(), allowed.end());
    Err(refuse(parameter, value.to_string(), allowed))
}

/// A name, or a list of names.
///
/// # Examples
/// ```
/// use trommel_operators::Names;
///
/// let [one, two] = [r#""host""#, r#"["host", "path"]"#].map(serde_json::from_str::<Names>);
/// assert_eq!(one?, Names::from("host"));
/// assert_eq!(two?, Names::from(["host", "path"]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(Vec<String>);

impl Names {
    /// The names.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

impl From<&str> for Names {
    fn from(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }
}

impl From<String> for Names {
    fn from(name: String) -> Self {
        Self(vec![name])
    }
}

impl<T: Into<String>, const N: usize> From<[T; N]> for Names {
    fn from(names: [T; N]) -> Self {
        names.into_iter().collect()
    }
}

impl<T: Into<String>> FromIterator<T> for Names {
    fn from_iter<I: IntoIterator<Item = T>>(names: I) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [name] => serializer.serialize_str(name),
            names => serializer.collect_seq(names),
        }
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name or a list of names")
    }

    fn visit_str<E>(self, name: &str) -> Result<Names, E> {
        Ok(Names::from(name))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Names, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = list.next_element()? {
            names.push(name);
        }
        Ok(Names(names))
    }
}

impl JsonSchema for Names {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Names")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "array"], "items": { "type": "string" } })
    }
}
