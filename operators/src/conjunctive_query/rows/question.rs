//! Queries of a running stage.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use serde::Deserialize;
use serde::de::Error;
use serde_json::Value;
use trommel_engine::query::{QueryError, Request, Response};
use trommel_kernels::Isa;
use trommel_kernels::inverted::FoundDocuments;

use crate::conjunctive_query::data::index::{Answerer, Index, Terms};
use crate::shared::names::ItemNames;

pub(crate) const QUERIES: &[&str] = &["documents", "count"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TermsParameter {
    terms: Vec<Value>,
}

/// Answers a query over the documents of `index`, on the thread that asked.
pub(crate) fn answer(
    request: &Request,
    names: &ItemNames,
    index: &Arc<Index>,
    isa: Isa,
) -> Result<Response, QueryError> {
    let is_count = match request.name() {
        "documents" => false,
        "count" => true,
        _ => return Err(QueryError::unsupported(request, QUERIES)),
    };
    let parameter: TermsParameter = request.parameters()?;
    let term = |item: &Value| names.find_json(item).ok_or_else(|| invalid(request, item));
    let terms: Vec<u32> = parameter.terms.iter().map(term).collect::<Result<_, _>>()?;
    let (index, request) = (Arc::clone(index), request.clone());
    Ok(Response::Compute(Box::new(move || {
        let offsets = [0, u32::try_from(terms.len()).unwrap_or(u32::MAX)];
        let queries = Terms { offsets: &offsets, terms: &terms };
        let mut answerer = Answerer::new(isa);
        if is_count {
            let mut counts = Vec::new();
            answerer.count(&index, queries, &mut counts);
            return Ok(rows([("count", Arc::new(UInt32Array::from(counts)) as ArrayRef)]));
        }
        let mut found = FoundDocuments::default();
        answerer.find(&index, queries, &mut found);
        documents(&request, &index, found.documents)
    })))
}

fn invalid(request: &Request, item: &Value) -> QueryError {
    let source = serde_json::Error::custom(format!("invalid term {item}: it has another type"));
    QueryError::Parameters { request: request.name().to_owned(), source }
}

/// A row for each document: `document`, and `name` if documents have names.
fn documents(request: &Request, index: &Index, found: Vec<u32>) -> Result<RecordBatch, QueryError> {
    let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
    let numbers_bytes = size_of_val(&found[..]) as u64;
    request.check_bytes(numbers_bytes)?;
    if index.has_names() {
        let names = found.iter().map(|&document| index.name(document));
        let names_bytes: u64 = names.clone().map(|name| name.len() as u64).sum();
        request.check_bytes(numbers_bytes + names_bytes)?;
        columns.push(("name", Arc::new(StringArray::from_iter_values(names))));
    }
    columns.insert(0, ("document", Arc::new(UInt32Array::from(found))));
    Ok(rows(columns))
}

fn rows<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}
