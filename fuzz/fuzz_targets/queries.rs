//! Sends arbitrary queries to `frequent_items`: each is answered, or refused with a reason.
//!
//! `cargo xtask fuzz queries`
#![no_main]

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use trommel::operator::{BindContext, Body, OperatorSpec, Output};
use trommel::query::Response;
use trommel::{Algorithm, FrequentItems, Request};

#[derive(Debug, Arbitrary)]
struct Input {
    is_text: bool,
    algorithm: u8,
    items: Vec<u64>,
    name: Name,
    parameters: Vec<(Parameter, String)>,
}

#[derive(Debug, Arbitrary)]
enum Name {
    Top,
    AtLeast,
    Estimate,
    Snapshot,
    Other(String),
}

#[derive(Debug, Arbitrary)]
enum Parameter {
    N,
    Share,
    Item,
    Other(String),
}

fuzz_target!(|input: Input| {
    let items: ArrayRef = if input.is_text {
        Arc::new(StringArray::from_iter_values(input.items.iter().map(u64::to_string)))
    } else {
        Arc::new(UInt64Array::from(input.items))
    };
    let rows = RecordBatch::try_from_iter([("item", items)]).expect("one column");
    let algorithms = [Algorithm::SpaceSaving, Algorithm::Filter, Algorithm::Auto];
    let algorithm = algorithms[usize::from(input.algorithm) % algorithms.len()];
    let spec = FrequentItems::new().counters(40).algorithm(algorithm);
    let fragment = Box::new(spec).bind(&[rows.schema()], BindContext::new(0)).expect("it fits");
    let part = fragment.parts.into_iter().next().expect("a part");
    let Body::Operator(mut operator) = part.body else { unreachable!("it has an input") };
    if rows.num_rows() > 0 {
        let payload = trommel::batch::Payload::Batch(trommel::batch::Batch {
            records: rows,
            origin: trommel::batch::Origin { sequence: 0, entered: std::time::Instant::now() },
        });
        operator.process(0, payload, &mut Output::new()).expect("it counts");
    }
    let name = match input.name {
        Name::Top => "top".to_owned(),
        Name::AtLeast => "at_least".to_owned(),
        Name::Estimate => "estimate".to_owned(),
        Name::Snapshot => "snapshot".to_owned(),
        Name::Other(name) => name,
    };
    let mut request = Request::new(name);
    for (parameter, value) in input.parameters {
        let parameter = match parameter {
            Parameter::N => "n".to_owned(),
            Parameter::Share => "share".to_owned(),
            Parameter::Item => "item".to_owned(),
            Parameter::Other(name) => name,
        };
        let value = serde_json::from_str(&value).unwrap_or(serde_json::Value::String(value));
        request = request.with(parameter, value);
    }
    match operator.query(&request, None) {
        Ok(Response::Answer(rows)) => assert!(rows.num_columns() > 0),
        Ok(response @ (Response::Compute(_) | Response::Share(_))) => drop(response.compute()),
        Ok(Response::Forward(_)) => unreachable!("one part answers"),
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
});
