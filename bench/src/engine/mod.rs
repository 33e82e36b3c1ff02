//! Benches of the engine: a table of source, map, filter and sink, in ns an item, in comparison
//! with loops by hand and other engines, and queries to a running pipeline.

mod queries;

use serde_json::json;
use trommel_bench::pipeline::{
    Shape, Sink, batch_loop, batch_loop_with_hop, item_loop, trommel as pipeline,
};

pub(crate) use self::queries::{Asked, Asking, Ingestion, batches, histogram, ingestion, paired};
use crate::runner::report::Table;
use crate::runner::turns::{Measured, Run, Turns};
use crate::runner::{Runs, RustPeers};

/// Options of `engine`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Items sent through each pipeline.
    #[arg(long, default_value_t = 20_000_000)]
    items: u64,
    /// Items per batch.
    #[arg(long, default_value_t = 16_384, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Parts of the bench.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "table,queries")]
    only: Vec<Section>,
    #[command(flatten)]
    runs: Runs,
    #[command(flatten)]
    peers: RustPeers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Section {
    /// Cost of the engine in ns an item.
    Table,
    /// Cost and latency of queries to a running pipeline.
    Queries,
}

/// Engines of other crates, by the names that the program of the peers knows. Batches differ:
/// timely has buffers of 1,024 numbers and a source chunk of 4,096 numbers. Fused, renoir has no
/// batches. The hop of renoir has batches of the size of this bench, to one replica, on threads
/// that are not pinned. The sink of renoir takes an item at a time, and the sinks of other engines
/// take a batch.
const PEERS: [&str; 5] = [
    "timely, 1 worker",
    "timely, 2 workers, exchange",
    "renoir, fused, 1 thread",
    "renoir, fused, 2 threads",
    "renoir, one hop",
];

/// Measures the chosen parts of the bench, and prints the results.
///
/// # Errors
/// If the peers cannot be built.
pub(crate) fn run(arguments: &Arguments) -> std::io::Result<()> {
    let runs = arguments.runs.or(7);
    for section in &arguments.only {
        match section {
            Section::Table => table(arguments, runs)?,
            Section::Queries => queries::run(runs.rounds(1)),
        }
    }
    Ok(())
}

/// An engine takes all items into a sink, and returns the checksum of the sink.
type Engine = Box<dyn Fn(Sink) -> u64>;

/// Prints the table of each of the two sinks.
fn table(arguments: &Arguments, runs: Runs) -> std::io::Result<()> {
    let Arguments { items, batch, peers, .. } = *arguments;
    let crates = peers.start()?;
    println!("source, map, filter (3 of 4 pass), sink: {items} u64 in batches of {batch}");
    println!("median of {} runs by turns, every answer checked\n", runs.rounds(1));
    for (name, sink) in [("light", Sink::light()), ("hash", Sink::hash())] {
        let mut turns = Turns::new(runs).expect(item_loop(items, sink.clone()));
        let placed = |shape, pin| move |sink| pipeline(items, batch, sink, shape, pin);
        let ours: [(&str, Engine); 8] = [
            ("loop by hand, item by item", Box::new(move |sink| item_loop(items, sink))),
            ("loop by hand, batches", Box::new(move |sink| batch_loop(items, batch, sink))),
            ("trommel, fused", Box::new(placed(Shape::Fused, false))),
            (
                "two threads by hand, batches",
                Box::new(move |sink| batch_loop_with_hop(items, batch, sink)),
            ),
            ("trommel, one hop", Box::new(placed(Shape::OneHop, false))),
            ("trommel, four stages on the cores", Box::new(placed(Shape::Auto, false))),
            ("trommel, fused, pinned", Box::new(placed(Shape::Fused, true))),
            ("trommel, four stages, pinned", Box::new(placed(Shape::Auto, true))),
        ];
        for (name, engine) in ours {
            let sink = sink.clone();
            turns.add(name, move || Run::of(|| engine(sink.clone())));
        }
        for peer in PEERS {
            if let Some(crates) = &crates {
                let job = json!({
                    "table": "engine", "engine": peer, "items": items, "batch": batch, "sink": name
                });
                turns.add(peer, move || crates.run(&job));
            }
        }
        print(name, &turns.run(), items);
    }
    Ok(())
}

fn print(sink: &str, measured: &[Measured<()>], items: u64) {
    let mut table =
        Table::new(&format!("{sink} sink                        | ns/item: | noise: | M items/s:"));
    let ns = |engine: &Measured<()>| 1e9 * engine.seconds() / items as f64;
    for engine in measured {
        let (name, ns, noise) = (&engine.name, ns(engine), 100.0 * engine.noise());
        table.row(format!("{name} | {ns:.2} | {noise:.1}% | {:.0}", 1e3 / ns));
    }
    drop(table);
    for (name, shape, by_hand) in [("fused", 2, 1), ("one hop", 4, 3)] {
        let over = (ns(&measured[shape]) / ns(&measured[by_hand]) - 1.0) * 100.0;
        println!("  {name}: {over:+.1}% against the same shape by hand");
    }
    println!();
}
