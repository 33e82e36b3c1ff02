//! Whether a line is JSON (RFC 8259): the decoder of tables passes over commas that are missing or
//! too many, over numbers such as `01` and `1.`, and over control characters in texts.
//!
//! ```text
//! value ──► `,` next value, `]` or `}` the end of the list or the object around it ──► …
//! ```
//!
//! Each byte is read once; the bytes of texts are read eight at a time.

/// Maximum depth of lists and objects inside each other.
pub(crate) const DEPTH_MAX: usize = 128;

/// Whether `text` is one value of JSON, of lists and objects at most [`DEPTH_MAX`] deep.
pub(crate) fn is_json(text: &[u8]) -> bool {
    let mut walk = Walk { bytes: text, at: 0 };
    walk.pass_blanks();
    walk.value(DEPTH_MAX).is_some() && walk.is_at_end()
}

/// A string between its quotes.
pub(crate) struct Quoted {
    pub(crate) begin: usize,
    pub(crate) end: usize,
    pub(crate) has_escapes: bool,
}

/// A place in a value of JSON (RFC 8259). Each method returns `None` if the JSON is invalid.
pub(crate) struct Walk<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl Walk<'_> {
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(crate) fn passes(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Option<()> {
        self.passes(byte).then_some(())
    }

    pub(crate) fn pass_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    pub(crate) fn is_at_end(&mut self) -> bool {
        self.pass_blanks();
        self.at == self.bytes.len()
    }

    /// A string, without its quotes.
    pub(crate) fn string(&mut self) -> Option<Quoted> {
        self.expect(b'"')?;
        let begin = self.at;
        let mut has_escapes = false;
        loop {
            self.pass_plain();
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(Quoted { begin, end: self.at - 1, has_escapes });
                }
                b'\\' => {
                    has_escapes = true;
                    self.escape()?;
                }
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
    }

    /// Passes over eight bytes at a time that are no quote, escape or control character.
    fn pass_plain(&mut self) {
        const ONES: u64 = u64::from_le_bytes([1; 8]);
        const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
        while let Some(eight) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) {
            let eight = u64::from_le_bytes(*eight);
            // The lowest set bit is exact, since a borrow only changes higher bits.
            let below =
                |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & TOPS;
            let equal = |byte: u8| below(eight ^ (ONES * u64::from(byte)), 1);
            let found = below(eight, 0x20) | equal(b'"') | equal(b'\\');
            self.at += (found.trailing_zeros() / 8) as usize;
            if found != 0 {
                return;
            }
        }
    }

    /// An escape. A lone surrogate is no character, so only a pair of surrogates is valid.
    fn escape(&mut self) -> Option<()> {
        match *self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => match self.unit()? {
                0xd800..0xdc00 => matches!(self.unit()?, 0xdc00..0xe000).then_some(())?,
                0xdc00..0xe000 => return None,
                _ => {}
            },
            _ => return None,
        }
        Some(())
    }

    /// The number in `\uXXXX`.
    fn unit(&mut self) -> Option<u32> {
        self.word(b"\\u")?;
        let digits = self.bytes.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |unit, &digit| Some(unit * 16 + char::from(digit).to_digit(16)?))
    }

    fn digits(&mut self) -> Option<()> {
        let begin = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > begin).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        self.passes(b'-');
        if !self.passes(b'0') {
            self.digits()?;
        }
        if self.passes(b'.') {
            self.digits()?;
        }
        if self.passes(b'e') || self.passes(b'E') {
            let _ = self.passes(b'-') || self.passes(b'+');
            self.digits()?;
        }
        Some(())
    }

    pub(crate) fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then_some(())?;
        self.at += word.len();
        Some(())
    }

    /// A value with at most `depth` lists and objects inside each other.
    pub(crate) fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            b'[' => self.items(depth.checked_sub(1)?, b']', |walk, depth| walk.value(depth)),
            b'{' => self.items(depth.checked_sub(1)?, b'}', |walk, depth| {
                walk.string()?;
                walk.pass_blanks();
                walk.expect(b':')?;
                walk.pass_blanks();
                walk.value(depth)
            }),
            _ => self.number(),
        }
    }

    /// The items of a list or an object up to `end`.
    fn items(
        &mut self,
        depth: usize,
        end: u8,
        item: impl Fn(&mut Self, usize) -> Option<()>,
    ) -> Option<()> {
        self.at += 1;
        self.pass_blanks();
        if self.passes(end) {
            return Some(());
        }
        loop {
            item(self, depth)?;
            self.pass_blanks();
            if self.passes(end) {
                return Some(());
            }
            self.expect(b',')?;
            self.pass_blanks();
        }
    }
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
            // Texts that are not UTF-8 are left out, since the decoder refuses such texts earlier.
            if std::str::from_utf8(&text).is_ok() {
                prop_assert_eq!(is_json(&text), is_json_to_serde(&text));
            }
        }
    }
}
