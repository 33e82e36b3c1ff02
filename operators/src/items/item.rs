//! Items that are counted: integers and texts, and batches of them.
//!
//! A summary keeps an [`Item`]; a batch lends its borrowed form [`Item::Ref`], so that a look-up
//! allocates nothing. Each item has a *key*, which is hashed and compared in place of it, and a
//! *code*, an integer that the SIMD filter works with:
//!
//! | item | borrowed | key | code |
//! |---|---|---|---|
//! | `u32`, `u64` | itself | itself | itself |
//! | [`Text`] of up to 15 bytes | `&str` | its bytes and its length | 64-bit rapidhash of the key |
//! | longer [`Text`] | `&str` | 64-bit rapidhash and its length | the hash |
//!
//! Equal codes of integers mean equal items ([`Item::CODE_IS_ITEM`]), and so do equal keys, but for
//! longer texts ([`Item::is_exact`]): those are compared as strings. A short text is read once, as
//! a word of 16 bytes, however long it is: lengths of words cannot be foreseen, so that a loop over
//! the bytes would make the processor guess wrong.
//!
//! Both are part of the item rather than of the summary, so that an item of one's own brings its
//! own. The secret that they depend on belongs to the summary ([`Item::Secret`]).

use std::fmt;
use std::fmt::Debug;
use std::ops::{Deref, Range};

use arrow_array::{Array, LargeStringArray, StringArray};
use trommel_kernels::filter;
use trommel_kernels::sieve::CellKey;

use crate::texts::{self, SHORT_MAX, TextHash};

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
/// A key or code that is a hash has to depend on a secret, or else items with equal ones can be
/// chosen that make counting slow. Each summary draws a secret of its own and keeps its items under
/// the keys that belong to it; an item that comes from another summary is given its key again
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
    /// What is hashed and compared in place of the item.
    type Key: CellKey;
    /// The secret of a summary that keys and codes depend on; `()` where they are the item.
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
    /// Becomes `item`, whose key is `key`; reuses memory.
    fn assign(&mut self, item: Self::Ref<'_>, key: Self::Key);
    /// The key that the item was made with, or that it got last; cheap.
    fn key(&self) -> Self::Key;
    /// Takes the key that belongs to `secret`.
    fn rekey(&mut self, secret: &Self::Secret);
    /// The borrowed form of this item.
    fn borrowed(&self) -> Self::Ref<'_>;
    /// Whether this is `item`, whose key is `key`.
    fn is(&self, item: Self::Ref<'_>, key: Self::Key) -> bool;
    /// Whether no two items have this key.
    fn is_exact(key: Self::Key) -> bool;
    /// Bytes on the heap.
    fn heap_bytes(&self) -> usize;

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

/// A string with a place for its key. Ordered as strings are; two different strings are
/// different items, also if their keys are equal.
///
/// # Examples
///
/// ```
/// use trommel_operators::frequent_items::Text;
///
/// let text = Text::from("trommel");
/// assert_eq!(&*text, "trommel");
/// assert!(text < Text::from("trowel"));
/// ```
#[derive(Clone)]
pub struct Text(Bytes);

/// The bytes of a text. A look-up that finds a short one reads no other memory.
#[derive(Clone)]
enum Bytes {
    /// The bytes of a [key](texts::Key), of which the last one is the length.
    Short([u8; SHORT_MAX + 1]),
    Long {
        text: String,
        /// Under the secret of the summary that holds it; 0 in no summary.
        hash: u64,
    },
}

impl Bytes {
    fn new(text: &str, key: texts::Key) -> Self {
        match key.is_long() {
            true => Self::Long { text: text.to_owned(), hash: key.words()[0] },
            false => Self::Short(key.to_bytes()),
        }
    }

    #[inline]
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short(bytes) => &bytes[..usize::from(bytes[SHORT_MAX])],
            Self::Long { text, .. } => text.as_bytes(),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Short(_) => std::str::from_utf8(self.as_bytes()).expect("the bytes of a text"),
            Self::Long { text, .. } => text,
        }
    }
}

/// The secret of the keys and codes of [`Text`]. It does not show itself.
#[derive(Clone, Copy)]
pub struct TextSecret(TextHash);

impl Debug for TextSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TextSecret(..)")
    }
}

impl Text {
    /// A buffer larger than this is given back when the string it holds needs less than a quarter
    /// of it.
    const SLACK_BYTES: usize = 256;
}

impl Item for Text {
    type Code = u64;
    type Key = [u64; 2];
    type Secret = TextSecret;
    type Ref<'a> = &'a str;
    const CODE_IS_ITEM: bool = false;

    fn secret(seed: u64) -> TextSecret {
        TextSecret(TextHash::from_seed(seed))
    }

    #[inline]
    fn key_of(item: &str, secret: &TextSecret) -> [u64; 2] {
        texts::Key::of(item.as_bytes(), &secret.0).words()
    }

