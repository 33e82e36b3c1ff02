//! Numbers for distinct strings, in the order of their first occurrence.
//!
//! ```text
//! token ──► young: found ─────────────────────────────► its number
//!             └─► old: found ──► copied to young ─────► its number
//!                   └─► nowhere ──► added to young ───► a new number
//!
//! young is full:  old is forgotten, young becomes old, a new young one begins
//! ```
//!
//! So a token that is used at least once while `tokens_max` other tokens are used is never
//! forgotten, nothing is forgotten before there are more than `tokens_max` tokens, and no call does
//! more work than its own tokens need. After 2^32 numbers, a number is given again, unless a known
//! token has it.

use trommel_engine::memory::{MemoryBudget, MemoryFull, Reservation};
use trommel_engine::operator::Counters;

use super::super::TokenizeError;
use crate::shared::texts::{TextHash, TextKey, TextTable};

/// Bytes by which a reservation of memory grows.
const STEP_BYTES: usize = 1 << 20;

/// Limits of each of the two generations of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DictionaryLimits {
    /// Maximum number of tokens.
    pub(crate) tokens_max: usize,
    /// Maximum bytes of the text of tokens.
    pub(crate) bytes_max: usize,
    /// Whether a full dictionary forgets tokens. Otherwise it fails.
    pub(crate) forgets: bool,
}

pub(crate) struct Dictionary {
    young: Generation,
    old: Generation,
    limits: DictionaryLimits,
    memory: MemoryBudget,
    /// The error of a reservation for the young generation, if the memory of the pipeline had no
    /// room.
    memory_full: Option<MemoryFull>,
    hash: TextHash,
    next: u32,
    /// Numbers of known tokens, ascending, once numbers are given a second time.
    taken: Vec<u32>,
    has_wrapped: bool,
    /// Number of tokens of `old` that are in `young`, too.
    used_again: usize,
    numbered: u64,
    forgotten: u64,
}

/// Tokens and their numbers.
#[derive(Default)]
struct Generation {
    tokens: TextTable,
    /// Number of each token; empty as long as each number is the index in the table.
    numbers: Vec<u32>,
    /// The reservation for the generation, once the generation takes more than a step.
    reserved: Option<Reservation>,
}

impl Generation {
    #[inline]
    fn number(&self, key: &TextKey, long: &str) -> Option<u32> {
        let index = self.tokens.find(key, long)?;
        Some(self.numbers.get(index as usize).copied().unwrap_or(index))
    }

    fn add(&mut self, key: &TextKey, long: &str, number: u32, hasher: &TextHash) {
        let index = self.tokens.add(key, long, hasher);
        if self.numbers.is_empty() && number == index {
            return;
        }
        if self.numbers.is_empty() {
            self.numbers.extend(0..index);
        }
        self.numbers.push(number);
    }

    /// The numbers of all tokens.
    fn all_numbers(&self) -> impl Iterator<Item = u32> {
        let count = u32::try_from(self.tokens.len()).expect("fewer than 2^32 texts");
        let own = if self.numbers.is_empty() { 0..count } else { 0..0 };
        self.numbers.iter().copied().chain(own)
    }
}

impl Generation {
    /// Reserves the memory of the generation, in steps.
    fn account(&mut self, memory: &MemoryBudget) -> Result<(), MemoryFull> {
        let Self { tokens, numbers, reserved } = self;
        let bytes = tokens.bytes() + numbers.capacity() * size_of::<u32>();
        match reserved {
            // A dictionary always has this much, so that it can work in a full pipeline.
            None if bytes <= STEP_BYTES => Ok(()),
            None => memory.reserve(bytes + STEP_BYTES).map(|new| *reserved = Some(new)),
            Some(old) if bytes <= old.bytes() => Ok(()),
            Some(old) => old.resize(bytes + STEP_BYTES),
        }
    }
}

