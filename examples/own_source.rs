//! A source of your own: ticks of a clock, counted by their kind.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trommel::arrow::array::{RecordBatch, UInt32Array};
use trommel::arrow::schema::{DataType, Field, Schema, SchemaRef};
use trommel::error::BindError;
use trommel::operator::{BindContext, Fragment, Load, Output, SourceFlow};
use trommel::prelude::*;
use trommel::{OperatorError, OperatorSpec, Source};

/// Sends a number of ticks, one at a time.
struct Ticks {
    left: u32,
    next: Instant,
}

impl Source for Ticks {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        // A source never sleeps: it names the time of its next call.
        if let Some(wait) = self.next.checked_duration_since(Instant::now()) {
            return Ok(SourceFlow::Idle(wait));
        }
        self.next += Duration::from_millis(10);
        self.left -= 1;
        let item = Arc::new(UInt32Array::from(vec![self.left % 3]));
        out.send(RecordBatch::try_new(schema(), vec![item])?);
        Ok(if self.left == 0 { SourceFlow::Finished } else { SourceFlow::HaveOutput })
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("item", DataType::UInt32, false)]))
}

impl OperatorSpec for Ticks {
    fn operator(&self) -> &'static str {
        "ticks"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::source(Load::Light, *self, schema()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut graph = Graph::new();
    let ticks = graph.add("ticks", Ticks { left: 10, next: Instant::now() });
    let top = graph.add_after(ticks, "top", FrequentItems::new().counters(10));
    graph.add_after(top, "print", Write::new("-", WriteFormat::Csv));
    graph.build()?.run(RunOptions::new())?;
    Ok(())
}
