//! An operator of one part that is called directly: it keeps its state between the calls of
//! Python, without threads.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Map, Value, json};
use trommel::batch::{Batch, Origin, Payload};
use trommel::error::OperatorError;
use trommel::operator::{BindContext, Body, Flow, Operator, Output};
use trommel::{Collect, Memory, Supplied, load_supplied, registry};

use crate::errors::{entry, invalid, of_arguments, of_operator, of_query};
use crate::import::{Form, Importer, Reading, Rows, Shared};
use crate::live::lock;
use crate::table::Table;
use crate::wait::Pace;

/// An operator with its state.
#[pyclass(frozen, module = "trommel._trommel")]
pub(crate) struct Summary {
    state: Mutex<State>,
    input: SchemaRef,
    output: SchemaRef,
}

struct State {
    operator: Box<dyn Operator>,
    sequence: u64,
    /// After an error in the middle of a batch, nothing is right any more.
    is_broken: bool,
}

#[pymethods]
impl Summary {
    /// The operator `name` with `parameters` (JSON), for data whose columns, in `form`, are those
    /// of `sample`.
    #[new]
    fn new(
        py: Python<'_>,
        name: &str,
        parameters: &str,
        form: Form,
        sample: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        entry(|| {
            let input = settled(py, sample, form)?.1;
            py.detach(|| Self::bind(name, parameters, input))
        })
    }

    /// Takes data; dropped rows come back, for operators that pass rows on.
    fn observe(&self, py: Python<'_>, data: &Bound<'_, PyAny>, form: Form) -> PyResult<Table> {
        entry(|| {
            let mut importer = Importer::new(form, Shared::new());
            importer.settle_by(&self.input);
            let mut reading = Reading::new(Rows::open(data)?, &mut importer)?;
            reading.settle(py, &mut importer)?;
            let mut passed = Vec::new();
            let mut pace = Pace::new();
            while let Some(batch) = reading.next(py, &mut importer)? {
                let taken = py.detach(|| lock(&self.state).take(batch, &mut passed));
                taken.map_err(|failure| failure.raise(py))?;
                if pace.is_due() {
                    py.check_signals()?;
                }
            }
            Ok(Table::new(Arc::clone(&self.output), passed))
        })
    }

    fn query(&self, py: Python<'_>, name: &str, parameters: &str) -> PyResult<Table> {
        entry(|| {
            let parameters: Map<String, Value> =
                serde_json::from_str(parameters).map_err(invalid)?;
            let request = trommel::Request::new(name);
            let request = parameters
                .into_iter()
                .fold(request, |request, (name, value)| request.with(name, value));
            let answer = py.detach(|| {
                let response = lock(&self.state).operator.query(&request, None)?;
                response.compute()
            });
            answer.map(Table::of_batch).map_err(|error| of_query(&error))
        })
    }

    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        entry(|| {
            let state = py.detach(|| lock(&self.state).operator.snapshot());
            Ok(state.map(|state| PyBytes::new(py, &state)))
        })
    }

    fn restore(&self, py: Python<'_>, state: &[u8]) -> PyResult<()> {
        entry(|| {
            let restored = py.detach(|| lock(&self.state).operator.restore(state));
            restored.map_err(|error| of_operator(py, &error))
        })
    }

    fn merge(&self, py: Python<'_>, state: &[u8]) -> PyResult<()> {
        entry(|| {
            let merged = py.detach(|| lock(&self.state).operator.merge(state));
            merged.map_err(|error| of_operator(py, &error))
        })
    }

    fn counters(&self) -> PyResult<Vec<(&'static str, u64)>> {
        entry(|| Ok(lock(&self.state).operator.counters()))
    }

    /// The type of the first column, in Arrow's words.
    #[getter]
    fn item_type(&self) -> String {
        self.input.field(0).data_type().to_string()
    }
}