impl Dictionary {
    pub(crate) fn new(limits: DictionaryLimits, memory: MemoryBudget) -> Self {
        Self {
            young: Generation::default(),
            old: Generation::default(),
            limits,
            memory,
            memory_full: None,
            hash: TextHash::new(),
            next: 0,
            taken: Vec::new(),
            has_wrapped: false,
            used_again: 0,
            numbered: 0,
            forgotten: 0,
        }
    }

    /// Counters for the report: numbers given, one for each distinct token and one more each time a
    /// forgotten token returns; and forgotten tokens.
    pub(crate) fn counters(&self) -> Counters {
        vec![("distinct_tokens", self.numbered), ("tokens_forgotten", self.forgotten)]
    }

    /// The hash that makes the keys of tokens.
    pub(crate) fn hash(&self) -> TextHash {
        self.hash
    }

    /// Fetches into the cache the memory in which a look-up of the token begins.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: &TextKey) {
        self.young.tokens.prefetch(key);
    }

    /// The number of the token with this key; a token that is not known gets a new number. `long`
    /// is the token, if the key does not hold it.
    #[inline]
    pub(crate) fn number(&mut self, key: &TextKey, long: &str) -> Result<u32, TokenizeError> {
        match self.young.number(key, long) {
            Some(number) => Ok(number),
            None => self.renew(key, long),
        }
    }

    /// Adds a token to the young generation, with its number of the old generation if it has one
    /// there.
    #[inline(never)]
    fn renew(&mut self, key: &TextKey, long: &str) -> Result<u32, TokenizeError> {
        self.make_room(key.len())?;
        let number = match self.old.number(key, long) {
            Some(number) => {
                self.used_again += 1;
                number
            }
            None => self.new_number(),
        };
        self.young.add(key, long, number, &self.hash);
        self.memory_full = self.young.account(&self.memory).err();
        Ok(number)
    }

    /// Forgets the old generation if the young one is full.
    fn make_room(&mut self, bytes: usize) -> Result<(), TokenizeError> {
        let DictionaryLimits { tokens_max, bytes_max, forgets } = self.limits;
        let is_full = self.memory_full.is_some()
            || self.young.tokens.len() >= tokens_max
            || self.young.tokens.text_bytes() + bytes > bytes_max.max(bytes);
        if !is_full {
            return Ok(());
        }
        if let Some(full) = self.memory_full.filter(|_| !forgets) {
            return Err(TokenizeError::Memory(full));
        }
        if !forgets {
            return Err(TokenizeError::DictionaryFull { tokens_max, bytes_max });
        }
        let count = self.old.tokens.len() - std::mem::take(&mut self.used_again);
        self.old = std::mem::take(&mut self.young);
        self.memory_full = None;
        if self.forgotten == 0 && count > 0 {
            tracing::warn!(
                "the dictionary of `tokenize` is full (`dictionary_max`, `dictionary_bytes_max`, \
                 `memory_max`): it forgets the tokens that were not used for longest"
            );
        }
        self.forgotten += count as u64;
        if self.has_wrapped {
            self.collect_taken();
        }
        Ok(())
    }

    /// A number that no known token has.
    fn new_number(&mut self) -> u32 {
        loop {
            let number = self.next;
            self.next = number.wrapping_add(1);
            if self.next == 0 {
                self.has_wrapped = true;
                self.collect_taken();
            }
            if self.taken.binary_search(&number).is_err() {
                self.numbered += 1;
                return number;
            }
        }
    }

    fn collect_taken(&mut self) {
        self.taken = self.young.all_numbers().chain(self.old.all_numbers()).collect();
        self.taken.sort_unstable();
        self.taken.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Dictionary {
        fn number_of(&mut self, token: &str) -> Result<u32, TokenizeError> {
            let key = self.hash.key(token);
            self.number(&key, token)
        }
    }

    fn of(tokens_max: usize) -> Dictionary {
        let limits = DictionaryLimits { tokens_max, bytes_max: 1 << 20, forgets: true };
        Dictionary::new(limits, MemoryBudget::new(1 << 30))
    }

    #[test]
    fn nothing_is_forgotten_before_the_limit() {
        let mut dictionary = of(100);
        for round in 0..3 {
            for i in 0..100 {
                assert_eq!(dictionary.number_of(&format!("t{i}")).unwrap(), i, "{round}");
            }
        }
        assert_eq!((dictionary.numbered, dictionary.forgotten), (100, 0));
    }

    #[test]
    fn tokens_in_use_keep_their_number_and_memory_is_bounded() {
        let mut dictionary = of(100);
        let hot = dictionary.number_of("hot").unwrap();
        let mut numbers = std::collections::HashSet::from([hot]);
        for i in 0..100_000 {
            assert!(numbers.insert(dictionary.number_of(&format!("t{i}")).unwrap()));
            if i % 90 == 0 {
                assert_eq!(dictionary.number_of("hot").unwrap(), hot);
            }
            assert!(dictionary.young.tokens.len() + dictionary.old.tokens.len() <= 200);
        }
        assert_eq!(dictionary.numbered, 100_001);
        assert!(dictionary.forgotten > 99_000);
        // A token that is not used for long comes back as another one.
        assert!(numbers.insert(dictionary.number_of("t0").unwrap()));
    }

    #[test]
    fn bytes_are_bounded() {
        let limits = DictionaryLimits { tokens_max: 1 << 20, bytes_max: 10_000, forgets: true };
        let mut dictionary = Dictionary::new(limits, MemoryBudget::new(1 << 30));
        let long = |i: usize| format!("{}{i}", "x".repeat(1000));
        for i in 0..1000 {
            let number = dictionary.number_of(&long(i)).unwrap();
            assert_eq!(dictionary.number_of(&long(i)).unwrap(), number);
            let bytes = [&dictionary.young, &dictionary.old].map(|g| g.tokens.text_bytes());
            assert!(bytes.into_iter().all(|bytes| bytes <= 10_000));
        }
        assert_eq!(dictionary.numbered, 1000);
    }

    #[test]
    fn memory_of_the_pipeline_bounds_it_and_comes_back() {
        let memory = MemoryBudget::new(8 << 20);
        let others = memory.reserve(2 << 20).unwrap();
        let limits = DictionaryLimits { tokens_max: 1 << 20, bytes_max: 1 << 30, forgets: true };
        let mut dictionary = Dictionary::new(limits, memory.clone());
        for i in 0..500_000 {
            dictionary.number_of(&format!("token number {i}")).unwrap();
        }
        assert_eq!(dictionary.numbered, 500_000);
        assert!(dictionary.forgotten > 300_000, "{}", dictionary.forgotten);
        drop(dictionary);
        assert_eq!(memory.reserved(), others.bytes());

        let mut strict =
            Dictionary::new(DictionaryLimits { forgets: false, ..limits }, memory.clone());
        let failed =
            (0..500_000).find_map(|i| strict.number_of(&format!("token number {i}")).err());
        let error = failed.unwrap().to_string();
        assert!(error.contains("(`memory_max`)"), "{error}");
    }

    #[test]
    fn numbers_that_come_around_again_are_not_those_of_known_tokens() {
        let mut dictionary = of(10);
        let (zero, one) =
            (dictionary.number_of("zero").unwrap(), dictionary.number_of("one").unwrap());
        assert_eq!((zero, one), (0, 1));
        dictionary.next = u32::MAX - 1;
        let next: Vec<u32> =
            ["a", "b", "c"].map(|token| dictionary.number_of(token).unwrap()).to_vec();
        assert_eq!(next, [u32::MAX - 1, u32::MAX, 2]);
        for i in 0..50 {
            let number = dictionary.number_of(&format!("t{i}")).unwrap();
            assert_eq!(dictionary.number_of("zero").unwrap(), 0);
            assert_ne!(number, 0);
        }
    }
}
