//! Places of fields of comma-separated values (RFC 4180), of many records at once.
//!
//! Without quotes, delimiters and line ends alone divide the text, and vector instructions find
//! both. With quotes, a walk goes through the fields one after the other.

use memchr::{memchr, memchr_iter, memchr2};
use trommel_kernels::text::{PLACES_SLACK, places_of};

use super::records::CsvText;
use crate::source::read::columns::places::{Form, Span, Spans};

/// Places of the fields of some columns.
#[derive(Debug, Default)]
pub(crate) struct FieldSpans {
    /// A span for each column of each record.
    pub(crate) spans: Spans,
    delimiters: Vec<u32>,
    /// Fields of one record.
    record: Vec<Span>,
}

impl FieldSpans {
    /// Finds the fields at `columns` of the whole records at the beginning of a text, and returns
    /// the bytes of these records; `None` if a record has another number of fields, or quotes that
    /// do not enclose a whole field.
    pub(crate) fn find(&mut self, records: &CsvText<'_>, columns: &[usize]) -> Option<usize> {
        self.spans.clear();
        match memchr(records.dialect.quote, records.text.as_bytes()) {
            None => self.find_plain(records, columns),
            Some(_) => self.find_quoted(records, columns),
        }
    }

    fn find_plain(&mut self, records: &CsvText<'_>, columns: &[usize]) -> Option<usize> {
        let &CsvText { isa, text, fields, dialect } = records;
        let bytes = text.as_bytes();
        let lines = memchr_iter(b'\n', bytes).count() + 1;
        // Lines of comments may have any number of delimiters, so the room may be too small.
        let room = lines.checked_mul(fields)?.min(bytes.len()) + PLACES_SLACK;
        self.delimiters.resize(room, 0);
        let found = places_of(isa, dialect.delimiter, bytes, &mut self.delimiters);
        // The delimiters did not fit into the room, so some line has too many delimiters.
        if found > room - PLACES_SLACK {
            return None;
        }
        let mut delimiters = &self.delimiters[..found];
        let mut begin = 0;
        for newline in memchr_iter(b'\n', bytes).chain([bytes.len()]) {
            let end = newline - usize::from(newline > begin && bytes[newline - 1] == b'\r');
            let within = delimiters.iter().take_while(|&&place| (place as usize) < newline).count();
            let (of_line, rest) = delimiters.split_at(within);
            delimiters = rest;
            let line = &bytes[begin..end];
            if !records.is_passed_over(line) {
                if within + 1 != fields {
                    return None;
                }
                self.spans.spans.extend(columns.iter().map(|&column| {
                    let first = column.checked_sub(1).map_or(begin, |at| of_line[at] as usize + 1);
                    let last = of_line.get(column).map_or(end, |&place| place as usize);
                    Span::new(first, last, Form::Bare)
                }));
            }
            begin = newline + 1;
        }
        Some(bytes.len())
    }

