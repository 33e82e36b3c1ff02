//! Restores summaries from arbitrary bytes: alone, after a valid header with checksum, and as
//! snapshots with some bytes changed. Accepted summaries must keep their bounds, continue to
//! count, and survive being stored and read again.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run restore`
#![no_main]

use libfuzzer_sys::fuzz_target;
use trommel_operators::Isa;
use trommel_operators::frequent_items::{
    Counted, Filter, Item, RestoreError, Sieve, SpaceSaving, StoredItem, Text,
};

/// More than the summaries here need, and small enough to allocate often.
const STATE_BYTES_MAX: usize = 1 << 20;
const HEADER_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 4;

/// Summary under test.
trait Subject: Sized + Clone {
    type Item: Item;
    const KIND: u8;

    fn new(size: u8) -> Self;
    fn restore(bytes: &[u8]) -> Result<Self, RestoreError>;
    fn snapshot(&self) -> Vec<u8>;
    fn observe(&mut self, numbers: &[u8], weights: Option<&[u64]>);
    fn merge(&mut self, other: &Self);
    fn answers(&self) -> Answers<Self::Item>;
}

struct Answers<K> {
    all: Vec<Counted<K>>,
    count_min: u64,
    observed: u64,
    counters: usize,
}

/// Items of a type, and their conversion to a batch.
trait FuzzItem: StoredItem {
    fn feed(numbers: &[u8], to: impl FnMut(&dyn trommel_operators::frequent_items::Items<Self>));
}

struct Batch<T>(Vec<T>);

macro_rules! integer {
    ($integer:ident) => {
        impl trommel_operators::frequent_items::Items<$integer> for Batch<$integer> {
            fn len(&self) -> usize {
                self.0.len()
            }

            fn item(&self, position: usize) -> $integer {
                self.0[position]
            }
        }

        impl FuzzItem for $integer {
            fn feed(
                numbers: &[u8],
                mut to: impl FnMut(&dyn trommel_operators::frequent_items::Items<Self>),
            ) {
                to(&Batch(numbers.iter().map(|&n| $integer::from(n)).collect::<Vec<_>>()));
            }
        }
    };
}

integer!(u32);
integer!(u64);

impl trommel_operators::frequent_items::Items<Text> for Batch<String> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn item(&self, position: usize) -> &str {
        &self.0[position]
    }
}

impl FuzzItem for Text {
    fn feed(
        numbers: &[u8],
        mut to: impl FnMut(&dyn trommel_operators::frequent_items::Items<Self>),
    ) {
        to(&Batch(numbers.iter().map(u8::to_string).collect()));
    }
}

fn isa() -> Isa {
    Isa::selected().expect("TROMMEL_ISA names a level")
}

macro_rules! subject {
    ($summary:ident, $kind:expr, $new:expr, $restore:expr) => {
        impl<K: FuzzItem> Subject for $summary<K> {
            type Item = K;
            const KIND: u8 = $kind;

            fn new(size: u8) -> Self {
                $new(usize::from(size))
            }

            fn restore(bytes: &[u8]) -> Result<Self, RestoreError> {
                $restore(bytes)
            }

            fn snapshot(&self) -> Vec<u8> {
                $summary::snapshot(self)
            }

            fn observe(&mut self, numbers: &[u8], weights: Option<&[u64]>) {
                K::feed(numbers, |batch| match weights {
                    None => $summary::observe(self, batch),
                    Some(weights) => self.observe_weighted(batch, weights),
                });
            }

            fn merge(&mut self, other: &Self) {
                $summary::merge(self, other).expect("a clone is alike");
            }

            fn answers(&self) -> Answers<K> {
                Answers {
                    all: self.top(usize::MAX),
                    count_min: self.count_min(),
                    observed: self.observed(),
                    counters: self.counters(),
                }
            }
        }
    };
}

subject!(SpaceSaving, 1, |size: usize| Self::new(1 + size % 20).expect("a small size"), |bytes| {
    Self::restore_within(bytes, STATE_BYTES_MAX)
});
subject!(
    Filter,
    2,
    |size: usize| Self::new(isa(), 2 + size % 20, 1 + size % 20 / 2).expect("a small size"),
    |bytes| Self::restore_within(isa(), bytes, STATE_BYTES_MAX)
);
subject!(
    Sieve,
    3,
    |size: usize| Self::within(isa(), 1 + size % 20, 12_000 + 40 * size)
        .expect("a small size")
        .with_seed(size as u64),
    |bytes| Self::restore_within(isa(), bytes, STATE_BYTES_MAX)
);

