//! Words of any text, character by character.
//!
//! A word without capitals is a slice of the text. At a character with rules that only the crate
//! `unicode-segmentation` knows, the crate takes over: from the boundary before the character up to
//! the next cut.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::class::{
    self, ALONE, ALPHABET, BETWEEN, CHANGES, COMPLEX, EXTEND, KATAKANA, Narrow, SYLLABARY,
    UNDERSCORE,
};
use super::mixed_len;

/// Class of a character, and its bytes.
type ClassAndWidth = (u16, usize);

/// The end of a look at a word.
enum StretchEnd {
    /// The end of a stretch between two boundaries, the classes in the stretch, and the character
    /// after it.
    Stretch(usize, u16, ClassAndWidth),
    /// A character with rules that only the crate knows.
    Complex,
}

/// The end of the words of a range.
pub(super) struct Stopped {
    /// A boundary at the end of the range or after the range, or the end of the word for which the
    /// sink returned false.
    pub(super) at: usize,
    /// End of the last word.
    pub(crate) last: usize,
    pub(crate) goes_on: bool,
}

/// Calls `sink` with the words from the boundary at the beginning of `range` on, up to a boundary
/// at its end or after its end. There is no word between `last` and the range.
pub(super) fn words(
    text: &str,
    mut last: usize,
    range: Range<usize>,
    lower: &mut String,
    sink: &mut impl FnMut(&str) -> bool,
) -> Stopped {
    let mut at = range.start;
    let narrow = class::narrow();
    let (mut here, mut width) = class::at(text, at);
    while at < text.len() {
        // There is no boundary before a character that belongs to the character before it.
        if at >= range.end && here & (EXTEND | COMPLEX) == 0 {
            break;
        }
        let found = if here & (ALPHABET | KATAKANA | ALONE) != 0 {
            stretch(text, at + width, here, narrow)
        } else if here & (EXTEND | COMPLEX) != 0 {
            at = before(text, last, at);
            StretchEnd::Complex
        } else {
            at += width;
            (here, width) = class::at(text, at);
            continue;
        };
        let goes_on = match found {
            StretchEnd::Stretch(end, seen, next) => {
                let word = &text[at..end];
                (at, (here, width)) = (end, next);
                // Underscores are no word, unless a mark among them is a letter.
                let is_word = seen & (ALPHABET | KATAKANA | ALONE) != UNDERSCORE
                    || word.contains(char::is_alphanumeric);
                !is_word || sink(if seen & CHANGES == 0 { word } else { lower_case(word, lower) })
            }
            StretchEnd::Complex => {
                let rest = &text[at..];
                let (consumed, goes_on) = by_crate(&rest[..mixed_len(rest)], lower, sink);
                at += consumed;
                (here, width) = class::at(text, at);
                goes_on
            }
        };
        last = at;
        if !goes_on {
            return Stopped { at, last, goes_on };
        }
    }
    Stopped { at, last, goes_on: true }
}

/// The stretch of a word. Its first character has the class `first` and ends at byte `at`.
#[inline]
fn stretch(text: &str, mut at: usize, first: u16, narrow: &Narrow) -> StretchEnd {
    let (mut before, mut seen) = (first, first);
    loop {
        if before & ALPHABET != 0 {
            // This loop passes most characters of most alphabets without a further branch.
            while let Some(letter) = narrow.letter(text, at) {
                (before, seen) = (letter, seen | letter);
                at += 2;
            }
        }
        let (here, width) = class::at(text, at);
        if here & (ALPHABET | KATAKANA | EXTEND | COMPLEX | BETWEEN) == 0 {
            return StretchEnd::Stretch(at, seen, (here, width));
        }
        let is_joined = (before & ALPHABET != 0 && here & ALPHABET != 0)
            || (before & SYLLABARY != 0 && here & SYLLABARY != 0);
        if is_joined {
            before = here;
        } else if here & COMPLEX != 0 {
            return StretchEnd::Complex;
        } else if here & BETWEEN != 0 {
            let (after, _) = class::at(text, at + width);
            if after & (EXTEND | COMPLEX) != 0 {
                return StretchEnd::Complex;
            }
            if !class::is_joined(before, here, after) {
                return StretchEnd::Stretch(at, seen, (here, width));
            }
        } else if here & EXTEND == 0 {
            return StretchEnd::Stretch(at, seen, (here, width));
        }
        seen |= here;
        at += width;
    }
}

/// The boundary at which the crate begins, for a character at `at` that belongs to the character
/// before it: the boundary before the run of white space, or before that one character. No word
/// begins between `last` and `at`.
fn before(text: &str, last: usize, at: usize) -> usize {
    let between = &text[last..at];
    let words = between.trim_end();
    if words.len() < between.len() {
        return last + words.len();
    }
    at - between.chars().next_back().map_or(0, char::len_utf8)
}

/// Calls `sink` with the words by the tables of the crate. Returns the byte at which to continue,
/// and whether the sink wants more.
fn by_crate(text: &str, lower: &mut String, sink: &mut impl FnMut(&str) -> bool) -> (usize, bool) {
    for (offset, found) in text.unicode_word_indices() {
        let mut rest = found;
        while !rest.is_empty() {
            let word = without_emoji(rest);
            rest = &rest[word.len()..];
            // The remaining text begins with a sign. If a vowel sign or a similar mark follows, the
            // remaining text is a word.
            if word.contains(char::is_alphanumeric) && !sink(lower_case(word, lower)) {
                return (offset + found.len() - rest.len(), false);
            }
        }
    }
    (text.len(), true)
}

/// The part of a word before a sign between letters that no letter follows. The crate continues
/// after such a sign if a joiner and a picture follow the sign. By WB6 and WB12, a boundary stands
/// there, since no letter or digit follows.
fn without_emoji(word: &str) -> &str {
    const JOINER: char = '\u{200d}';
    if !word.contains(JOINER) {
        return word;
    }
    let (mut sign, mut is_joined) = (None, false);
    for (at, character) in word.char_indices() {
        let (class, _) = class::at(word, at);
        match sign {
            _ if class & EXTEND != 0 || character == JOINER => {}
            Some(sign) if is_joined && !joins_letters(character) => return &word[..sign],
            // A sign at the beginning has no letter before it.
            _ => sign = (class & BETWEEN != 0 && at > 0).then_some(at),
        }
        is_joined = character == JOINER;
    }
    word
}

/// Whether there is no boundary between a letter and this character. The question is rare.
fn joins_letters(character: char) -> bool {
    let text: String = ['a', character].into_iter().collect();
    text.split_word_bounds().count() == 1
}

/// Writes a word into `lower`, in lower case.
fn lower_case<'a>(word: &str, lower: &'a mut String) -> &'a str {
    lower.clear();
    if word.contains('Σ') {
        // The lower case of a capital sigma at the end of a word is another character.
        lower.push_str(&word.to_lowercase());
        return lower;
    }
    for c in word.chars() {
        if c.is_ascii() {
            lower.push(c.to_ascii_lowercase());
        } else {
            lower.extend(c.to_lowercase());
        }
    }
    lower
}
