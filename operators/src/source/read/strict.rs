//! Whether a line is JSON (RFC 8259): the decoder of tables passes over commas that are missing or
//! too many, over numbers such as `01` and `1.`, and over control characters in texts.
//!
//! ```text
//! value ──► `,` next value, `]` or `}` the end of the list or the object around it ──► …
//! ```
//!
//! Each byte is looked at once, those of texts eight at a time. There is no recursion: the lists
//! and objects around a value are the bits of a number.

/// Maximum depth of lists and objects inside each other.
pub(super) const DEPTH_MAX: u32 = u128::BITS;

/// A byte in each of eight.
const ONES: u64 = u64::MAX / 255;
const HIGH_BITS: u64 = ONES << 7;

/// Whether `text` is one value of JSON, of lists and objects at most [`DEPTH_MAX`] deep.
pub(super) fn is_json(text: &[u8]) -> bool {
    let mut around = Around::default();
    let mut rest = text;
    loop {
        let after = match value(skip_blanks(rest), &mut around) {
            Some(Value::Whole(after)) => after,
            Some(Value::Opened(inside)) => {
                rest = inside;
                continue;
            }
            None => return false,
        };
        match next_value(after, &mut around) {
            Some(Next::Value(next)) => rest = next,
            Some(Next::End) => return true,
            None => return false,
        }
    }
}

/// Lists and objects around a value.
#[derive(Default)]
struct Around {
    /// One for an object; the lowest bit is the innermost one.
    objects: u128,
    depth: u32,
}

impl Around {
    fn enter(&mut self, is_object: bool) -> Option<()> {
        self.objects = self.objects << 1 | u128::from(is_object);
        self.depth += 1;
        (self.depth <= DEPTH_MAX).then_some(())
    }

    fn leave(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    fn is_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

/// A value, with the bytes after it.
enum Value<'a> {
    Whole(&'a [u8]),
    /// A list or an object with values; the bytes of the first one come next.
    Opened(&'a [u8]),
}

/// The bytes after a value.
enum Next<'a> {
    Value(&'a [u8]),
    End,
}

// The functions are small parts of one loop, which is a third faster when they are in it.

#[inline]
fn skip_blanks(mut rest: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r' | b'\n', after @ ..] = rest {
        rest = after;
    }
    rest
}

/// Passes over a value, or over the beginning of a list or an object.
#[inline]
fn value<'a>(text: &'a [u8], around: &mut Around) -> Option<Value<'a>> {
    let (&first, rest) = text.split_first()?;
    let after = match first {
        b'"' => string(rest)?,
        b'0'..=b'9' => number(first, rest)?,
        b'-' => {
            let (&digit, rest) = rest.split_first()?;
            number(digit, rest)?
        }
        b't' => rest.strip_prefix(b"rue")?,
        b'f' => rest.strip_prefix(b"alse")?,
        b'n' => rest.strip_prefix(b"ull")?,
        b'{' | b'[' => {
            let is_object = first == b'{';
            around.enter(is_object)?;
            let inside = skip_blanks(rest);
            match (inside.split_first()?, is_object) {
                ((b'}', after), true) | ((b']', after), false) => {
                    around.leave();
                    after
                }
                (_, true) => return Some(Value::Opened(key(inside)?)),
                (_, false) => return Some(Value::Opened(inside)),
            }
        }
        _ => return None,
    };
    Some(Value::Whole(after))
}

/// Passes over what follows a value, up to the next one.
#[inline]
fn next_value<'a>(mut rest: &'a [u8], around: &mut Around) -> Option<Next<'a>> {
    loop {
        rest = skip_blanks(rest);
        if around.depth == 0 {
            return rest.is_empty().then_some(Next::End);
        }
        rest = match (rest.split_first()?, around.is_object()) {
            ((b',', after), true) => return Some(Next::Value(key(skip_blanks(after))?)),
            ((b',', after), false) => return Some(Next::Value(after)),
            ((b'}', after), true) | ((b']', after), false) => {
                around.leave();
                after
            }
            _ => return None,
        }
    }
}

/// Passes over the name of a member and its colon.
#[inline]
fn key(text: &[u8]) -> Option<&[u8]> {
    let rest = string(text.strip_prefix(b"\"")?)?;
    skip_blanks(rest).strip_prefix(b":")
}

#[inline]
fn digits(mut rest: &[u8]) -> &[u8] {
    while let [b'0'..=b'9', after @ ..] = rest {
        rest = after;
    }
    rest
}

/// Passes over one digit and those that follow it.
#[inline]
fn some_digits(text: &[u8]) -> Option<&[u8]> {
    let rest = digits(text);
    (rest.len() < text.len()).then_some(rest)
}

