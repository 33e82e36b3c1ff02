//! Connections and their limits.
//!
//! A connection without a whole request head in time is closed, and so is one whose client does
//! not read its answer. When all places are taken, a new connection takes the place of the oldest
//! one without a request in progress.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

use super::GRACE;

/// Connections at once, if the process may open enough files.
const CONNECTIONS_MAX: usize = 64;
/// Time for the head of a request, and between two requests of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without progress of a client that reads its answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Header lines of a request.
const HEADERS_MAX: usize = 64;
/// Pause after a connection could not be accepted, such as without a free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves connections until `ended`, and requests in progress for a moment longer.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    mut ended: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Arc::new(OpenConnections::new());
    let (mut open, told) = (JoinSet::new(), ended.clone());
    loop {
        tokio::select! {
            _ = ended.wait_for(|&ended| ended) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if let Some(place) = places.take() {
                        open.spawn(connection(stream, router.clone(), place, told.clone()));
                    }
                }
                // Out of descriptors, or the client has left already.
                Err(_) => {
                    places.free_one();
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            // Forgets connections that have ended.
            Some(_) = open.join_next() => {}
        }
    }
    let all = async { while open.join_next().await.is_some() {} };
    // Clients that take longer are cut off.
    let _ = timeout(GRACE, all).await;
    Ok(())
}

async fn connection(
    stream: TcpStream,
    router: Router,
    place: ConnectionPlace,
    mut ended: watch::Receiver<bool>,
) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let (entry, router) = (Arc::clone(&place.entry), TowerToHyperService::new(router));
    let service = service_fn(move |request: Request<Incoming>| {
        let busy = Busy::new(&entry);
        let answer = router.call(request.map(Body::new));
        async move {
            let answer = answer.await;
            drop(busy);
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        // A client may end its side after its request.
        .half_close(true)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    tokio::pin!(connection);
    // The client is to blame for errors: a malformed request, a timeout, a lost connection.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.entry.is_wanted_elsewhere.notified() => return,
        _ = ended.wait_for(|&ended| ended) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// The connections that are open, in the order in which they were opened.
struct OpenConnections {
    open: Mutex<VecDeque<Arc<OpenConnection>>>,
    limit: usize,
}

struct OpenConnection {
    /// Requests in progress.
    requests: AtomicUsize,
    is_wanted_elsewhere: Notify,
}

/// A connection's place, which it frees when it is dropped.
struct ConnectionPlace {
    places: Arc<OpenConnections>,
    entry: Arc<OpenConnection>,
}

impl OpenConnections {
    fn new() -> Self {
        // The pipeline needs descriptors too.
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let limit = usize::try_from(files / 4).unwrap_or(usize::MAX).clamp(1, CONNECTIONS_MAX);
        Self { open: Mutex::default(), limit }
    }

    fn open(&self) -> MutexGuard<'_, VecDeque<Arc<OpenConnection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection; `None` if all are taken and have requests in progress.
    fn take(self: &Arc<Self>) -> Option<ConnectionPlace> {
        if self.open().len() >= self.limit && !self.free_one() {
            return None;
        }
        let entry = Arc::new(OpenConnection {
            requests: AtomicUsize::new(0),
            is_wanted_elsewhere: Notify::new(),
        });
        self.open().push_back(Arc::clone(&entry));
        Some(ConnectionPlace { places: Arc::clone(self), entry })
    }

    /// Closes the oldest connection without a request in progress; false if there is none.
    fn free_one(&self) -> bool {
        let mut open = self.open();
        let idle = open.iter().position(|entry| entry.requests.load(Ordering::Relaxed) == 0);
        let entry = idle.and_then(|idle| open.remove(idle));
        entry.inspect(|entry| entry.is_wanted_elsewhere.notify_one()).is_some()
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.places.open().retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}

/// A request in progress.
struct Busy(Arc<OpenConnection>);

impl Busy {
    fn new(entry: &Arc<OpenConnection>) -> Self {
        // Relaxed: all accesses are on one thread.
        entry.requests.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(entry))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}
