//! Events of the engine for Python's `logging`: the loggers `trommel.engine...`,
//! `trommel.operators...`, named after the module of the event.

use std::fmt::{self, Write as _};

use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Passes events on; takes no spans.
struct PythonLogging;

/// Makes it the subscriber of this library's events.
pub(crate) fn install() {
    // It is there already after a second import, such as in a subinterpreter.
    let _ = tracing::subscriber::set_global_default(PythonLogging);
}

impl Subscriber for PythonLogging {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("trommel")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let metadata = event.metadata();
        let logger = metadata.target().replacen('_', ".", 1).replace("::", ".");
        let level = level(*metadata.level());
        // Without an interpreter, as at its end, nobody listens.
        Python::try_attach(|py| {
            let logged = py
                .import("logging")
                .and_then(|logging| logging.call_method1("getLogger", (logger,)))
                .and_then(|logger| logger.call_method1("log", (level, "%s", text.0)));
            if let Err(error) = logged {
                error.write_unraisable(py, None);
            }
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The number of a level in Python.
fn level(level: Level) -> u8 {
    match level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        Level::DEBUG => 10,
        Level::TRACE => 5,
    }
}

/// The message, followed by the fields.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = if field.name() == "message" {
            let rest = std::mem::take(&mut self.0);
            write!(self.0, "{value:?}{rest}")
        } else {
            write!(self.0, " {}={value:?}", field.name())
        };
        written.expect("a string takes any text");
    }
}
