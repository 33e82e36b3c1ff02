//! The guarantees against exact counts, after every batch, for all item types, instruction sets and
//! kinds of streams.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

use proptest::prelude::*;
use trommel_kernels::Isa;

use super::*;
use crate::shared::items::{Item, Items, Text};
use crate::testing::streams::{BASE, Case, Random, Stream, Weights};

mod merging;
mod storing;

/// A type of items under test: a bijection with small numbers.
trait TestItem: Item + Hash {
    fn number(&self) -> u64;
    fn with_batch<T>(numbers: &[u64], body: impl FnOnce(&dyn Items<Self>) -> T) -> T;
}

/// `[K]` is unsized, and a trait object needs a sized type.
struct Slice<'a, K>(&'a [K]);

impl<K: Item> Items<K> for Slice<'_, K>
where
    [K]: Items<K>,
{
    fn len(&self) -> usize {
        self.0.len()
    }

    fn item(&self, position: usize) -> K::Ref<'_> {
        Items::item(self.0, position)
    }

    fn codes<'a>(
        &'a self,
        range: std::ops::Range<usize>,
        secret: &K::Secret,
        scratch: &'a mut Vec<K::Code>,
    ) -> &'a [K::Code] {
        self.0.codes(range, secret, scratch)
    }
}

impl TestItem for u32 {
    fn number(&self) -> u64 {
        u64::from(*self)
    }

    fn with_batch<T>(numbers: &[u64], body: impl FnOnce(&dyn Items<Self>) -> T) -> T {
        let items: Vec<u32> = numbers.iter().map(|&x| u32::try_from(x).unwrap()).collect();
        body(&Slice(&items))
    }
}

impl TestItem for u64 {
    fn number(&self) -> u64 {
        self >> 33
    }

    fn with_batch<T>(numbers: &[u64], body: impl FnOnce(&dyn Items<Self>) -> T) -> T {
        let items: Vec<u64> = numbers.iter().map(|x| x << 33).collect();
        body(&Slice(&items))
    }
}

/// End of long texts.
const LONG: &str = " of more than fifteen bytes";

impl TestItem for Text {
    fn number(&self) -> u64 {
        let number = self.strip_prefix("item ").unwrap();
        number.strip_suffix(LONG).unwrap_or(number).parse().unwrap()
    }

    fn with_batch<T>(numbers: &[u64], body: impl FnOnce(&dyn Items<Self>) -> T) -> T {
        // Some are longer than the texts that are their own keys.
        let text = |x| format!("item {x}{}", if x % 3 == 0 { LONG } else { "" });
        let items: Vec<String> = numbers.iter().map(text).collect();
        body(&arrow_array::StringArray::from(items))
    }
}

/// A string whose key takes three values only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Colliding(String);

impl Item for Colliding {
    type Code = u64;
    type Key = u64;
    type Secret = ();
    type Ref<'a> = &'a str;
    const CODE_IS_ITEM: bool = false;

    fn secret(_: u64) {}

    fn key_of(item: &str, (): &()) -> u64 {
        item.len() as u64 % 3
    }

    fn code_of_key(key: u64, (): &()) -> u64 {
        key
    }

    fn new(item: &str, _: u64) -> Self {
        Self(item.to_owned())
    }

    fn assign(&mut self, item: &str, _: u64) {
        self.0 = item.to_owned();
    }

    fn key(&self) -> u64 {
        Self::key_of(&self.0, &())
    }

    fn rekey(&mut self, (): &()) {}

    fn borrowed(&self) -> &str {
        &self.0
    }

    fn is(&self, item: &str, _: u64) -> bool {
        self.0 == item
    }

    fn is_exact(_: u64) -> bool {
        false
    }

    fn heap_bytes(&self) -> usize {
        self.0.capacity()
    }

    fn from_code(_: &u64) -> Option<&str> {
        None
    }

    fn keys_of_codes(_: &[u64]) -> Option<&[u64]> {
        None
    }
}

struct Strings(Vec<String>);

impl Items<Colliding> for Strings {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn item(&self, position: usize) -> &str {
        &self.0[position]
    }
}

