//! The semi-sort of the paper (§IV): buckets of queries by the length of their shortest list.

use crate::conjunctive_query::workload::Workload;

/// Ends of the buckets: ten of 1,000 documents, nine of 10,000, and one without an end.
fn ends() -> impl Iterator<Item = u32> {
    let short = (1..=10).map(|bucket| 1_000 * bucket);
    let long = (2..=10).map(|bucket| 10_000 * bucket);
    short.chain(long).chain([u32::MAX])
}

/// Queries whose shortest lists have less than `end` documents, and are in no bucket before.
pub(crate) struct Bucket {
    pub(crate) end: u32,
    pub(crate) queries: Vec<usize>,
}

impl Bucket {
    /// The name on an axis: the end, in thousands.
    pub(crate) fn name(&self) -> String {
        if self.end == u32::MAX { "more".to_owned() } else { format!("{}K", self.end / 1_000) }
    }
}

/// The buckets that have queries. Queries keep their order.
pub(crate) fn buckets(workload: &Workload) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = ends().map(|end| Bucket { end, queries: Vec::new() }).collect();
    for query in 0..workload.queries() {
        let shortest = workload.shortest(query);
        let place = buckets.partition_point(|bucket| bucket.end <= shortest);
        // The last bucket has no end.
        let place = place.min(buckets.len() - 1);
        buckets[place].queries.push(query);
    }
    buckets.retain(|bucket| !bucket.queries.is_empty());
    buckets
}

/// Shares of the shortest lists that have less documents than these, in percent.
pub(crate) fn shares<const N: usize>(workload: &Workload, lens: [u32; N]) -> [f64; N] {
    let queries = workload.queries().max(1) as f64;
    lens.map(|len| {
        let shorter = (0..workload.queries()).filter(|&query| workload.shortest(query) < len);
        100.0 * shorter.count() as f64 / queries
    })
}
