//! Random sets with a Zipf distribution of items, some of them near-duplicates.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::mem;

use arrow_schema::SchemaRef;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use thiserror::Error;
use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{
    Body, Flow, Fragment, Load, Operator, OperatorError, Output, Part, Source, SourceFlow,
};

use super::Quota;
use super::zipf::{SplitMix, Zipf};
use crate::shared::columns::SetsBuilder;
use crate::shared::parameters::BATCH_BYTES;

/// Largest allowed size of a set, in items.
pub(super) const SIZE_MAX: u32 = 1 << 16;

/// Number of latest sets that can be copied.
const RECENT: usize = 1024;

/// Number of items that are drawn at once, since vector instructions pay in long loops, and the
/// loops of a set are short.
const DRAWN: usize = 1 << 10;

/// A copy redraws at most one in [`KEPT`] of its items.
const KEPT: usize = 8;

/// Keys that make the random numbers for sizes and copies independent of the random numbers for
/// items.
const SIZES_KEY: u64 = 0x7369_7a65;
const COPIES_KEY: u64 = 0x636f_7079;

/// More sets were requested than ids exist.
#[derive(Debug, Error)]
#[error("more than 2^32 sets; the ids of sets have 32 bits")]
struct TooManySets;

/// Parameters of random sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// 1 to `size_max`, which is at most [`SIZE_MAX`].
    pub(super) size_min: u32,
    pub(super) size_max: u32,
    /// Exponent of the distribution of sizes, 0 to 10.
    pub(super) size_skew: f64,
    /// Share of copies, 0 to 1.
    pub(super) duplicates: f64,
    pub(super) seed: u64,
}

/// Generator of sets.
pub(super) struct RandomSets {
    items: Zipf,
    /// The next items, from `first` on.
    drawn: Box<[u32; DRAWN]>,
    first: usize,
    sizes: Zipf,
    size_min: u32,
    random: Pcg64Mcg,
    /// Share of copies, in units of 2^-32.
    copies: u64,
    /// The latest sets as drawn, oldest first.
    recent: VecDeque<Vec<u32>>,
    /// Room for the next set.
    next: Vec<u32>,
}

impl RandomSets {
    /// Sets whose items `items` draws.
    pub(super) fn new(items: Zipf, shape: &Shape) -> Self {
        let Shape { size_min, size_max, size_skew, duplicates, seed } = *shape;
        let sizes = Zipf::new(size_max - size_min + 1, size_skew, seed ^ SIZES_KEY)
            .expect("the shape was checked");
        let mut words = SplitMix(seed ^ COPIES_KEY);
        let state = u128::from(words.next()) << 64 | u128::from(words.next());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of 2^32"
        )]
        let copies = (duplicates * 4_294_967_296.0) as u64;
        let random = Pcg64Mcg::new(state);
        let recent = VecDeque::with_capacity(RECENT);
        let (drawn, first) = (Box::new([0; DRAWN]), DRAWN);
        Self { items, drawn, first, sizes, size_min, random, copies, recent, next: Vec::new() }
    }

    /// Uniform random number less than `end`.
    fn below(&mut self, end: usize) -> usize {
        // A multiplication maps 32 random bits to 0..end; its bias, end / 2^32, is negligible
        // here.
        let word = self.random.next_u64() >> 32;
        usize::try_from((word * end as u64) >> 32).expect("below an index")
    }

    /// Draws the items of the next set: unordered, possibly with duplicates.
    fn draw(&mut self) -> &[u32] {
        let is_copy = self.random.next_u64() >> 32 < self.copies;
        // The number is also drawn for fresh sets, so that `duplicates` does not shift other random
        // numbers.
        let earlier = self.below(self.recent.len().max(1));
        let mut set = mem::take(&mut self.next);
        set.clear();
        match self.recent.get(earlier).filter(|_| is_copy) {
            Some(earlier) => {
                set.extend_from_slice(earlier);
                self.change(&mut set);
            }
            None => self.extend_fresh(&mut set),
        }
        if self.recent.len() == RECENT {
            self.next = self.recent.pop_front().expect("not empty");
        }
        self.recent.push_back(set);
        self.recent.back().expect("just added")
    }

    /// Appends the items of a fresh set, of a random size.
    fn extend_fresh(&mut self, set: &mut Vec<u32>) {
        let mut above = [0];
        self.sizes.fill_ranks(&mut above);
        let mut missing = (self.size_min + above[0]) as usize;
        while missing > 0 {
            let next = self.next_items(missing);
            set.extend_from_slice(next);
            missing -= next.len();
        }
    }

    /// The next items: at least one and at most `count`, which is not 0.
    fn next_items(&mut self, count: usize) -> &[u32] {
        if self.first == DRAWN {
            self.items.fill(&mut self.drawn[..]);
            self.first = 0;
        }
        let first = self.first;
        self.first = DRAWN.min(first + count);
        &self.drawn[first..self.first]
    }

    /// Redraws at most an eighth of the items.
    fn change(&mut self, set: &mut [u32]) {
        for _ in 0..self.below(set.len() / KEPT + 1) {
            let place = self.below(set.len());
            set[place] = self.next_items(1)[0];
        }
    }
}

