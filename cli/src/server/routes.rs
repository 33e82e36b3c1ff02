//! Routes: the requests to a run, and their answers.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_json::ArrayWriter;
use arrow_json::writer::JsonArray;
use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, Request as HttpRequest, State};
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use trommel::metrics::StageMetrics;
use trommel::runtime::RunHandle;
use trommel::{QueryError, Request};

use super::guard::{Guard, Refusal};
use super::{ANSWER_UNIT, ANSWER_UNITS_MAX, QUERIES_MAX, Served, prometheus};
use trommel::report::Report;

/// Time in which a stage has to answer.
const QUERY_LIMIT: Duration = Duration::from_secs(5);
/// Time in which a query has to get its turn among others.
const TURN_LIMIT: Duration = Duration::from_secs(2);
/// Units of memory that an answer asks for at a time.
const ANSWER_STEP: usize = 256;
/// Maximum bytes of the rows of an answer, of whose memory their text takes at least as much.
const ROWS_BYTES_MAX: u64 = (ANSWER_UNITS_MAX * ANSWER_UNIT / 2) as u64;
/// Maximum bytes of the body of a request: no request needs one.
const BODY_BYTES_MAX: usize = 4 << 10;
/// Types of the two texts of `prometheus`.
const OLDER_METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn router(served: Served) -> Router {
    Router::new()
        .route("/", get(help))
        .route("/metrics", get(metrics))
        .route("/api/metrics", get(report))
        .route("/stages/{id}/{query}", get(query))
        .route("/reopen", post(reopen))
        .route("/stop", post(stop))
        .route("/abort", post(abort))
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        .layer(from_fn_with_state(served.clone(), admit))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(served)
}

/// Refuses requests that may not be answered.
async fn admit(State(served): State<Served>, request: HttpRequest, next: Next) -> Response {
    if let Err((status, message)) = served.guard.check(request.uri(), request.headers()) {
        return error(status, message);
    }
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse::<u64>().ok()).unwrap_or_default();
    if length > BODY_BYTES_MAX as u64 {
        let message = format!("a body of {length} bytes is too large; nothing here needs one");
        return error(StatusCode::PAYLOAD_TOO_LARGE, message);
    }
    next.run(request).await
}

async fn help(State(served): State<Served>) -> Response {
    let metrics = served.run.metrics();
    let stages = metrics.stages.iter();
    let stage = |s: &StageMetrics| {
        let queries = served.run.queries().names(&s.id);
        json!({ "id": s.id, "operator": s.operator, "queries": queries })
    };
    let stages = stages.map(stage).collect::<Vec<_>>();
    answer(
        StatusCode::OK,
        &json!({
            "pipeline": &*served.pipeline,
            "phase": format!("{:?}", served.run.phase()).to_lowercase(),
            "stages": stages,
            "endpoints": {
                "GET /metrics": "the numbers of every stage so far, as text for Prometheus",
                "GET /api/metrics": "the same as JSON, in the form of the report",
                "GET /stages/{id}/{query}?name=value": "asks an operator; an unknown query lists the known ones",
                "POST /reopen": "opens the files that grow again by their names, as after a rotation of logs",
                "POST /stop": "drains: sources end, everything that was read is processed; further calls change nothing",
                "POST /abort": "ends the run at once; batches in flight are lost",
            },
        }),
    )
}

async fn metrics(State(served): State<Served>, headers: HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let is_open =
        accepted.is_some_and(|accepted| accepted.contains("application/openmetrics-text"));
    match prometheus::text(&served.pipeline, served.run.metrics(), served.run.phase()) {
        Ok(text) if is_open => {
            (StatusCode::OK, [(CONTENT_TYPE, OPEN_METRICS)], text).into_response()
        }
        Ok(text) => {
            let text = prometheus::as_older(&text);
            (StatusCode::OK, [(CONTENT_TYPE, OLDER_METRICS)], text).into_response()
        }
        Err(reason) => error(StatusCode::INTERNAL_SERVER_ERROR, reason.to_string()),
    }
}

