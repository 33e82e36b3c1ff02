//! Whether a line is JSON (RFC 8259): the decoder of tables passes over commas that are missing or
//! too many, over numbers such as `01` and `1.`, and over control characters in texts.
//!
//! ```text
//! value ──► `,` next value, `]` or `}` the end of the list or the object around it ──► …
//! ```
//!
//! Each byte is looked at once, those of texts eight at a time. There is no recursion: the lists and
//! objects around a value are the bits of a number.

/// Maximum depth of lists and objects inside each other.
pub(super) const DEPTH_MAX: u32 = u128::BITS;

/// A byte in each of eight.
const ONES: u64 = u64::MAX / 255;
const HIGH_BITS: u64 = ONES << 7;

/// Whether `text` is one value of JSON, of lists and objects at most [`DEPTH_MAX`] deep.
pub(super) fn is_json(text: &[u8]) -> bool {
    Scan { text, at: 0 }.is_value()
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

/// Lists and objects around a value.
#[derive(Default)]
struct Around {
    /// One for an object; the lowest bit is the innermost one.
    objects: u128,
    depth: u32,
}

impl Around {
    fn enter(&mut self, is_object: bool) {
        self.objects = self.objects << 1 | u128::from(is_object);
        self.depth += 1;
    }

    fn leave(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    fn is_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn is_value(&mut self) -> bool {
        let mut around = Around::default();
        loop {
            self.skip_blanks();
            let Some(first) = self.peek() else { return false };
            self.at += 1;
            let is_whole = match first {
                b'"' => self.string(),
                b'-' => self.peek().is_some_and(|digit| self.number_from(digit)),
                b'0'..=b'9' => {
                    self.at -= 1;
                    self.number_from(first)
                }
                b't' => self.word(b"rue"),
                b'f' => self.word(b"alse"),
                b'n' => self.word(b"ull"),
                b'{' | b'[' => {
                    if around.depth == DEPTH_MAX {
                        return false;
                    }
                    let is_object = first == b'{';
                    around.enter(is_object);
                    self.skip_blanks();
                    if !self.take(if is_object { b'}' } else { b']' }) {
                        if is_object && !self.key() {
                            return false;
                        }
                        continue;
                    }
                    around.leave();
                    true
                }
                _ => false,
            };
            if !is_whole {
                return false;
            }
            match self.after(&mut around) {
                Next::Value => {}
                Next::End => return true,
                Next::Fault => return false,
            }
        }
    }

    /// Passes over what follows a value, up to the next one.
    fn after(&mut self, around: &mut Around) -> Next {
        loop {
            self.skip_blanks();
            let Some(byte) = self.peek() else {
                return if around.depth == 0 { Next::End } else { Next::Fault };
            };
            if around.depth == 0 {
                return Next::Fault;
            }
            self.at += 1;
            match (byte, around.is_object()) {
                (b',', false) => return Next::Value,
                (b',', true) => {
                    self.skip_blanks();
                    return if self.key() { Next::Value } else { Next::Fault };
                }
                (b'}', true) | (b']', false) => around.leave(),
                _ => return Next::Fault,
            }
        }
    }

    /// Passes over the name of a member and its colon.
    fn key(&mut self) -> bool {
        if !self.take(b'"') || !self.string() {
            return false;
        }
        self.skip_blanks();
        self.take(b':')
    }

    fn word(&mut self, rest: &[u8]) -> bool {
        let is_word = self.text[self.at..].starts_with(rest);
        self.at += rest.len();
        is_word
    }

    /// Passes over a number whose first digit, which is next, is `first`.
    fn number_from(&mut self, first: u8) -> bool {
        self.at += 1;
        let is_whole = match first {
            b'0' => true,
            b'1'..=b'9' => {
                self.digits();
                true
            }
            _ => false,
        };
        if !is_whole || self.take(b'.') && self.digits() == 0 {
            return false;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            return self.digits() > 0;
        }
        true
    }

    fn digits(&mut self) -> usize {
        let begin = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - begin
    }

    /// Passes over a text whose quote has been taken.
    fn string(&mut self) -> bool {
        loop {
            while let Some(bytes) = self.text[self.at..].first_chunk::<8>() {
                let found = special(u64::from_le_bytes(*bytes));
                if found != 0 {
                    self.at += found.trailing_zeros() as usize / 8;
                    break;
                }
                self.at += bytes.len();
            }
            let Some(byte) = self.peek() else { return false };
            self.at += 1;
            match byte {
                b'"' => return true,
                b'\\' if self.escape() => {}
                b'\\' | ..b' ' => return false,
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> bool {
        let Some(byte) = self.peek() else { return false };
        self.at += 1;
        match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => true,
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4);
                self.at += 4;
                digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            }
            _ => false,
        }
    }
}

/// What follows a value.
enum Next {
    Value,
    End,
    Fault,
}

/// The high bit of the first of eight bytes that is a quote, a backslash or a control character;
/// bits after it may be wrong.
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
