//! Templates: fields between literals.
//!
//! ```text
//! {ip} [{time:%d/%b/%Y}] "{path}"  ──►  ip up to ` [`, time up to `] "`, path up to `"`
//! ```
//!
//! A field ends at the first occurrence of the literal that follows the field. The end of a time
//! comes after the occurrences that the format of the time has. Between quotes, a quote after a
//! backslash does not end the field. The scanner never goes back, so that the time is linear in the
//! record.

use std::ops::Range;

use arrow_schema::DataType;
use memchr::memmem::Finder;
use trommel_engine::suggest::suggestion;

use super::cells::{Kind, LogColumn};
use super::spans::{Escapes, Mismatch, Span};
use crate::shared::columns::{TYPE_NAMES, TimeFormat, type_named};

/// Name of a field that is passed over.
const PASSED_OVER: &str = "_";

/// A compiled template.
#[derive(Debug)]
pub(super) struct Template {
    /// Text before the first field.
    head: String,
    fields: Vec<Field>,
    columns: Vec<LogColumn>,
    /// A text `-` is null in columns of text, too.
    dashes: bool,
    /// If set, the fields after this place may be missing, all together, and text may follow the
    /// last field.
    optional_after: Option<usize>,
}

#[derive(Debug)]
struct Field {
    name: String,
    role: Role,
    /// The literal that follows the field; at the end of the template the literal may be empty.
    literal: Finder<'static>,
    /// A backslash escapes.
    is_quoted: bool,
    /// Occurrences of the literal inside a time, such as the blank between day and hour.
    inside: usize,
}

/// Use of the text of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Column(usize),
    /// The request of an access log: the columns from this place on.
    Request(usize),
    PassedOver,
}

/// Reason why a template cannot be used, with the place of the fault.
type Refusal = String;

/// A part of a template as it is written.
enum TemplatePart {
    Literal(String),
    /// The text between braces, and the place of its first character, from 1.
    Field(String, usize),
}

/// Cuts a template into literals and fields.
fn parts(template: &str) -> Result<Vec<TemplatePart>, Refusal> {
    let (mut parts, mut literal) = (Vec::new(), String::new());
    let mut characters = (1..).zip(template.chars()).peekable();
    while let Some((at, character)) = characters.next() {
        let is_double = characters.peek().is_some_and(|&(_, next)| next == character);
        match character {
            '{' | '}' if is_double => {
                characters.next();
                literal.push(character);
            }
            '}' => {
                return Err(format!(
                    "the brace at character {at} closes no field; `}}}}` is a brace"
                ));
            }
            '{' => {
                if !literal.is_empty() {
                    parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
                }
                let mut field = String::new();
                loop {
                    match characters.next() {
                        Some((_, '}')) => break,
                        Some((_, '{')) | None => {
                            return Err(format!(
                                "the brace at character {at} opens a field that is not closed; \
                                 `{{{{` is a brace"
                            ));
                        }
                        Some((_, other)) => field.push(other),
                    }
                }
                parts.push(TemplatePart::Field(field, at));
            }
            _ => literal.push(character),
        }
    }
    if !literal.is_empty() {
        parts.push(TemplatePart::Literal(literal));
    }
    Ok(parts)
}

/// The name of a field and its kind.
fn field_of(text: &str, at: usize) -> Result<(&str, Kind), Refusal> {
    let (name, kind) = match text.split_once(':') {
        None => (text, Kind::Value(DataType::Utf8)),
        Some((name, format)) if format.contains('%') => {
            let format = TimeFormat::new(format)
                .map_err(|reason| format!("the field at character {at}: {reason}"))?;
            (name, Kind::Time(format))
        }
        Some((name, kind)) => (name, Kind::Value(type_of(kind, at)?)),
    };
    if name.is_empty() {
        return Err(format!("the field at character {at} has no name; `{{_}}` passes a text over"));
    }
    Ok((name, kind))
}

