//! Queries of a running stage, and answers while the input goes on.

use std::sync::mpsc::{self, TryRecvError};

use trommel_engine::query::Request;

use super::*;

/// Documents that have ended, and a stream of queries that continues until the sender is dropped.
#[test]
fn a_running_stage_answers() {
    let documents = corpus(100);
    let (ask, asked) = mpsc::sync_channel::<RecordBatch>(1);
    let (answered, answers) = mpsc::channel();
    let mut graph = Graph::new();
    let search = graph.add("search", spec().name("label"));
    let source = graph.add("documents", batches(&documents, 9, true));
    let schema = batch(&[], 0, true).schema();
    // Empty batches while nothing is asked: a source must not block its thread.
    let next = move || match asked.try_recv() {
        Ok(queries) => Some(queries),
        Err(TryRecvError::Empty) => Some(batch(&[], 0, true)),
        Err(TryRecvError::Disconnected) => None,
    };
    let queries = graph.add("queries", Memory::new(schema, std::iter::from_fn(next)));
    graph.connect(source, search);
    graph.connect(queries, search);
    graph.cores(search, vec![available_cores()[0]]);
    let sink = crate::ForEach::new(move |rows: RecordBatch| {
        answered.send(rows)?;
        Ok(())
    });
    graph.add_after(search, "rows", sink);
    let mut running = graph.build().unwrap().start(RunOptions::new()).unwrap();
    for _ in 0..3 {
        ask.send(batch(&[Some(vec![2, 3])], 0, true)).unwrap();
        let rows = answers.recv_timeout(WATCHDOG).expect("an answer while the input is open");
        assert_eq!(rows.num_rows(), 1);
    }
    let expected = &by_hand(&documents, &[Some(vec![2, 3])])[0];
    let request = Request::new("documents").with("terms", vec!["t2", "t3"]);
    let rows = running.query("search", &request).unwrap();
    assert_eq!(rows.column(0).as_primitive::<UInt32Type>().values(), &expected[..]);
    let names = rows.column(1).as_string::<i32>();
    assert!(expected.iter().zip(names).all(|(id, name)| name == Some(&format!("row {id}"))));
    let request = Request::new("count").with("terms", vec!["t2", "unknown"]);
    let rows = running.query("search", &request).unwrap();
    assert_eq!(rows.column(0).as_primitive::<UInt32Type>().values(), &[0]);
    assert!(running.query("search", &Request::new("count").with("terms", vec![7])).is_err());
    assert!(running.query("search", &Request::new("top")).is_err());
    drop(ask);
    assert!(running.wait(WATCHDOG), "the run hangs");
    running.join().unwrap();
}
