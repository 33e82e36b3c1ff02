//! Queries: questions to a running operator, answered between two batches.
//!
//! A query never touches the operator's state from another thread. The caller leaves a message in
//! the mailbox of the thread that runs the stage. That thread answers at the next batch boundary,
//! so an answer is exact there, and costs the data path one look at an empty mailbox a batch. In a
//! chain of parts, the first part may forward the query with its own data ([`Response::Forward`]).
//! The query then follows the chunks: the next part answers after exactly the chunks that were sent
//! before the query. The query does not pass through the data channel, so a full channel does not
//! delay the query. (Roy, Teubner, Alonso: Efficient frequent item counting in multi-core hardware,
//! §5.)
//!
//! A stage that is [divided](crate::operator::Division::Partial) has a state in each of its copies.
//! If its first part has copies, the caller asks all of them; each copy answers at its next batch
//! boundary with its share ([`Response::Share`]), and the caller combines the shares. A batch is in
//! the share of exactly one copy, or in none of them, so the answer is that of a stage in one place
//! after the same batches. If a part stands before the copies, the query goes to that part, follows
//! the chunks to each copy, and follows the chunks of each copy to the last part, which answers
//! with the data of all copies ([`CopyPayloads`]): the answer is that of one batch boundary of the
//! first part.
//!
//! While data waits, answers take at most a fifth of a thread's time. Queries beyond that wait in
//! order, up to 1,024 a stage; further queries are refused with [`QueryError::Busy`]. A thread
//! without data answers at once.
//!
//! There are two kinds of answer. A *fresh* answer ([`QueryHandle::query`]) waits for a batch
//! boundary after the call. The *latest* answer ([`Watch::latest`]) is the last published answer of
//! a standing query; a program reads it without waiting, and learns how old it is.
//!
//! [`QueryHandle::query`]: crate::runtime::QueryHandle::query
//! [`Watch::latest`]: crate::runtime::Watch::latest

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use thiserror::Error;

/// A named question with parameters, such as `top` with `n` = 10. A clone is cheap.
///
/// # Examples
/// ```
/// use trommel_engine::query::Request;
///
/// #[derive(serde::Deserialize)]
/// struct Top {
///     n: usize,
/// }
///
/// let request = Request::new("top").with("n", 10);
/// assert_eq!(request.name(), "top");
/// assert_eq!(request.parameters::<Top>()?.n, 10);
/// let wrong = Request::new("top").with("n", "ten");
/// assert!(wrong.parameters::<Top>().is_err());
/// # Ok::<(), trommel_engine::query::QueryError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    name: Arc<str>,
    parameters: Arc<Map<String, Value>>,
    bytes_max: u64,
}

/// Maximum bytes of an answer where the caller sets no limit: half of the limit of a column of text
/// or bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

impl Request {
    /// A question without parameters.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), parameters: Arc::default(), bytes_max: ANSWER_BYTES_MAX }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, parameter: impl Into<String>, value: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.parameters).insert(parameter.into(), value.into());
        self
    }

    /// Sets the maximum bytes of the answer, which is 1 GiB otherwise. A larger answer is refused
    /// before it is copied, where its size is known by then.
    #[must_use]
    pub fn bytes_max(mut self, bytes: u64) -> Self {
        self.bytes_max = bytes.min(ANSWER_BYTES_MAX);
        self
    }

    /// Refuses an answer of `bytes` bytes, if the caller wants less; for operators.
    ///
    /// # Errors
    /// [`QueryError::TooLarge`].
    pub fn check_bytes(&self, bytes: u64) -> Result<(), QueryError> {
        if bytes <= self.bytes_max {
            return Ok(());
        }
        let (request, limit) = (self.name().to_owned(), self.bytes_max);
        Err(QueryError::TooLarge { request, bytes, limit })
    }

    /// The value of a parameter, if the request has it, and the request without the parameter; for
    /// operators that read one parameter apart from the others.
    #[must_use]
    pub fn split_off(mut self, parameter: &str) -> (Option<Value>, Self) {
        let value = Arc::make_mut(&mut self.parameters).remove(parameter);
        (value, self)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the parameters into a struct of the operator.
    ///
    /// # Errors
    /// [`QueryError::Parameters`] when the parameters do not fit.
    pub fn parameters<T: DeserializeOwned>(&self) -> Result<T, QueryError> {
        T::deserialize(&*self.parameters)
            .map_err(|source| QueryError::Parameters { request: self.name().to_owned(), source })
    }
}

/// The data of a part, which travels to the next part with a query.
pub type QueryPayload = Box<dyn Any + Send>;

/// The data of all copies of a part, with which the part behind them answers a query: all of them
/// are of the same position in the stream of the part before the copies.
pub struct CopyPayloads {
    /// The data of the part before the copies.
    pub first: QueryPayload,
    /// The data of the copies, in their order.
    pub copies: Vec<QueryPayload>,
}

impl fmt::Debug for CopyPayloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyPayloads").field("copies", &self.copies.len()).finish_non_exhaustive()
    }
}

/// A function that makes rows from data of its own, or fails with the reason.
pub type Computation = Box<dyn FnOnce() -> Result<RecordBatch, QueryError> + Send>;

/// The share of one copy of a divided stage in an answer, and the way to combine shares.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// use trommel_engine::query::{Response, Share};
///
/// let share = Share::new(7_u64, |sums: &[&u64]| Ok(numbers([sums.iter().copied().sum()])));
/// assert_eq!(Response::Share(share).compute()?, numbers([7]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Share {
    data: Arc<dyn Any + Send + Sync>,
    combine: Arc<Combine>,
}

