//! Three tokenizers; each can stop after a token and continue later.

use memchr::{memchr_iter, memrchr_iter};
use unicode_segmentation::UnicodeSegmentation;

/// Tokenizer, by the definition of a token.
pub(super) enum Tokenizer {
    /// Words in lower case; the string is a reused buffer for lower-case text.
    Words(String),
    /// Text between white space.
    Whitespace,
    /// Runs of this number of characters.
    Qgrams(usize),
}

impl Tokenizer {
    pub(super) fn words() -> Self {
        Self::Words(String::new())
    }

    /// Calls `sink` with the tokens from byte `at` on until it returns false. Returns the byte at
    /// which to continue; the length of the text if nothing is left.
    pub(super) fn tokens(
        &mut self,
        text: &str,
        at: usize,
        sink: impl FnMut(&str) -> bool,
    ) -> usize {
        match self {
            Self::Words(lower) => words(text, at, lower, sink),
            Self::Whitespace => whitespace(text, at, sink),
            Self::Qgrams(q) => qgrams(text, at, *q, sink),
        }
    }
}

/// Words of any text. Unicode has a word boundary before a run of white space, regardless of its
/// neighbours (but not after it: a combining mark belongs to the space before it). So the text
/// can be cut there, and ASCII stretches between two cuts need no tables.
fn words(text: &str, at: usize, lower: &mut String, mut sink: impl FnMut(&str) -> bool) -> usize {
    let (mut at, mut goes_on) = (at, true);
    while goes_on && at < text.len() {
        let watched = |word: &str| {
            goes_on = sink(word);
            goes_on
        };
        let plain = plain_len(&text[at..]);
        at = if plain > 0 {
            lower.clear();
            lower.push_str(&text[at..at + plain]);
            // One pass over the stretch; tokens are then slices of it, without a copy each.
            lower.make_ascii_lowercase();
            at + ascii_words(lower, watched)
        } else {
            let rest = &text[at..];
            at + unicode_words(&rest[..mixed_len(rest)], lower, watched)
        };
    }
    at
}

/// Length of the ASCII stretch at the beginning of `text`, up to a cut, in bytes.
fn plain_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let Some(end) = bytes.iter().position(|byte| !byte.is_ascii()) else { return bytes.len() };
    // The last word of the stretch may continue with letters that are not ASCII: cut before it.
    let mut spaces = memrchr_iter(b' ', &bytes[..end]);
    spaces.find(|&space| is_cut(text, space)).unwrap_or(0)
}

/// Length of the stretch at the beginning of `text`, up to the next cut, in bytes.
fn mixed_len(text: &str) -> usize {
    let mut spaces = memchr_iter(b' ', text.as_bytes());
    spaces.find(|&space| is_cut(text, space)).unwrap_or(text.len())
}

/// True if the space at this index begins a run of white space.
fn is_cut(text: &str, space: usize) -> bool {
    space > 0 && !text[..space].ends_with(char::is_whitespace)
}

/// Words of any text, by the tables of Unicode.
fn unicode_words(text: &str, lower: &mut String, mut sink: impl FnMut(&str) -> bool) -> usize {
    for (offset, word) in text.unicode_word_indices() {
        lower.clear();
        if word.contains('Σ') {
            // The lower case of a capital sigma depends on whether it ends the word.
            lower.push_str(&word.to_lowercase());
        } else {
            lower.extend(word.chars().flat_map(char::to_lowercase));
        }
        if !sink(lower) {
            return offset + word.len();
        }
    }
    text.len()
}

/// Classes of ASCII bytes in the word boundary rules of Unicode Standard Annex 29, §4.1.
mod class {
    pub(super) const LETTER: u8 = 1;
    pub(super) const DIGIT: u8 = 2;
    /// Joins letters, digits and itself, but is not a word alone.
    pub(super) const UNDERSCORE: u8 = 4;
    /// Joins two letters (rules WB6 and WB7).
    pub(super) const BETWEEN_LETTERS: u8 = 8;
    /// Joins two digits (rules WB11 and WB12).
    pub(super) const BETWEEN_DIGITS: u8 = 16;
    pub(super) const IN_WORD: u8 = LETTER | DIGIT | UNDERSCORE;

    // One load per byte instead of a chain of comparisons.
    pub(super) const OF: [u8; 256] = {
        let mut of = [0; 256];
        let mut byte = 0_u8;
        while byte < 128 {
            of[byte as usize] = match byte {
                b'a'..=b'z' | b'A'..=b'Z' => LETTER,
                b'0'..=b'9' => DIGIT,
                b'_' => UNDERSCORE,
                b':' => BETWEEN_LETTERS,
                b',' | b';' => BETWEEN_DIGITS,
                b'.' | b'\'' => BETWEEN_LETTERS | BETWEEN_DIGITS,
                _ => 0,
            };
            byte += 1;
        }
        of
    };
}

fn class_at(text: &[u8], at: usize) -> u8 {
    text.get(at).map_or(0, |&byte| class::OF[usize::from(byte)])
}

/// Words of an ASCII text: the same as [`unicode_words`], without tables.
fn ascii_words(text: &str, mut sink: impl FnMut(&str) -> bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        // Classes of all bytes in the word: `_` alone is not a word.
        let mut seen = 0;
        loop {
            let here = class_at(bytes, at);
            if here & class::IN_WORD != 0 {
                seen |= here;
                at += 1;
            } else if at > start && is_joined(bytes, at, here) {
                at += 1;
            } else {
                break;
            }
        }
        if seen & (class::LETTER | class::DIGIT) != 0 && !sink(&text[start..at]) {
            return at;
        }
        // Skip the byte that ends the word, or belongs to none.
        at += 1;
    }
    text.len()
}