/// The type, in Arrow's words, that the first column of data has in a form; none if it has none.
#[pyfunction]
pub(crate) fn formed_type(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    form: Form,
) -> PyResult<Option<String>> {
    entry(|| {
        let (is_typed, schema) = settled(py, data, form.clone())?;
        if is_typed {
            return Ok(Some(schema.field(0).data_type().to_string()));
        }
        // Data that is kept until a type is known is checked as other data is.
        Importer::new(form, Shared::new()).import_all(py, Rows::open(data)?)?;
        Ok(None)
    })
}

/// Whether data has a type, and the columns that it gets in a form.
fn settled(py: Python<'_>, data: &Bound<'_, PyAny>, form: Form) -> PyResult<(bool, SchemaRef)> {
    let mut importer = Importer::new(form, Shared::new());
    let mut reading = Reading::new(Rows::open(data)?, &mut importer)?;
    reading.settle(py, &mut importer)?;
    let is_typed = importer.is_settled();
    importer.settle();
    let schema = importer.schema().ok_or_else(|| invalid("rows as they are have no form"))?;
    Ok((is_typed, schema))
}

/// Either side's failure, until it becomes an exception.
enum Failure {
    Python(PyErr),
    Operator(OperatorError),
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl Failure {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Python(error) => error,
            Self::Operator(error) => of_operator(py, &error),
        }
    }
}

/// Finds the mistakes that a configuration with this operator has, in the same words.
fn check(name: &str, parameters: &Value, input: &SchemaRef) -> PyResult<()> {
    let config = json!({ "stages": [
        { "id": "in", "operator": "memory" },
        { "id": "summary", "operator": name, "inputs": ["in"], "with": parameters },
        { "id": "out", "operator": "collect", "inputs": ["summary"] },
    ] });
    let data = Memory::new(Arc::clone(input), []);
    let supplied = Supplied::new().stage("in", data).stage("out", Collect::new().0);
    let checked = load_supplied(&config.to_string(), "arguments", &registry(), &[], supplied);
    checked.map(drop).map_err(|errors| of_arguments(&errors))
}

impl Summary {
    fn bind(name: &str, parameters: &str, input: SchemaRef) -> PyResult<Self> {
        let parameters: Value = serde_json::from_str(parameters).map_err(invalid)?;
        let registry = registry();
        let entry = registry
            .entry(name)
            .ok_or_else(|| invalid(format!("there is no operator `{name}`")))?;
        let spec = entry.load(parameters.clone()).map_err(invalid);
        let bound = spec.and_then(|spec| {
            spec.bind(&[Arc::clone(&input)], BindContext::new(1)).map_err(invalid)
        });
        let bound = match bound {
            Ok(bound) => bound,
            // A configuration has better words for what is wrong.
            Err(error) => return Err(check(name, &parameters, &input).err().unwrap_or(error)),
        };
        let output = bound.outputs.first().map_or_else(|| Arc::clone(&input), Arc::clone);
        let mut bodies = bound.parts.into_iter().map(|part| part.body);
        match (bodies.next(), bodies.next()) {
            (Some(Body::Operator(operator)), None) => {
                let state = State { operator, sequence: 0, is_broken: false };
                Ok(Self { state: Mutex::new(state), input, output })
            }
            _ => Err(invalid(format!("`{name}` has several parts with these parameters"))),
        }
    }
}

impl State {
    /// Gives a batch to the operator; the rows that it sends are added to `passed`.
    fn take(&mut self, records: RecordBatch, passed: &mut Vec<RecordBatch>) -> Result<(), Failure> {
        if self.is_broken {
            return Err(
                invalid("a call failed before: make another one, or restore a state").into()
            );
        }
        let origin = Origin { sequence: self.sequence, entered: Instant::now() };
        self.sequence += 1;
        // A panic leaves it so.
        self.is_broken = true;
        let mut out = Output::new();
        let batch = Payload::Batch(Batch { records, origin });
        let mut flow = self.operator.process(0, batch, &mut out);
        while let Ok(Flow::HaveOutput) = flow {
            flow = self.operator.resume(&mut out);
        }
        self.is_broken = flow.is_err();
        passed.extend(out.drain_sent().map(|(_, rows)| rows.into_records()));
        flow.map(drop).map_err(Failure::Operator)
    }
}
