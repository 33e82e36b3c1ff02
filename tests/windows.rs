//! Windows of `frequent_items` in running pipelines.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMillisecondType, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use crossbeam_channel::bounded;
use trommel::error::BindError;
use trommel::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};
use trommel::{ForEach, FrequentItems, Graph, Request, RunOptions, Window};

use crate::support::watched;

/// Sends one batch, then nothing for an hour.
struct Once(Option<RecordBatch>);

impl Source for Once {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.0.take().into_iter().for_each(|records| out.send(records));
        Ok(SourceFlow::Idle(Duration::from_secs(3600)))
    }
}

impl OperatorSpec for Once {
    fn operator(&self) -> &'static str {
        "once"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let schema = self.0.as_ref().expect("not sent yet").schema();
        Ok(Fragment::source(Load::Light, *self, schema))
    }
}

#[test]
fn a_window_of_time_closes_although_nothing_comes() {
    let column: ArrayRef = Arc::new(UInt32Array::from(vec![7, 7, 1]));
    let batch = RecordBatch::try_from_iter_with_nullable([("item", column, false)]).unwrap();
    let (sender, receiver) = bounded(16);
    let mut graph = Graph::new();
    let once = graph.add("once", Once(Some(batch)));
    let window = Window::seconds(0.2).slide(0.1);
    let top = graph.add_after(once, "top", FrequentItems::new().window(window));
    graph.add_after(top, "rows", ForEach::new(move |rows| Ok(sender.send(rows)?)));
    watched(move || {
        let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
        for _ in 0..2 {
            let rows: RecordBatch = receiver.recv().unwrap();
            let border = |name| {
                let column = rows.column_by_name(name).unwrap();
                column.as_primitive::<TimestampMillisecondType>().value(0)
            };
            assert_eq!(border("window_end") - border("window_start"), 200);
            assert_eq!(border("window_end") % 100, 0);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
            assert!(i64::try_from(now).unwrap() >= border("window_end"), "it has passed");
            let counts = rows.column_by_name("count").unwrap().as_primitive::<UInt64Type>();
            assert_eq!(counts.values(), &[2, 1]);
        }
        let live = running.query("top", &Request::new("top")).unwrap();
        assert_eq!(live.num_rows(), 0, "the item has left the window");
        running.stop();
        running.join().unwrap();
        assert!(receiver.is_empty());
    });
}