    #[inline]
    fn code_of_key(key: [u64; 2], secret: &TextSecret) -> u64 {
        secret.0.hash(texts::Key::from_words(key))
    }

    #[inline]
    fn new(item: &str, key: [u64; 2]) -> Self {
        Self(Bytes::new(item, texts::Key::from_words(key)))
    }

    #[inline]
    fn assign(&mut self, item: &str, key: [u64; 2]) {
        match &mut self.0 {
            Bytes::Long { text, hash }
                if item.len() > SHORT_MAX
                    && text.capacity() <= Self::SLACK_BYTES.max(4 * item.len()) =>
            {
                text.clear();
                text.push_str(item);
                *hash = key[0];
            }
            bytes => *bytes = Bytes::new(item, texts::Key::from_words(key)),
        }
    }

    #[inline]
    fn key(&self) -> [u64; 2] {
        let key = match &self.0 {
            Bytes::Short(bytes) => texts::Key::from_bytes(*bytes),
            Bytes::Long { text, hash } => texts::Key::long(*hash, text.len()),
        };
        key.words()
    }

    fn rekey(&mut self, secret: &TextSecret) {
        if let Bytes::Long { text, hash } = &mut self.0 {
            [*hash, _] = Self::key_of(text, secret);
        }
    }

    fn borrowed(&self) -> &str {
        self
    }

    #[inline]
    fn is(&self, item: &str, key: [u64; 2]) -> bool {
        match &self.0 {
            Bytes::Short(bytes) => texts::Key::from_bytes(*bytes).words() == key,
            Bytes::Long { text, hash } => *hash == key[0] && text == item,
        }
    }

    #[inline]
    fn is_exact(key: [u64; 2]) -> bool {
        !texts::Key::from_words(key).is_long()
    }

    fn heap_bytes(&self) -> usize {
        match &self.0 {
            Bytes::Short(_) => 0,
            Bytes::Long { text, .. } => text.capacity(),
        }
    }

    fn from_code(_: &u64) -> Option<&str> {
        None
    }

    fn keys_of_codes(_: &[u64]) -> Option<&[[u64; 2]]> {
        None
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let key = match text.len() {
            0..=SHORT_MAX => texts::Key::of_short(text.as_bytes()),
            len => texts::Key::long(0, len),
        };
        Self(Bytes::new(text, key))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        match text.0 {
            Bytes::Long { text, .. } => text,
            Bytes::Short(_) => text.to_string(),
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes() == other.0.as_bytes()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Strings are ordered by their bytes.
        self.0.as_bytes().cmp(other.0.as_bytes())
    }
}

impl std::hash::Hash for Text {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&**self, formatter)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, formatter)
    }
}

/// A batch of items of type `K`, by position: `[u32]`, `[u64]`, and for [`Text`] `[&str]`,
/// [`StringArray`] and [`LargeStringArray`].
///
/// A null of a string array is counted as the empty string; to count nulls differently, filter
/// them before.
pub trait Items<K: Item> {
    /// Items in the batch.
    fn len(&self) -> usize;

    /// The item at `position`; panics if there is none.
    fn item(&self, position: usize) -> K::Ref<'_>;

    /// The key of the item at `position`.
    #[inline(always)]
    fn key(&self, position: usize, secret: &K::Secret) -> K::Key {
        K::key_of(self.item(position), secret)
    }

    /// The keys of a range of items: borrowed where the batch holds them, computed into `scratch`
    /// where it does not.
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

    /// The same for their codes.
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

    /// Whether the batch has no item.
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

impl Items<Text> for [&str] {
    #[inline]
    fn len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn item(&self, position: usize) -> &str {
        self[position]
    }
}

/// The key of the text of a column that has these ends in its `data`. The texts that follow are
/// read along: all but the last few of a batch have some.
#[inline(always)]
fn key_within(data: &[u8], ends: [impl TryInto<usize>; 2], secret: &TextSecret) -> [u64; 2] {
    let [begin, end] = ends.map(|end| end.try_into().ok().expect("offsets are not negative"));
    match texts::Key::of_first(end - begin, &data[begin..]) {
        Some(key) => key.words(),
        None => {
            let (first, last) = key_of_rare(&data[begin..end], secret);
            [first, last]
        }
    }
}

/// A pair, which is returned in registers: an array would be in memory, written by halves and read
/// as a whole, for which the processor waits, on the other path too.
#[cold]
#[inline(never)]
fn key_of_rare(text: &[u8], secret: &TextSecret) -> (u64, u64) {
    texts::Key::of(text, &secret.0).words().into()
}

macro_rules! string_array_items {
    ($array:ident) => {
        impl Items<Text> for $array {
            #[inline]
            fn len(&self) -> usize {
                Array::len(self)
            }

            #[inline]
            fn item(&self, position: usize) -> &str {
                self.value(position)
            }

            #[inline(always)]
            fn key(&self, position: usize, secret: &TextSecret) -> [u64; 2] {
                let offsets = self.value_offsets();
                let ends = [offsets[position], offsets[position + 1]];
                key_within(self.value_data(), ends, secret)
            }

            fn keys<'a>(
                &'a self,
                range: Range<usize>,
                secret: &TextSecret,
                scratch: &'a mut Vec<[u64; 2]>,
            ) -> &'a [[u64; 2]] {
                let ends = self.value_offsets()[range.start..=range.end].array_windows();
                let data = self.value_data();
                scratch.clear();
                scratch.extend(ends.map(|&ends| key_within(data, ends, secret)));
                scratch
            }
        }
    };
}