/// Generates sets on `threads` threads. With one thread, a batch is sorted while it is in the
/// cache. With several threads, one part draws the sets and another part sorts them, which takes
/// about as long.
pub(super) fn fragment(sets: RandomSets, quota: Quota, threads: usize) -> Fragment {
    let drawn = SetsBuilder::new();
    let schema = SchemaRef::clone(drawn.schema());
    let drawing = Drawing { sets, drawn, quota, due: 0, next_id: 0 };
    if threads <= 1 {
        return Fragment::source(Load::Heavy, SetSource(drawing), schema);
    }
    let part = |name, load, body| Part { name: Cow::Borrowed(name), load, body };
    let parts = vec![
        part("draw", Load::Heavy, Body::Source(Box::new(DrawPart(drawing)))),
        part("sort", Load::Moderate, Body::Operator(Box::new(SortPart))),
    ];
    Fragment::new(parts, vec![schema])
}

/// Draws sets, a batch at a time.
struct Drawing {
    sets: RandomSets,
    /// The sets of the next batch.
    drawn: SetsBuilder,
    quota: Quota,
    /// Sets that the quota has granted and that have not been sent.
    due: usize,
    next_id: u64,
}

impl Drawing {
    /// Draws the sets of the next batch. The inner error is the answer of the source if no set is
    /// due.
    fn draw(&mut self) -> Result<Result<&mut SetsBuilder, SourceFlow>, TooManySets> {
        if self.due == 0 {
            self.due = match self.quota.take() {
                Ok(count) => count,
                Err(flow) => return Ok(Err(flow)),
            };
        }
        // Large sets fill a batch by bytes before the batch has its number of rows.
        while self.due > 0 && self.drawn.bytes() < BATCH_BYTES {
            let id = u32::try_from(self.next_id).map_err(|_| TooManySets)?;
            self.next_id += 1;
            self.due -= 1;
            self.drawn.tokens_mut().extend_from_slice(self.sets.draw());
            self.drawn.close(id);
        }
        Ok(Ok(&mut self.drawn))
    }
}

/// Draws and sorts sets.
struct SetSource(Drawing);

impl Source for SetSource {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        Ok(match self.0.draw()? {
            Ok(drawn) => {
                out.send(drawn.take());
                SourceFlow::HaveOutput
            }
            Err(flow) => flow,
        })
    }
}

/// Draws sets that [`SortPart`] sorts.
struct DrawPart(Drawing);

impl Source for DrawPart {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        Ok(match self.0.draw()? {
            Ok(drawn) => {
                let (sets, bytes) = (drawn.len(), drawn.bytes());
                out.send_chunk(Chunk::new(drawn.split_off(), sets, bytes));
                SourceFlow::HaveOutput
            }
            Err(flow) => flow,
        })
    }
}

/// Sorts the items of drawn sets and drops duplicates.
struct SortPart;

impl Operator for SortPart {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        out.send(input.into_value::<SetsBuilder>().into_batch());
        Ok(Flow::NeedInput)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::RangeInclusive;

    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt32Type;

    use arrow_array::RecordBatch;
    use trommel_engine::error::BindError;
    use trommel_engine::graph::Graph;
    use trommel_engine::operator::{BindContext, OperatorSpec};
    use trommel_engine::runtime::RunOptions;

    use super::super::Generate;
    use super::*;
    use crate::Collect;
    use crate::testing::bind;

    /// The batches with one thread, after a check that two threads generate the same batches.
    fn batches(spec: Generate) -> Vec<RecordBatch> {
        let on = |threads| {
            let mut graph = Graph::new();
            let spec = OnThreads { spec: spec.clone(), threads };
            let generate = graph.add("generate", spec);
            let (sink, rows) = Collect::new();
            graph.add_after(generate, "rows", sink);
            graph.build().unwrap().run(RunOptions::new()).unwrap();
            rows.take()
        };
        let batches = on(1);
        assert_eq!(on(2), batches);
        batches
    }