fn type_of(name: &str, at: usize) -> Result<DataType, Refusal> {
    let lower = name.to_lowercase();
    let is_scalar = |kind: &DataType| *kind != DataType::Binary;
    type_named(&lower).filter(is_scalar).ok_or_else(|| {
        let names = || TYPE_NAMES.iter().copied().filter(|name| *name != "blob");
        let near = suggestion(&lower, names())
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let names = names().collect::<Vec<_>>().join(", ");
        format!("the field at character {at} has the type `{name}`; types are {names}{near}")
    })
}

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// A sentence that says what is wrong, and where.
    pub(super) fn new(template: &str) -> Result<Self, Refusal> {
        let mut compiled = Self {
            head: String::new(),
            fields: Vec::new(),
            columns: Vec::new(),
            dashes: false,
            optional_after: None,
        };
        let mut quotes = 0;
        let mut was_field: Option<usize> = None;
        for part in parts(template)? {
            match part {
                TemplatePart::Literal(literal) => {
                    quotes += literal.matches('"').count();
                    match compiled.fields.last_mut() {
                        Some(field) => field.literal = Finder::new(&literal).into_owned(),
                        None => compiled.head = literal,
                    }
                    was_field = None;
                }
                TemplatePart::Field(text, at) => {
                    if let Some(before) = was_field.replace(at) {
                        return Err(format!(
                            "the fields at the characters {before} and {at} have no text between \
                             them, so that nothing ends the first one"
                        ));
                    }
                    let (name, kind) = field_of(&text, at)?;
                    compiled.add(name, kind, at, quotes % 2 == 1)?;
                }
            }
        }
        // If the template has an odd number of quotes, a quote is an ordinary character.
        for field in &mut compiled.fields {
            field.is_quoted &= quotes.is_multiple_of(2);
            if let Role::Column(place) = field.role
                && let Kind::Time(format) = &compiled.columns[place].kind
            {
                field.inside = format.count(field.literal.needle());
            }
        }
        if compiled.columns.is_empty() {
            return Err("it has no field that becomes a column, such as `{path}`".to_owned());
        }
        Ok(compiled)
    }

    fn add(&mut self, name: &str, kind: Kind, at: usize, is_quoted: bool) -> Result<(), Refusal> {
        let role = if name == PASSED_OVER {
            Role::PassedOver
        } else {
            if self.columns.iter().any(|column| column.name == name) {
                return Err(format!("the field at character {at} is a second `{name}`"));
            }
            self.columns.push(LogColumn::new(name, kind));
            Role::Column(self.columns.len() - 1)
        };
        let literal = Finder::new(b"").into_owned();
        self.fields.push(Field { name: name.to_owned(), role, literal, is_quoted, inside: 0 });
        Ok(())
    }

    /// The template of an access log: the field `request` becomes the columns `method`, `path` and
    /// `protocol`, a `-` is null, and the fields after `optional_after` may be missing.
    pub(super) fn of_access_log(template: &str, optional_after: Option<&str>) -> Self {
        let mut compiled = Self::new(template).expect("a template of our own");
        let mut place = 0;
        let mut columns = Vec::new();
        for field in &mut compiled.fields {
            if field.name == "request" {
                field.role = Role::Request(place);
                let text = |name| LogColumn::new(name, Kind::Value(DataType::Utf8));
                columns.extend(["method", "path", "protocol"].map(text));
            } else if let Role::Column(at) = field.role {
                field.role = Role::Column(place);
                columns.push(compiled.columns[at].clone());
            }
            place = columns.len();
        }
        let optional_after =
            optional_after.and_then(|name| compiled.fields.iter().position(|f| f.name == name));
        Self { columns, dashes: true, optional_after, ..compiled }
    }

    pub(super) fn columns(&self) -> &[LogColumn] {
        &self.columns
    }

    /// Finds the values of a record; `spans` has a place for each column.
    pub(super) fn scan(&self, record: &str, spans: &mut [Span]) -> Result<(), Mismatch> {
        if !record.starts_with(&self.head) {
            let reason = format!("it does not begin with `{}`", self.head);
            return Err(Mismatch::new(None, reason));
        }
        let mut at = self.head.len();
        for (place, field) in self.fields.iter().enumerate() {
            let Some(end) = field.end(record, at) else {
                if self.optional_after != Some(place) {
                    let literal = String::from_utf8_lossy(field.literal.needle());
                    let reason = format!("there is no `{literal}` after `{}`", field.name);
                    return Err(Mismatch::new(Some(&field.name), reason));
                }
                self.set(field, record, at..record.len(), spans);
                for missing in &self.fields[place + 1..] {
                    self.set_null(missing, spans);
                }
                return Ok(());
            };
            self.set(field, record, at..end, spans);
            at = end + field.literal.needle().len();
        }
        if at < record.len() && self.optional_after.is_none() {
            let last = self.fields.last().map_or("", |field| &field.name);
            let reason = format!("text follows where the pattern ends, after `{last}`");
            return Err(Mismatch::new(None, reason));
        }
        Ok(())
    }

    fn set_null(&self, field: &Field, spans: &mut [Span]) {
        match field.role {
            Role::Column(place) => spans[place] = Span::Null,
            Role::Request(place) => spans[place..place + 3].fill(Span::Null),
            Role::PassedOver => {}
        }
    }

    fn set(&self, field: &Field, record: &str, text: Range<usize>, spans: &mut [Span]) {
        let span = |text: Range<usize>| match field.is_quoted {
            true => Span::Escaped(text, Escapes::Quotes),
            false => Span::Plain(text),
        };
        match field.role {
            _ if self.dashes && &record[text.clone()] == "-" => self.set_null(field, spans),
            Role::Column(place) => spans[place] = span(text),
            Role::Request(place) => {
                let [method, path, protocol] = request(record, text);
                let value = |part: Option<Range<usize>>| part.map_or(Span::Null, span);
                spans[place] = value(method);
                spans[place + 1] = value(Some(path.unwrap_or_default()));
                spans[place + 2] = value(protocol);
            }
            Role::PassedOver => {}
        }
    }
}

