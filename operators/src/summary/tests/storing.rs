//! Summaries written down and made again: the same answers, the same future; and bytes that are no
//! summary are refused.

use super::*;
use crate::shared::items::StoredItem;
use crate::shared::state::RestoreError;

impl StoredItem for Colliding {
    const NUMBER: u8 = 200;

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::try_from(self.0.len()).unwrap());
        bytes.extend(self.0.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (&len, bytes) = bytes.split_first()?;
        let text = bytes.get(..usize::from(len))?;
        Some((Self(String::from_utf8(text.to_vec()).ok()?), 1 + usize::from(len)))
    }
}

impl<K: TestItem + StoredItem> Subject<K> {
    fn snapshot(&self) -> Vec<u8> {
        match self {
            Self::Plain(plain) => plain.snapshot(),
            Self::Filter(filter) => filter.snapshot(),
            Self::Sieve(sieve) => sieve.snapshot(),
        }
    }

    /// From a snapshot of one of this kind.
    fn restore(&self, bytes: &[u8]) -> Result<Self, RestoreError> {
        let isa = Isa::selected().unwrap();
        Ok(match self {
            Self::Plain(_) => Self::Plain(Box::new(SpaceSaving::restore(bytes)?)),
            Self::Filter(_) => Self::Filter(Box::new(Filter::restore(isa, bytes)?)),
            Self::Sieve(_) => Self::Sieve(Box::new(Sieve::restore(isa, bytes)?)),
        })
    }
}

/// One of each kind; the sieves with few cells and with many.
fn subjects<K: TestItem>(counters: usize, bins: usize) -> [Subject<K>; 4] {
    let isa = Isa::selected().unwrap();
    [
        Subject::new(None, counters, bins),
        Subject::new(Some(isa), counters, bins),
        Subject::sieve(isa, counters, bins),
        Subject::Sieve(Box::new(Sieve::new(isa, counters).unwrap())),
    ]
}

/// Restores after every batch, and lets the original and each restored one go on side by side.
fn check_storing<K: TestItem + StoredItem>(case: Case) {
    let numbers = case.stream.numbers(case.len, case.counters, case.seed);
    let weights = case.weights.of(case.len, case.seed);
    for mut original in subjects::<K>(case.counters, case.bins) {
        let mut restored = original.restore(&original.snapshot()).unwrap();
        for (turn, start) in (0..case.len).step_by(case.batch).enumerate() {
            let range = start..case.len.min(start + case.batch);
            let weights = weights.as_ref().map(|weights| &weights[range.clone()]);
            original.observe(&numbers[range.clone()], weights);
            restored.observe(&numbers[range], weights);
            let bytes = original.snapshot();
            assert_eq!(restored.answers(), original.answers(), "{case:?}");
            assert!(restored.snapshot() == bytes, "turn {turn} of {case:?}");
            if turn % 3 != 1 {
                restored = original.restore(&bytes).unwrap();
                assert!(restored.snapshot() == bytes, "turn {turn} of {case:?}");
            }
        }
    }
}

const STORED: Case = Case { counters: 15, bins: 4, len: 900, batch: 71, ..BASE };

#[test]
fn a_restored_summary_goes_on_as_if_nothing_had_happened() {
    for stream in Stream::ALL {
        for weights in [Weights::Ones, Weights::UpTo(9), Weights::UpTo(1 << 40)] {
            let case = Case { stream, weights, ..STORED };
            check_storing::<u32>(case);
            check_storing::<u64>(case);
            check_storing::<Text>(case);
            check_storing::<Colliding>(case);
        }
    }
}

