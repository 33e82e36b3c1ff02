//! Numbers tokens by ascending frequency.
//!
//! Every prefix filter needs rare tokens first. Tokens that no two sets of a pair have in common
//! get the lowest numbers: such tokens fill prefixes and have no postings.
//!
//! ```text
//! blocks as they arrive ──► counts by token ──► numbers by token, in the same table
//!                                        └──► a hash table, if tokens are much larger than
//!                                             their number
//! ```
//!
//! A block is counted as soon as the block is full, while the source reads the next block on
//! another core. Tokens are put into order by a counting sort of their frequencies, because there
//! are few different frequencies; only the most frequent tokens are compared.

use hashbrown::HashMap;
use rapidhash::fast::RandomState;

use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::sets::side::Side;

/// Number of occurrences of a token per side; later the number of the token, in the first place.
type Occurrences = [u32; 2];

/// Sort key of a token. The order of the fields is the order of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Frequency {
    /// Whether two sets of a pair can have the token in common.
    is_shared: bool,
    occurrences: u32,
    token: u32,
}

/// The numbers of tokens, by token.
#[derive(Debug)]
pub(crate) enum Numbers {
    /// A table by token, if the largest token is not much larger than the number of tokens.
    Dense(Vec<u32>),
    Sparse(HashMap<u32, Occurrences, RandomState>),
}

impl Numbers {
    /// Replaces tokens by their numbers.
    pub(crate) fn replace(&self, tokens: &mut [u32]) {
        match self {
            Self::Dense(table) => {
                tokens.iter_mut().for_each(|token| *token = table[*token as usize]);
            }
            Self::Sparse(table) => tokens.iter_mut().for_each(|token| *token = table[token][0]),
        }
    }
}

/// Number of tokens after which the memory of a hash table is checked again.
const CHECKED_TOKENS: usize = 1 << 12;

/// Bytes of an entry of a hash table that is half full.
const SPARSE_BYTES: usize = 2 * (size_of::<(u32, Occurrences)>() + 1) * 8 / 7;

/// Name of the tables in errors.
const TABLES: &str = "the numbers of tokens";

/// Number of frequencies that are sorted by counting; higher frequencies are compared.
const FREQUENCIES: usize = 1 << 12;

/// The numbers of all tokens of a join.
pub(crate) struct Numbering {
    pub(crate) numbers: Numbers,
    pub(crate) counts: TokenCounts,
}

/// Numbers of different tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenCounts {
    /// Different tokens.
    pub(crate) distinct: u32,
    /// Tokens that no two sets of a pair have in common. These tokens have the numbers from 0 on.
    pub(crate) unshared: u32,
}

/// Totals of the tokens to be numbered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    /// Number of tokens of all sets.
    pub(crate) tokens: usize,
    /// Largest token.
    pub(crate) token_max: u32,
    /// Whether only pairs of a left and a right set are results.
    pub(crate) is_two_sided: bool,
}

impl Totals {
    fn places(self) -> usize {
        self.token_max as usize + 1
    }

    /// Whether a table by token is used. With up to 4 places per token, such a table takes less
    /// memory than a hash table, and a look-up is one load instead of a hash.
    fn is_dense(self) -> bool {
        self.tokens > 0 && self.places() / 4 <= self.tokens
    }
}

/// Counts tokens by side.
#[derive(Debug, Default)]
pub(crate) struct TokenCounter {
    /// Occurrences per side, by token; a side without tokens has no table.
    tables: [Vec<u32>; 2],
    /// Bytes of the tables, which have been taken from the budget.
    bytes: usize,
}

impl TokenCounter {
    /// Bytes of the tables, which have been taken from the budget.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts `tokens`, if tables of `totals` are worth their memory and fit into `budget`.
    pub(crate) fn count(
        &mut self,
        side: Side,
        tokens: &[u32],
        totals: Totals,
        budget: &mut Budget,
    ) -> Result<bool, BudgetFull> {
        Ok(self.make_room(side, totals, budget)?
            && self.count_within(side, tokens, totals.token_max))
    }

    /// Counts `tokens`, whose largest token is `token_max`, if the tables have room for the tokens.
    pub(crate) fn count_within(&mut self, side: Side, tokens: &[u32], token_max: u32) -> bool {
        let table = &mut self.tables[side.index()];
        let has_room = (token_max as usize) < table.len();
        if has_room {
            tokens.iter().for_each(|&token| table[token as usize] += 1);
        }
        has_room
    }

    /// Makes room for the tokens of a side, if tables of `totals` are worth their memory and fit
    /// into `budget`.
    pub(crate) fn make_room(
        &mut self,
        side: Side,
        totals: Totals,
        budget: &mut Budget,
    ) -> Result<bool, BudgetFull> {
        if !totals.is_dense() {
            return Ok(false);
        }
        let table = &mut self.tables[side.index()];
        if table.len() < totals.places() {
            // A quarter of the room is spare, so that a table is seldom copied.
            let places = totals.places() + totals.places() / 4;
            let bytes = (places - table.len()) * size_of::<u32>();
            budget.take(TABLES, bytes)?;
            self.bytes += bytes;
            table.reserve_exact(places - table.len());
            table.resize(places, 0);
        }
        Ok(true)
    }

