//! The query of a running stage: the rows of groups so far.
//!
//! A part only copies its groups. The thread that asked merges the copies of all workers, or of all
//! panes, and makes rows.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use serde::Deserialize;
use serde::de::Error as _;
use trommel_engine::operator::OperatorError;
use trommel_engine::query::{QueryError, Request};

use super::parameters::plan::Plan;
use super::state::{State, Unsent};
use crate::expressions::Expression;

/// The queries of the operator.
pub(crate) const QUERIES: &[&str] = &["groups"];
/// Number of rows of an answer when no number is asked for.
const ROWS: usize = 100;

/// The parameters of the query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Maximum number of rows.
    n: Option<usize>,
    /// A condition on the rows.
    r#where: Option<String>,
}

/// A query that has been checked.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    request: Request,
    n: usize,
    condition: Option<Expression>,
}

impl Question {
    /// Reads a query for the rows of a plan.
    pub(crate) fn read(request: &Request, plan: &Plan) -> Result<Self, QueryError> {
        if request.name() != QUERIES[0] {
            return Err(QueryError::unsupported(request, QUERIES));
        }
        let Parameters { n, r#where } = request.parameters()?;
        let condition = r#where.map(|text| Expression::new(&text, &plan.schema)).transpose();
        let condition = condition.map_err(|error| refuse(request, error))?;
        if let Some(condition) = &condition
            && *condition.data_type() != DataType::Boolean
        {
            let found = condition.data_type();
            return Err(refuse(request, format!("`where` is no truth value, but {found}")));
        }
        Ok(Self { request: request.clone(), n: n.unwrap_or(ROWS), condition })
    }

    /// A copy of a state, if an answer may be as large as the state.
    pub(crate) fn copy(&self, state: &State) -> Result<State, QueryError> {
        self.request.check_bytes(state.bytes() as u64)?;
        Ok(state.copy())
    }

    /// The rows of the groups of some states, the states in the order of their rows.
    pub(crate) fn answer<'a>(
        &self,
        states: impl IntoIterator<Item = &'a State>,
    ) -> Result<RecordBatch, QueryError> {
        let mut states = states.into_iter();
        let mut all = states.next().expect("a stage has a state").copy();
        let failed = |error: OperatorError| refuse(&self.request, error);
        states.try_for_each(|state| all.merge(state)).map_err(failed)?;
        let (mut batches, mut left) = (Vec::new(), self.n);
        let schema = all.schema();
        let mut rows = Unsent::new(all).map_err(failed)?;
        while left > 0
            && let Some(batch) = rows.next_rows().map_err(failed)?
        {
            let batch = self.filtered(batch)?;
            let batch = batch.slice(0, left.min(batch.num_rows()));
            left -= batch.num_rows();
            batches.push(batch);
        }
        concat_batches(&schema, &batches).map_err(|error| refuse(&self.request, error))
    }

    /// The rows for which the condition is true.
    fn filtered(&self, rows: RecordBatch) -> Result<RecordBatch, QueryError> {
        let Some(condition) = &self.condition else { return Ok(rows) };
        let holds = condition.evaluate(&rows).map_err(|error| refuse(&self.request, error))?;
        filter_record_batch(&rows, holds.as_boolean()).map_err(|error| refuse(&self.request, error))
    }
}

fn refuse(request: &Request, reason: impl std::fmt::Display) -> QueryError {
    let source = serde_json::Error::custom(reason);
    QueryError::Parameters { request: request.name().to_owned(), source }
}