/// True if the byte at `at`, of class `here`, joins the letters or the digits on both of its
/// sides.
fn is_joined(bytes: &[u8], at: usize, here: u8) -> bool {
    if here & (class::BETWEEN_LETTERS | class::BETWEEN_DIGITS) == 0 {
        return false;
    }
    // One AND tests both sides for a common class.
    let sides = class_at(bytes, at - 1) & class_at(bytes, at + 1);
    (here & class::BETWEEN_LETTERS != 0 && sides & class::LETTER != 0)
        || (here & class::BETWEEN_DIGITS != 0 && sides & class::DIGIT != 0)
}

/// Text between white space.
fn whitespace(text: &str, at: usize, mut sink: impl FnMut(&str) -> bool) -> usize {
    let mut rest = text[at..].trim_start();
    while !rest.is_empty() {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (token, more) = rest.split_at(end);
        if !sink(token) {
            return text.len() - more.len();
        }
        rest = more.trim_start();
    }
    text.len()
}

/// Runs of `q` characters; a shorter text is one token.
fn qgrams(text: &str, at: usize, q: usize, mut sink: impl FnMut(&str) -> bool) -> usize {
    let mut start = at;
    // Afterwards both ends move by one character each: no q-gram is scanned again.
    let first_len = text[at..].char_indices().nth(q).map_or(text.len() - at, |(offset, _)| offset);
    let mut end = at + first_len;
    while start < end {
        let goes_on = sink(&text[start..end]);
        let Some(entering) = text[end..].chars().next() else { return text.len() };
        let leaving = text[start..].chars().next().expect("the run is not empty");
        start += leaving.len_utf8();
        end += entering.len_utf8();
        if !goes_on {
            return start;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(mut tokenizer: Tokenizer, text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        let end = tokenizer.tokens(text, 0, |token| {
            tokens.push(token.to_owned());
            true
        });
        assert_eq!(end, text.len());
        tokens
    }

    /// Stops after every token and continues there.
    fn one_by_one(mut tokenizer: Tokenizer, text: &str) -> Vec<String> {
        let (mut tokens, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let mut count = 0;
            at = tokenizer.tokens(text, at, |token| {
                tokens.push(token.to_owned());
                count += 1;
                false
            });
            assert!(count <= 1);
        }
        tokens
    }

    /// General rules of the library: the last letter prevents its ASCII shortcut.
    fn words_oracle(text: &str) -> Vec<String> {
        let text = format!("{text} é");
        let mut words: Vec<_> = text.unicode_words().map(str::to_lowercase).collect();
        assert_eq!(words.pop().as_deref(), Some("é"));
        words
    }

    fn qgrams_oracle(text: &str, q: usize) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        if !characters.is_empty() && characters.len() < q {
            return vec![text.to_owned()];
        }
        characters.windows(q).map(|gram| gram.iter().collect()).collect()
    }

    #[test]
    fn words_keep_what_belongs_together() {
        let text =
            "Don't split 3.14, 1,000 or e.g. snake_case; _ is no word. a:b 1:2 x..y ÉTÉ ΟΔΟΣ";
        let expected = "don't split 3.14 1,000 or e.g snake_case is no word a:b 1 2 x y été οδος";
        assert_eq!(all(Tokenizer::words(), text).join(" "), expected);
    }

    #[test]
    fn qgrams_count_characters() {
        assert_eq!(all(Tokenizer::Qgrams(2), "aéz"), ["aé", "éz"]);
        assert_eq!(all(Tokenizer::Qgrams(3), "aé"), ["aé"]);
        assert_eq!(all(Tokenizer::Qgrams(3), ""), [""; 0]);
    }

    #[test]
    fn whitespace_is_that_of_unicode() {
        assert_eq!(all(Tokenizer::Whitespace, "\u{a0} A\u{2003}b\t\nc "), ["A", "b", "c"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn ascii_words_follow_the_general_rules(text in "[ab1_.:,;'\"\\- A\r\n]{0,24}|[ -~]{0,40}") {
            let expected = words_oracle(&text);
            prop_assert_eq!(&all(Tokenizer::words(), &text), &expected);
            prop_assert_eq!(&one_by_one(Tokenizer::words(), &text), &expected);
        }

        #[test]
        fn words_can_stop_anywhere(text in "([ab1_.:,;' ]|[éΣσ中文カ\u{113c2}\u{3000}\u{301}\u{200d}🇩🇪👍\u{5d0}\"]){0,24}|\\PC{0,20}") {
            let expected = words_oracle(&text);
            prop_assert_eq!(&all(Tokenizer::words(), &text), &expected);
            prop_assert_eq!(&one_by_one(Tokenizer::words(), &text), &expected);
        }

        #[test]
        fn whitespace_matches_the_standard_library(text in "[a é\u{3000}\t\n]{0,20}|\\PC{0,20}") {
            let expected: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            prop_assert_eq!(&all(Tokenizer::Whitespace, &text), &expected);
            prop_assert_eq!(&one_by_one(Tokenizer::Whitespace, &text), &expected);
        }

        #[test]
        fn qgrams_are_the_windows_of_the_characters(text in "[aé中]{0,12}", q in 1_usize..8) {
            let expected = qgrams_oracle(&text, q);
            prop_assert_eq!(&all(Tokenizer::Qgrams(q), &text), &expected);
            prop_assert_eq!(&one_by_one(Tokenizer::Qgrams(q), &text), &expected);
        }
    }
}