#[test]
fn saturated_and_merged_summaries_are_stored() {
    check_storing::<u64>(Case { weights: Weights::UpTo(u64::MAX), ..STORED });
    for mut left in subjects::<u32>(12, 3) {
        for (seed, weight) in [(1, 1), (2, 7), (3, 1 << 50)] {
            let mut right = left.clone();
            let numbers = Stream::Uniform.numbers(300, 12, seed);
            right.observe(&numbers, Some(&vec![weight; 300]));
            left.merge(&right);
            let restored = left.restore(&left.snapshot()).unwrap();
            assert_eq!(restored.answers(), left.answers());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn snapshots_keep_the_future(
        stream in prop::sample::select(Stream::ALL.to_vec()),
        bits in 0..=64_u32,
        bins in 1..=30_usize,
        more in 1..40_usize,
        len in 0..900_usize,
        batch in 1..300_usize,
        seed: u64,
    ) {
        let weights = u64::MAX.checked_shr(bits).map_or(Weights::Ones, Weights::UpTo);
        let case = Case { stream, weights, counters: bins + more, bins, len, batch, seed };
        check_storing::<u32>(case);
        check_storing::<Text>(case);
    }
}

/// Small snapshots of summaries that have seen replacements.
fn snapshots<K: TestItem + StoredItem>() -> Vec<(Subject<K>, Vec<u8>)> {
    let isa = Isa::selected().unwrap();
    let CapacityError::StateBytes { bytes_min, .. } = Sieve::<K>::within(isa, 4, 0).unwrap_err()
    else {
        unreachable!("no sieve fits into nothing")
    };
    let sieve = Sieve::within(isa, 4, bytes_min + 2_000).unwrap();
    let mut subjects =
        [Subject::new(None, 4, 2), Subject::new(Some(isa), 4, 2), Subject::Sieve(Box::new(sieve))];
    subjects
        .iter_mut()
        .map(|subject| {
            for seed in 0..3 {
                let numbers = Stream::Zipf(8).numbers(700, 4, seed);
                subject.observe(&numbers, None);
                subject.observe(&numbers[..100], Some(&[3; 100]));
            }
            (subject.clone(), subject.snapshot())
        })
        .collect()
}

fn check_damage<K: TestItem + StoredItem>() {
    for (subject, bytes) in snapshots::<K>() {
        for len in 0..bytes.len() {
            assert!(subject.restore(&bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(subject.restore(&longer).is_err());
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(subject.restore(&flipped).is_err(), "bit {bit}");
        }
    }
}

#[test]
fn every_truncation_and_every_flipped_bit_is_refused() {
    check_damage::<u32>();
    check_damage::<Text>();
}

/// Makes length and checksum right.
fn seal(bytes: &mut [u8]) {
    let end = bytes.len() - 4;
    bytes[16..24].copy_from_slice(&(end as u64 - 24).to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
}

fn check_forgery<K: TestItem + StoredItem>() {
    let (mut refused, mut accepted) = (0, 0);
    for (subject, bytes) in snapshots::<K>() {
        for offset in 8..bytes.len() - 4 {
            for value in [0, 1, 0x7F, 0x80, 0xFF, bytes[offset].wrapping_add(1)] {
                let mut forged = bytes.clone();
                forged[offset] = value;
                seal(&mut forged);
                let Ok(mut restored) = subject.restore(&forged) else {
                    refused += 1;
                    continue;
                };
                accepted += 1;
                for seed in 0..2 {
                    restored.observe(&Stream::Uniform.numbers(200, 8, seed), None);
                    restored.observe(&[1, 2, 3], Some(&[u64::MAX / 5, 9, 1]));
                }
                let (all, count_min, observed) = restored.answers();
                assert!(all.iter().all(|counted| counted.error <= counted.count));
                assert!(observed == u64::MAX || count_min <= observed);
                assert!(restored.restore(&restored.snapshot()).is_ok(), "{offset}: {value}");
            }
        }
    }
    assert!(refused > 1_000 && accepted > 1_000, "{refused} refused, {accepted} accepted");
}

#[test]
fn forged_numbers_are_refused_or_do_no_harm() {
    check_forgery::<u32>();
    check_forgery::<Text>();
    check_forgery::<Colliding>();
}

#[test]
fn what_is_wrong_is_said() {
    let mut plain = SpaceSaving::<u32>::new(3).unwrap();
    plain.observe(&[5, 6, 5][..]);
    let bytes = plain.snapshot();
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = bytes.clone();
        change(&mut changed);
        SpaceSaving::<u32>::restore(&changed).unwrap_err().to_string()
    };
    let forged = |offset: usize, value: u8| {
        error(&move |bytes| {
            bytes[offset] = value;
            seal(bytes);
        })
    };
    assert_eq!(error(&Vec::clear), "invalid snapshot of 0 bytes: the shortest one has 28");
    assert!(forged(0, b'T').starts_with("invalid snapshot: it begins with [54, 72"));
    for version in [4, 6] {
        let expected =
            format!("byte 8: the snapshot has version {version}; this program reads version 5");
        assert_eq!(forged(8, version), expected);
    }
    let kind = "byte 10: the snapshot is of Sieve (number 3); expected SpaceSaving";
    assert_eq!(forged(10, 3), kind);
    let item = "byte 11: the snapshot counts items of text (number 3); expected u32";
    assert_eq!(forged(11, 3), item);
    assert_eq!(forged(12, 3), "byte 12: how the input ended is 3; expected 0 to 2");
    let longer = format!("should have {} bytes, by its header", bytes.len() + 1);
    assert!(forged(13, 1).contains(&longer), "{}", forged(13, 1));
    assert_eq!(forged(15, 1), "byte 14: the space after the label is in use; expected zero");
    let length =
        format!("should have {} bytes, by its header; it has {}", bytes.len(), bytes.len() - 1);
    assert!(error(&|bytes| bytes.truncate(bytes.len() - 1)).contains(&length));
    assert!(
        error(&|bytes| bytes[30] ^= 1).starts_with("the snapshot is damaged: its checksum is ")
    );
    let counters = "byte 24: the number of counters is 0; expected 1 to 67108864";
    assert_eq!(forged(24, 0), counters);
    let items = "byte 40: the number of items is 7; expected 0 to 3";
    assert_eq!(forged(40, 7), items);
    let sum = "the sum of the counts is 3; expected at most the weight, 2";
    assert!(forged(32, 2).ends_with(sum), "{}", forged(32, 2));
    let large = forged(27, 3);
    assert!(large.starts_with("the summary needs up to "), "{large}");
    let cut = error(&|bytes| {
        bytes.truncate(40);
        seal(bytes);
    });
    assert_eq!(cut, "byte 32: the weight is cut off; expected 8 bytes");
}

#[test]
fn a_limit_of_memory_is_kept() {
    let isa = Isa::selected().unwrap();
    let plain = SpaceSaving::<u64>::new(1 << 20).unwrap();
    let error = SpaceSaving::<u64>::restore(&plain.snapshot()).unwrap_err();
    assert!(matches!(error, RestoreError::TooLarge { limit, .. } if limit < 70 << 20), "{error}");
    assert!(SpaceSaving::<u64>::restore_within(&plain.snapshot(), 1 << 28).is_ok());
    let sieve = Sieve::<u32>::new(isa, 1_000).unwrap().snapshot();
    assert!(Sieve::<u32>::restore_within(isa, &sieve, 1_000_000).is_ok());
    let error = Sieve::<u32>::restore_within(isa, &sieve, 100_000).unwrap_err();
    assert!(error.to_string().ends_with("100000 are allowed"), "{error}");
    let filter = Filter::<Text>::new(isa, 100, 9).unwrap().snapshot();
    assert!(Filter::<Text>::restore_within(isa, &filter, 1_000).is_err());
}
