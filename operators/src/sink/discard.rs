//! A sink that drops what it gets.

use std::ops::RangeInclusive;

use arrow_schema::SchemaRef;
use schemars::JsonSchema;
use serde::Deserialize;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};
use trommel_engine::registry::Configured;

/// Drops every batch; the metrics of its stage still count them.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Discard {}

impl Discard {
    /// A sink that drops every batch.
    #[must_use]
    pub fn new() -> Self {
        Self {}
    }
}

impl Configured for Discard {
    const NAME: &'static str = "discard";
    const SUMMARY: &'static str = "drop every batch, for measurements";
}

impl OperatorSpec for Discard {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::operator(Load::Light, *self, Vec::new()))
    }
}

impl Operator for Discard {
    fn process(&mut self, _: usize, _: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        Ok(Flow::NeedInput)
    }

    /// Nobody waits for what is dropped: it alone does not keep a run going whose other sinks need
    /// no more.
    fn needs_input(&self) -> bool {
        false
    }
}
