//! Shared by the unit tests: drives sources and operators by hand; children; streams, sets and an
//! oracle.

pub(crate) mod children;
pub(crate) mod oracle;
pub(crate) mod sets;
pub(crate) mod streams;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use trommel_engine::batch::{Batch, Origin, Payload};
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Body, Flow, Fragment, Operator, OperatorError, OperatorSpec, Output, Source,
    SourceFlow,
};

pub(crate) fn bind(spec: impl OperatorSpec, inputs: &[SchemaRef]) -> Result<Fragment, BindError> {
    Box::new(spec).bind(inputs, BindContext::new(0))
}

pub(crate) fn bind_source(spec: impl OperatorSpec) -> Box<dyn Source> {
    match only_body(bind(spec, &[]).expect("binds")) {
        Body::Source(source) => source,
        Body::Operator(_) => panic!("not a source"),
    }
}

pub(crate) fn bind_operator(spec: impl OperatorSpec, input: &SchemaRef) -> Box<dyn Operator> {
    bind_operator_of(spec, &[SchemaRef::clone(input)])
}

/// Binds an operator of several inputs.
pub(crate) fn bind_operator_of(spec: impl OperatorSpec, inputs: &[SchemaRef]) -> Box<dyn Operator> {
    match only_body(bind(spec, inputs).expect("binds")) {
        Body::Operator(operator) => operator,
        Body::Source(_) => panic!("a source"),
    }
}

fn only_body(fragment: Fragment) -> Body {
    let mut parts = fragment.parts;
    assert_eq!(parts.len(), 1);
    parts.remove(0).body
}

/// Everything that a source sends until its end.
pub(crate) fn drain_source(source: &mut dyn Source) -> Result<Vec<RecordBatch>, OperatorError> {
    let mut out = Output::new();
    let mut batches = Vec::new();
    loop {
        let flow = source.next(&mut out)?;
        take_sent(&mut out, &mut batches);
        if flow == SourceFlow::Finished {
            return Ok(batches);
        }
    }
}

/// Everything that an operator sends for these inputs, and at their end.
pub(crate) fn run_operator(
    operator: &mut dyn Operator,
    inputs: impl IntoIterator<Item = RecordBatch>,
) -> Result<Vec<RecordBatch>, OperatorError> {
    run_operator_of(operator, inputs.into_iter().map(|records| (0, records)))
}

/// As [`run_operator`], for batches of several inputs.
pub(crate) fn run_operator_of(
    operator: &mut dyn Operator,
    inputs: impl IntoIterator<Item = (usize, RecordBatch)>,
) -> Result<Vec<RecordBatch>, OperatorError> {
    let mut out = Output::new();
    let mut batches = Vec::new();
    let origin = Origin { sequence: 0, entered: std::time::Instant::now() };
    for (port, records) in inputs {
        let batch = Payload::Batch(Batch { records, origin });
        let mut flow = operator.process(port, batch, &mut out)?;
        take_sent(&mut out, &mut batches);
        while flow == Flow::HaveOutput {
            flow = operator.resume(&mut out)?;
            take_sent(&mut out, &mut batches);
        }
    }
    let mut flow = operator.finish(&mut out)?;
    take_sent(&mut out, &mut batches);
    while flow == Flow::HaveOutput {
        flow = operator.resume(&mut out)?;
        take_sent(&mut out, &mut batches);
    }
    for commit in out.drain_commits() {
        commit()?;
    }
    Ok(batches)
}

fn take_sent(out: &mut Output, batches: &mut Vec<RecordBatch>) {
    batches.extend(out.drain_sent().map(|(_, payload)| payload.into_records()));
}
