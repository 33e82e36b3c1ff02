//! Fused pipeline next to the same loop written by hand, by the size of batches.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use trommel_bench::pipeline::{Shape, Sink, batch_loop, trommel};

const ITEMS: u64 = 4_000_000;

fn fused(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fused_pipeline");
    group.throughput(Throughput::Elements(ITEMS)).sample_size(10);
    for batch in [256, 1024, 4096, 16384] {
        group.bench_function(BenchmarkId::new("by_hand", batch), |b| {
            b.iter(|| batch_loop(ITEMS, batch, Sink::light()));
        });
        group.bench_function(BenchmarkId::new("trommel", batch), |b| {
            b.iter(|| trommel(ITEMS, batch, Sink::light(), Shape::Fused, false));
        });
    }
    group.finish();
}

criterion_group!(benches, fused);
criterion_main!(benches);
