//! Places of members of objects of JSON. Members that are no columns are checked and passed over,
//! so that the cost of an object is about the cost of its bytes.
//!
//! The lines of a table mostly have the same members in the same order. The name of a member is
//! therefore compared with the name at the same place of the last line, before the name is looked
//! up.

use std::collections::HashMap;

use super::strict::{DEPTH_MAX, Quoted, Walk};
use crate::source::read::columns::places::{Form, Span, Spans};

/// Maximum members whose order is remembered.
const REMEMBERED_MAX: usize = 1_024;

/// Finds the members of objects that have a column.
pub(crate) struct Members {
    columns: HashMap<Box<[u8]>, usize>,
    /// The names of the members of the last object, each with its column, if the member has one.
    remembered: Vec<(Vec<u8>, Option<usize>)>,
}

impl Members {
    /// Finds the members with these names, which are the columns; `None` if two columns have the
    /// same name.
    pub(crate) fn new<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Option<Self> {
        let count = names.len();
        let columns = names.enumerate().map(|(column, name)| (name.as_bytes().into(), column));
        let columns: HashMap<_, _> = columns.collect();
        (columns.len() == count).then_some(Self { columns, remembered: Vec::new() })
    }

    /// Adds the places of the members of the object in `line` to `spans`, a value for each column;
    /// false if the line is no object, or if the decoder has to read the line (names with escapes,
    /// lists and structs). `begin` is the place of the line.
    pub(crate) fn find(&mut self, line: &str, begin: usize, spans: &mut Spans) -> bool {
        let first = spans.spans.len();
        spans.spans.resize(first + self.columns.len(), Span::default());
        let mut walk = Walk { bytes: line.as_bytes(), at: 0 };
        self.object(&mut walk, line, begin, (first, spans)).is_some() && walk.is_at_end()
    }

    fn object(
        &mut self,
        walk: &mut Walk<'_>,
        line: &str,
        begin: usize,
        (first, spans): (usize, &mut Spans),
    ) -> Option<()> {
        walk.pass_blanks();
        walk.expect(b'{')?;
        walk.pass_blanks();
        if walk.passes(b'}') {
            return Some(());
        }
        for number in 0.. {
            let key = walk.string()?;
            // Names with escapes are rare, so the decoder reads such a line.
            if key.has_escapes {
                return None;
            }
            walk.pass_blanks();
            walk.expect(b':')?;
            walk.pass_blanks();
            let column = self.column(number, &walk.bytes[key.begin..key.end]);
            match column {
                None => walk.value(DEPTH_MAX - 1)?,
                Some(column) => {
                    let span = scalar(walk, line, begin, spans)?;
                    spans.spans[first + column] = span;
                }
            }
            walk.pass_blanks();
            if walk.passes(b'}') {
                return Some(());
            }
            walk.expect(b',')?;
            walk.pass_blanks();
        }
        None
    }

    /// The column of the member at place `number` of its object.
    fn column(&mut self, number: usize, name: &[u8]) -> Option<usize> {
        // If the lines are alike, this arm computes no hash and allocates nothing.
        match self.remembered.get_mut(number) {
            Some((last, column)) if last == name => *column,
            Some((last, column)) => {
                last.clear();
                last.extend_from_slice(name);
                *column = self.columns.get(name).copied();
                *column
            }
            None => {
                let column = self.columns.get(name).copied();
                if number < REMEMBERED_MAX {
                    self.remembered.push((name.into(), column));
                }
                column
            }
        }
    }
}