    /// A stage that is bound on some number of threads, whatever the machine has.
    struct OnThreads {
        spec: Generate,
        threads: usize,
    }

    impl OperatorSpec for OnThreads {
        fn operator(&self) -> &'static str {
            self.spec.operator()
        }

        fn input_ports(&self) -> RangeInclusive<usize> {
            0..=0
        }

        fn bind(
            self: Box<Self>,
            inputs: &[SchemaRef],
            context: BindContext,
        ) -> Result<Fragment, BindError> {
            let fragment = Box::new(self.spec).bind(inputs, context.threads(self.threads))?;
            assert_eq!(fragment.parts.len(), self.threads);
            Ok(fragment)
        }
    }

    fn run(spec: Generate) -> Vec<BTreeSet<u32>> {
        let mut sets = Vec::new();
        for batch in batches(spec) {
            let ids = batch.column(0).as_primitive::<UInt32Type>().values();
            for (id, set) in ids.iter().zip(batch.column(1).as_list::<i32>().iter().flatten()) {
                assert_eq!(*id as usize, sets.len());
                let tokens = set.as_primitive::<UInt32Type>().values().to_vec();
                assert!(tokens.is_sorted_by(|a, b| a < b));
                sets.push(tokens.into_iter().collect());
            }
        }
        sets
    }

    fn spec() -> Generate {
        Generate::sets(100_000, 0.8).items(3000).sizes(5..=24)
    }

    #[test]
    fn the_stream_does_not_depend_on_the_batch_size() {
        let expected = run(spec());
        assert_eq!(expected.len(), 3000);
        for batch in [1, 100, 5000] {
            assert_eq!(run(spec().batch(batch)), expected);
        }
        assert_ne!(run(spec().seed(2)), expected);
    }

    #[test]
    fn large_sets_make_small_batches() {
        let spec = Generate::sets(1 << 28, 0.0).items(100).sizes(50_000..=50_000);
        let batches = batches(spec);
        assert!(batches.iter().all(|batch| batch.num_rows() <= BATCH_BYTES / 150_000));
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 100);
    }

    #[test]
    fn sizes_have_their_range_and_their_skew() {
        let none = |spec: Generate| run(spec.duplicates(0.0));
        let uniform = none(Generate::sets(1 << 28, 0.0).items(4000).sizes(3..=12));
        let of_size =
            |sets: &[BTreeSet<u32>], size| sets.iter().filter(|s| s.len() == size).count();
        let counts: Vec<usize> = (0..20).map(|size| of_size(&uniform, size)).collect();
        assert!(counts[3..=12].iter().all(|count| (300..500).contains(count)), "{counts:?}");
        assert_eq!(counts[3..=12].iter().sum::<usize>(), 4000);
        let small = none(Generate::sets(1 << 28, 0.0).items(4000).sizes(3..=12).size_skew(1.0));
        // 1 / (1 + 1/2 + .. + 1/10) is 0.341.
        assert!((1250..1480).contains(&of_size(&small, 3)), "{}", of_size(&small, 3));
    }

    #[test]
    fn the_share_of_copies_is_as_asked_for() {
        let is_near = |a: &BTreeSet<u32>, b: &BTreeSet<u32>| {
            let common = a.intersection(b).count();
            5 * common >= 3 * (a.len() + b.len() - common)
        };
        let near = |share| {
            let sets =
                run(Generate::sets(1 << 28, 0.0).items(2000).sizes(8..=20).duplicates(share));
            let has_earlier = |&index: &usize| {
                sets[index.saturating_sub(RECENT)..index].iter().any(|b| is_near(&sets[index], b))
            };
            (0..sets.len()).filter(has_earlier).count()
        };
        assert_eq!(near(0.0), 0);
        assert!((430..570).contains(&near(0.25)));
        assert_eq!(near(1.0), 1999);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |spec: Generate| {
            let error = bind(spec, &[]).unwrap_err();
            (error.parameter.unwrap(), error.to_string())
        };
        assert_eq!(refused(spec().sizes(0..=4)).0, "size_min");
        assert_eq!(refused(spec().sizes(RangeInclusive::new(5, 4))).0, "size_max");
        assert_eq!(refused(spec().size_skew(-1.0)).0, "size_skew");
        assert_eq!(refused(spec().duplicates(1.5)).0, "duplicates");
        assert_eq!(refused(Generate::sets(0, 1.0)).0, "alphabet");
        let (parameter, text) = refused(Generate::zipf(10, 1.0).duplicates(0.5));
        assert!(parameter == "duplicates" && text.contains("`kind`: `sets` only"), "{text}");
    }
}
