//! Sink that drops its input.

use arrow_schema::SchemaRef;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};
use trommel_engine::registry::Configured;

use crate::shared::parameters::parameters;

/// Drops every batch; the metrics of its stage count them.
///
/// # Examples
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Discard, Generate};
///
/// let mut graph = Graph::new();
/// let items = graph.add("items", Generate::zipf(100, 1.0).items(1_000));
/// graph.add_after(items, "nowhere", Discard::new());
/// let metrics = graph.build()?.run(RunOptions::new())?;
/// assert_eq!(metrics.stage("nowhere").map(|stage| stage.items_in()), Some(1_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct Discard {}

impl Configured for Discard {
    const NAME: &'static str = "discard";
    const SUMMARY: &'static str = "drop every batch, for measurements";
}

impl OperatorSpec for Discard {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::operator(Load::Light, *self, Vec::new()))
    }
}

impl Operator for Discard {
    fn process(&mut self, _: usize, _: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        Ok(Flow::NeedInput)
    }

    /// False: a run ends when all other sinks have finished, even if this sink could take more
    /// rows.
    fn needs_input(&self) -> bool {
        false
    }
}
