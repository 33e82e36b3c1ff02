//! Texts that are counted, and batches of texts.
//!
//! A short text is read at once, as 16 bytes, whatever its length, and the bytes after the text are
//! masked out. The lengths of words cannot be predicted, so a loop over the bytes would mispredict
//! its end.

use std::fmt;
use std::fmt::Debug;
use std::ops::{Deref, Range};

use arrow_array::{Array, LargeStringArray, OffsetSizeTrait, StringArray};
use arrow_buffer::ArrowNativeType;
use trommel_kernels::prefetch;
use trommel_kernels::text::short_keys;

use super::item::{Item, Items};
use crate::shared::texts::{self, SHORT_MAX, TextHash};

/// Bytes of a line of the cache.
const CACHE_LINE: usize = 64;

/// A string with a place for its key. Texts are ordered as strings are. Two different strings are
/// different items, even if their keys are equal.
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

/// The bytes of a text. A look-up that finds a short text reads no other memory.
#[derive(Clone)]
enum Bytes {
    /// The bytes of a [key](texts::Key); the last byte is the length.
    Short([u8; SHORT_MAX + 1]),
    Long {
        text: String,
        /// The hash under the secret of the summary that holds the text; 0 outside of a summary.
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

/// The secret of the keys and codes of [`Text`]. Its `Debug` output does not show the secret.
#[derive(Clone, Copy)]
pub struct TextSecret(TextHash);

impl Debug for TextSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TextSecret(..)")
    }
}

impl Text {
    /// Bytes above which a buffer is given back, if the string in the buffer needs less than a
    /// quarter of the buffer.
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

    #[inline]
    fn prefetch(&self) {
        if let Bytes::Long { text, .. } = &self.0 {
            // The processor fetches further lines ahead by itself.
            prefetch(text.as_bytes(), 0);
            prefetch(text.as_bytes(), text.len().min(2 * CACHE_LINE) - 1);
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

/// The key of the text between two ends in the `data` of a column. Bytes of the texts that follow
/// are read as well: all texts but the last few of a batch have such bytes.
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

/// The pair is returned in registers. An array would be returned in memory, written in halves and
/// read as a whole, and the processor would wait for that, also on the common path.
#[cold]
#[inline(never)]
fn key_of_rare(text: &[u8], secret: &TextSecret) -> (u64, u64) {
    texts::Key::of(text, &secret.0).words().into()
}

/// Replaces the keys of the texts between these offsets that are too long to be their own keys.
fn add_long_keys<O: OffsetSizeTrait>(
    data: &[u8],
    offsets: &[O],
    secret: &TextSecret,
    keys: &mut [[u64; 2]],
) {
    for (ends, key) in offsets.array_windows().zip(keys) {
        let [begin, end] = ends.map(ArrowNativeType::as_usize);
        if end - begin > SHORT_MAX {
            *key = texts::Key::of(&data[begin..end], &secret.0).words();
        }
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
                let ends = &self.value_offsets()[range.start..=range.end];
                let data = self.value_data();
                scratch.resize(range.len(), [0; 2]);
                if short_keys(data, ends, scratch) {
                    add_long_keys(data, ends, secret, scratch);
                }
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
    use crate::shared::items::Part;

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
        // Two long texts with the same key differ only in their strings.
        let text = Text::from("the first of two long texts");
        assert!(!text.is("the other of two long texts", text.key()));
    }

    #[test]
    fn a_batch_of_strings_lends_the_same_items_in_each_form() {
        let letters = "abcdefghijklmnopqrstuvwxyz";
        let words: Vec<&str> =
            (0..20).chain([3, 16, 15, 0, 1]).map(|len| &letters[..len]).collect();
        let (slice, array) = (&words[..], StringArray::from(words.clone()));
        // The part begins and ends within the column.
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