/// Makes rows of the shares of all copies.
type Combine = dyn Fn(&[Share]) -> Result<RecordBatch, QueryError> + Send + Sync;

impl Share {
    /// The `data` of one copy. `combine` makes the answer of the data of all copies, in the order
    /// of the copies; the thread that asked calls it.
    ///
    /// # Panics
    /// When it is combined with the share of another stage.
    pub fn new<T: Any + Send + Sync>(
        data: T,
        combine: impl Fn(&[&T]) -> Result<RecordBatch, QueryError> + Send + Sync + 'static,
    ) -> Self {
        let combine = move |shares: &[Self]| {
            let all: Vec<&T> = shares
                .iter()
                .map(|share| share.data.downcast_ref().expect("copies of a stage share one type"))
                .collect();
            combine(&all)
        };
        Self { data: Arc::new(data), combine: Arc::new(combine) }
    }

    /// The answer of all copies.
    ///
    /// # Panics
    /// If there is no share.
    pub(crate) fn combine(shares: &[Self]) -> Result<RecordBatch, QueryError> {
        (shares[0].combine)(shares)
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").finish_non_exhaustive()
    }
}

/// The response of an operator to a query.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// use trommel_engine::query::Response;
///
/// let counts = vec![3, 1, 2];
/// // The stage only moves a copy; the sum is computed by the thread that asked.
/// let later = Response::Compute(Box::new(move || Ok(numbers([counts.iter().sum()]))));
/// assert_eq!(later.compute()?, numbers([6]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub enum Response {
    /// The answer, as rows.
    Answer(RecordBatch),
    /// The answer, which the thread that asked computes: the stage has copied the data and goes on.
    Compute(Computation),
    /// The data with which the next part answers.
    Forward(QueryPayload),
    /// The share of a copy of a divided stage.
    Share(Share),
}

impl Response {
    /// The rows, computed by the calling thread.
    ///
    /// # Errors
    /// If the computation fails.
    ///
    /// # Panics
    /// If the response is [`Self::Forward`].
    pub fn compute(self) -> Result<RecordBatch, QueryError> {
        match self {
            Self::Answer(rows) => Ok(rows),
            Self::Compute(computation) => computation(),
            Self::Share(share) => Share::combine(&[share]),
            Self::Forward(_) => panic!("the next part answers"),
        }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(rows) => f.debug_tuple("Answer").field(&rows.num_rows()).finish(),
            Self::Compute(_) => f.write_str("Compute"),
            Self::Forward(_) => f.write_str("Forward"),
            Self::Share(_) => f.write_str("Share"),
        }
    }
}

/// The reason why a query got no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum QueryError {
    /// No stage has this id.
    #[error("there is no stage `{stage}`; the stages are {}", available.join(", "))]
    UnknownStage {
        /// The unknown id.
        stage: String,
        /// The ids of the graph.
        available: Vec<String>,
    },
    /// The operator has no such query.
    #[error("the operator has no query `{request}`; {}", list_queries(available))]
    Unsupported {
        /// The unknown name.
        request: String,
        /// The names of the operator's queries.
        available: &'static [&'static str],
    },
    /// The parameters do not fit the query.
    #[error("parameters of query `{request}`: {}", in_words(source))]
    Parameters {
        /// The name of the query.
        request: String,
        /// The mismatch.
        source: serde_json::Error,
    },
    /// The answer would take more memory than an answer may.
    #[error("the answer to `{request}` has {bytes} bytes or more; at most {limit} are allowed")]
    TooLarge {
        /// The name of the query.
        request: String,
        /// Bytes of the answer that were counted before the refusal.
        bytes: u64,
        /// The most that an answer may have.
        limit: u64,
    },
    /// Too many queries wait at this stage already.
    #[error(
        "stage `{stage}` already has {limit} queries waiting; ask again when some are answered"
    )]
    Busy {
        /// The stage.
        stage: String,
        /// Maximum number of waiting queries.
        limit: usize,
    },
    /// The stage did not come to a batch boundary in time.
    #[error("stage `{stage}` did not answer within {limit:?}: it is still busy with one batch")]
    TimedOut {
        /// The stage.
        stage: String,
        /// Time that the caller would wait.
        limit: Duration,
    },
    /// The operator has not computed what the query asks for.
    #[error("the answer to `{request}` is not there yet: {awaited}")]
    NotYet {
        /// The name of the query.
        request: String,
        /// The event that has to come first.
        awaited: &'static str,
    },
    /// The stage has ended, and answers no more queries.
    #[error("stage `{stage}` has finished; its results are at its outputs")]
    Finished {
        /// The stage.
        stage: String,
    },
}

/// The message of a mismatch, in words for people who write requests and not Rust.
fn in_words(source: &serde_json::Error) -> String {
    let text = source.to_string();
    let Some((found, expected)) = text.split_once(", expected ") else { return text };
    let expected = match expected {
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number from 0 on",
        "i64" | "i32" => "a whole number",
        "f64" | "f32" => "a number",
        "a string" | "string" => "a text",
        "a boolean" => "true or false",
        other => other,
    };
    format!("{found}, expected {expected}")
}

fn list_queries(available: &[&str]) -> String {
    if available.is_empty() {
        "it answers none".to_owned()
    } else {
        format!("it answers {}", available.join(", "))
    }
}

impl QueryError {
    /// The error for a request that an operator does not know; `available` has the names of the
    /// known ones.
    #[must_use]
    pub fn unsupported(request: &Request, available: &'static [&'static str]) -> Self {
        Self::Unsupported { request: request.name().to_owned(), available }
    }
}