impl Field {
    /// The end of the field that begins at `begin`.
    fn end(&self, record: &str, begin: usize) -> Option<usize> {
        let literal = self.literal.needle();
        if literal.is_empty() {
            return Some(record.len());
        }
        let bytes = record.as_bytes();
        let is_escapable = self.is_quoted && literal[0] == b'"';
        let (mut from, mut inside) = (begin, self.inside);
        loop {
            let found = from + self.literal.find(&bytes[from..])?;
            let backslashes =
                || bytes[begin..found].iter().rev().take_while(|&&byte| byte == b'\\').count();
            if is_escapable && !backslashes().is_multiple_of(2) {
                from = found + 1;
                continue;
            }
            if inside == 0 {
                return Some(found);
            }
            // A day of one digit has two blanks before the digit, which count as one.
            let is_padding = literal[0] == b' ' && bytes[begin..found].ends_with(b" ");
            inside -= usize::from(!is_padding);
            from = found + 1;
        }
    }
}

/// Method, path and protocol of a request. A request without these three parts is a path.
fn request(record: &str, text: Range<usize>) -> [Option<Range<usize>>; 3] {
    let whole = [None, Some(text.clone()), None];
    let request = &record[text.clone()];
    let (Some(first), Some(last)) = (request.find(' '), request.rfind(' ')) else { return whole };
    let is_method = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_');
    let method = &request[..first];
    let fits = first < last
        && !method.is_empty()
        && method.bytes().all(is_method)
        && request[last + 1..].starts_with("HTTP/");
    if !fits {
        return whole;
    }
    let (first, last) = (text.start + first, text.start + last);
    [Some(text.start..first), Some(first + 1..last), Some(last + 1..text.end)]
}
