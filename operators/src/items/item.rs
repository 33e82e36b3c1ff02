//! Items that are counted: integers and texts, and batches of them.
//!
//! A summary keeps an [`Item`]; a batch lends its borrowed form [`Item::Ref`], so that a look-up
//! allocates nothing. Each item has a *code*, an integer that the hash index and the SIMD filter
//! work with:
//!
//! | item | borrowed | code | equal codes mean |
//! |---|---|---|---|
//! | `u32`, `u64` | itself | itself | equal items ([`Item::CODE_IS_ITEM`]) |
//! | [`Text`] | `&str` | 64-bit rapidhash with secrets | compare the strings |
//!
//! The code is part of the item rather than of the summary, so that an item of one's own brings its
//! own. The secret that it depends on belongs to the summary ([`Item::Secret`]).

use std::fmt;
use std::fmt::Debug;
use std::ops::{Deref, Range};

use arrow_array::{Array, LargeStringArray, StringArray};
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use trommel_kernels::filter::Key;

/// Something that can be counted.
///
/// Implementors keep three promises: under one secret, equal items have equal codes; [`Self::is`]
/// and [`Ord`] agree with equality; and if [`Self::CODE_IS_ITEM`], different items have different
/// codes, which [`Self::from_code`] turns back into the items.
///
/// # Secrets
///
/// A code that is a hash has to depend on a secret, or else items with equal codes can be chosen
/// that make counting slow. Each summary draws a secret of its own and keeps its items under the
/// codes that belong to it; an item that comes from another summary is given its code again
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
///     type Secret = ();
///     type Ref<'a> = (u16, u16);
///     const CODE_IS_ITEM: bool = true;
///
///     fn secret(_: u64) {}
///     fn code_of((from, to): (u16, u16), (): &()) -> u32 {
///         u32::from(from) << 16 | u32::from(to)
///     }
///     fn new((from, to): (u16, u16), _: u32) -> Self {
///         Self(from, to)
///     }
///     fn assign(&mut self, (from, to): (u16, u16), _: u32) {
///         *self = Self(from, to);
///     }
///     fn code(&self) -> u32 {
///         Self::code_of((self.0, self.1), &())
///     }
///     fn rekey(&mut self, (): &()) {}
///     fn borrowed(&self) -> (u16, u16) {
///         (self.0, self.1)
///     }
///     fn is(&self, item: (u16, u16), _: u32) -> bool {
///         (self.0, self.1) == item
///     }
///     fn heap_bytes(&self) -> usize {
///         0
///     }
///     fn from_code(code: &u32) -> Option<(u16, u16)> {
///         Some(((code >> 16) as u16, *code as u16))
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
    /// The integer that stands for the item in hash indexes and SIMD registers.
    type Code: Key;
    /// The secret of a summary that codes depend on; `()` where a code is its item.
    type Secret: Clone + Debug + Send + Sync;
    /// The borrowed form.
    type Ref<'a>: Copy;
    /// Whether items with equal codes are equal.
    const CODE_IS_ITEM: bool;

    /// The secret that follows from a seed.
    fn secret(seed: u64) -> Self::Secret;
    /// The code of a borrowed item.
    fn code_of(item: Self::Ref<'_>, secret: &Self::Secret) -> Self::Code;
    /// The owned form of `item`, whose code is `code`.
    fn new(item: Self::Ref<'_>, code: Self::Code) -> Self;
    /// Becomes `item`, whose code is `code`; reuses memory.
    fn assign(&mut self, item: Self::Ref<'_>, code: Self::Code);
    /// The code that the item was made with, or that it got last; cheap.
    fn code(&self) -> Self::Code;
    /// Takes the code that belongs to `secret`.
    fn rekey(&mut self, secret: &Self::Secret);
    /// The borrowed form of this item.
    fn borrowed(&self) -> Self::Ref<'_>;
    /// Whether this is `item`, whose code is `code`.
    fn is(&self, item: Self::Ref<'_>, code: Self::Code) -> bool;
    /// Bytes on the heap.
    fn heap_bytes(&self) -> usize;

    /// The borrowed item that has this code, if [`Self::CODE_IS_ITEM`]; otherwise `None`.
    fn from_code(code: &Self::Code) -> Option<Self::Ref<'_>>;
}

macro_rules! integer_item {
    ($integer:ident) => {
        impl Item for $integer {
            type Code = Self;
            type Secret = ();
            type Ref<'a> = Self;
            const CODE_IS_ITEM: bool = true;

            fn secret(_: u64) {}

            #[inline]
            fn code_of(item: Self, (): &()) -> Self {
                item
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
            fn code(&self) -> Self {
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
            fn heap_bytes(&self) -> usize {
                0
            }

            #[inline]
            fn from_code(code: &Self) -> Option<Self> {
                Some(*code)
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

/// A string with a place for its code. Ordered as strings are; two different strings are
/// different items, also if their codes are equal.
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
pub struct Text {
    /// Under the secret of the summary that holds it; 0 in no summary.
    code: u64,
    bytes: Bytes,
}

/// Longest text that has its place in a [`Text`]: with its length, as long as two of the three
/// words of a `String`, whose third one tells both apart.
const SHORT_MAX: usize = 15;

/// The bytes of a text. A look-up that finds a short one reads no other memory.
#[derive(Clone)]
enum Bytes {
    Short(u8, [u8; SHORT_MAX]),
    Long(String),
}

impl Bytes {
    fn new(text: &str) -> Self {
        Self::short(text).unwrap_or_else(|| Self::Long(text.to_owned()))
    }

    fn short(text: &str) -> Option<Self> {
        let len = u8::try_from(text.len()).ok().filter(|&len| usize::from(len) <= SHORT_MAX)?;
        let mut bytes = [0; SHORT_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self::Short(len, bytes))
    }

    #[inline]
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => &bytes[..usize::from(*len)],
            Self::Long(text) => text.as_bytes(),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Short(..) => std::str::from_utf8(self.as_bytes()).expect("the bytes of a text"),
            Self::Long(text) => text,
        }
    }
}

/// The secret of the codes of [`Text`]. It does not show itself.
#[derive(Clone, Copy)]
pub struct TextSecret(RapidSecrets);

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
    type Secret = TextSecret;
    type Ref<'a> = &'a str;
    const CODE_IS_ITEM: bool = false;

    fn secret(seed: u64) -> TextSecret {
        TextSecret(RapidSecrets::seed(seed))
    }

    #[inline]
    fn code_of(item: &str, secret: &TextSecret) -> u64 {
        rapidhash_v3_seeded(item.as_bytes(), &secret.0)
    }

    fn new(item: &str, code: u64) -> Self {
        Self { code, bytes: Bytes::new(item) }
    }

    fn assign(&mut self, item: &str, code: u64) {
        self.code = code;
        match &mut self.bytes {
            Bytes::Long(text)
                if item.len() > SHORT_MAX
                    && text.capacity() <= Self::SLACK_BYTES.max(4 * item.len()) =>
            {
                text.clear();
                text.push_str(item);
            }
            bytes => *bytes = Bytes::new(item),
        }
    }

    #[inline]
    fn code(&self) -> u64 {
        self.code
    }

    fn rekey(&mut self, secret: &TextSecret) {
        self.code = Self::code_of(self, secret);
    }

    fn borrowed(&self) -> &str {
        self
    }

    #[inline]
    fn is(&self, item: &str, code: u64) -> bool {
        self.code == code && is_same(self.bytes.as_bytes(), item.as_bytes())
    }

    fn heap_bytes(&self) -> usize {
        match &self.bytes {
            Bytes::Short(..) => 0,
            Bytes::Long(text) => text.capacity(),
        }
    }

    fn from_code(_: &u64) -> Option<&str> {
        None
    }
}

/// Whether two texts are equal. Short ones are compared by two words that overlap: the call that
/// compares any number of bytes takes longer than they do.
#[inline]
fn is_same(left: &[u8], right: &[u8]) -> bool {
    const WORD: usize = size_of::<u64>();
    const HALF: usize = size_of::<u32>();
    // Items with equal codes hardly ever differ in their lengths.
    if left.len() != right.len() {
        return false;
    }
    match left.len() {
        WORD..=16 => {
            left.first_chunk::<WORD>() == right.first_chunk()
                && left.last_chunk::<WORD>() == right.last_chunk()
        }
        HALF..WORD => {
            left.first_chunk::<HALF>() == right.first_chunk()
                && left.last_chunk::<HALF>() == right.last_chunk()
        }
        len @ 1..HALF => [0, len / 2, len - 1].iter().all(|&at| left[at] == right[at]),
        _ => left == right,
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text, 0)
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        match text.bytes {
            Bytes::Long(text) => text,
            Bytes::Short(..) => text.to_string(),
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.bytes.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.bytes.as_bytes() == other.bytes.as_bytes()
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
        self.bytes.as_bytes().cmp(other.bytes.as_bytes())
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

    /// The codes of a range of items: borrowed where the batch holds them, computed into `scratch`
    /// where it does not.
    fn codes<'a>(
        &'a self,
        range: Range<usize>,
        secret: &K::Secret,
        scratch: &'a mut Vec<K::Code>,
    ) -> &'a [K::Code] {
        scratch.clear();
        scratch.extend(range.map(|position| K::code_of(self.item(position), secret)));
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
        }
    };
}

string_array_items!(StringArray);
string_array_items!(LargeStringArray);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_gives_back_the_memory_of_a_long_string() {
        for (item, bytes) in [("short", 0), ("not as short as that", 20)] {
            let mut text = Text::from("x".repeat(10_000).as_str());
            text.assign(item, 0);
            assert_eq!((&*text, text.heap_bytes()), (item, bytes));
        }
    }

    #[test]
    fn short_texts_are_in_place() {
        assert_eq!(size_of::<Bytes>(), size_of::<String>());
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
                assert_eq!(text.is(&other, 0), text == other);
            }
        }
    }

    #[test]
    fn text_of_similar_length_reuses_its_memory() {
        let mut text = Text::from("a string of some length");
        let before = text.heap_bytes();
        text.assign("another string", 0);
        assert_eq!((&*text, text.heap_bytes()), ("another string", 0));
        let mut text = Text::from("a string of some length");
        text.assign("another one of length", 0);
        assert_eq!((&*text, text.heap_bytes()), ("another one of length", before));
    }

    #[test]
    fn a_text_has_another_code_under_another_secret() {
        let [one, other] = [1, 2].map(Text::secret);
        let mut text = Text::from("an item");
        text.rekey(&one);
        assert_eq!(text.code(), Text::code_of("an item", &one));
        assert!(text.is("an item", text.code()) && !text.is("an item", 0));
        text.rekey(&other);
        assert_ne!(text.code(), Text::code_of("an item", &one));
        assert_eq!(text, Text::from("an item"));
    }

    #[test]
    fn a_batch_of_strings_lends_the_same_items_in_each_form() {
        let words = ["a", "", "word"];
        let (slice, array) = (&words[..], StringArray::from(words.to_vec()));
        let mut scratch = Vec::new();
        for position in 0..words.len() {
            assert_eq!(slice.item(position), Items::item(&array, position));
        }
        let secret = Text::secret(9);
        let codes = words.map(|word| Text::code_of(word, &secret));
        assert_eq!(slice.codes(1..3, &secret, &mut scratch), &codes[1..]);
        assert_eq!(array.codes(0..3, &secret, &mut scratch), &codes);
    }
}
