//! Queries that arrive while the run ends.

use super::*;

/// Every query gets an answer or a refusal, at any moment of the stage's end: a caller that is
/// forgotten would wait for ever.
#[test]
fn a_query_at_the_end_of_a_run_is_answered_or_refused() {
    watched(|| {
        let request = Request::new("x");
        for _ in 0..2_000 {
            let mut graph = Graph::new();
            let numbers = graph.add("numbers", source(Numbers::to(1)));
            graph.add_after(numbers, "end", collect().0);
            let running = start(graph, QueueLimits::default());
            let queries = running.queries();
            while !matches!(queries.query("end", &request), Err(QueryError::Finished { .. })) {}
            running.join().unwrap();
        }
    });
}