impl TestItem for Colliding {
    fn number(&self) -> u64 {
        self.0.parse().unwrap()
    }

    fn with_batch<T>(numbers: &[u64], body: impl FnOnce(&dyn Items<Self>) -> T) -> T {
        body(&Strings(numbers.iter().map(u64::to_string).collect()))
    }
}

/// One of the summaries under test.
#[derive(Clone)]
enum Subject<K: Item> {
    Plain(Box<SpaceSaving<K>>),
    Filter(Box<Filter<K>>),
    Sieve(Box<Sieve<K>>),
}

impl<K: TestItem> Subject<K> {
    fn new(isa: Option<Isa>, counters: usize, bins: usize) -> Self {
        match isa {
            None => Self::Plain(Box::new(SpaceSaving::new(counters).unwrap())),
            Some(isa) => Self::Filter(Box::new(Filter::new(isa, counters, bins).unwrap())),
        }
    }

    /// A sieve with few cells, so that most monitored items share theirs.
    fn sieve(isa: Isa, counters: usize, bins: usize) -> Self {
        let bytes = Sieve::<K>::within(isa, counters, 0).unwrap_err();
        let CapacityError::StateBytes { bytes_min, .. } = bytes else { unreachable!("{bytes}") };
        let room = bytes_min + (bins % 5) * bytes_min / 4;
        Self::Sieve(Box::new(Sieve::within(isa, counters, room).unwrap().with_seed(1)))
    }

    /// An empty summary of this size; a sieve has this seed.
    fn with_seed(&self, seed: u64) -> Self {
        match self {
            Self::Plain(plain) => Self::Plain(Box::new(plain.to_empty())),
            Self::Filter(filter) => Self::Filter(Box::new(filter.to_empty())),
            Self::Sieve(sieve) => Self::Sieve(Box::new(sieve.clone().with_seed(seed))),
        }
    }

    fn observe(&mut self, numbers: &[u64], weights: Option<&[u64]>) {
        K::with_batch(numbers, |batch| match (self, weights) {
            (Self::Plain(plain), None) => plain.observe(batch),
            (Self::Plain(plain), Some(weights)) => plain.observe_weighted(batch, weights),
            (Self::Filter(filter), None) => filter.observe(batch),
            (Self::Filter(filter), Some(weights)) => filter.observe_weighted(batch, weights),
            (Self::Sieve(sieve), None) => sieve.observe(batch),
            (Self::Sieve(sieve), Some(weights)) => sieve.observe_weighted(batch, weights),
        });
    }

    /// Everything that can be asked: the ranking of all counters, the smallest count and N.
    fn answers(&self) -> (Vec<Counted<K>>, u64, u64) {
        match self {
            Self::Plain(plain) => (plain.top(usize::MAX), plain.count_min(), plain.observed()),
            Self::Filter(filter) => (filter.top(usize::MAX), filter.count_min(), filter.observed()),
            Self::Sieve(sieve) => (sieve.top(usize::MAX), sieve.count_min(), sieve.observed()),
        }
    }
}

/// Exact counts, saturating as the summaries do.
#[derive(Clone, Default)]
struct Truth {
    counts: HashMap<u64, u64>,
    observed: u128,
}

impl Truth {
    fn observe(&mut self, numbers: &[u64], weights: Option<&[u64]>) {
        for (i, &number) in numbers.iter().enumerate() {
            let weight = weights.map_or(1, |weights| weights[i]);
            self.observed += u128::from(weight);
            if weight > 0 {
                let count = self.counts.entry(number).or_default();
                *count = count.saturating_add(weight);
            }
        }
    }

    /// The guarantees of SpaceSaving and the filter: each weight is in one count.
    fn check<K: TestItem>(&self, answers: &(Vec<Counted<K>>, u64, u64), counters: usize) {
        self.check_bounds(answers, counters);
        let (all, _, observed) = answers;
        if self.counts.len() > counters {
            assert_eq!(all.len(), counters, "a counter is free although items were lost");
        }
        if self.observed <= u128::from(u64::MAX) {
            assert_eq!(all.iter().map(|counted| counted.count).sum::<u64>(), *observed);
        }
    }

