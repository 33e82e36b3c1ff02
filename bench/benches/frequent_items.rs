//! The summaries of `frequent_items` over Zipf streams: 1,000 counters, 16 of them in the filter.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use trommel::frequent_items::{Filter, Sieve, SpaceSaving};
use trommel::{Isa, Zipf};

const ITEMS: u64 = 4_000_000;
const ALPHABET: u32 = 5_000_000;
const COUNTERS: usize = 1000;
const BINS: usize = 16;
/// Items per batch, as in a pipeline.
const BATCH: usize = 8192;

fn stream(skew: f64) -> Vec<u32> {
    let mut items = vec![0; usize::try_from(ITEMS).expect("it fits")];
    Zipf::new(ALPHABET, skew, 1).expect("the parameters are in range").fill(&mut items);
    items
}

fn frequent_items(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frequent_items");
    group.throughput(Throughput::Elements(ITEMS)).sample_size(10);
    for skew in [0.0, 1.0, 1.5, 2.0, 3.0] {
        let items = stream(skew);
        group.bench_function(BenchmarkId::new("space_saving", skew), |b| {
            b.iter(|| {
                let mut summary = SpaceSaving::new(COUNTERS).expect("in range");
                items.chunks(BATCH).for_each(|batch| summary.observe(batch));
                summary.top(10)
            });
        });
        for isa in Isa::available() {
            group.bench_function(BenchmarkId::new(format!("filter_{isa}"), skew), |b| {
                b.iter(|| {
                    let mut summary = Filter::new(isa, COUNTERS, BINS).expect("in range");
                    items.chunks(BATCH).for_each(|batch| summary.observe(batch));
                    summary.top(10)
                });
            });
            group.bench_function(BenchmarkId::new(format!("sieve_{isa}"), skew), |b| {
                b.iter(|| {
                    let mut summary = Sieve::new(isa, COUNTERS).expect("in range");
                    items.chunks(BATCH).for_each(|batch| summary.observe(batch));
                    summary.top(10)
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, frequent_items);
criterion_main!(benches);
