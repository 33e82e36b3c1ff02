//! Merging in every order and grouping, against exact counts of all streams together.

use super::*;

impl Truth {
    fn merge(&mut self, other: &Self) {
        self.observed += other.observed;
        for (&number, &count) in &other.counts {
            let sum = self.counts.entry(number).or_default();
            *sum = sum.saturating_add(count);
        }
    }
}

impl<K: TestItem> Subject<K> {
    pub(super) fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Plain(left), Self::Plain(right)) => left.merge(right).unwrap(),
            (Self::Filter(left), Self::Filter(right)) => left.merge(right).unwrap(),
            (Self::Sieve(left), Self::Sieve(right)) => left.merge(right).unwrap(),
            _ => unreachable!("a case has subjects of one kind"),
        }
    }
}

/// A summary, the exact counts, and the counters of its bounds.
#[derive(Clone)]
struct Checked<K: Item> {
    subject: Subject<K>,
    truth: Truth,
    counters: usize,
}

impl<K: TestItem> Checked<K> {
    fn observe(&mut self, case: Case) {
        let numbers = case.stream.numbers(case.len, case.counters, case.seed);
        let weights = case.weights.of(case.len, case.seed);
        for start in (0..case.len).step_by(case.batch) {
            let range = start..case.len.min(start + case.batch);
            let weights = weights.as_ref().map(|weights| &weights[range.clone()]);
            self.truth.observe(&numbers[range.clone()], weights);
            self.subject.observe(&numbers[range], weights);
            self.check();
        }
    }

    fn merge(&mut self, other: &Self) {
        self.subject.merge(&other.subject);
        self.truth.merge(&other.truth);
        self.check();
    }

    fn check(&self) {
        self.truth.check_bounds(&self.subject.answers(), self.counters);
    }
}

/// Merges any one into any other until one is left: all orders and groupings. Each is used on.
fn merge_all_ways<K: TestItem>(parts: &[Checked<K>], more: Case) {
    if let [whole] = parts {
        whole.clone().observe(more);
        return;
    }
    for left in 0..parts.len() {
        for right in (0..parts.len()).filter(|&right| right != left) {
            let mut rest = parts.to_vec();
            let other = rest[right].clone();
            rest[left].merge(&other);
            rest.remove(right);
            merge_all_ways(&rest, more);
        }
    }
}

fn check_merging<K: TestItem>(cases: &[Case]) {
    let isa = Isa::selected().unwrap();
    let Case { counters, bins, .. } = cases[0];
    let subjects = [
        Subject::<K>::new(None, counters, bins),
        Subject::new(Some(isa), counters, bins),
        Subject::sieve(isa, counters, bins),
        Subject::Sieve(Box::new(Sieve::new(isa, counters).unwrap())),
    ];
    let own_seeds = subjects.clone();
    let shared = subjects.into_iter().map(|subject| (subject, false));
    for (subject, has_own_seeds) in shared.chain(own_seeds.into_iter().map(|s| (s, true))) {
        let parts: Vec<Checked<K>> = (0..)
            .zip(cases)
            .map(|(number, &case)| {
                let subject = subject.with_seed(if has_own_seeds { number } else { 1 });
                let mut part = Checked { subject, truth: Truth::default(), counters };
                part.observe(case);
                part
            })
            .collect();
        merge_all_ways(&parts, Case { len: 150, seed: 99, ..cases[0] });
    }
}

fn check_all_items(cases: &[Case]) {
    check_merging::<u32>(cases);
    check_merging::<u64>(cases);
    check_merging::<Text>(cases);
    check_merging::<Colliding>(cases);
}

const PART: Case = Case { counters: 10, bins: 3, len: 200, batch: 67, ..BASE };

#[test]
fn every_order_and_grouping_keeps_the_bounds() {
    let kinds = [Stream::Uniform, Stream::Zipf(10), Stream::RoundRobin, Stream::ChangingHitters];
    let parts = kinds.map(|stream| Case { stream, ..PART });
    check_all_items(&parts);
    check_all_items(&parts.map(|part| Case { weights: Weights::UpTo(50), ..part }));
}

#[test]
fn streams_of_different_lengths_merge() {
    let lens = [0, 3, 40, 2_000];
    check_all_items(&lens.map(|len| Case {
        stream: Stream::Zipf(8),
        len,
        seed: len as u64,
        ..PART
    }));
}

#[test]
fn disjoint_and_equal_streams_merge() {
    let seeds = [5, 5, 6];
    check_all_items(&seeds.map(|seed| Case { stream: Stream::AllNew, seed, ..PART }));
    check_all_items(&seeds.map(|seed| Case { stream: Stream::TwoAlternating, seed, ..PART }));
    check_all_items(&seeds.map(|seed| Case { stream: Stream::Sorted, seed, len: 900, ..PART }));
}