/// The place of a value that is neither a list nor an object.
fn scalar(walk: &mut Walk<'_>, line: &str, begin: usize, spans: &mut Spans) -> Option<Span> {
    let first = walk.at;
    match walk.peek()? {
        b'"' => {
            let Quoted { begin: first, end, has_escapes: false } = walk.string()? else {
                let text: String = serde_json::from_str(&line[first..walk.at]).ok()?;
                return Some(spans.unescape(|unescaped| unescaped.push_str(&text)));
            };
            Some(Span::new(begin + first, begin + end, Form::Quoted))
        }
        b'n' => walk.word(b"null").map(|()| Span::default()),
        b'{' | b'[' => None,
        _ => {
            walk.value(0)?;
            Some(Span::new(begin + first, begin + walk.at, Form::Bare))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// The texts of the members `a` and `b` of an object.
    fn found(members: &mut Members, line: &str) -> Option<Vec<Option<(String, bool)>>> {
        let mut spans = Spans::default();
        if !members.find(line, 0, &mut spans) {
            return None;
        }
        let text = |span: &Span| {
            let range = span.begin as usize..span.end as usize;
            match span.form {
                Form::Missing => None,
                Form::Unescaped => Some((spans.unescaped[range].to_owned(), true)),
                form => Some((line[range].to_owned(), form == Form::Quoted)),
            }
        };
        Some(spans.spans.iter().map(text).collect())
    }

    /// The texts of the same members by a parser of JSON.
    fn expected(line: &str) -> Option<Vec<Option<(String, bool)>>> {
        let Ok(Value::Object(object)) = serde_json::from_str::<Value>(line) else { return None };
        let text = |name: &&str| match object.get(*name) {
            None | Some(Value::Null) => Some(None),
            Some(Value::String(text)) => Some(Some((text.clone(), true))),
            Some(Value::Array(_) | Value::Object(_)) => None,
            Some(value) => Some(Some((value.to_string(), false))),
        };
        ["a", "b"].iter().map(text).collect()
    }

    fn check(line: &str) {
        let mut members = Members::new(["a", "b"].into_iter()).unwrap();
        for _ in 0..2 {
            assert_eq!(found(&mut members, line), expected(line), "{line}");
        }
    }

    #[test]
    fn members_are_found_in_any_order() {
        let mut members = Members::new(["a", "b"].into_iter()).unwrap();
        for line in [
            r#"{"a":1,"b":"x"}"#,
            r#"{"b":"x","a":1}"#,
            r#" { "c" : [ ] , "b" : "long text with a \"quote\" \u00e4" , "d":{"a":{}} } "#,
            r#"{"a":null}"#,
            "{}",
            r#"{"a":1,"a":2}"#,
            r#"{"a":true,"b":-0.5e+7}"#,
            r#"{"b":"12345678\n12345678","c":"\\"}"#,
            r#"{"b":"\ud83d\ude00","c":"\ud83d\ude00"}"#,
        ] {
            assert_eq!(found(&mut members, line).map(|all| all.len()), Some(2), "{line}");
            if !line.contains("e+7") {
                assert_eq!(found(&mut members, line), expected(line), "{line}");
            }
        }
    }

    #[test]
    fn mistakes_are_found_in_members_that_are_passed_over() {
        for value in [
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "1e+",
            "-",
            "tru",
            "nulll",
            "\"a",
            "\"\t\"",
            r#""\x""#,
            r#""\u12g4""#,
            r#""\ud83d""#,
            r#""\ude00""#,
            r#""\ud83dx""#,
            "[1,]",
            "[,]",
            "[1 2]",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{a:1}"#,
            "'a'",
            "",
            r#"{"a":1,}"#,
            "]",
            "NaN",
            "1,",
        ] {
            check(&format!(r#"{{"x":{value}}}"#));
            check(&format!(r#"{{"a":{value},"b":1}}"#));
        }
        for line in ["", "1", "[]", "{", "}", "{}{}", "{} x", r#"{"a":1}}"#, r#"{"a" 1}"#, "{,}"] {
            check(line);
        }
    }

    #[test]
    fn values_are_passed_over_up_to_a_depth() {
        let mut members = Members::new(["a"].into_iter()).unwrap();
        let nested = |depth: usize| format!("{{\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(found(&mut members, &nested(DEPTH_MAX - 1)).is_some());
        assert!(found(&mut members, &nested(DEPTH_MAX)).is_none());
        assert!(found(&mut members, &"[".repeat(1_000_000)).is_none());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,20}".prop_map(Value::from),
            "[a-z\"\\\\\n\u{1}]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 10, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[ab]{1,2}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn objects_are_as_a_parser_reads_them(
            members in prop::collection::hash_map("[abc]", value(), 0..5),
            place in any::<prop::sample::Index>(),
            byte in prop::sample::select(b"\"\\{}[],:0.- x".to_vec()),
        ) {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}:{value}", Value::from(name.clone())))
                .collect();
            let line = format!("{{{}}}", members.join(","));
            check(&line);
            // One byte is replaced by another byte.
            let mut bytes = line.into_bytes();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            if let Ok(line) = String::from_utf8(bytes)
                && serde_json::from_str::<serde_json::Map<String, Value>>(&line)
                    .map_or(true, |members| members.values().all(|value| !value.is_f64()))
            {
                let mut members = Members::new(["a", "b"].into_iter()).unwrap();
                let (found, expected) = (found(&mut members, &line), expected(&line));
                // The decoder reads lone surrogates, names with escapes, and lists that a later
                // value of the same name replaces.
                let is_elsewhere = found.is_none() && line[1..].contains(['\\', '[', '{']);
                prop_assert!(found == expected || is_elsewhere, "{}", line);
            }
        }

        #[test]
        fn any_text_is_read_without_a_panic(line in "[{}\\[\\]\",:\\\\a-cu0-9é ]{0,40}") {
            let mut members = Members::new(["a"].into_iter()).unwrap();
            let mut spans = Spans::default();
            if members.find(&line, 0, &mut spans) {
                prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&line).is_ok(), "{}", line);
            }
        }
    }
}
