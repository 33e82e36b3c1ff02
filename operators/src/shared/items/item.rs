//! Items that are counted, integers and texts, and batches of items.
//!
//! A summary keeps an [`Item`]; a batch lends its borrowed form [`Item::Ref`], so that a look-up
//! allocates nothing. Each item has a *key*, which is hashed and compared in place of it, and a
//! *code*, an integer that the SIMD filter works with:
//!
//! | item | borrowed | key | code |
//! |---|---|---|---|
//! | `u32`, `u64` | itself | itself | itself |
//! | `Text` of up to 15 bytes | `&str` | its bytes and its length | 64-bit rapidhash of the key |
//! | longer `Text` | `&str` | 64-bit rapidhash and its length | the hash |
//!
//! Integers with equal codes are equal ([`Item::CODE_IS_ITEM`]). Items with equal keys are equal,
//! too, except for longer texts ([`Item::is_exact`]), which are compared as strings.
//!
//! Key and code belong to the item and not to the summary, so that an item type of a program has
//! keys and codes of its own. The secret on which both depend belongs to the summary
//! ([`Item::Secret`]).

use std::fmt::Debug;
use std::ops::Range;

use trommel_kernels::filter;
use trommel_kernels::sieve::CellKey;

/// Something that can be counted.
///
/// Implementors keep four promises: under one secret, equal items have equal keys, and equal keys
/// equal codes; items with equal keys are equal if [`Self::is_exact`] says so of the key;
/// [`Self::is`] and [`Ord`] agree with equality; and if [`Self::CODE_IS_ITEM`], different items
/// have different codes, which [`Self::from_code`] and [`Self::keys_of_codes`] turn back into the
/// items and their keys.
///
/// # Secrets
///
/// A key or code that is a hash has to depend on a secret. Otherwise an adversary can choose items
/// with equal keys or codes, which make counting slow. Each summary draws its own secret and keeps
/// its items under the keys that belong to the secret. An item from another summary gets a new key
/// ([`Self::rekey`]).
///
/// # Examples
///
/// Pairs of ports, whose code is the pair itself:
///
/// ```
/// use trommel_operators::frequent_items::{Item, Items, SpaceSaving};
///
/// #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
/// struct Ports(u16, u16);
///
/// impl Item for Ports {
///     type Code = u32;
///     type Key = u32;
///     type Secret = ();
///     type Ref<'a> = (u16, u16);
///     const CODE_IS_ITEM: bool = true;
///
///     fn secret(_: u64) {}
///     fn key_of((from, to): (u16, u16), (): &()) -> u32 {
///         u32::from(from) << 16 | u32::from(to)
///     }
///     fn code_of_key(key: u32, (): &()) -> u32 {
///         key
///     }
///     fn new((from, to): (u16, u16), _: u32) -> Self {
///         Self(from, to)
///     }
///     fn assign(&mut self, (from, to): (u16, u16), _: u32) {
///         *self = Self(from, to);
///     }
///     fn key(&self) -> u32 {
///         Self::key_of((self.0, self.1), &())
///     }
///     fn rekey(&mut self, (): &()) {}
///     fn borrowed(&self) -> (u16, u16) {
///         (self.0, self.1)
///     }
///     fn is(&self, item: (u16, u16), _: u32) -> bool {
///         (self.0, self.1) == item
///     }
///     fn is_exact(_: u32) -> bool {
///         true
///     }
///     fn heap_bytes(&self) -> usize {
///         0
///     }
///     fn from_code(code: &u32) -> Option<(u16, u16)> {
///         Some(((code >> 16) as u16, *code as u16))
///     }
///     fn keys_of_codes(codes: &[u32]) -> Option<&[u32]> {
///         Some(codes)
///     }
/// }
///
/// struct Packets(Vec<(u16, u16)>);
///
/// impl Items<Ports> for Packets {
///     fn len(&self) -> usize {
///         self.0.len()
///     }
///     fn item(&self, position: usize) -> (u16, u16) {
///         self.0[position]
///     }
/// }
///
/// let mut summary = SpaceSaving::new(100)?;
/// summary.observe(&Packets(vec![(4000, 443), (4000, 80), (4000, 443)]));
/// assert_eq!(summary.top(1)[0].item, Ports(4000, 443));
/// # Ok::<(), trommel_operators::frequent_items::CapacityError>(())
/// ```
pub trait Item: Clone + Ord + Debug + Send + Sync + 'static {
    /// The integer that stands for the item in SIMD registers.
    type Code: filter::Key;
    /// The value that is hashed and compared in place of the item.
    type Key: CellKey;
    /// The secret of a summary on which keys and codes depend; `()` if key and code are the item.
    type Secret: Clone + Debug + Send + Sync;
    /// The borrowed form.
    type Ref<'a>: Copy;
    /// Whether items with equal codes are equal.
    const CODE_IS_ITEM: bool;

    /// The secret that follows from a seed.
    fn secret(seed: u64) -> Self::Secret;
    /// The key of a borrowed item.
    fn key_of(item: Self::Ref<'_>, secret: &Self::Secret) -> Self::Key;
    /// The code of items with this key.
    fn code_of_key(key: Self::Key, secret: &Self::Secret) -> Self::Code;
    /// The owned form of `item`, whose key is `key`.
    fn new(item: Self::Ref<'_>, key: Self::Key) -> Self;
    /// Becomes `item`, whose key is `key`, and reuses memory.
    fn assign(&mut self, item: Self::Ref<'_>, key: Self::Key);
    /// The key that the item was made with or has got last. The call is cheap.
    fn key(&self) -> Self::Key;
    /// Takes the key that belongs to `secret`.
    fn rekey(&mut self, secret: &Self::Secret);
    /// The borrowed form of this item.
    fn borrowed(&self) -> Self::Ref<'_>;
    /// Whether this item is `item`, whose key is `key`.
    fn is(&self, item: Self::Ref<'_>, key: Self::Key) -> bool;
    /// Whether no two different items have this key.
    fn is_exact(key: Self::Key) -> bool;
    /// Bytes on the heap.
    fn heap_bytes(&self) -> usize;
    /// Fetches the memory that [`Self::is`] reads besides the item itself into the cache. The
    /// default fetches nothing.
    #[inline]
    fn prefetch(&self) {}

    /// The borrowed item that has this code, if [`Self::CODE_IS_ITEM`]; otherwise `None`.
    fn from_code(code: &Self::Code) -> Option<Self::Ref<'_>>;
    /// The keys of the items that have these codes, if [`Self::CODE_IS_ITEM`]; otherwise `None`.
    fn keys_of_codes(codes: &[Self::Code]) -> Option<&[Self::Key]>;
}

macro_rules! integer_item {
    ($integer:ident) => {
        impl Item for $integer {
            type Code = Self;
            type Key = Self;
            type Secret = ();
            type Ref<'a> = Self;
            const CODE_IS_ITEM: bool = true;

            fn secret(_: u64) {}

            #[inline]
            fn key_of(item: Self, (): &()) -> Self {
                item
            }

            #[inline]
            fn code_of_key(key: Self, (): &()) -> Self {
                key
            }

            #[inline]
            fn new(item: Self, _: Self) -> Self {
                item
            }

            #[inline]
            fn assign(&mut self, item: Self, _: Self) {
                *self = item;
            }

            #[inline]
            fn key(&self) -> Self {
                *self
            }

            #[inline]
            fn rekey(&mut self, (): &()) {}

            #[inline]
            fn borrowed(&self) -> Self {
                *self
            }

            #[inline]
            fn is(&self, item: Self, _: Self) -> bool {
                *self == item
            }

            #[inline]
            fn is_exact(_: Self) -> bool {
                true
            }

            #[inline]
            fn heap_bytes(&self) -> usize {
                0
            }

            #[inline]
            fn from_code(code: &Self) -> Option<Self> {
                Some(*code)
            }

            #[inline]
            fn keys_of_codes(codes: &[Self]) -> Option<&[Self]> {
                Some(codes)
            }
        }

        impl Items<$integer> for [$integer] {
            #[inline]
            fn len(&self) -> usize {
                self.len()
            }

            #[inline]
            fn item(&self, position: usize) -> $integer {
                self[position]
            }

            #[inline]
            fn codes<'a>(
                &'a self,
                range: Range<usize>,
                (): &(),
                _: &'a mut Vec<$integer>,
            ) -> &'a [$integer] {
                &self[range]
            }
        }
    };
}

integer_item!(u32);
integer_item!(u64);

/// A batch of items of type `K`, by position: `[u32]`, `[u64]`, and for `Text` `[&str]`,
/// `StringArray` and `LargeStringArray`.
///
/// A null of a string array is counted as the empty string. To count nulls differently, filter
/// nulls before.
pub trait Items<K: Item> {
    /// Items in the batch.
    fn len(&self) -> usize;

    /// The item at `position`; panics if the batch has no such item.
    fn item(&self, position: usize) -> K::Ref<'_>;

    /// The key of the item at `position`.
    #[inline(always)]
    fn key(&self, position: usize, secret: &K::Secret) -> K::Key {
        K::key_of(self.item(position), secret)
    }

    /// The keys of a range of items. A batch that holds its keys lends them; otherwise the keys are
    /// computed into `scratch`.
    fn keys<'a>(
        &'a self,
        range: Range<usize>,
        secret: &K::Secret,
        scratch: &'a mut Vec<K::Key>,
    ) -> &'a [K::Key] {
        scratch.clear();
        scratch.extend(range.map(|position| self.key(position, secret)));
        scratch
    }

    /// The codes of a range of items, in the same way as [`Self::keys`].
    fn codes<'a>(
        &'a self,
        range: Range<usize>,
        secret: &K::Secret,
        scratch: &'a mut Vec<K::Code>,
    ) -> &'a [K::Code] {
        scratch.clear();
        scratch.extend(range.map(|position| K::code_of_key(self.key(position, secret), secret)));
        scratch
    }

    /// Whether the batch has no items.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Some of the items of a batch.
