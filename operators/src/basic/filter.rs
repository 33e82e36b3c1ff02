//! Operator that lets the rows pass for which an expression is true.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_schema::{DataType, SchemaRef};
use arrow_select::filter::filter_record_batch;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Counters, Demand, Flow, Fragment, Load, NamedInputs, Operator, OperatorError,
    OperatorSpec, Output,
};
use trommel_engine::registry::Configured;

use super::evaluation::Evaluation;
use crate::expressions::{Expression, demand_of};
use crate::shared::parameters::{blame, parameters, refuse};
use crate::shared::rejected::OnError;

/// Lets the rows pass for which an expression is true.
///
/// # Ports
/// In: any columns. Out: the same columns. With `on_error` `reject`, a second output `rejected`:
/// `path`, `line_number` and `byte_offset` (null), `column` (the expression), `reason` and `bytes`
/// (the row as JSON).
///
/// # Guarantees
/// Rows keep their order. A row for which the expression is null does not pass, as in SQL.
///
/// # State
/// None.
///
/// # Cost
/// That of the kernels of Arrow for the expression, and a copy of the rows that pass, unless all
/// rows of a batch do.
///
/// # Examples
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Filter, Generate};
///
/// let mut graph = Graph::new();
/// let items = graph.add("items", Generate::zipf(100, 1.0).items(1_000));
/// let even = graph.add_after(items, "even", Filter::new("item % 2 = 0 and item < 10"));
/// let (sink, rows) = Collect::new();
/// graph.add_after(even, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// assert!((1..1_000).contains(&rows.rows()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct Filter {
    /// The expression, such as `status >= 500 and path like '/api/%'`.
    #[serde(rename = "where")]
    condition: String,
    /// Action for a row for which the expression has no value, such as a text in a cast to a
    /// number. When left out, `fail`.
    on_error: Option<OnError>,
}

impl Configured for Filter {
    const NAME: &'static str = "filter";
    const SUMMARY: &'static str = "let the rows pass for which an expression is true";
}

impl OperatorSpec for Filter {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn output_ports(&self) -> &'static [&'static str] {
        OnError::output_ports(self.on_error)
    }

    fn reject(&mut self) -> bool {
        OnError::reject(&mut self.on_error)
    }

    fn demand(&self, _: usize, output: &Demand) -> Demand {
        let read = demand_of(&self.condition, output.clone()).condition(&self.condition);
        OnError::demand(self.on_error, read)
    }

    fn bind(self: Box<Self>, inputs: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let schema = &inputs[0];
        let expression =
            Expression::new(&self.condition, schema).map_err(|error| blame("where", error))?;
        if !matches!(expression.data_type(), DataType::Boolean | DataType::Null) {
            let value = format!("`{}`, which is {},", self.condition, expression.data_type());
            return Err(refuse("where", value, "expected an expression that is true or false"));
        }
        let on_error = self.on_error.unwrap_or_default();
        let evaluation = Evaluation::new(vec![expression], on_error);
        let make = move || Ok(Filtering(evaluation.clone()));
        Fragment::anywhere(Load::Light, make, on_error.outputs(Arc::clone(schema)))
    }
}

struct Filtering(Evaluation);

impl Operator for Filtering {
    fn is_copied(&mut self) {
        self.0.is_of_a_copy();
    }

    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = input.into_records();
        let (records, columns) = self.0.of(&records, out)?;
        let Some(passes) = columns[0].as_boolean_opt() else { return Ok(Flow::NeedInput) };
        // If every row passes, no row is copied.
        if passes.true_count() == records.num_rows() {
            out.send(records);
        } else {
            out.send(filter_record_batch(&records, passes)?);
        }
        Ok(Flow::NeedInput)
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.0.named()
    }
}
