//! From texts to trees of the crate `sqlparser`.

use std::any::TypeId;
use std::ops::Range;

use sqlparser::ast::{Expr, SelectItem};
use sqlparser::dialect::{Dialect, DuckDbDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

use super::error::ExpressionError;

/// Maximum bytes of an expression.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Maximum operators and keywords of an expression. A chain of operators is a tree as deep as it is
/// long, and trees are dropped recursively.
const OPERATORS_MAX: usize = 250;

/// The dialect of DuckDB, with `* except (...)` beside `* exclude (...)`.
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
pub(super) fn expression(text: &str) -> Result<Expr, ExpressionError> {
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
        let at = place(text, error.location);
        refuse(at..at, lower_first(&error.message))
    })?;
    if tokens.iter().filter(|token| is_operator(&token.token)).count() > OPERATORS_MAX {
        let reason = format!("an expression has at most {OPERATORS_MAX} operators and keywords");
        return Err(refuse(0..0, reason));
    }
    let mut parser = Parser::new(&Words).with_tokens_with_locations(tokens);
    let parsed = read(&mut parser);
    // Text that the parser left over is a mistake, too.
    let next = parser.peek_token();
    match parsed {
        Ok(tree) if next.token == Token::EOF => Ok(tree),
        Ok(_) => {
            let reason = "an operator or the end of the expression is expected here";
            Err(refuse(span_of(text, &next), reason.to_owned()))
        }
        Err(ParserError::RecursionLimitExceeded) => {
            Err(refuse(0..0, "the expression is nested too deeply".to_owned()))
        }
        Err(ParserError::ParserError(said) | ParserError::TokenizerError(said)) => {
            Err(refuse(span_of(text, &next), without_place(&said)))
        }
    }
}

/// Whether a token can make a tree deeper.
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

/// A message of the parser without the line and column, which follow in its last words.
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

fn span_of(text: &str, token: &TokenWithSpan) -> Range<usize> {
    if token.token == Token::EOF {
        let end = text.chars().count();
        return end..end;
    }
    range(text, token.span)
}

/// The characters of a span of the parser, from 0; all of the text where it knows none. The span of
/// a call lacks its last parentheses.
pub(super) fn range(text: &str, span: Span) -> Range<usize> {
    let end = text.chars().count();
    if span == Span::empty() {
        return 0..end;
    }
    let (from, to) = (place(text, span.start), place(text, span.end));
    let to = to.max(from).min(end);
    if text.chars().nth(from) == Some('\'') {
        return from..to;
    }
    let count =
        |wanted: char| text.chars().skip(from).take(to - from).filter(|c| *c == wanted).count();
    let open = count('(').saturating_sub(count(')'));
    let rest = text.chars().skip(to).take_while(|char| matches!(char, ')' | ' ')).enumerate();
    let closing = rest.filter(|(_, char)| *char == ')').map(|(place, _)| to + place + 1);
    from..closing.take(open).last().unwrap_or(to)
}

/// Place of a character, from 0, by its line and column, from 1.
fn place(text: &str, at: Location) -> usize {
    let end = text.chars().count();
    let lines = usize::try_from(at.line).unwrap_or(usize::MAX).saturating_sub(1);
    let before: usize =
        text.split_inclusive('\n').take(lines).map(|line| line.chars().count()).sum();
    let column = usize::try_from(at.column).unwrap_or(usize::MAX).saturating_sub(1);
    if at.line == 0 { end } else { before.saturating_add(column).min(end) }
}