#[derive(Debug)]
pub(crate) struct Part<'a, B: ?Sized> {
    batch: &'a B,
    range: Range<usize>,
}

impl<'a, B: ?Sized> Part<'a, B> {
    /// The items in this range.
    pub(crate) fn new(batch: &'a B, range: Range<usize>) -> Self {
        Self { batch, range }
    }
}

impl<K: Item, B: Items<K> + ?Sized> Items<K> for Part<'_, B> {
    #[inline]
    fn len(&self) -> usize {
        self.range.len()
    }

    #[inline]
    fn item(&self, position: usize) -> K::Ref<'_> {
        self.batch.item(self.range.start + position)
    }

    #[inline(always)]
    fn key(&self, position: usize, secret: &K::Secret) -> K::Key {
        self.batch.key(self.range.start + position, secret)
    }

    #[inline]
    fn keys<'a>(
        &'a self,
        range: Range<usize>,
        secret: &K::Secret,
        scratch: &'a mut Vec<K::Key>,
    ) -> &'a [K::Key] {
        let start = self.range.start;
        self.batch.keys(start + range.start..start + range.end, secret, scratch)
    }

    #[inline]
    fn codes<'a>(
        &'a self,
        range: Range<usize>,
        secret: &K::Secret,
        scratch: &'a mut Vec<K::Code>,
    ) -> &'a [K::Code] {
        let start = self.range.start;
        self.batch.codes(start + range.start..start + range.end, secret, scratch)
    }
}
