//! Numbers tokens by ascending frequency.
//!
//! Every prefix filter needs rare tokens first. Tokens that no two sets of a pair have in common
//! get the lowest numbers of all: they fill prefixes and have no postings.

use hashbrown::HashMap;
use rapidhash::fast::RandomState;

use super::side::Side;
use crate::budget::{Budget, BudgetFull};

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
pub(crate) enum Numbers {
    /// A table by token, if tokens are not much larger than their count.
    Dense(Vec<Occurrences>),
    Sparse(HashMap<u32, Occurrences, RandomState>),
}

impl Numbers {
    #[inline]
    pub(crate) fn number(&self, token: u32) -> u32 {
        match self {
            Self::Dense(table) => table[token as usize][0],
            Self::Sparse(table) => table[&token][0],
        }
    }
}

/// Bytes of an entry of a hash table that is half full.
const SPARSE_BYTES: usize = 2 * (size_of::<(u32, Occurrences)>() + 1) * 8 / 7;

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
    /// Tokens that no two sets of a pair have in common. They have the numbers from 0 on.
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

impl Numbering {
    /// Counts and numbers the tokens of `blocks`, each with its side.
    ///
    /// # Errors
    /// If the tables do not fit `budget`.
    pub(crate) fn new<'a>(
        blocks: impl Iterator<Item = (Side, &'a [u32])>,
        totals: Totals,
        mut budget: Budget,
    ) -> Result<Self, BudgetFull> {
        let Totals { tokens, token_max, is_two_sided } = totals;
        let places = token_max as usize + 1;
        // Up to 4 places per token, a table takes less memory than a hash table, and one load per
        // token instead of a hash.
        let is_dense = tokens > 0 && places / 4 <= tokens;
        let mut numbers = if is_dense {
            budget.take("the numbers of tokens", places * size_of::<Occurrences>())?;
            Numbers::Dense(vec![[0; 2]; places])
        } else {
            Numbers::Sparse(HashMap::default())
        };
        for (side, tokens) in blocks {
            let side = side.index();
            match &mut numbers {
                Numbers::Dense(table) => {
                    tokens.iter().for_each(|&token| table[token as usize][side] += 1);
                }
                Numbers::Sparse(table) => {
                    for &token in tokens {
                        table.entry(token).or_default()[side] += 1;
                    }
                    // Checked after each block, so that the table cannot outgrow the budget by
                    // more than a block.
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
        Ok(Self::by_frequency(numbers, distinct, is_two_sided))
    }

    fn by_frequency(mut numbers: Numbers, distinct: usize, is_two_sided: bool) -> Self {
        let key = |occurrences: Occurrences, token: u32| {
            let [left, right] = occurrences;
            let is_shared = if is_two_sided { left.min(right) > 0 } else { left > 1 };
            Frequency { is_shared, occurrences: left + right, token }
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
        let unshared = count(tokens.partition_point(|token| !token.is_shared));
        // The numbers overwrite the counts, which the sort keys have made redundant.
        for (number, &Frequency { token, .. }) in (0..).zip(&tokens) {
            let place = match &mut numbers {
                Numbers::Dense(table) => &mut table[token as usize],
                Numbers::Sparse(table) => table.get_mut(&token).expect("it was counted"),
            };
            place[0] = number;
        }
        let distinct = count(tokens.len());
        Self { numbers, counts: TokenCounts { distinct, unshared } }
    }
}