/// Passes over a number after its first digit.
#[inline]
fn number(first: u8, rest: &[u8]) -> Option<&[u8]> {
    let mut rest = match first {
        b'0' => rest,
        b'1'..=b'9' => digits(rest),
        _ => return None,
    };
    if let [b'.', after @ ..] = rest {
        rest = some_digits(after)?;
    }
    match rest {
        [b'e' | b'E', b'+' | b'-', after @ ..] | [b'e' | b'E', after @ ..] => some_digits(after),
        _ => Some(rest),
    }
}

/// Passes over a text after its first quote.
#[inline]
fn string(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        while let Some((bytes, after)) = rest.split_first_chunk::<8>() {
            let found = special(u64::from_le_bytes(*bytes));
            if found != 0 {
                rest = &rest[found.trailing_zeros() as usize / 8..];
                break;
            }
            rest = after;
        }
        let (&byte, after) = rest.split_first()?;
        rest = match byte {
            b'"' => return Some(after),
            b'\\' => escape(after)?,
            ..b' ' => return None,
            _ => after,
        };
    }
}

/// Passes over an escape after its backslash.
fn escape(text: &[u8]) -> Option<&[u8]> {
    let (byte, rest) = text.split_first()?;
    match byte {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(rest),
        b'u' => {
            let (digits, rest) = rest.split_first_chunk::<4>()?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(rest)
        }
        _ => None,
    }
}

/// The high bit of the first of eight bytes that is a quote, a backslash or a control character;
/// bits after it may be wrong.
#[inline]
fn special(bytes: u64) -> u64 {
    let zeros = |bytes: u64| bytes.wrapping_sub(ONES) & !bytes;
    let quotes = zeros(bytes ^ (ONES * u64::from(b'"')));
    let backslashes = zeros(bytes ^ (ONES * u64::from(b'\\')));
    let controls = bytes.wrapping_sub(ONES * u64::from(b' ')) & !bytes;
    (quotes | backslashes | controls) & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    fn is_json_to_serde(text: &[u8]) -> bool {
        serde_json::from_slice::<IgnoredAny>(text).is_ok()
    }

    #[test]
    fn texts_that_are_nearly_json_are_none() {
        for (text, expected) in [
            (r#"{"a":1,}"#, false),
            (r#"{,"a":1}"#, false),
            (r#"{"a":1 "b":2}"#, false),
            (r#"{"a":1,,"b":2}"#, false),
            (r#"{"a":01}"#, false),
            (r#"{"a":1.}"#, false),
            (r#"{"a":.5}"#, false),
            (r#"{"a":-}"#, false),
            (r#"{"a":+1}"#, false),
            (r#"{"a":1e}"#, false),
            (r#"{"a":[1 2]}"#, false),
            (r#"{"a":[1,]}"#, false),
            (r#"{"a":[truefalse]}"#, false),
            ("{\"a\":\"\t\"}", false),
            (r#"{"a":"\x"}"#, false),
            (r#"{"a":"\u12"}"#, false),
            (r#"{"a":1]"#, false),
            (r#"{"a":1}}"#, false),
            (r#"{"a":1} {"a":2}"#, false),
            (r#"{"a"}"#, false),
            ("", false),
            (r#"{"a":"12345678","b":"1234567"}"#, true),
            (" { } ", true),
            (r#"{"a":[-0.5e+3,0,10E-2,[],{},null,true,false,"\u00e9\\\"é"]}"#, true),
            ("0", true),
        ] {
            assert_eq!(is_json(text.as_bytes()), expected, "{text}");
            assert_eq!(is_json_to_serde(text.as_bytes()), expected, "{text}");
        }
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_json(nested(128).as_bytes()));
        assert!(!is_json(nested(129).as_bytes()));
    }

    proptest! {
        #[test]
        fn it_is_what_serde_takes_for_json(text in "[\\[\\]{}:,\"\\\\utn0-9.eE+ \t-]{0,12}") {
            prop_assert_eq!(is_json(text.as_bytes()), is_json_to_serde(text.as_bytes()), "{}", text);
        }

        #[test]
        fn a_change_is_what_serde_takes_it_for(
            values in proptest::collection::vec((".{0,20}", any::<f64>(), any::<Option<bool>>()), 0..4),
            at: prop::sample::Index,
            byte in prop_oneof![any::<u8>(), Just(b','), Just(b'"'), Just(b'\\'), Just(b'0')],
            cuts: bool,
        ) {
            let value = serde_json::json!({ "": values, "x": { "y": values } });
            let mut text = value.to_string().into_bytes();
            prop_assert!(is_json(&text));
            let at = at.index(text.len());
            text.splice(at..=at, (!cuts).then_some(byte));
            // The decoder checks texts before.
            if std::str::from_utf8(&text).is_ok() {
                prop_assert_eq!(is_json(&text), is_json_to_serde(&text));
            }
        }
    }
}