    /// The guarantees of all summaries.
    fn check_bounds<K: TestItem>(&self, answers: &(Vec<Counted<K>>, u64, u64), counters: usize) {
        let (all, count_min, observed) = answers;
        let saturated = self.observed > u128::from(u64::MAX);
        let bound = if saturated { u64::MAX } else { observed / counters as u64 };
        assert_eq!(u128::from(*observed), self.observed.min(u64::MAX.into()));
        assert!(*count_min <= bound);
        assert!(all.is_sorted_by_key(|c| (std::cmp::Reverse(c.count), c.item.clone())));
        let monitored: HashSet<u64> = all.iter().map(|counted| counted.item.number()).collect();
        assert_eq!(monitored.len(), all.len(), "an item is monitored twice");
        for counted in all {
            let truth = self.counts[&counted.item.number()];
            assert!(counted.count_min() <= truth && truth <= counted.count, "{truth}: {counted:?}");
            assert!(counted.error <= bound, "{counted:?} errs by more than {bound}");
        }
        for (number, &truth) in &self.counts {
            let missing = !monitored.contains(number);
            assert!(!missing || truth <= *count_min, "{number} was seen {truth} times, and lost");
        }
        if self.counts.len() <= counters {
            assert!(monitored.len() == self.counts.len() && all.iter().all(|c| c.error == 0));
        } else {
            assert!(all.len() >= counters, "a counter is free although items were lost");
        }
    }
}

/// Runs a stream through all summaries on all levels and checks the guarantees after every batch.
fn check<K: TestItem>(case: Case) {
    let numbers = case.stream.numbers(case.len, case.counters, case.seed);
    let weights = case.weights.of(case.len, case.seed);
    let levels = std::iter::once(None).chain(Isa::available().map(Some));
    let mut subjects: Vec<Subject<K>> =
        levels.map(|isa| Subject::new(isa, case.counters, case.bins)).collect();
    let mut sieves: Vec<Subject<K>> =
        Isa::available().map(|isa| Subject::sieve(isa, case.counters, case.bins)).collect();
    let mut truth = Truth::default();
    for start in (0..case.len).step_by(case.batch) {
        let range = start..case.len.min(start + case.batch);
        let weights = weights.as_ref().map(|weights| &weights[range.clone()]);
        truth.observe(&numbers[range.clone()], weights);
        subjects.iter_mut().for_each(|subject| subject.observe(&numbers[range.clone()], weights));
        let mut answers = subjects.iter().map(Subject::answers);
        truth.check(&answers.next().unwrap(), case.counters);
        let reference = answers.next().unwrap();
        truth.check(&reference, case.counters);
        assert!(answers.all(|answer| answer == reference), "levels differ: {case:?}");
        sieves.iter_mut().for_each(|sieve| sieve.observe(&numbers[range.clone()], weights));
        let mut answers = sieves.iter().map(Subject::answers);
        let reference = answers.next().unwrap();
        truth.check_bounds(&reference, case.counters);
        assert!(answers.all(|answer| answer == reference), "levels of the sieve differ: {case:?}");
    }
}

fn check_all_items(case: Case) {
    check::<u32>(case);
    check::<u64>(case);
    check::<Text>(case);
    check::<Colliding>(case);
}

#[test]
fn guarantees_hold_on_every_kind_of_stream() {
    for stream in Stream::ALL {
        check_all_items(Case { stream, ..BASE });
        check_all_items(Case { stream, weights: Weights::UpTo(9), ..BASE });
    }
}

#[test]
fn guarantees_hold_for_every_number_of_bins() {
    for bins in 1..=64 {
        let case = Case { bins, counters: bins + 1 + bins % 7, len: 400, ..BASE };
        check::<u32>(Case { stream: Stream::Zipf(12), ..case });
        check::<u64>(Case { stream: Stream::ChangingHitters, weights: Weights::UpTo(3), ..case });
        check::<Text>(Case { stream: Stream::RoundRobin, ..case });
    }
}

