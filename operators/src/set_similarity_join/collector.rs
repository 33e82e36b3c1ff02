//! Takes the sets of a join as they come, and numbers their tokens when all are there.
//!
//! Every filter of a set join lives from looking up rare tokens first, so tokens are numbered anew
//! by ascending frequency, and sets sorted by size. Tokens that no two sets to be joined have in
//! common come first of all: they fill prefixes and never find anything.

use hashbrown::HashMap;
use rapidhash::fast::RandomState;
use thiserror::Error;

use super::collection::{SetCollection, SortedSets};
use super::threshold::Threshold;

/// The most tokens of a join: a number below 2^16 for each size of its sets, and 32-bit offsets.
pub const TOKENS_MAX: usize = (1 << 31) - (1 << 16);

/// Tokens of a block, after which another one is begun.
const BLOCK_TOKENS: usize = 1 << 18;

/// Which of the two inputs of a join a set belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// The first input, or the only one of a self-join.
    #[default]
    Left,
    /// The second input.
    Right,
}

impl Side {
    pub(super) fn index(self) -> usize {
        match self {
            Self::Left => 0,
            Self::Right => 1,
        }
    }
}

/// Why sets cannot be joined.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// No two sets are as similar.
    #[error("{threshold} is out of reach; this similarity is at most 1")]
    OutOfReach {
        /// The threshold.
        threshold: Threshold,
    },
    /// The overlap is a number of tokens.
    #[error("{threshold} is no number of tokens; the threshold of the overlap is a whole number")]
    NotWhole {
        /// The threshold.
        threshold: Threshold,
    },
    /// A set is not as it has to be.
    #[error("the tokens of the set with id {id} do not ascend strictly")]
    NotAscending {
        /// The set.
        id: u32,
    },
    /// There are more tokens than can be joined at once.
    #[error("a join has at most {TOKENS_MAX} tokens; there are more")]
    TooManyTokens,
    /// There are more of them than a stream can number.
    #[error("a join of a stream has at most {most} {what}; there are more")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there can be.
        most: usize,
    },
    /// It does not fit the memory that it may use.
    #[error(
        "{what} of this join need {needed} bytes in all, and it may use {allowed} (`memory_max`)"
    )]
    MemoryFull {
        /// What was to be allocated.
        what: &'static str,
        /// Bytes with it.
        needed: usize,
        /// Bytes allowed.
        allowed: usize,
    },
}

impl JoinError {
    /// Names this set, if it is about one.
    pub(super) fn of_set(self, id: u32) -> Self {
        match self {
            Self::NotAscending { .. } => Self::NotAscending { id },
            other => other,
        }
    }
}

/// Memory that may be used, and how much of it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    used: usize,
    allowed: usize,
}

impl Budget {
    /// So many bytes, none of them used.
    pub(super) fn new(allowed: usize) -> Self {
        Self { used: 0, allowed }
    }

    /// Asks for `bytes` more, before they are allocated.
    pub(super) fn take(&mut self, what: &'static str, bytes: usize) -> Result<(), JoinError> {
        let needed = self.used.saturating_add(bytes);
        if needed > self.allowed {
            return Err(JoinError::MemoryFull { what, needed, allowed: self.allowed });
        }
        self.used = needed;
        Ok(())
    }

    fn give_back(&mut self, bytes: usize) {
        self.used -= bytes;
    }
}

/// Some sets, as they came.
#[derive(Debug, Default)]
struct Block {
    side: Side,
    ids: Vec<u32>,
    /// One more than sets.
    offsets: Vec<u32>,
    tokens: Vec<u32>,
}

impl Block {
    fn new(side: Side) -> Self {
        Self { side, offsets: vec![0], ..Self::default() }
    }

    fn push(&mut self, id: u32, tokens: &[u32]) {
        self.ids.push(id);
        self.tokens.extend_from_slice(tokens);
        self.offsets.push(u32::try_from(self.tokens.len()).expect("at most 2^31 tokens"));
    }

