//! From texts to trees of the crate `sqlparser`.

use std::any::TypeId;
use std::ops::Range;

use sqlparser::ast::{Expr, SelectItem};
use sqlparser::dialect::{Dialect, DuckDbDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

use crate::expressions::error::ExpressionError;

/// Maximum bytes of an expression.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Maximum operators and keywords of an expression. The tree of a chain of operators is as deep as
/// the chain is long, and trees are dropped recursively.
const OPERATORS_MAX: usize = 250;

/// The dialect of DuckDB, with `* except (...)` in addition to `* exclude (...)`.
#[derive(Debug)]
struct Words;

impl Dialect for Words {
    fn dialect(&self) -> TypeId {
        TypeId::of::<DuckDbDialect>()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        DuckDbDialect.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        DuckDbDialect.is_identifier_part(ch)
    }

    fn identifier_quote_style(&self, _: &str) -> Option<char> {
        Some('"')
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        true
    }

    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }
}

/// Parses an expression.
pub(crate) fn expression(text: &str) -> Result<Expr, ExpressionError> {
    parse(text, |parser| parser.parse_expr())
}

/// Parses a column of `select`: an expression, an expression with a name, or `*`.
pub(crate) fn column(text: &str) -> Result<SelectItem, ExpressionError> {
    parse(text, |parser| parser.parse_select_item())
}

fn parse<T>(
    text: &str,
    read: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T, ExpressionError> {
    let refuse = |at: Range<usize>, reason: String| ExpressionError::new(text, at, reason);
    if text.len() > TEXT_BYTES_MAX {
        let reason = format!("an expression has at most {TEXT_BYTES_MAX} bytes");
        return Err(refuse(0..0, reason));
    }
    let tokens = Tokenizer::new(&Words, text).tokenize_with_location().map_err(|error| {
        let at = Text::new(text).place(error.location);
        refuse(at..at, lower_first(&error.message))
    })?;
    if tokens.iter().filter(|token| is_operator(&token.token)).count() > OPERATORS_MAX {
        let reason = format!("an expression has at most {OPERATORS_MAX} operators and keywords");
        return Err(refuse(0..0, reason));
    }
    let mut parser = Parser::new(&Words).with_tokens_with_locations(tokens);
    let parsed = read(&mut parser);
    // Text after the column is a mistake, too.
    let next = parser.peek_token();
    match parsed {
        Ok(tree) if next.token == Token::EOF => Ok(tree),
        Ok(_) => {
            let reason = "an operator or the end of the expression is expected here";
            Err(refuse(Text::new(text).range_of(&next), reason.to_owned()))
        }
        Err(ParserError::RecursionLimitExceeded) => {
            Err(refuse(0..0, "the expression is nested too deeply".to_owned()))
        }
        Err(ParserError::ParserError(said) | ParserError::TokenizerError(said)) => {
            Err(refuse(Text::new(text).range_of(&next), without_place(&said)))
        }
    }
}

/// The names of columns in a text, and words that may be names of columns; `None` if the text is no
/// expression.
pub(crate) fn names(text: &str) -> Option<(Vec<String>, Vec<String>)> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let tokens = Tokenizer::new(&Words, text).tokenize().ok()?;
    let tokens: Vec<Token> =
        tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let (mut certain, mut possible) = (Vec::new(), Vec::new());
    for (place, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let before = place.checked_sub(1).map(|before| &tokens[before]);
        match before {
            // The word is a field, a type, or the name of a column of `select`.
            Some(Token::Period | Token::DoubleColon) => continue,
            Some(Token::Word(before)) if before.keyword == Keyword::AS => continue,
            _ => {}
        }
        let is_call = tokens.get(place + 1) == Some(&Token::LParen);
        let is_plain = word.quote_style.is_none();
        if is_plain && (is_call || word.keyword != Keyword::NoKeyword) {
            possible.push(word.value.clone());
        } else {
            certain.push(word.value.clone());
        }
    }
    Some((certain, possible))
}

/// Whether a token can make the tree deeper.
fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.keyword != Keyword::NoKeyword,
        Token::Comma
        | Token::LParen
        | Token::RParen
        | Token::Whitespace(_)
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::EOF => false,
        _ => true,
    }
}

/// A message of the parser without the line and the column at its end.
fn without_place(said: &str) -> String {
    let said = said.split(" at Line: ").next().unwrap_or(said);
    lower_first(said)
}

fn lower_first(said: &str) -> String {
    let mut chars = said.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect::<String>().replace("found: EOF", "found the end")
    })
}

/// A text that finds its characters by line and column.
pub(crate) struct Text<'a> {
    text: &'a str,
    chars: Vec<char>,
    /// First character of each line.
    lines: Vec<usize>,
}

impl<'a> Text<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let ends = chars.iter().enumerate().filter(|(_, char)| **char == '\n');
        let lines = std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect();
        Self { text, chars, lines }
    }

    pub(crate) fn as_str(&self) -> &'a str {
        self.text
    }

    /// The characters of a span of the parser, from 0; all of the text if the parser has no span.
    /// The span of a call lacks its last parenthesis.
    pub(crate) fn range(&self, span: Span) -> Range<usize> {
        if span == Span::empty() {
            return 0..self.chars.len();
        }
        let from = self.place(span.start);
        let to = self.place(span.end).max(from);
        if self.chars.get(from) == Some(&'\'') {
            return from..to;
        }
        let count = |wanted: char| self.chars[from..to].iter().filter(|c| **c == wanted).count();
        let open = count('(').saturating_sub(count(')'));
        let rest = (to..self.chars.len()).take_while(|&at| matches!(self.chars[at], ')' | ' '));
        let closing = rest.filter(|&at| self.chars[at] == ')').map(|at| at + 1);
        from..closing.take(open).last().unwrap_or(to)
    }

    /// The characters of a token.
    fn range_of(&self, token: &TokenWithSpan) -> Range<usize> {
        if token.token == Token::EOF {
            return self.chars.len()..self.chars.len();
        }
        self.range(token.span)
    }

    /// Place of a character, from 0, by its line and column, from 1.
    fn place(&self, at: Location) -> usize {
        let from_0 = |number: u64| usize::try_from(number).ok()?.checked_sub(1);
        let line = from_0(at.line).and_then(|line| self.lines.get(line));
        let place = line.and_then(|line| line.checked_add(from_0(at.column).unwrap_or(0)));
        place.unwrap_or(usize::MAX).min(self.chars.len())
    }
}
