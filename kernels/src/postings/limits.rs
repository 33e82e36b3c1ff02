//! The bounds of all sizes.

/// The maximum number of different sizes: ranks have 16 bits.
pub const RANKS_MAX: usize = 1 << 16;

/// The bounds of the sets of one size, as probes that find sets of at most their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The size.
    pub size: u32,
    /// Whether sets of this size probe; if not, other sets still find them.
    pub is_probe: bool,
    /// The rank of the smallest size that can be similar.
    pub rank_min: u32,
    /// The length of the prefix by which other sets find a set of this size.
    pub index_prefix: u32,
    /// The index of the row's first bound in the pairs of [`Limits`]: the row has a bound for each
    /// rank from `rank_min` to its own rank.
    pub pairs: u32,
    /// The index of the row's first bound in the maximum ranks of [`Limits`]: the row has a bound
    /// for each token that is looked up.
    pub positions: u32,
}

/// The bounds of pairs of two sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairLimit {
    /// The required overlap.
    pub required: u32,
    /// The maximum position in the smaller set at which its first common token can suffice.
    /// Positions do not descend within a row.
    pub position_max: u32,
    /// The maximum number of bits in which signatures may differ. Distances do not descend within a
    /// row.
    pub distance_max: u64,
}

/// The bounds of all sizes, checked once for many calls.
///
/// # Examples
///
/// ```
/// use trommel_kernels::postings::{Limits, PairLimit, Row};
///
/// // Sets of one size, 3, which must share 2 tokens.
/// let row = Row { size: 3, is_probe: true, index_prefix: 2, ..Row::default() };
/// let limit = PairLimit { required: 2, position_max: 1, distance_max: 2 };
/// let limits = Limits::new(vec![row], vec![limit], vec![0, 0]);
/// assert_eq!(limits.of(0, 0), limit);
/// ```
#[derive(Clone, Debug)]
pub struct Limits {
    rows: Vec<Row>,
    pairs: Vec<PairLimit>,
    rank_max: Vec<u32>,
}

impl Limits {
    /// `rows` are ordered by rank of the probe's size. `pairs` are ordered by row, then by rank of
    /// the smaller set. `rank_max` is ordered by row, then by position in the probe: the maximum
    /// rank that can suffice when the first common token is at this position, from the row's
    /// `rank_min` to its own rank.
    ///
    /// # Panics
    ///
    /// If there are more than [`RANKS_MAX`] rows, a row is not as [`Row`] says or its bounds
    /// descend, a position is not below 2^31 or a distance not below 2^63, or a maximum rank is
    /// outside its row.
    #[must_use]
    pub fn new(rows: Vec<Row>, pairs: Vec<PairLimit>, rank_max: Vec<u32>) -> Self {
        let limits = Self { rows, pairs, rank_max };
        let (rows, pairs) = (limits.rows.len(), limits.pairs.len());
        assert!(rows <= RANKS_MAX, "{rows} sizes, more than {RANKS_MAX}");
        for (rank, row) in (0..).zip(&limits.rows) {
            assert!(
                row.rank_min <= rank,
                "the row of rank {rank} begins with rank {}",
                row.rank_min
            );
            let begin = row.pairs as usize;
            let end = begin + (rank - row.rank_min) as usize;
            assert!(end < pairs, "the row of rank {rank} needs bounds up to {end} of {pairs}");
            let of_row = &limits.pairs[begin..=end];
            assert!(
                of_row.is_sorted_by_key(|limit| limit.position_max),
                "position bounds of rank {rank} descend"
            );
            assert!(
                of_row.is_sorted_by_key(|limit| limit.distance_max),
                "distance bounds of rank {rank} descend"
            );
            // Vector levels compare positions and distances as signed numbers.
            let loosest = of_row[of_row.len() - 1];
            assert!(
                loosest.position_max < 1 << 31,
                "a position bound of rank {rank} is not below 2^31"
            );
            assert!(
                loosest.distance_max < 1 << 63,
                "a distance bound of rank {rank} is not below 2^63"
            );
            let positions = row.positions as usize;
            let next = limits.rows.get(rank as usize + 1);
            let positions_end = next.map_or(limits.rank_max.len(), |row| row.positions as usize);
            let is_rank = |max: &u32| (row.rank_min..=rank).contains(max);
            let are_ranks = limits.rank_max[positions..positions_end].iter().all(is_rank);
            assert!(
                are_ranks,
                "a maximum rank of rank {rank} is outside {} to {rank}",
                row.rank_min
            );
        }
        limits
    }

    /// The bounds of a probe and a set by their ranks.
    ///
    /// # Panics
    ///
    /// If the set's rank is outside the row.
    #[inline(always)]
    #[must_use]
    pub fn of(&self, probe_rank: u32, rank: u32) -> PairLimit {
        let row = self.rows[probe_rank as usize];
        self.pairs[(row.pairs + (rank - row.rank_min)) as usize]
    }

    #[inline(always)]
    pub(super) fn row(&self, rank: u32) -> &Row {
        &self.rows[rank as usize]
    }

    /// The bounds of a row, followed by the bounds of the next rows.
    #[inline(always)]
    pub(super) fn pairs(&self, row: &Row) -> &[PairLimit] {
        &self.pairs[row.pairs as usize..]
    }

    #[inline(always)]
    pub(super) fn rank_max(&self, row: &Row, position: u32) -> u32 {
        self.rank_max[(row.positions + position) as usize]
    }
}