    fn set(&self, index: usize) -> &[u32] {
        &self.tokens[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

/// Bytes of a set besides its tokens: while it is collected, and what is sorted.
const SET_BYTES: usize = 2 * size_of::<u32>() + size_of::<Place>();

/// Collects the sets of a join.
///
/// # Examples
/// ```
/// use trommel_operators::set_similarity_join::{Side, SetCollector};
///
/// let mut sets = SetCollector::new(1 << 20);
/// sets.push(Side::Left, 0, &[3, 7, 900])?;
/// sets.push(Side::Left, 1, &[3, 8, 900])?;
/// assert_eq!(sets.finish()?.len(), 2);
/// # Ok::<(), trommel_operators::set_similarity_join::JoinError>(())
/// ```
#[derive(Debug)]
pub struct SetCollector {
    blocks: Vec<Block>,
    is_two_sided: bool,
    tokens: usize,
    token_max: u32,
    empty_sets: u64,
    budget: Budget,
}

impl SetCollector {
    /// No sets yet; they, and all that is made of them, may use so many bytes.
    #[must_use]
    pub fn new(memory_max: usize) -> Self {
        Self {
            blocks: Vec::new(),
            is_two_sided: false,
            tokens: 0,
            token_max: 0,
            empty_sets: 0,
            budget: Budget::new(memory_max),
        }
    }

    /// Makes it a join of two inputs, of which one may be empty: only pairs of a left and a right
    /// set are results.
    #[must_use]
    pub fn two_sided(mut self) -> Self {
        self.is_two_sided = true;
        self
    }

    /// Adds a set. With the first one of the right side, the join is one of two inputs.
    ///
    /// # Errors
    /// If the tokens do not ascend strictly, there are too many in all, or they do not fit the
    /// memory.
    pub fn push(&mut self, side: Side, id: u32, tokens: &[u32]) -> Result<(), JoinError> {
        if !tokens.is_sorted_by(|left, right| left < right) {
            return Err(JoinError::NotAscending { id });
        }
        self.is_two_sided |= side == Side::Right;
        let Some(&last) = tokens.last() else {
            self.empty_sets += 1;
            return Ok(());
        };
        if tokens.len() > TOKENS_MAX - self.tokens {
            return Err(JoinError::TooManyTokens);
        }
        self.budget.take("the sets", size_of_val(tokens) + SET_BYTES)?;
        self.tokens += tokens.len();
        self.token_max = self.token_max.max(last);
        let is_room = |block: &&mut Block| {
            block.side == side && block.tokens.len() + tokens.len() <= BLOCK_TOKENS
        };
        let block = match self.blocks.last_mut().filter(is_room) {
            Some(block) => block,
            None => self.blocks.push_mut(Block::new(side)),
        };
        block.push(id, tokens);
        Ok(())
    }

    /// Asks for memory for what goes with the sets.
    pub(super) fn reserve(&mut self, what: &'static str, bytes: usize) -> Result<(), JoinError> {
        self.budget.take(what, bytes)
    }

    /// Sets without tokens, which are similar to none.
    #[must_use]
    pub fn empty_sets(&self) -> u64 {
        self.empty_sets
    }

    /// Numbers the tokens by ascending frequency and sorts the sets.
    ///
    /// # Cost
    /// A look-up for each token, and sorting: of the tokens of each set, and of all sets by size
    /// and tokens. Needs the tokens twice for a moment.
    ///
    /// # Errors
    /// If that does not fit the memory.
    pub fn finish(mut self) -> Result<SetCollection, JoinError> {
        let Numbering { numbers, distinct, unshared } = Numbering::new(&self)?;
        for block in &mut self.blocks {
            let Block { offsets, tokens, .. } = block;
            for ends in offsets.windows(2) {
                let set = &mut tokens[ends[0] as usize..ends[1] as usize];
                set.iter_mut().for_each(|token| *token = numbers.number(*token));
                set.sort_unstable();
            }
        }
        // The sets are there twice from here on, and that is the most memory.
        drop(numbers);
        let places = self.sorted_places();
        let (sets, tokens) = (places.len(), self.tokens);
        self.budget.take("the sorted sets", 4 * tokens + 9 * sets)?;
        let mut sorted = SortedSets::with_capacity(sets, tokens);
        for place in &places {
            let block = &self.blocks[place.block as usize];
            let index = place.index as usize;
            sorted.push(block.side, block.ids[index], block.set(index));
        }
        self.budget.give_back(4 * tokens + SET_BYTES * sets);
        Ok(sorted.finish(self.is_two_sided, distinct, unshared, self.budget))
    }

    /// Where the sets are, by size, side and tokens.
    fn sorted_places(&self) -> Vec<Place> {
        let mut places = Vec::with_capacity(self.blocks.iter().map(|b| b.ids.len()).sum());
        for (number, block) in (0..).zip(&self.blocks) {
            for (index, ends) in (0..).zip(block.offsets.windows(2)) {
                let size = ends[1] - ends[0];
                places.push(Place { size, side: block.side, block: number, index });
            }
        }
        let tokens = |place: &Place| self.blocks[place.block as usize].set(place.index as usize);
        places.sort_unstable_by(|left, right| {
            let key = |place: &Place| (place.size, place.side.index());
            key(left)
                .cmp(&key(right))
                .then_with(|| tokens(left).cmp(tokens(right)))
                .then_with(|| (left.block, left.index).cmp(&(right.block, right.index)))
        });
        places
    }
}

/// Where a set is.
#[derive(Debug, Clone, Copy)]
struct Place {
    size: u32,
    side: Side,
    block: u32,
    index: u32,
}

/// How often a token occurs on each side; later its number.
type Occurrences = [u32; 2];

/// What tokens are numbered by: whether two sets of a pair can have it, how often it occurs,
/// itself.
type Frequency = (bool, u32, u32);

/// The numbers of tokens, by token.
enum Numbers {
    /// For tokens that are themselves not much larger than their number.
    Dense(Vec<Occurrences>),
    Sparse(HashMap<u32, Occurrences, RandomState>),
}

impl Numbers {
    #[inline]
    fn number(&self, token: u32) -> u32 {
        match self {
            Self::Dense(table) => table[token as usize][0],
            Self::Sparse(table) => table[&token][0],
        }
    }
}

/// Bytes of an entry of a hash table, at its least load.
const SPARSE_BYTES: usize = 2 * (size_of::<(u32, Occurrences)>() + 1) * 8 / 7;

struct Numbering {
    numbers: Numbers,
    distinct: u32,
    /// How many of the first numbers no pair of sets can have in common.
    unshared: u32,
}

impl Numbering {
    fn new(sets: &SetCollector) -> Result<Self, JoinError> {
        let mut budget = sets.budget;
        let places = sets.token_max as usize + 1;
        let is_dense = sets.tokens > 0 && places / 4 <= sets.tokens;
        let mut numbers = if is_dense {
            budget.take("the numbers of tokens", places * size_of::<Occurrences>())?;
            Numbers::Dense(vec![[0; 2]; places])
        } else {
            Numbers::Sparse(HashMap::default())
        };
        for block in &sets.blocks {
            let side = block.side.index();
            match &mut numbers {
                Numbers::Dense(table) => {
                    block.tokens.iter().for_each(|&token| table[token as usize][side] += 1);
                }
                Numbers::Sparse(table) => {
                    for &token in &block.tokens {
                        table.entry(token).or_default()[side] += 1;
                    }
                    let bytes = table.len() * SPARSE_BYTES;
                    budget.clone().take("the numbers of tokens", bytes)?;
                }
            }
        }
        let (distinct, bytes) = match &numbers {
            Numbers::Dense(table) => (table.iter().filter(|seen| **seen != [0; 2]).count(), 0),
            Numbers::Sparse(table) => (table.len(), table.len() * SPARSE_BYTES),
        };
        budget.take("the numbers of tokens", bytes + distinct * size_of::<Frequency>())?;
        Ok(Self::by_frequency(numbers, distinct, sets.is_two_sided))
    }

    fn by_frequency(mut numbers: Numbers, distinct: usize, is_two_sided: bool) -> Self {
        let key = |occurrences: Occurrences, token: u32| {
            let [left, right] = occurrences;
            let is_shared = if is_two_sided { left.min(right) > 0 } else { left > 1 };
            (is_shared, left + right, token)
        };
        let mut tokens: Vec<Frequency> = Vec::with_capacity(distinct);
        match &numbers {
            Numbers::Dense(table) => {
                let seen = (0..).zip(table).filter(|(_, occurrences)| **occurrences != [0; 2]);
                tokens.extend(seen.map(|(token, &occurrences)| key(occurrences, token)));
            }
            Numbers::Sparse(table) => {
                tokens.extend(table.iter().map(|(&token, &occurrences)| key(occurrences, token)));
            }
        }
        tokens.sort_unstable();
        let count = |tokens: usize| u32::try_from(tokens).expect("at most 2^31 tokens");
        let unshared = count(tokens.partition_point(|&(is_shared, ..)| !is_shared));
        for (number, &(.., token)) in (0..).zip(&tokens) {
            let place = match &mut numbers {
                Numbers::Dense(table) => &mut table[token as usize],
                Numbers::Sparse(table) => table.get_mut(&token).expect("it was counted"),
            };
            place[0] = number;
        }
        let distinct = count(tokens.len());
        Self { numbers, distinct, unshared }
    }
}
