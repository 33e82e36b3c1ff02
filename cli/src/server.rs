//! HTTP for a running pipeline: metrics, queries, and a way to stop it.
//!
//! It runs on the main thread, between two looks at the pipeline. A query waits there for the next
//! batch boundary of its stage, which is microseconds while data flows; a stage that waits for a
//! slow disk or a stopped pager is given up after a fraction of a second. There is neither
//! authentication nor a limit on connections or on the time they take, so the default address is
//! reachable from this machine only; a web page cannot stop a pipeline.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_json::ArrayWriter;
use arrow_json::writer::JsonArray;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, serve};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, sleep};
use trommel::{QueryError, Request};

use crate::failure::Failure;
use crate::report::Report;
use crate::session::Session;

/// How often the pipeline is looked at between requests.
const LOOK: Duration = Duration::from_millis(20);
/// How long a query may keep the main thread: short enough that Ctrl-C still feels prompt.
const QUERY_LIMIT: Duration = Duration::from_millis(250);
/// How long requests that are being answered may take when the pipeline has ended.
const GRACE: Duration = Duration::from_secs(1);

/// What requests share. Everything runs on one thread, so the lock is always free; it is never held
/// across an await.
#[derive(Clone)]
struct Served {
    pipeline: Arc<str>,
    session: Arc<Mutex<Session>>,
}

impl Served {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves requests until the pipeline has ended, and gives the session back.
pub(crate) fn serve_until_end(
    session: Session,
    pipeline: &str,
    listener: TcpListener,
) -> Result<Session, Failure> {
    let session = Arc::new(Mutex::new(session));
    let served = Served { pipeline: pipeline.into(), session: Arc::clone(&session) };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::run(format!("cannot serve HTTP: {error}")))?;
    runtime
        .block_on(serve_requests(served, listener))
        .map_err(|error| Failure::run(format!("cannot serve HTTP: {error}")))?;
    // Connections that are still open end with the runtime, and with them all other references.
    drop(runtime);
    let session = Arc::into_inner(session).expect("nothing serves any more");
    Ok(session.into_inner().unwrap_or_else(PoisonError::into_inner))
}

async fn serve_requests(served: Served, listener: TcpListener) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (end_sender, end) = oneshot::channel();
    let server = serve(listener, router(served.clone())).with_graceful_shutdown(async {
        // A sender that was dropped has seen the end as well.
        let _ = end.await;
    });
    let watch = async {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !served.session().step(Duration::ZERO) {
            looks.tick().await;
        }
        let _ = end_sender.send(());
        sleep(GRACE).await;
    };
    tokio::select! {
        result = server.into_future() => result,
        () = watch => Ok(()),
    }
}

fn router(served: Served) -> Router {
    Router::new()
        .route("/", get(help))
        .route("/metrics", get(metrics))
        .route("/stages/{id}/{query}", get(query))
        .route("/stop", post(stop))
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        .with_state(served)
}

async fn help(State(served): State<Served>) -> Response {
    let metrics = served.session().metrics();
    let stages = metrics.stages.iter();
    let stages = stages.map(|s| json!({ "id": s.id, "operator": s.operator })).collect::<Vec<_>>();
    answer(
        StatusCode::OK,
        &json!({
            "pipeline": &*served.pipeline,
            "stages": stages,
            "endpoints": {
                "GET /metrics": "what every stage has counted so far",
                "GET /stages/{id}/{query}?name=value": "asks an operator; a query that it does not know lists those it does",
                "POST /stop": "ends the sources, what was read is still processed; a second time aborts",
            },
        }),
    )
}

async fn metrics(State(served): State<Served>) -> Response {
    let metrics = served.session().metrics();
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
    let request = parameters.into_iter().fold(Request::new(name), |request, (name, value)| {
        let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
        request.with(name, value)
    });
    let queries = served.session().queries();
    match queries.query_within(&stage, &request, QUERY_LIMIT) {
        Ok(rows) => rows_response(&rows),
        Err(refusal) => error(status_of(&refusal), refusal.to_string()),
    }
}

async fn stop(State(served): State<Served>, headers: HeaderMap) -> Response {
    if headers.contains_key(ORIGIN) {
        return error(StatusCode::FORBIDDEN, "a web page cannot stop a pipeline".to_owned());
    }
    served.session().stop();
    answer(StatusCode::OK, &json!({ "stopping": true }))
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
        QueryError::Parameters { .. } => StatusCode::BAD_REQUEST,
        QueryError::Finished { .. } => StatusCode::CONFLICT,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn rows_response(rows: &RecordBatch) -> Response {
    let mut text = Vec::new();
    let builder = arrow_json::WriterBuilder::new().with_explicit_nulls(true);
    let mut writer: ArrayWriter<_> = builder.build::<_, JsonArray>(&mut text);
    match writer.write(rows).and_then(|()| writer.finish()) {
        Ok(()) => {
            text.push(b'\n');
            json_response(StatusCode::OK, text)
        }
        Err(reason) => error(StatusCode::INTERNAL_SERVER_ERROR, reason.to_string()),
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