string_array_items!(StringArray);
string_array_items!(LargeStringArray);

#[cfg(test)]
mod tests {
    use super::*;

    fn assign(text: &mut Text, item: &str) {
        text.assign(item, Text::key_of(item, &Text::secret(3)));
    }

    #[test]
    fn text_gives_back_the_memory_of_a_long_string() {
        for (item, bytes) in [("short", 0), ("not as short as that", 20)] {
            let mut text = Text::from("x".repeat(10_000).as_str());
            assign(&mut text, item);
            assert_eq!((&*text, text.heap_bytes()), (item, bytes));
        }
    }

    #[test]
    fn short_texts_are_in_place() {
        assert_eq!(size_of::<Text>(), size_of::<String>() + size_of::<u64>());
        let letters = "abcdefghijklmnopqrst";
        for len in 0..letters.len() {
            let text = Text::from(&letters[..len]);
            assert_eq!(
                (&*text, String::from(text.clone())),
                (&letters[..len], letters[..len].into())
            );
            assert_eq!(text.heap_bytes(), if len > SHORT_MAX { len } else { 0 });
            for other in 0..letters.len() {
                let other = Text::from(&letters[..other]);
                assert_eq!(text.cmp(&other), (*text).cmp(&*other));
                assert_eq!(text.is(&other, other.key()), text == other);
            }
        }
    }

    #[test]
    fn text_of_similar_length_reuses_its_memory() {
        let mut text = Text::from("a string of some length");
        let before = text.heap_bytes();
        assign(&mut text, "another string");
        assert_eq!((&*text, text.heap_bytes()), ("another string", 0));
        let mut text = Text::from("a string of some length");
        assign(&mut text, "another one of length");
        assert_eq!((&*text, text.heap_bytes()), ("another one of length", before));
    }

    #[test]
    fn a_text_has_another_code_under_another_secret_and_a_long_one_another_key() {
        let [one, other] = [1, 2].map(Text::secret);
        for item in ["an item", "an item of more than fifteen bytes"] {
            let [own, foreign] = [one, other].map(|secret| Text::key_of(item, &secret));
            assert_eq!(own == foreign, item.len() <= SHORT_MAX);
            assert_eq!(Text::is_exact(own), item.len() <= SHORT_MAX);
            assert_ne!(Text::code_of_key(own, &one), Text::code_of_key(foreign, &other));
            let mut text = Text::from(item);
            text.rekey(&one);
            assert_eq!(text.key(), own);
            assert!(text.is(item, own) && !text.is(item, Text::key_of("other", &one)));
            text.rekey(&other);
            assert_eq!(text.key(), foreign);
            assert_eq!(text, Text::from(item));
        }
        // Only the strings tell two long texts of one key apart.
        let text = Text::from("the first of two long texts");
        assert!(!text.is("the other of two long texts", text.key()));
    }

    #[test]
    fn a_batch_of_strings_lends_the_same_items_in_each_form() {
        let letters = "abcdefghijklmnopqrstuvwxyz";
        let words: Vec<&str> =
            (0..20).chain([3, 16, 15, 0, 1]).map(|len| &letters[..len]).collect();
        let (slice, array) = (&words[..], StringArray::from(words.clone()));
        // A column that begins and ends within others.
        let part = array.slice(2, 15);
        let secret = Text::secret(9);
        let keys: Vec<_> = words.iter().map(|word| Text::key_of(word, &secret)).collect();
        let codes: Vec<_> = keys.iter().map(|&key| Text::code_of_key(key, &secret)).collect();
        let (mut key_scratch, mut scratch) = (Vec::new(), Vec::new());
        for (position, key) in keys.iter().enumerate() {
            assert_eq!(slice.item(position), Items::item(&array, position));
            assert_eq!(array.key(position, &secret), *key);
        }
        assert_eq!(slice.keys(1..3, &secret, &mut key_scratch), &keys[1..3]);
        assert_eq!(array.keys(0..words.len(), &secret, &mut key_scratch), &keys);
        assert_eq!(part.keys(1..15, &secret, &mut key_scratch), &keys[3..17]);
        assert_eq!(Part::new(&array, 4..9).keys(1..4, &secret, &mut key_scratch), &keys[5..8]);
        assert_eq!(slice.codes(1..3, &secret, &mut scratch), &codes[1..3]);
        assert_eq!(array.codes(0..words.len(), &secret, &mut scratch), &codes);
    }
}