/// Writes the header, length and checksum of a valid snapshot.
fn seal<S: Subject<Item = K>, K: FuzzItem>(bytes: &mut [u8]) {
    let end = bytes.len() - CHECKSUM_BYTES;
    bytes[..8].copy_from_slice(b"trommel\x1a");
    bytes[8..16].copy_from_slice(&[2, 0, S::KIND, K::NUMBER, 0, 0, 0, 0]);
    bytes[16..24].copy_from_slice(&((end - HEADER_BYTES) as u64).to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
}

/// Snapshot of a summary of one part of `data`, changed by the rest.
fn changed<S: Subject<Item = K>, K: FuzzItem>(data: &[u8]) -> Vec<u8> {
    let (&[size, split, is_weighted], data) = data.split_first_chunk().unwrap_or((&[9, 0, 0], &[]));
    let (numbers, changes) = data.split_at(data.len() * usize::from(split) / 256);
    let mut summary = S::new(size);
    for numbers in numbers.chunks(40) {
        let weights: Vec<u64> = numbers.iter().map(|&n| 1 << (n % 48)).collect();
        summary.observe(numbers, (is_weighted % 2 == 1).then_some(&weights[..]));
    }
    let mut bytes = summary.snapshot();
    for change in changes.chunks_exact(3) {
        let offset = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[offset] = change[2];
    }
    bytes
}

/// Checks that the bounds do not contradict each other.
fn check<S: Subject>(summary: &S) {
    let Answers { all, count_min, observed, counters } = summary.answers();
    let bound = if observed == u64::MAX { observed } else { observed / counters as u64 };
    assert!(count_min <= bound, "{count_min} is above {bound}");
    for counted in &all {
        assert!(counted.error <= counted.count && counted.error <= bound, "{counted:?}: {bound}");
    }
    let mut items: Vec<_> = all.iter().map(|counted| &counted.item).collect();
    items.sort_unstable();
    assert!(items.is_sorted_by(|a, b| a < b), "an item is monitored twice");
}

fn run<S: Subject<Item = K>, K: FuzzItem>(mode: u8, data: &[u8]) {
    let mut bytes = match mode % 4 {
        0 => data.to_vec(),
        1 => [&[0; HEADER_BYTES], data, &[0; CHECKSUM_BYTES]].concat(),
        _ => changed::<S, K>(data),
    };
    if !mode.is_multiple_of(4) {
        seal::<S, K>(&mut bytes);
    }
    let Ok(mut summary) = S::restore(&bytes) else { return };
    check(&summary);
    assert!(summary.snapshot() == bytes, "there are two snapshots of one summary");
    let numbers: Vec<u8> = data.iter().take(300).copied().chain(0..100).collect();
    let weights: Vec<u64> = numbers.iter().map(|&n| u64::from(n) << (n % 50)).collect();
    for _ in 0..2 {
        summary.observe(&numbers, None);
        check(&summary);
        summary.observe(&numbers, Some(&weights));
        check(&summary);
        let mut again = S::restore(&summary.snapshot()).expect("it was written by the summary");
        summary.merge(&summary.clone());
        check(&summary);
        again.merge(&again.clone());
        assert!(again.snapshot() == summary.snapshot(), "the restored summary goes another way");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, mode], data)) = data.split_first_chunk() else { return };
    match kind % 9 {
        0 => run::<SpaceSaving<u32>, u32>(mode, data),
        1 => run::<SpaceSaving<u64>, u64>(mode, data),
        2 => run::<SpaceSaving<Text>, Text>(mode, data),
        3 => run::<Filter<u32>, u32>(mode, data),
        4 => run::<Filter<u64>, u64>(mode, data),
        5 => run::<Filter<Text>, Text>(mode, data),
        6 => run::<Sieve<u32>, u32>(mode, data),
        7 => run::<Sieve<u64>, u64>(mode, data),
        _ => run::<Sieve<Text>, Text>(mode, data),
    }
});
