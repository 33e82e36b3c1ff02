//! A source that sends rows at their times, whether or not earlier ones have been answered.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;
use trommel::error::BindError;
use trommel::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};

/// The times at which something is to be sent.
#[derive(Clone)]
pub(crate) struct Clock {
    start: Arc<OnceLock<Instant>>,
    /// Items a second. Without a rate, the source sends as fast as the pipeline takes.
    pub(crate) rate: Option<f64>,
}

impl Clock {
    pub(crate) fn new(rate: Option<f64>) -> Self {
        Self { start: Arc::default(), rate }
    }

    /// The time of item `number`. Without a rate, that is the start.
    pub(crate) fn due(&self, number: u64) -> Duration {
        self.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(number as f64 / rate))
    }

    /// Time since the first call.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.get_or_init(Instant::now).elapsed()
    }

    /// Lets the source go on at the time of item `number`; a late source goes on at once.
    pub(crate) fn pause(&self, number: u64) -> SourceFlow {
        let pause = self.due(number).saturating_sub(self.elapsed());
        if pause.is_zero() { SourceFlow::HaveOutput } else { SourceFlow::Idle(pause) }
    }
}

/// A source whose calls are those of a closure.
pub(crate) struct Feed<F> {
    schema: SchemaRef,
    next: F,
}

impl<F: FnMut(&mut Output) -> SourceFlow + Send + 'static> Feed<F> {
    pub(crate) fn new(schema: SchemaRef, next: F) -> Self {
        Self { schema, next }
    }
}

impl<F: FnMut(&mut Output) -> SourceFlow + Send + 'static> Source for Feed<F> {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        Ok((self.next)(out))
    }
}

impl<F: FnMut(&mut Output) -> SourceFlow + Send + 'static> OperatorSpec for Feed<F> {
    fn operator(&self) -> &'static str {
        "feed"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let schema = SchemaRef::clone(&self.schema);
        Ok(Fragment::source(Load::Light, *self, schema))
    }
}