    /// Adds the occurrences that `other` has counted.
    pub(crate) fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        for (table, mut other) in self.tables.iter_mut().zip(other.tables) {
            if table.len() < other.len() {
                std::mem::swap(table, &mut other);
            }
            table.iter_mut().zip(other).for_each(|(count, more)| *count += more);
        }
    }

    /// Numbers the tokens of `blocks`. The blocks `uncounted` have not been counted.
    ///
    /// # Errors
    /// If the tables do not fit into `budget`.
    pub(crate) fn finish<'a>(
        mut self,
        blocks: impl Iterator<Item = (Side, &'a [u32])>,
        uncounted: impl Iterator<Item = (Side, &'a [u32])>,
        totals: Totals,
        mut budget: Budget,
    ) -> Result<Numbering, BudgetFull> {
        if !totals.is_dense() {
            budget.give_back(self.bytes);
            drop(self);
            return sparse(blocks, totals.is_two_sided, budget);
        }
        for (side, tokens) in uncounted {
            self.count(side, tokens, totals, &mut budget)?;
        }
        let [table, right] = self.tables;
        Ok(dense(table, &right, totals.is_two_sided))
    }
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).expect("at most 2^31 tokens")
}

fn frequency([left, right]: Occurrences, token: u32, is_two_sided: bool) -> Frequency {
    let is_shared = if is_two_sided { left.min(right) > 0 } else { left > 1 };
    Frequency { is_shared, occurrences: left + right, token }
}

/// Numbers tokens by ascending frequency. `table` and `right` have the occurrences of each token on
/// the left and on the right side. The numbers replace the occurrences in `table`.
fn dense(mut table: Vec<u32>, right: &[u32], is_two_sided: bool) -> Numbering {
    table.resize(table.len().max(right.len()), 0);
    let key = |token: usize, left: u32| {
        let right = right.get(token).copied().unwrap_or(0);
        frequency([left, right], count(token), is_two_sided)
    };
    // Classes are in the order of the numbers. The last class of the shared tokens, and the last
    // class of the other tokens, has all high frequencies.
    let class = |key: &Frequency| {
        let low = (key.occurrences as usize).min(FREQUENCIES - 1);
        if key.is_shared { FREQUENCIES + low } else { low }
    };
    let is_high = |key: &Frequency| key.occurrences as usize >= FREQUENCIES - 1;
    let mut next = vec![0_u32; 2 * FREQUENCIES];
    for (token, &left) in table.iter().enumerate() {
        next[class(&key(token, left))] += 1;
    }
    // Tokens that do not occur have the frequency 0 and no number.
    next[0] = 0;
    let mut start = 0;
    for count in &mut next {
        start += std::mem::replace(count, start);
    }
    let counts = TokenCounts { distinct: start, unshared: next[FREQUENCIES] };
    let mut high = Vec::new();
    for (token, place) in table.iter_mut().enumerate() {
        let key = key(token, *place);
        if is_high(&key) {
            high.push(key);
        } else {
            let next = &mut next[class(&key)];
            *place = *next;
            *next += 1;
        }
    }
    high.sort_unstable();
    for key in high {
        let next = &mut next[class(&key)];
        table[key.token as usize] = *next;
        *next += 1;
    }
    Numbering { numbers: Numbers::Dense(table), counts }
}

/// Counts and numbers the tokens of `blocks`, each with its side, in a hash table.
fn sparse<'a>(
    blocks: impl Iterator<Item = (Side, &'a [u32])>,
    is_two_sided: bool,
    mut budget: Budget,
) -> Result<Numbering, BudgetFull> {
    let mut table: HashMap<u32, Occurrences, RandomState> = HashMap::default();
    for (side, tokens) in blocks {
        // The memory is checked after each chunk, since the set of a block may have any size.
        for tokens in tokens.chunks(CHECKED_TOKENS) {
            budget.reserve(TABLES, (table.len() + tokens.len()) * SPARSE_BYTES)?;
            for &token in tokens {
                table.entry(token).or_default()[side.index()] += 1;
            }
        }
    }
    budget.take(TABLES, table.len() * (SPARSE_BYTES + size_of::<Frequency>()))?;
    let key = |(&token, &occurrences)| frequency(occurrences, token, is_two_sided);
    let mut tokens: Vec<Frequency> = table.iter().map(key).collect();
    tokens.sort_unstable();
    let unshared = count(tokens.partition_point(|token| !token.is_shared));
    // The numbers overwrite the counts, which the sort keys have made redundant.
    for (number, Frequency { token, .. }) in (0..).zip(&tokens) {
        table.get_mut(token).expect("it was counted")[0] = number;
    }
    let counts = TokenCounts { distinct: count(tokens.len()), unshared };
    Ok(Numbering { numbers: Numbers::Sparse(table), counts })
}
