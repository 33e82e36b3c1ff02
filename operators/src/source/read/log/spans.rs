//! Places of the values in a record.

use std::ops::Range;

/// Value of a column in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Span {
    /// The record has no value for the column.
    Null,
    /// The text at these bytes, without escapes.
    Plain(Range<usize>),
    /// The text at these bytes, which has escapes.
    Escaped(Range<usize>, Escapes),
    /// A word that is not in the record.
    Word(&'static str),
}

/// Escapes of a text in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// `\"` and `\\`. Other escapes stay unchanged, such as `\x16` in a request that is no text.
    Quotes,
    /// The escapes of JSON and Go.
    All,
}

impl Span {
    /// The text of the value in `record`. A text with escapes is written to `room`.
    pub(super) fn text<'a>(&self, record: &'a str, room: &'a mut String) -> Option<&'a str> {
        match self {
            Self::Null => None,
            Self::Word(word) => Some(word),
            Self::Plain(place) => Some(&record[place.clone()]),
            Self::Escaped(place, escapes) => {
                let text = &record[place.clone()];
                if !text.contains('\\') {
                    return Some(text);
                }
                room.clear();
                unescape(text, *escapes, room);
                Some(room)
            }
        }
    }
}

/// Reason why a record does not follow its pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// The column at whose end or in whose place the record fails.
    pub(super) column: Option<String>,
    pub(super) reason: String,
}

impl Mismatch {
    pub(super) fn new(column: Option<&str>, reason: impl Into<String>) -> Self {
        Self { column: column.map(str::to_owned), reason: reason.into() }
    }
}

fn unescape(text: &str, escapes: Escapes, target: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        target.push_str(&rest[..at]);
        let escape = &rest[at..];
        let (value, bytes) = escaped(escape, escapes).unwrap_or(('\\', 1));
        target.push(value);
        rest = &escape[bytes..];
    }
    target.push_str(rest);
}

/// The character of an escape at the beginning of `text`, and the bytes of the escape.
fn escaped(text: &str, escapes: Escapes) -> Option<(char, usize)> {
    let digits = |count: usize, from: usize| {
        let digits = text.get(from..from + count)?;
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| are_digits)
    };
    let is_all = escapes == Escapes::All;
    let value = match text.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'n' if is_all => '\n',
        b'r' if is_all => '\r',
        b't' if is_all => '\t',
        b'b' if is_all => '\u{8}',
        b'f' if is_all => '\u{c}',
        b'/' if is_all => '/',
        b'x' if is_all => return Some((char::from_u32(digits(2, 2)?)?, 4)),
        b'u' if is_all => {
            let first = digits(4, 2)?;
            if let Some(value) = char::from_u32(first) {
                return Some((value, 6));
            }
            // Two surrogates stand for a character beyond 16 bits.
            let second = digits(4, 8).filter(|_| text.get(6..8) == Some("\\u"))?;
            let halves = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
            let mut units = char::decode_utf16(halves);
            return Some((units.next()?.ok()?, 12));
        }
        _ => return None,
    };
    Some((value, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_that_are_none_stay_as_they_are() {
        for (text, quotes, all) in [
            (r#"a\"b\\c"#, r#"a"b\c"#, r#"a"b\c"#),
            (r"\x41\n\u00e9", r"\x41\n\u00e9", "A\né"),
            (r"\ud83d\ude00", r"\ud83d\ude00", "😀"),
            (r"\ud83d\n\uzzzz\x+1", r"\ud83d\n\uzzzz\x+1", "\\ud83d\n\\uzzzz\\x+1"),
            (r"\é\", r"\é\", r"\é\"),
            (r"\\\", r"\\", r"\\"),
        ] {
            for (escapes, expected) in [(Escapes::Quotes, quotes), (Escapes::All, all)] {
                let span = Span::Escaped(0..text.len(), escapes);
                assert_eq!(span.text(text, &mut String::new()), Some(expected), "{text}");
            }
        }
    }
}
