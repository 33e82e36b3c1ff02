//! The transactions of one item as marks, which find the common transactions with other items.

/// A bit for each transaction; the transactions of one item are marked.
///
/// # Examples
///
/// ```
/// use trommel_kernels::supports::Marks;
///
/// let mut marks = Marks::new(100);
/// marks.set(&[3, 5, 99]);
/// let mut common = vec![1];
/// marks.common(&[2, 3, 99], &mut common);
/// assert_eq!(common, [1, 3, 99]);
/// ```
#[derive(Clone, Debug)]
pub struct Marks {
    words: Vec<u64>,
    /// Words before this one may have marks.
    used: usize,
    len: u32,
}

impl Marks {
    /// No marks of transactions below `len`.
    #[must_use]
    pub fn new(len: u32) -> Self {
        Self { words: vec![0; (len as usize).div_ceil(64)], used: 0, len }
    }

    /// Number of transactions.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "not a collection")]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Marks the transactions `list`, and removes all earlier marks.
    ///
    /// # Cost
    ///
    /// A bit for each transaction, and a pass over all bits.
    ///
    /// # Panics
    ///
    /// If a transaction is not below [`len`](Self::len).
    pub fn set(&mut self, list: &[u32]) {
        self.words[..self.used].fill(0);
        self.used = list.iter().max().map_or(0, |&last| last as usize / 64 + 1);
        for &transaction in list {
            self.words[transaction as usize / 64] |= 1 << (transaction % 64);
        }
    }

    /// Whether a transaction is marked.
    ///
    /// # Panics
    ///
    /// If the transaction is not below [`len`](Self::len), rounded up to a multiple of 64.
    #[inline]
    #[must_use]
    pub fn has(&self, transaction: u32) -> bool {
        self.words[transaction as usize / 64] >> (transaction % 64) & 1 != 0
    }

    /// Appends the marked transactions of `list` to `common`.
    ///
    /// # Cost
    ///
    /// Two loads for each transaction of `list`, without a branch.
    ///
    /// # Panics
    ///
    /// As [`has`](Self::has).
    pub fn common(&self, list: &[u32], common: &mut Vec<u32>) {
        let begin = common.len();
        common.resize(begin + list.len(), 0);
        let (room, mut end) = (&mut common[begin..], 0);
        for &transaction in list {
            // The transaction is always written, and kept if it is marked.
            room[end] = transaction;
            end += usize::from(self.has(transaction));
        }
        common.truncate(begin + end);
    }
}