async fn report(State(served): State<Served>) -> Response {
    let metrics = served.run.metrics();
    json_response(StatusCode::OK, Report::new(&served.pipeline, &metrics, None).to_string())
}

async fn query(
    State(served): State<Served>,
    path: Result<Path<(String, String)>, PathRejection>,
    parameters: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Response {
    let Path((stage, name)) = match path {
        Ok(path) => path,
        Err(rejection) => return error(rejection.status(), rejection.body_text()),
    };
    let Query(parameters) = match parameters {
        Ok(parameters) => parameters,
        Err(rejection) => return error(rejection.status(), rejection.body_text()),
    };
    let mut names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("the parameter `{}` is given more than once", twice[0]);
        return error(StatusCode::BAD_REQUEST, message);
    }
    let turn = timeout(TURN_LIMIT, Arc::clone(&served.queries).acquire_owned());
    let Ok(Ok(turn)) = turn.await else {
        let message = format!("{QUERIES_MAX} queries wait for their answers already; ask again");
        return error(StatusCode::SERVICE_UNAVAILABLE, message);
    };
    let ask = move || {
        let _turn = turn;
        let rows = ask(&served.run, &stage, &name, parameters)?;
        rows_as_json(&rows, served.answers)
    };
    match spawn_blocking(ask).await {
        Ok(Ok(text)) => json_response(StatusCode::OK, text),
        Ok(Err((status, message))) => error(status, message),
        Err(failed) => error(StatusCode::INTERNAL_SERVER_ERROR, failed.to_string()),
    }
}

/// Asks with each parameter as a JSON value, or as text if the operator does not take that: an
/// item may be the text `404`.
fn ask(
    run: &RunHandle,
    stage: &str,
    name: &str,
    parameters: Vec<(String, String)>,
) -> Result<RecordBatch, Refusal> {
    let request = |value: fn(&str) -> Value| {
        let parameters = parameters.iter();
        let request = Request::new(name).bytes_max(ROWS_BYTES_MAX);
        parameters.fold(request, |request, (name, text)| request.with(name, value(text)))
    };
    let as_text = |text: &str| Value::String(text.to_owned());
    let as_json = |text: &str| serde_json::from_str(text).unwrap_or(Value::String(text.to_owned()));
    let ask = |request| run.queries().query_within(stage, &request, QUERY_LIMIT);
    match ask(request(as_json)) {
        Err(refusal @ QueryError::Parameters { .. }) => ask(request(as_text)).map_err(|_| refusal),
        answer => answer,
    }
    .map_err(|refusal| (status_of(&refusal), refusal.to_string()))
}

async fn reopen(State(served): State<Served>, headers: HeaderMap) -> Response {
    if let Err((status, message)) = Guard::check_change(&headers) {
        return error(status, message);
    }
    served.run.reopen();
    answer(StatusCode::OK, &json!({ "reopening": true }))
}

async fn stop(State(served): State<Served>, headers: HeaderMap) -> Response {
    if let Err((status, message)) = Guard::check_change(&headers) {
        return error(status, message);
    }
    match served.drain {
        Some(limit) => served.run.stop_within(limit),
        None => served.run.stop(),
    }
    answer(StatusCode::OK, &json!({ "stopping": true }))
}

async fn abort(State(served): State<Served>, headers: HeaderMap) -> Response {
    if let Err((status, message)) = Guard::check_change(&headers) {
        return error(status, message);
    }
    served.run.abort();
    answer(StatusCode::OK, &json!({ "aborting": true }))
}

async fn unknown(uri: Uri) -> Response {
    error(StatusCode::NOT_FOUND, format!("there is no {}; see /", uri.path()))
}

async fn not_allowed(uri: Uri) -> Response {
    let message = format!("{} does not take this method; see /", uri.path());
    error(StatusCode::METHOD_NOT_ALLOWED, message)
}

