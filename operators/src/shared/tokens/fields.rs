//! A field of a text.

use std::ops::Range;

/// The definition of a field by its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    /// Number of the field, counted from 1.
    pub(crate) number: u32,
    /// The character between two fields; `None` stands for white space.
    pub(crate) delimiter: Option<char>,
    pub(crate) quotes: bool,
}

impl Fields {
    /// The bytes of the field, if the text has this field. An empty text has no field.
    pub(crate) fn find(self, text: &str) -> Option<Range<usize>> {
        let (mut at, mut has_quotes) = (0, self.quotes);
        for number in 1.. {
            if self.delimiter.is_none() {
                at += text[at..].len() - text[at..].trim_start().len();
            }
            if at == text.len() && (number == 1 || self.delimiter.is_none()) {
                return None;
            }
            let (field, end) = self.field_at(text, at, &mut has_quotes);
            if number == self.number {
                return Some(field);
            }
            at = match self.delimiter {
                None => end,
                // An empty field follows a delimiter at the end.
                Some(delimiter) if end < text.len() => end + delimiter.len_utf8(),
                Some(_) => return None,
            };
        }
        None
    }

    /// The field that begins at a byte, and the end of the field with its quotes.
    fn field_at(self, text: &str, at: usize, has_quotes: &mut bool) -> (Range<usize>, usize) {
        let rest = &text[at..];
        let close = match rest.as_bytes().first() {
            Some(b'"') => Some('"'),
            Some(b'[') if self.delimiter.is_none() => Some(']'),
            _ => None,
        };
        if let Some(close) = close.filter(|_| *has_quotes) {
            if let Some(end) = self.closing(&rest[1..], close) {
                return (at + 1..at + 1 + end, at + end + 2);
            }
            // After a quote that is not closed, no further closing quote is looked for, because
            // each look would go to the end of the text.
            *has_quotes = false;
        }
        let len = rest.find(|character| self.is_delimiter(character)).unwrap_or(rest.len());
        (at..at + len, at + len)
    }

    /// The position of the quote that closes a field: the first quote before a delimiter. Two
    /// quotes stand for one quote that closes nothing, as in CSV, and so does a backslash with a
    /// quote, as in logs.
    fn closing(self, inside: &str, close: char) -> Option<usize> {
        let mut at = 0;
        loop {
            let end = at + inside[at..].find(close)?;
            let after = inside[end + 1..].chars().next();
            let backslashes =
                inside[at..end].bytes().rev().take_while(|&byte| byte == b'\\').count();
            let is_escaped = close == '"' && self.delimiter.is_none() && backslashes % 2 == 1;
            if close == '"' && self.delimiter.is_some() && after == Some('"') {
                at = end + 2;
                continue;
            }
            if !is_escaped && after.is_none_or(|after| self.is_delimiter(after)) {
                return Some(end);
            }
            at = end + 1;
        }
    }

    fn is_delimiter(self, character: char) -> bool {
        self.delimiter.map_or_else(|| character.is_whitespace(), |delimiter| delimiter == character)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, number: u32, delimiter: Option<char>, quotes: bool) -> Option<&str> {
        Fields { number, delimiter, quotes }.find(text).map(|range| &text[range])
    }

    #[test]
    fn fields_stand_between_white_space() {
        let text = " a  bé\t\u{a0}c ";
        let fields = [1, 2, 3, 4].map(|number| found(text, number, None, false));
        assert_eq!(fields, [Some("a"), Some("bé"), Some("c"), None]);
        assert_eq!(found("", 1, None, false), None);
    }

    #[test]
    fn fields_stand_between_delimiters() {
        let text = "a,,b\u{3001} c,";
        let fields = [1, 2, 3, 4, 5].map(|number| found(text, number, Some(','), false));
        assert_eq!(fields, [Some("a"), Some(""), Some("b\u{3001} c"), Some(""), None]);
        assert_eq!(found(text, 2, Some('\u{3001}'), false), Some(" c,"));
        assert_eq!(found("", 1, Some(','), false), None);
    }

    #[test]
    fn fields_may_stand_in_quotes() {
        let line =
            r#"10.0.0.1 - - [1/Jan/2026:10:00:00 +0000] "GET /a \"b\" HTTP/1.1" 200 "un"ended"#;
        let fields = [4, 5, 6, 7].map(|number| found(line, number, None, true));
        let request = r#"GET /a \"b\" HTTP/1.1"#;
        let date = "1/Jan/2026:10:00:00 +0000";
        assert_eq!(fields, [Some(date), Some(request), Some("200"), Some("\"un\"ended")]);
        let row = r#""a,b",[c,"d ""e"", f",""#;
        let fields = [1, 2, 3, 4].map(|number| found(row, number, Some(','), true));
        assert_eq!(fields, [Some("a,b"), Some("[c"), Some(r#"d ""e"", f"#), Some("\"")]);
        assert_eq!(found(line, 4, None, false), Some("[1/Jan/2026:10:00:00"));
    }
}
