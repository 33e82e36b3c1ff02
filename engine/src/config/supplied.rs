//! Operators that the program makes for stages of a configuration.

use std::collections::BTreeMap;
use std::fmt;

use super::document::JsonNode;
use crate::operator::OperatorSpec;
use crate::suggest::suggestion;

/// Operators that the program makes for stages of a configuration, such as sources over its own
/// data and sinks that call its functions. The configuration names the operator of such a stage
/// without parameters, and gives the stage inputs and cores as it gives any other.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// use trommel_engine::config::{Supplied, load_supplied};
/// use trommel_engine::registry::Registry;
///
/// let text = r#"{ "stages": [
///   { "id": "some", "operator": "numbers" },
///   { "id": "total", "operator": "sum", "inputs": ["some"] } ] }"#;
/// let supplied = Supplied::new().stage("some", Numbers(0, 10)).stage("total", Sum(0));
/// let pipeline = load_supplied(text, "sum.json", &Registry::new(), &[], supplied)?;
/// let metrics = pipeline.start()?.join()?;
/// assert_eq!(metrics.stage("total").unwrap().items_in(), 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Supplied {
    stages: BTreeMap<String, Box<dyn OperatorSpec>>,
}

impl fmt::Debug for Supplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages = self.stages.iter().map(|(id, spec)| (id, spec.operator()));
        f.debug_map().entries(stages).finish()
    }
}

impl Supplied {
    /// No operators.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `spec` the operator of the stage `id`, in place of an earlier one.
    #[must_use]
    pub fn stage(self, id: impl Into<String>, spec: impl OperatorSpec + 'static) -> Self {
        self.boxed(id, Box::new(spec))
    }

    /// As [`Supplied::stage`].
    #[must_use]
    pub fn boxed(mut self, id: impl Into<String>, spec: Box<dyn OperatorSpec>) -> Self {
        self.stages.insert(id.into(), spec);
        self
    }

    /// The names of the operators, each name once.
    pub(super) fn operators(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.stages.values().map(|spec| spec.operator()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The operator of the stage `id`.
    pub(super) fn take(&mut self, id: &str) -> Option<Box<dyn OperatorSpec>> {
        self.stages.remove(id)
    }

    /// The reason why the operator of a stage of the document does not fit; `None` if the operator
    /// fits.
    pub(super) fn fault(&self, stage: &JsonNode) -> Option<String> {
        let id = stage.member("id").and_then(JsonNode::text)?;
        let written = stage.member("operator").and_then(JsonNode::text)?;
        match self.stages.get(id) {
            Some(spec) if spec.operator() == written => None,
            Some(spec) => {
                Some(format!("the program supplies `{}` for this stage", spec.operator()))
            }
            None if self.operators().contains(&written) => {
                let ids = self.stages.keys().map(|id| format!("`{id}`")).collect::<Vec<_>>();
                let ids = ids.join(", ");
                Some(format!("the program supplies no `{written}` for this stage, only for {ids}"))
            }
            None => None,
        }
    }

    /// For each supplied operator that belongs to none of the stages `ids`, the reason.
    pub(super) fn homeless(&self, ids: &[&str]) -> Vec<String> {
        let lost = self.stages.iter().filter(|(id, _)| !ids.contains(&id.as_str()));
        lost.map(|(id, spec)| {
            let hint = suggestion(id, ids.iter().copied())
                .map_or_else(String::new, |hint| format!("; did you mean `{hint}`?"));
            let (operator, stages) = (spec.operator(), ids.join(", "));
            format!("the program supplies `{operator}` for {id:?}, which is no stage; stages: {stages}{hint}")
        })
        .collect()
    }
}