fn status_of(refusal: &QueryError) -> StatusCode {
    match refusal {
        QueryError::UnknownStage { .. } | QueryError::Unsupported { .. } => StatusCode::NOT_FOUND,
        QueryError::Parameters { .. } | QueryError::TooLarge { .. } => StatusCode::BAD_REQUEST,
        QueryError::Finished { .. } => StatusCode::CONFLICT,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// The rows as JSON, in memory that all answers share.
fn rows_as_json(rows: &RecordBatch, memory: Arc<Semaphore>) -> Result<Bytes, Refusal> {
    let mut text = AnswerText {
        text: Vec::new(),
        row_bytes: rows.get_array_memory_size(),
        permit: None,
        memory,
    };
    let builder = arrow_json::WriterBuilder::new().with_explicit_nulls(true);
    let mut writer: ArrayWriter<_> = builder.build::<_, JsonArray>(&mut text);
    let written = writer.write(rows).and_then(|()| writer.finish());
    if text.has_failed() {
        let limit = ANSWER_UNITS_MAX * ANSWER_UNIT;
        let message = format!(
            "the answer, with other unread answers, is larger than {limit} bytes; \
             ask for fewer rows"
        );
        return Err((StatusCode::SERVICE_UNAVAILABLE, message));
    }
    written.map_err(|reason| (StatusCode::INTERNAL_SERVER_ERROR, reason.to_string()))?;
    text.text.push(b'\n');
    text.release_rows();
    Ok(Bytes::from_owner(text))
}

/// The text of an answer, and the memory that it holds until it has been sent.
struct AnswerText {
    text: Vec<u8>,
    /// Bytes of the rows that it is made of.
    row_bytes: usize,
    permit: Option<OwnedSemaphorePermit>,
    memory: Arc<Semaphore>,
}

impl AnswerText {
    /// Maximum bytes.
    fn capacity(&self) -> usize {
        self.permit.as_ref().map_or(0, |permit| permit.num_permits() * ANSWER_UNIT)
    }

    /// Gives back the memory of the rows, which the text replaces.
    fn release_rows(&mut self) {
        self.row_bytes = 0;
        let needed = self.text.len().div_ceil(ANSWER_UNIT);
        if let Some(permit) = &mut self.permit {
            let surplus = permit.num_permits().saturating_sub(needed);
            drop(permit.split(surplus));
        }
    }

    /// Whether the memory for it was refused.
    fn has_failed(&self) -> bool {
        self.row_bytes + self.text.len() > self.capacity()
    }
}

impl Write for AnswerText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        while self.has_failed() {
            let step = u32::try_from(ANSWER_STEP).expect("a small constant");
            let more = Arc::clone(&self.memory).try_acquire_many_owned(step);
            let more = more.map_err(|_| io::ErrorKind::OutOfMemory)?;
            match &mut self.permit {
                Some(permit) => permit.merge(more),
                none => *none = Some(more),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRef<[u8]> for AnswerText {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

fn error(status: StatusCode, message: String) -> Response {
    answer(status, &json!({ "error": message }))
}

fn answer(status: StatusCode, value: &Value) -> Response {
    json_response(status, format!("{value:#}\n"))
}

fn json_response(status: StatusCode, text: impl Into<axum::body::Body>) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], text.into()).into_response()
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, UInt64Array};

    use super::*;

    #[test]
    fn an_answer_of_a_million_counters_fits_and_then_holds_the_memory_of_its_text_alone() {
        let column =
            || -> ArrayRef { Arc::new(UInt64Array::from_iter_values(10_000_000..11_000_000)) };
        let columns = ["item", "count", "error"].map(|name| (name, column()));
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let memory = Arc::new(Semaphore::new(ANSWER_UNITS_MAX));
        let text = rows_as_json(&rows, Arc::clone(&memory)).unwrap();
        let held = (ANSWER_UNITS_MAX - memory.available_permits()) * ANSWER_UNIT;
        assert!(
            (text.len()..text.len() + ANSWER_UNIT).contains(&held),
            "{held} for {}",
            text.len()
        );
        drop(text);
        assert_eq!(memory.available_permits(), ANSWER_UNITS_MAX);
    }
}