#[test]
fn guarantees_hold_for_weights_of_all_sizes() {
    for max in [0, 1, 2, 1 << 20, 1 << 40, 1 << 53] {
        for stream in [Stream::Uniform, Stream::Zipf(15), Stream::AllNew] {
            check_all_items(Case { stream, weights: Weights::UpTo(max), len: 600, ..BASE });
        }
    }
}

#[test]
fn counts_that_saturate_stay_bounds() {
    for max in [1 << 58, 1 << 62, u64::MAX] {
        for stream in [Stream::Uniform, Stream::Zipf(20), Stream::AllNew, Stream::RoundRobin] {
            let case = Case { stream, weights: Weights::UpTo(max), counters: 12, bins: 5, ..BASE };
            check_all_items(Case { len: 500, ..case });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn guarantees_hold(
        stream in prop::sample::select(Stream::ALL.to_vec()),
        weights in prop_oneof![
            Just(Weights::Ones),
            (0..=64_u32).prop_map(|bits| Weights::UpTo(u64::MAX.checked_shr(bits).unwrap_or(0))),
        ],
        bins in 1..=64_usize,
        more in 1..60_usize,
        len in 1..700_usize,
        batch in 1..300_usize,
        seed: u64,
    ) {
        let case = Case { stream, weights, counters: bins + more, bins, len, batch, seed };
        check::<u32>(case);
        check::<u64>(case);
        check::<Text>(case);
        check::<Colliding>(case);
    }
}

/// SpaceSaving by the book, with a scan for everything. `None` once the minimum was not unique:
/// from then on implementations may differ.
fn textbook(stream: &[(u32, u64)], counters: usize) -> Option<Vec<Counted<u32>>> {
    let mut bins: Vec<Counted<u32>> = Vec::new();
    for &(item, weight) in stream.iter().filter(|(_, weight)| *weight > 0) {
        if let Some(bin) = bins.iter_mut().find(|bin| bin.item == item) {
            bin.count += weight;
        } else if bins.len() < counters {
            bins.push(Counted { item, count: weight, error: 0 });
        } else {
            let min = bins.iter().map(|bin| bin.count).min()?;
            let mut smallest = bins.iter_mut().filter(|bin| bin.count == min);
            let (bin, None) = (smallest.next()?, smallest.next()) else { return None };
            *bin = Counted { item, count: min + weight, error: min };
        }
    }
    bins.sort_by_key(|bin| (std::cmp::Reverse(bin.count), bin.item));
    Some(bins)
}

proptest! {
    #[test]
    fn both_summaries_are_the_textbook_where_it_leaves_no_choice(
        stream in prop::collection::vec((0..60_u32, 0..1_u64 << 40), 0..400),
        counters in 2..30_usize,
        bins in 1..29_usize,
    ) {
        let Some(expected) = textbook(&stream, counters) else { return Ok(()) };
        let (items, weights): (Vec<u32>, Vec<u64>) = stream.into_iter().unzip();
        let mut plain = SpaceSaving::new(counters).unwrap();
        plain.observe_weighted(&items[..], &weights);
        prop_assert_eq!(&plain.top(usize::MAX), &expected);
        let mut filter = Filter::new(Isa::selected().unwrap(), counters, bins.min(counters - 1)).unwrap();
        filter.observe_weighted(&items[..], &weights);
        prop_assert_eq!(&filter.top(usize::MAX), &expected);
    }
}

/// A message of the front half to the back half.
enum Message<K> {
    /// Positions in a batch.
    Missed(usize, Vec<u32>),
    Exchange(Option<Counted<K>>),
}

/// The back half: takes one message, and answers an exchange.
fn receive<K: TestItem>(
    back: &mut SpaceSaving<K>,
    batches: &[(Vec<u64>, Vec<u64>)],
    message: Message<K>,
) -> Option<Option<Counted<K>>> {
    match message {
        Message::Missed(batch, positions) => {
            let (numbers, weights) = &batches[batch];
            K::with_batch(numbers, |batch| back.observe_weighted_at(batch, weights, &positions));
            None
        }
        Message::Exchange(x_min) => Some(back.exchange(x_min)),
    }
}

/// Runs the halves as two parties with a queue between them, the back as late as it can be, and
/// compares with the filter that runs both in turn.
fn check_hand_over<K: TestItem>(case: Case, room: usize) {
    let numbers = case.stream.numbers(case.len, case.counters, case.seed);
    let weights = case.weights.of(case.len, case.seed).unwrap_or_else(|| vec![1; case.len]);
    let split = |all: &[u64]| all.chunks(case.batch).map(<[u64]>::to_vec).collect::<Vec<_>>();
    let batches: Vec<_> = split(&numbers).into_iter().zip(split(&weights)).collect();
    let isa = Isa::selected().unwrap();
    let mut sequential = Filter::<K>::new(isa, case.counters, case.bins).unwrap();
    let (mut front, mut back) = sequential.clone().into_halves();
    let mut queue = VecDeque::new();
    let mut missed = vec![0; room];
    for (index, (numbers, weights)) in batches.iter().enumerate() {
        let mut start = 0;
        while start < numbers.len() {
            while front.exchange_due() {
                queue.push_back(Message::Exchange(front.take_min()));
                let replies =
                    queue.drain(..).filter_map(|message| receive(&mut back, &batches, message));
                front.put_max(replies.last().expect("an exchange is answered"));
            }
            let done = K::with_batch(numbers, |batch| {
                front.absorb_weighted(batch, weights, start, &mut missed)
            });
            queue.push_back(Message::Missed(index, missed[..done.missed].to_vec()));
            start += done.consumed;
        }
        K::with_batch(numbers, |batch| sequential.observe_weighted(batch, weights));
    }
    queue.drain(..).for_each(|message| assert!(receive(&mut back, &batches, message).is_none()));
    assert_eq!(front.observed(), sequential.observed());
    assert_eq!(top(front.iter().chain(back.iter()), usize::MAX), sequential.top(usize::MAX));
}

#[test]
fn halves_apart_give_the_result_of_the_whole() {
    for stream in Stream::ALL {
        for (room, weights) in
            [(1, Weights::Ones), (7, Weights::UpTo(4)), (500, Weights::UpTo(u64::MAX))]
        {
            let case = Case { stream, weights, ..BASE };
            check_hand_over::<u32>(case, room);
            check_hand_over::<Text>(case, room);
            check_hand_over::<Colliding>(case, room);
        }
    }
}

/// Each summary draws a secret of its own.
fn check_secrets<K: TestItem>(case: Case) {
    let numbers = case.stream.numbers(case.len, case.counters, case.seed);
    let weights = case.weights.of(case.len, case.seed);
    for isa in [None, Some(Isa::selected().unwrap())] {
        let mut subjects: [Subject<K>; 4] =
            std::array::from_fn(|_| Subject::new(isa, case.counters, case.bins));
        subjects.iter_mut().for_each(|subject| subject.observe(&numbers, weights.as_deref()));
        let reference = subjects[0].answers();
        assert!(subjects.iter().all(|subject| subject.answers() == reference), "{case:?}");
    }
}

#[test]
fn answers_of_space_saving_and_the_filter_do_not_depend_on_the_secret() {
    for stream in Stream::ALL {
        for weights in [Weights::Ones, Weights::UpTo(9)] {
            let case = Case { stream, weights, ..BASE };
            check_secrets::<u32>(case);
            check_secrets::<u64>(case);
            check_secrets::<Text>(case);
        }
    }
}

#[test]
fn halves_of_different_filters_exchange_texts() {
    let numbers: Vec<u64> = (0..900).map(|i: u64| i * i % 83).collect();
    let isa = Isa::selected().unwrap();
    let (mut front, _) = Filter::<Text>::new(isa, 30, 5).unwrap().into_halves();
    let (_, mut back) = Filter::<Text>::new(isa, 30, 5).unwrap().into_halves();
    let mut whole = Filter::<Text>::new(isa, 30, 5).unwrap();
    let mut missed = vec![0; 50];
    Text::with_batch(&numbers, |batch| {
        let mut start = 0;
        while start < batch.len() {
            exchange_while_due(&mut front, &mut back);
            let done = front.absorb(batch, start, &mut missed);
            back.observe_at(batch, &missed[..done.missed]);
            start += done.consumed;
        }
        whole.observe(batch);
    });
    assert_eq!(top(front.iter().chain(back.iter()), 99), whole.top(99));
}

#[test]
fn the_result_does_not_depend_on_the_batches() {
    let numbers = Stream::Zipf(8).numbers(3_000, 50, 5);
    let run = |batch: usize| {
        let mut filter = Filter::new(Isa::selected().unwrap(), 50, 7).unwrap();
        let mut plain = SpaceSaving::new(50).unwrap();
        numbers.chunks(batch).for_each(|batch| filter.observe(batch));
        numbers.chunks(batch).for_each(|batch| plain.observe(batch));
        (filter.top(50), plain.top(50))
    };
    let whole = run(numbers.len());
    for batch in [1, 2, 63, 64, 65, 1_000] {
        assert_eq!(run(batch), whole);
    }
}

#[test]
fn the_hottest_items_end_up_in_the_bins() {
    let numbers = Stream::Zipf(15).numbers(50_000, 1_000, 3);
    let mut filter = Filter::new(Isa::selected().unwrap(), 1_000, 4).unwrap();
    filter.observe(&numbers[..]);
    let top: HashSet<u64> = filter.top(4).into_iter().map(|counted| counted.item).collect();
    let (front, _) = filter.into_halves();
    assert_eq!(front.iter().map(|counted| *counted.item).collect::<HashSet<_>>(), top);
}

#[test]
fn estimates_are_the_counters() {
    let words = ["a", "b", "a", "c", "a", "b", "d"];
    let mut filter = Filter::<Text>::new(Isa::Scalar, 3, 1).unwrap();
    filter.observe(&words[..]);
    for counted in filter.iter() {
        assert_eq!(filter.estimate(counted.item), Some(counted));
    }
    assert_eq!(filter.estimate("unheard"), None);
    let mut plain = SpaceSaving::<Text>::new(10).unwrap();
    plain.observe(&words[..]);
    assert_eq!(plain.estimate("b").map(|counted| counted.count), Some(2));
    assert_eq!((plain.estimate("unheard"), plain.count_min()), (None, 0));
}

#[test]
fn impossible_sizes_are_refused() {
    let filter = |counters, bins| Filter::<u32>::new(Isa::Scalar, counters, bins).unwrap_err();
    for counters in [0, COUNTERS_MAX + 1, usize::MAX] {
        let error = SpaceSaving::<u32>::new(counters).unwrap_err();
        assert_eq!(error, CapacityError::Counters { counters });
    }
    assert_eq!(filter(100, 0), CapacityError::Bins { bins: 0 });
    assert_eq!(filter(100, 65), CapacityError::Bins { bins: 65 });
    assert_eq!(filter(16, 16), CapacityError::NoBackCounters { counters: 16, bins: 16 });
    assert_eq!(filter(usize::MAX, 16), CapacityError::Counters { counters: usize::MAX });
    let message = "16 counters leave none after 16 filter bins: at least 17 are needed";
    assert_eq!(filter(16, 16).to_string(), message);
}

#[test]
fn the_state_stays_bounded() {
    let mut filter = Filter::<u64>::new(Isa::selected().unwrap(), 100, 8).unwrap();
    let mut random = Random(7);
    for _ in 0..200 {
        let items: Vec<u64> = (0..500).map(|_| random.next()).collect();
        let weights: Vec<u64> = (0..500).map(|_| random.below(1_000)).collect();
        filter.observe_weighted(&items[..], &weights);
    }
    assert!(filter.state_bytes() < 32 * 1024, "{} bytes", filter.state_bytes());
}

#[test]
#[should_panic(expected = "an exchange is under way")]
fn nothing_is_absorbed_during_an_exchange() {
    let (mut front, _) = Filter::<u32>::new(Isa::Scalar, 4, 2).unwrap().into_halves();
    let _ = front.take_min();
    let _ = front.absorb(&[1_u32][..], 0, &mut [0]);
}
