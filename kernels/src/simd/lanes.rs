//! A register of lanes as a trait, so that a loop over registers is written once for all levels.
//!
//! A register is made from a level, which is the proof that the processor has its instructions
//! ([`Lanes::splat`], [`Lanes::load`]), or from another register. This rule makes every method
//! safe.

#![expect(
    unnameable_types,
    reason = "the seal of `Key`: reachable as its supertrait, nameable by nobody"
)]

use std::fmt::Debug;

/// A level with registers of lanes of both widths.
pub trait Simd: Copy {
    /// A register of 32-bit lanes.
    type U32: Lanes<Simd = Self, Key = u32>;
    /// A register of 64-bit lanes, half as many.
    type U64: Lanes<Simd = Self, Key = u64>;

    /// A mask of 32-bit lanes as masks of 64-bit lanes, for the first half and the last half.
    fn halves(mask: <Self::U32 as Lanes>::Mask) -> [<Self::U64 as Lanes>::Mask; 2];
    /// The lower halves of the lanes of two registers.
    fn narrow(registers: [Self::U64; 2]) -> Self::U32;
}

/// Most weights that lanes may add up before their sums must be taken.
pub(crate) const WEIGHTS_MAX: usize = 1024;

/// The limit of weights whose sums fit into 64 bits: [`WEIGHTS_MAX`] weights below it do.
pub(crate) const WEIGHT_END: u64 = 1 << 54;

const _: () = assert!((WEIGHTS_MAX as u64).checked_mul(WEIGHT_END - 1).is_some());

/// All bits of the weights: this number is at least the largest weight, and cheaper to find.
#[inline(always)]
pub(crate) fn bits_of(weights: &[u64]) -> u64 {
    weights.iter().fold(0, |bits, weight| bits | weight)
}

/// One register of [`Self::COUNT`] lanes.
pub trait Lanes: Copy {
    /// The level.
    type Simd: Copy;
    /// The content of a lane.
    type Key: Copy + Default;
    /// The answer of a comparison, one truth value per lane.
    type Mask: Copy;
    /// Lanes in the register: a power of two, at most 64.
    const COUNT: usize;

    /// The register with `key` in each lane.
    fn splat(simd: Self::Simd, key: Self::Key) -> Self;
    /// The register with the [`Self::COUNT`] keys of the slice; panics if it has another length.
    fn load(simd: Self::Simd, keys: &[Self::Key]) -> Self;
    /// Writes the lanes to the slice of [`Self::COUNT`] keys; panics if it has another length.
    fn store(self, keys: &mut [Self::Key]);
    /// Compares lane by lane.
    fn matches(self, other: Self) -> Self::Mask;
    /// One in each lane, for [`Self::count`].
    fn one(simd: Self::Simd) -> Self;
    /// Adds one, wrapping, to the lanes that are set in the mask; `one` comes from [`Self::one`].
    fn count(self, mask: Self::Mask, one: Self) -> Self;
    /// Adds, wrapping, the lanes of `numbers` that are set in the mask.
    fn add(self, mask: Self::Mask, numbers: Self) -> Self;
    /// The lanes that are set in either mask.
    fn either(left: Self::Mask, right: Self::Mask) -> Self::Mask;
    /// The mask as bits, lane 0 lowest; zero above [`Self::COUNT`].
    fn bits(mask: Self::Mask) -> u64;
    /// Writes the lanes that are not set in the mask to the front of `keys`, in their order, and
    /// returns their number; all later keys may be overwritten. Panics if `keys` has not room for
    /// [`Self::COUNT`].
    fn compress(self, dropped: Self::Mask, keys: &mut [Self::Key]) -> usize;
}

/// A key that vectors can hold: `u32` or `u64`. Sealed.
pub trait Key:
    KeyLanes + Copy + Eq + Ord + From<u8> + Into<u64> + Debug + Send + Sync + 'static
{
}

impl Key for u32 {}
impl Key for u64 {}

/// A mask of the register of a key type.
pub(crate) type MaskOf<K, S> = <<K as KeyLanes>::Lanes<S> as Lanes>::Mask;

/// The register of a key type; also seals [`Key`].
pub trait KeyLanes: Sized + Default {
    /// The register of `S` that holds such keys.
    type Lanes<S: Simd>: Lanes<Simd = S, Key = Self>;
    /// Number of registers of weights for a register of keys.
    const WIDTH: usize;
    /// The limit of weights that lanes as wide as a key can add up: the sum of [`WEIGHTS_MAX`]
    /// weights, in equal shares for all lanes, fits a lane.
    const WEIGHT_END: u64;
    /// The register of as many weights as lanes, all below [`Self::WEIGHT_END`].
    fn narrow<S: Simd>(simd: S, weights: &[u64]) -> Self::Lanes<S>;
    /// Part `part`, below [`Self::WIDTH`], of a mask of keys, as a mask of their weights.
    fn part<S: Simd>(mask: MaskOf<Self, S>, part: usize) -> MaskOf<u64, S>;
    /// A lane's value as a count.
    fn to_count(self) -> u64;
}

impl KeyLanes for u32 {
    type Lanes<S: Simd> = S::U32;
    const WIDTH: usize = 2;
    const WEIGHT_END: u64 = 1 << 24;

    #[inline(always)]
    fn narrow<S: Simd>(simd: S, weights: &[u64]) -> S::U32 {
        let (low, high) = weights.split_at(S::U64::COUNT);
        S::narrow([low, high].map(|weights| S::U64::load(simd, weights)))
    }

    #[inline(always)]
    fn part<S: Simd>(mask: MaskOf<Self, S>, part: usize) -> MaskOf<u64, S> {
        S::halves(mask)[part]
    }

    #[inline(always)]
    fn to_count(self) -> u64 {
        self.into()
    }
}

impl KeyLanes for u64 {
    type Lanes<S: Simd> = S::U64;
    const WIDTH: usize = 1;
    const WEIGHT_END: u64 = WEIGHT_END;

    #[inline(always)]
    fn narrow<S: Simd>(simd: S, weights: &[u64]) -> S::U64 {
        S::U64::load(simd, weights)
    }

    #[inline(always)]
    fn part<S: Simd>(mask: MaskOf<Self, S>, _: usize) -> MaskOf<u64, S> {
        mask
    }

    #[inline(always)]
    fn to_count(self) -> u64 {
        self
    }
}
