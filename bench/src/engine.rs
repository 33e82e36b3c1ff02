//! Table of the engine: source, map, filter and sink, in ns per item.

use trommel::placement::available_cores;
use trommel_bench::measure::{Candidate, measure};
use trommel_bench::pipeline::{
    Shape, Sink, batch_loop, batch_loop_with_hop, item_loop, trommel as pipeline,
};

/// Description of the machine in one line, without which no number has a meaning.
pub(crate) fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let level = trommel::Isa::selected().map_or_else(|e| e.to_string(), |isa| isa.to_string());
    format!("{model}, {} cores available, {level}", available_cores().len())
}

/// Measures and prints the table for both sinks.
pub(crate) fn run(items: u64, batch: u64, rounds: usize) {
    println!("source, map, filter (3 of 4 pass), sink: {items} u64 in batches of {batch}");
    println!("median of {rounds} interleaved rounds, every answer checked\n");
    for (name, sink) in [("light sink (sum)", Sink::light()), ("hash sink", Sink::hash())] {
        let expected = item_loop(items, sink.clone());
        let placed = |shape, pin| {
            let sink = sink.clone();
            move || pipeline(items, batch, sink.clone(), shape, pin)
        };
        let shape = |shape| placed(shape, false);
        let mut candidates = vec![
            Candidate::new("loop by hand, item by item", || item_loop(items, sink.clone())),
            Candidate::new("loop by hand, batches", || batch_loop(items, batch, sink.clone())),
            Candidate::new("trommel, fused", shape(Shape::Fused)),
            Candidate::new("two threads by hand, batches", || {
                batch_loop_with_hop(items, batch, sink.clone())
            }),
            Candidate::new("trommel, one hop", shape(Shape::OneHop)),
            Candidate::new("trommel, four stages on the cores", shape(Shape::Auto)),
            Candidate::new("trommel, fused, pinned", placed(Shape::Fused, true)),
            Candidate::new("trommel, four stages, pinned", placed(Shape::Auto, true)),
        ];
        #[cfg(feature = "peers")]
        candidates.extend(crate::peers::candidates(items, batch, &sink));
        measure(&mut candidates, expected, rounds);
        print(name, &candidates, items);
    }
}

#[expect(clippy::cast_precision_loss, reason = "the number of items is far below 2^53")]
fn print(name: &str, candidates: &[Candidate], items: u64) {
    println!("{:<36} {:>8} {:>7} {:>10}", name, "ns/item", "noise", "M items/s");
    let row = |candidate: &Candidate| candidate.median().as_secs_f64() * 1e9 / items as f64;
    for candidate in candidates {
        let ns = row(candidate);
        let noise = candidate.noise() * 100.0;
        println!("  {:<34} {ns:>8.2} {noise:>6.1}% {:>10.0}", candidate.name(), 1e3 / ns);
    }
    let over = |shape: usize, by_hand: usize| {
        (row(&candidates[shape]) / row(&candidates[by_hand]) - 1.0) * 100.0
    };
    println!("  fused: {:+.1}% against the same shape by hand", over(2, 1));
    println!("  one hop: {:+.1}% against the same shape by hand\n", over(4, 3));
}
