//! Cost of the engine per batch, fused and over one hop: batches are tiny, so that the work in
//! them is negligible.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use trommel_bench::pipeline::{Shape, Sink, batch_loop, trommel};

const BATCHES: u64 = 100_000;
const BATCH_ITEMS: u64 = 8;

fn hop(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cost_a_batch");
    group.throughput(Throughput::Elements(BATCHES)).sample_size(10);
    let items = BATCHES * BATCH_ITEMS;
    group.bench_function("by_hand", |b| {
        b.iter(|| batch_loop(items, BATCH_ITEMS, Sink::light()));
    });
    for (name, shape) in [("fused", Shape::Fused), ("one_hop", Shape::OneHop)] {
        group.bench_function(name, |b| {
            b.iter(|| trommel(items, BATCH_ITEMS, Sink::light(), shape, false));
        });
    }
    group.finish();
}

criterion_group!(benches, hop);
criterion_main!(benches);