#[test]
fn saturated_counts_merge_into_bounds() {
    for max in [1 << 40, 1 << 60, u64::MAX] {
        let weights = Weights::UpTo(max);
        let parts = [Stream::Uniform, Stream::Zipf(20), Stream::AllNew];
        check_all_items(&parts.map(|stream| Case { stream, weights, ..PART }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn merging_keeps_the_bounds(
        parts in prop::collection::vec(
            (prop::sample::select(Stream::ALL.to_vec()), 0..400_usize, any::<u64>(), 0..=40_u32),
            2..=3,
        ),
        bins in 1..=20_usize,
        more in 1..30_usize,
        batch in 1..200_usize,
    ) {
        let cases: Vec<Case> = parts
            .into_iter()
            .map(|(stream, len, seed, bits)| Case {
                stream,
                weights: if bits == 0 { Weights::Ones } else { Weights::UpTo(1 << bits) },
                counters: bins + more,
                bins,
                len,
                batch,
                seed,
            })
            .collect();
        check_merging::<u32>(&cases);
        check_merging::<Text>(&cases);
    }
}

#[test]
fn merging_is_the_same_from_both_sides() {
    let isa = Isa::selected().unwrap();
    for subject in [
        Subject::<u32>::new(None, 20, 4),
        Subject::new(Some(isa), 20, 4),
        Subject::sieve(isa, 20, 4),
    ] {
        let [mut left, mut right] = [subject.clone(), subject];
        left.observe(&Stream::Zipf(9).numbers(700, 20, 1), None);
        right.observe(&Stream::Uniform.numbers(500, 20, 2), None);
        let (mut one, mut other) = (left.clone(), right.clone());
        one.merge(&right);
        other.merge(&left);
        assert_eq!(one.answers(), other.answers());
    }
}

#[test]
fn scaling_down_keeps_the_bounds_but_for_rounding() {
    let isa = Isa::selected().unwrap();
    for stream in Stream::ALL {
        let mut filter = Filter::<u64>::new(isa, 20, 4).unwrap();
        let mut plain = SpaceSaving::<u64>::new(20).unwrap();
        let mut sieve = Sieve::<u64>::within(isa, 20, 9_000).unwrap();
        let mut truth: HashMap<u64, f64> = HashMap::new();
        let mut observed = 0.0;
        for round in 0..12 {
            let numbers = stream.numbers(300, 20, round);
            let weights = vec![1_000 + round; numbers.len()];
            filter.observe_weighted(&numbers[..], &weights);
            plain.observe_weighted(&numbers[..], &weights);
            sieve.observe_weighted(&numbers[..], &weights);
            let bits = u32::try_from(round % 4).unwrap();
            filter.scale_down(bits);
            plain.scale_down(bits);
            sieve.scale_down(bits);
            let by = f64::from(1_u32 << bits);
            for number in numbers {
                *truth.entry(number).or_default() += (1_000 + round) as f64;
            }
            truth.values_mut().for_each(|count| *count /= by);
            observed = (observed + 300.0 * (1_000 + round) as f64) / by;
            check_scaled(filter.iter(), filter.count_min(), filter.observed(), (&truth, observed));
            check_scaled(plain.iter(), plain.count_min(), plain.observed(), (&truth, observed));
            check_scaled(sieve.iter(), sieve.count_min(), sieve.observed(), (&truth, observed));
        }
    }
}

fn check_scaled<'a>(
    all: impl Iterator<Item = Counted<&'a u64>>,
    count_min: u64,
    observed: u64,
    (truth, true_observed): (&HashMap<u64, f64>, f64),
) {
    assert!((0.0..4.0).contains(&(observed as f64 - true_observed)), "{observed}");
    let bound = true_observed / 20.0 + 4.0;
    let mut monitored = HashSet::new();
    for counted in all {
        let truth = truth[counted.item];
        assert!(counted.count_min() as f64 <= truth && truth <= counted.count as f64);
        assert!(counted.error as f64 <= bound, "{counted:?} errs by more than {bound}");
        monitored.insert(*counted.item);
    }
    for (item, &count) in truth {
        assert!(monitored.contains(item) || count <= count_min as f64, "{item}: {count}");
    }
    assert!(count_min as f64 <= bound, "{count_min} is above {bound}");
}

#[test]
fn unlike_summaries_are_not_merged() {
    let mut plain = SpaceSaving::<u32>::new(10).unwrap();
    plain.observe(&[1, 2, 1][..]);
    let before = plain.top(9);
    let error = plain.merge(&SpaceSaving::new(11).unwrap()).unwrap_err();
    assert_eq!(error, MergeError { what: "counters", left: 10, right: 11 });
    assert_eq!(plain.top(9), before);
    let filter = |bins| Filter::<u32>::new(Isa::Scalar, 10, bins).unwrap();
    assert_eq!(filter(2).merge(&filter(3)).unwrap_err().what, "bins");
    let mut small = Sieve::<u32>::within(Isa::Scalar, 10, 8_000).unwrap();
    let error = small.merge(&Sieve::new(Isa::Scalar, 10).unwrap()).unwrap_err();
    assert_eq!(error.what, "cells");
    let expected =
        format!("invalid merge of a summary with {} cells and one with 512: ", small.cells());
    assert!(error.to_string().starts_with(&expected), "{error}");
}
