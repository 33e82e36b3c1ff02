//! Streams of items, made from a seed.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) stream: Stream,
    pub(crate) weights: Weights,
    pub(crate) counters: usize,
    pub(crate) bins: usize,
    pub(crate) len: usize,
    pub(crate) batch: usize,
    pub(crate) seed: u64,
}

pub(crate) const BASE: Case = Case {
    stream: Stream::Uniform,
    weights: Weights::Ones,
    counters: 40,
    bins: 8,
    len: 1_500,
    batch: 97,
    seed: 1,
};

/// The kinds of streams. All are deterministic.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Uniform,
    /// Skew in tenths.
    Zipf(u32),
    Sorted,
    AllNew,
    TwoAlternating,
    RoundRobin,
    ChangingHitters,
}

impl Stream {
    pub(crate) const ALL: [Self; 13] = [
        Self::Uniform,
        Self::Zipf(5),
        Self::Zipf(10),
        Self::Zipf(15),
        Self::Zipf(20),
        Self::Zipf(30),
        Self::Zipf(50),
        Self::Zipf(0),
        Self::Sorted,
        Self::AllNew,
        Self::TwoAlternating,
        Self::RoundRobin,
        Self::ChangingHitters,
    ];

    /// `len` item numbers below 100,000, for a summary of `counters`.
    pub(crate) fn numbers(self, len: usize, counters: usize, seed: u64) -> Vec<u64> {
        let mut random = Random(seed);
        let alphabet = 4 * counters as u64;
        let table = match self {
            Self::Zipf(skew) => zipf_table(alphabet, f64::from(skew) / 10.0),
            _ => Vec::new(),
        };
        let mut numbers: Vec<u64> = (0..len as u64)
            .map(|i| match self {
                Self::Uniform | Self::Sorted => random.below(alphabet),
                Self::Zipf(_) => {
                    let point = random.unit() * table[table.len() - 1];
                    table.partition_point(|&sum| sum < point) as u64
                }
                Self::AllNew => i,
                Self::TwoAlternating => i % 2,
                Self::RoundRobin => i % (counters as u64 + 1),
                Self::ChangingHitters => {
                    let era = 4 * i / len as u64;
                    if random.below(3) == 0 {
                        random.below(alphabet)
                    } else {
                        1000 * era + random.below(5)
                    }
                }
            })
            .collect();
        if matches!(self, Self::Sorted) {
            numbers.sort_unstable();
        }
        numbers
    }
}

fn zipf_table(alphabet: u64, skew: f64) -> Vec<f64> {
    let ranks = 1..=u32::try_from(alphabet).unwrap();
    ranks
        .scan(0.0, |sum, rank| {
            *sum += f64::from(rank).powf(-skew);
            Some(*sum)
        })
        .collect()
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn unit(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap()) / 4_294_967_296.0
    }
}

/// How items are weighted; the seed goes with the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Weights {
    Ones,
    UpTo(u64),
}

impl Weights {
    pub(crate) fn of(self, len: usize, seed: u64) -> Option<Vec<u64>> {
        let Self::UpTo(max) = self else { return None };
        let mut random = Random(!seed);
        Some((0..len).map(|_| random.next() % (max.saturating_add(1).max(1))).collect())
    }
}
