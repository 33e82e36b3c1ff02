//! Overrides: values on a command line that replace values of the file, as `PATH=VALUE`.

use serde_json::Value;
use thiserror::Error;

use super::document::{JsonKey, JsonKind, JsonNode, JsonPlace};

/// Replaces or adds one value. The path is written as in errors, `stages[1].with.n`; the id of a
/// stage may stand for its index, `stages.top.with.n`.
///
/// # Examples
/// ```
/// use trommel_engine::config::Override;
///
/// assert!("stages.top.with.n=5".parse::<Override>().is_ok());
/// assert!("name=night run".parse::<Override>().is_ok(), "text needs no quotes");
/// let error = "stages.top.with.n".parse::<Override>().unwrap_err();
/// assert!(error.to_string().starts_with("`stages.top.with.n` is not of the form PATH=VALUE"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    steps: Vec<String>,
    value: Value,
    text: String,
}

/// A text is not an override.
#[derive(Debug, Error)]
#[error("`{text}` is not of the form PATH=VALUE, such as stages.top.with.n=5")]
pub struct OverrideError {
    /// The text.
    pub text: String,
}

impl std::str::FromStr for Override {
    type Err = OverrideError;

    /// Reads `PATH=VALUE`. A value that is not JSON is a string.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || OverrideError { text: text.to_owned() };
        let (path, value) = text.split_once('=').ok_or_else(error)?;
        let steps: Vec<String> =
            path.replace('[', ".").replace(']', "").split('.').map(str::to_owned).collect();
        if steps.iter().any(String::is_empty) {
            return Err(error());
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok(Self { steps, value, text: text.to_owned() })
    }
}

impl Override {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Puts the value of override `index` into `document`, and adds the objects on its path.
    ///
    /// # Errors
    /// The step of the path that names no element of an array.
    pub(crate) fn apply(&self, index: usize, document: &mut JsonNode) -> Result<(), String> {
        let mut node = document;
        for step in &self.steps {
            node = enter(node, step, index)?;
        }
        *node = JsonNode::from_override(index, &self.value);
        Ok(())
    }
}

/// The element or member that `step` names. A missing member is added to an object; any other value
/// is replaced by an object first.
fn enter<'a>(node: &'a mut JsonNode, step: &str, index: usize) -> Result<&'a mut JsonNode, String> {
    match &mut node.kind {
        JsonKind::Array(_) | JsonKind::Object(_) => {}
        other => *other = JsonKind::Object(Vec::new()),
    }
    match &mut node.kind {
        JsonKind::Array(elements) => {
            let named = |e: &JsonNode| e.member("id").and_then(JsonNode::text) == Some(step);
            let position = step.parse().ok().or_else(|| elements.iter().position(named));
            position
                .and_then(|position: usize| elements.get_mut(position))
                .ok_or_else(|| format!("there is no element `{step}` here"))
        }
        JsonKind::Object(members) => {
            let known = members.iter().position(|(key, _)| key.name == step);
            let position = known.unwrap_or_else(|| {
                let place = JsonPlace::Override(index);
                let key = JsonKey { name: step.to_owned(), place: place.clone() };
                members.push((key, JsonNode { place, kind: JsonKind::Null }));
                members.len() - 1
            });
            Ok(&mut members[position].1)
        }
        _ => unreachable!("other values were replaced by an object above"),
    }
}