    fn find_quoted(&mut self, records: &CsvText<'_>, columns: &[usize]) -> Option<usize> {
        let bytes = records.text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let newline = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
            let line = &bytes[at..newline];
            if records.is_passed_over(line.strip_suffix(b"\r").unwrap_or(line)) {
                at = newline + 1;
                continue;
            }
            match self.record(records, at)? {
                Some(next) => at = next,
                // The last record continues after the text.
                None => return Some(at),
            }
            if self.record.len() != records.fields {
                return None;
            }
            self.spans.spans.extend(columns.iter().map(|&column| self.record[column]));
        }
        Some(bytes.len())
    }

    /// Finds the fields of the record at a place. Returns the place after the record, `Some(None)`
    /// if the record does not end in the text, and `None` if the record has to be parsed alone.
    fn record(&mut self, records: &CsvText<'_>, mut at: usize) -> Option<Option<usize>> {
        let (bytes, dialect) = (records.text.as_bytes(), records.dialect);
        self.record.clear();
        loop {
            let end = if bytes.get(at) == Some(&dialect.quote) {
                let Some((span, end)) = self.quoted(records, at + 1) else { return Some(None) };
                self.record.push(span);
                // A carriage return before the newline belongs to the line end.
                let is_return = bytes[end..].starts_with(b"\r\n");
                end + usize::from(is_return)
            } else {
                let rest = &bytes[at..];
                let len = memchr2(dialect.delimiter, b'\n', rest).unwrap_or(rest.len());
                let is_last = rest.get(len) != Some(&dialect.delimiter);
                let text = len - usize::from(is_last && rest[..len].ends_with(b"\r"));
                self.record.push(Span::new(at, at + text, Form::Bare));
                at + len
            };
            match bytes.get(end) {
                Some(&byte) if byte == dialect.delimiter => at = end + 1,
                Some(b'\n') => return Some(Some(end + 1)),
                None => return Some(Some(end)),
                Some(_) => return None,
            }
            // A line of delimiters alone would otherwise fill the memory with fields.
            if self.record.len() > records.fields {
                return None;
            }
        }
    }

    /// The field from a place up to its closing quote, and the place after the quote; `None` if the
    /// text has no closing quote.
    fn quoted(&mut self, records: &CsvText<'_>, begin: usize) -> Option<(Span, usize)> {
        let (bytes, quote) = (records.text.as_bytes(), records.dialect.quote);
        let mut end = begin + memchr(quote, &bytes[begin..])?;
        if bytes.get(end + 1) != Some(&quote) {
            return Some((Span::new(begin, end, Form::Quoted), end + 1));
        }
        while bytes.get(end + 1) == Some(&quote) {
            end += 2 + memchr(quote, &bytes[end + 2..])?;
        }
        let mut rest = &records.text[begin..end];
        let span = self.spans.unescape(|unescaped| {
            while let Some(first) = memchr(quote, rest.as_bytes()) {
                unescaped.push_str(&rest[..=first]);
                rest = &rest[first + 2..];
            }
            unescaped.push_str(rest);
        });
        Some((span, end + 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trommel_kernels::Isa;

    use super::super::dialect::Dialect;
    use super::*;

    /// The fields of all columns, record by record, and the bytes of the records.
    fn found(text: &str, fields: usize, dialect: &Dialect) -> Option<(Vec<Vec<String>>, usize)> {
        let mut spans = FieldSpans::default();
        let columns: Vec<usize> = (0..fields).collect();
        let isa = Isa::selected().unwrap();
        let bytes = spans.find(&CsvText { isa, text, fields, dialect }, &columns)?;
        let spans = spans.spans;
        let field = |span: &Span| {
            let range = span.begin as usize..span.end as usize;
            let text = if span.form == Form::Unescaped { &spans.unescaped } else { text };
            text[range].to_owned()
        };
        let records = spans.spans.chunks(fields);
        Some((records.map(|record| record.iter().map(field).collect()).collect(), bytes))
    }

    /// The fields of a text as `csv-core` reads them.
    fn expected(text: &str, dialect: &Dialect) -> Vec<Vec<String>> {
        let mut reader = csv_core::ReaderBuilder::new();
        reader.delimiter(dialect.delimiter).quote(dialect.quote).comment(dialect.comment);
        let mut reader = reader.build();
        let text = format!("{text}\n");
        let (mut input, mut records) = (text.as_bytes(), Vec::new());
        loop {
            let (mut output, mut ends) = (vec![0; text.len() + 1], vec![0; text.len() + 2]);
            let (result, read, _, fields) = reader.read_record(input, &mut output, &mut ends);
            let mut begin = 0;
            let record = ends[..fields].iter().map(|&end| {
                let field = String::from_utf8(output[begin..end].to_vec()).unwrap();
                begin = end;
                field
            });
            let record = record.collect();
            match result {
                csv_core::ReadRecordResult::Record => records.push(record),
                csv_core::ReadRecordResult::InputEmpty => {}
                _ => return records,
            }
            input = &input[read..];
        }
    }

    #[test]
    fn fields_are_divided() {
        let usual = Dialect::default();
        let lines = |text: &str| found(text, 2, &usual);
        let rows =
            |rows: &[[&str; 2]]| rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        assert_eq!(lines("a,b\r\n\n,\nc,d"), Some((rows(&[["a", "b"], ["", ""], ["c", "d"]]), 11)));
        assert_eq!(
            lines("\"a,\n\",\"\"\r\n\"\"\"\",x\"y\""),
            Some((rows(&[["a,\n", ""], ["\"", "x\"y\""]]), 19))
        );
        // The second record continues after the text.
        assert_eq!(lines("a,\"b\"\nc,\"d\n"), Some((rows(&[["a", "b"]]), 6)));
        for wrong in ["a\n", "a,b,c\n", "a,\"b\"c\n", "\"a\"\n", "a,b\n,,\n", "a,b,\"\"\n"] {
            assert_eq!(lines(wrong), None, "{wrong}");
        }
        let dialect = Dialect { comment: Some(b'#'), delimiter: b'\t', ..usual };
        let text = "#\t\t\t\n1\t2\n#\"\n";
        assert_eq!(found(text, 2, &dialect), Some((rows(&[["1", "2"]]), 12)));
    }

    proptest! {
        #[test]
        fn fields_are_those_of_a_parser(
            text in "[ab,;\"\n#é]{0,40}",
            fields in 1_usize..4,
            has_comments in any::<bool>(),
            has_returns in any::<bool>(),
        ) {
            let comment = has_comments.then_some(b'#');
            let dialect = Dialect { comment, ..Dialect::default() };
            let text = if has_returns { text.replace('\n', "\r\n") } else { text };
            let Some((records, bytes)) = found(&text, fields, &dialect) else { return Ok(()) };
            prop_assert_eq!(&records, &expected(&text[..bytes], &dialect), "{:?}", text);
            prop_assert!(bytes == text.len() || text[bytes..].contains('"'));
        }
    }
}
