//! Queries to a running stage.

use trommel_engine::graph::Graph;
use trommel_engine::query::Request;
use trommel_engine::runtime::RunOptions;

use super::{Aggregate, Cell, Row, batch, cells};
use crate::shared::window::Window;
use crate::sink::Discard;
use crate::source::Memory;

/// A batch with host `a` once, host `b` twice and host `c` three times.
fn rows() -> Vec<Row> {
    let row = |host: &str| Row { host: Some(host.to_owned()), code: Some(5), ms: None };
    ["c", "b", "c", "a", "b", "c"].map(row).to_vec()
}

#[test]
fn answers_have_the_groups_of_whole_batches_of_all_workers() {
    let calls = || ["count(*) as n".to_owned(), "sum(code) as s".to_owned()];
    let ordered = || calls().into_iter().chain(["first(code) as f".to_owned()]);
    // A window that does not end during the test.
    let window = Window::items(6_000_000_000_000).slide(3_000_000_000_000.0);
    let specs = [
        (Aggregate::new(calls()), Some(1)),
        (Aggregate::new(calls()), Some(3)),
        (Aggregate::new(ordered().collect::<crate::Names>()), None),
        (Aggregate::new(calls()).window(window), None),
    ];
    for (spec, workers) in specs {
        let one = batch(&rows());
        let stream = Memory::new(one.schema(), std::iter::repeat_with(move || one.clone()));
        let mut graph = Graph::new();
        let stream = graph.add("in", stream);
        let groups = graph.add_after(stream, "groups", spec.by("host"));
        if let Some(workers) = workers {
            graph.workers(groups, workers);
        }
        graph.add_after(groups, "end", Discard::new());
        let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
        let ask = |request: Request| running.query("groups", &request).map(|rows| cells(&[rows]));
        let mut before = -1;
        for _ in 0..20 {
            let found = ask(Request::new("groups")).unwrap();
            let Some(first) = found.first() else { continue };
            let Cell::Whole(batches) = first[1] else { panic!("{found:?}") };
            assert!(batches >= before, "{batches} after {before}");
            before = batches;
            for (row, (host, times)) in found.iter().zip([("a", 1), ("b", 2), ("c", 3)]) {
                let count = batches * times;
                let expected =
                    [Cell::Text(host.into()), Cell::Whole(count), Cell::Whole(5 * count)];
                assert_eq!(row[..3], expected);
            }
            let two = ask(Request::new("groups").with("n", 2)).unwrap();
            assert_eq!(two.len(), 2);
            let one = ask(Request::new("groups").with("where", "host >= 'b' and s > 5 * n - 1"));
            let hosts: Vec<Cell> = one.unwrap().into_iter().map(|row| row[0].clone()).collect();
            assert_eq!(hosts, ["b", "c"].map(|host| Cell::Text(host.into())));
        }
        let refused = |request: Request| ask(request).unwrap_err().to_string();
        assert!(refused(Request::new("top")).contains("groups"));
        assert!(refused(Request::new("groups").with("m", 1)).contains("`m`"));
        let error = refused(Request::new("groups").with("where", "hosd = 'a'"));
        assert!(error.contains("did you mean `host`?"), "{error}");
        let error = refused(Request::new("groups").with("where", "n"));
        assert!(error.contains("`where` is no truth value, but UInt64"), "{error}");
        running.stop();
        running.join().unwrap();
    }
}
