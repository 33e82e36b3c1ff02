//! HTTP for a running pipeline: metrics, queries, and ways to stop it.
//!
//! ```text
//! main thread: waits for the pipeline, signals, progress
//! HTTP thread: accepts ──► connections (limits, timeouts) ──► guard (host, token) ──► routes
//!                                                                       │ queries
//!                                                        a few threads that wait for answers
//! ```
//!
//! No client delays the pipeline, its signals or its end. Connections, headers, the time of a
//! client, concurrent queries and the bytes of unread answers are limited. The default address is
//! reachable from this machine only, and requests to names of other machines are refused, so that
//! a web page cannot read answers under a name of its own; other addresses need a token.

mod connections;
mod guard;
mod prometheus;
mod routes;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use trommel::runtime::RunHandle;

use crate::failure::Failure;
use guard::Guard;

/// Time that requests in progress may take when the pipeline has ended.
const GRACE: Duration = Duration::from_secs(1);
/// Maximum of concurrent queries: one may wait for a stage while another answer is made.
const QUERIES_MAX: usize = 2;
/// Niceness of the threads that make answers: the threads of stages come first.
const NICENESS: i32 = 10;
/// Unit in which the memory of answers is counted.
const ANSWER_UNIT: usize = 1 << 10;
/// Memory of all answers that are being made, rows and text, or are unread, in units.
const ANSWER_UNITS_MAX: usize = 128 << 10;

/// State that all requests share.
#[derive(Clone)]
struct Served {
    pipeline: Arc<str>,
    run: RunHandle,
    /// Limit of a drain.
    drain: Option<Duration>,
    guard: Arc<Guard>,
    queries: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

/// An address to serve at, with the guard of its requests.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: TcpListener,
    guard: Guard,
}

impl Listener {
    /// Listens at `address`, which without a token must be one of this machine alone.
    pub(crate) fn bind(address: SocketAddr, token_file: Option<&Path>) -> Result<Self, Failure> {
        let guard = Guard::new(token_file)?;
        if !address.ip().is_loopback() && !guard.has_token() {
            return Err(Failure::usage(format!(
                "{address} can be reached from other machines: name a file with a token \
                 (--token-file), or listen at 127.0.0.1"
            )));
        }
        let cannot = |error| Failure::usage(format!("cannot listen at {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        crate::say(&format!("listening at http://{bound}/"));
        Ok(Self { listener, guard })
    }
}

/// The thread that serves a run.
#[derive(Debug)]
pub(crate) struct Server {
    thread: JoinHandle<()>,
    /// Signalled when the pipeline has ended.
    end: watch::Sender<bool>,
}

impl Server {
    /// Serves `run` until [`Server::end`].
    pub(crate) fn start(
        listener: Listener,
        pipeline: &str,
        run: RunHandle,
        drain: Option<Duration>,
    ) -> Result<Self, Failure> {
        let cannot = |error: io::Error| Failure::run(format!("cannot serve HTTP: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(QUERIES_MAX)
            .on_thread_start(|| {
                // On Linux this is a property of the thread. A refusal costs speed alone.
                let _ = rustix::process::setpriority_process(None, NICENESS);
            })
            .build()
            .map_err(cannot)?;
        let served = Served {
            pipeline: pipeline.into(),
            run,
            drain,
            guard: Arc::new(listener.guard),
            queries: Arc::new(Semaphore::new(QUERIES_MAX)),
            answers: Arc::new(Semaphore::new(ANSWER_UNITS_MAX)),
        };
        let (end, ended) = watch::channel(false);
        let serve = move || {
            let requests = connections::serve(listener.listener, routes::router(served), ended);
            if let Err(error) = runtime.block_on(requests) {
                crate::say(&format!("warning: HTTP is served no longer: {error}"));
            }
            // A query that still waits for a stage is abandoned: the process ends.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("trommel http".to_owned()).spawn(serve);
        Ok(Self { thread: thread.map_err(cannot)?, end })
    }

    /// Lets requests in progress finish, for a moment.
    pub(crate) fn end(self) {
        let _nobody_is_left_to_tell = self.end.send(true);
        // A panic has been reported by the hook; the run is over either way.
        let _ = self.thread.join();
    }
}

/// A run that is served at a free port of this machine, for fuzzing.
#[derive(Debug)]
pub struct TestServer {
    address: SocketAddr,
    server: Option<Server>,
}

impl TestServer {
    /// Serves `run` until it is dropped; `None` if that is not possible here.
    #[must_use]
    pub fn start(run: RunHandle) -> Option<Self> {
        let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), None).ok()?;
        let address = listener.listener.local_addr().ok()?;
        let server = Server::start(listener, "test", run, None).ok()?;
        Some(Self { address, server: Some(server) })
    }

    /// The address that it listens at.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.end();
        }
    }
}
