//! Rust text as tokens and comments: enough to count things, and to tell code from prose.

/// A word, a literal, a lifetime or a single mark of punctuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) kind: Kind,
    /// Its first line, from 0.
    pub(super) line: usize,
    /// Its last line.
    pub(super) end: usize,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    /// A string, with its quotes.
    Text,
    /// Another literal, or a lifetime.
    Other,
    Mark,
}

impl Token<'_> {
    /// Whether it is this word or mark.
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text && self.kind != Kind::Text
    }
}

/// A line of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Comment<'a> {
    /// Without its slashes.
    pub(super) text: &'a str,
    pub(super) is_doc: bool,
    /// From 0.
    pub(super) line: usize,
}

/// The tokens and comments of a text, each in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Lexed<'a> {
    pub(super) tokens: Vec<Token<'a>>,
    pub(super) comments: Vec<Comment<'a>>,
}

/// Divides `text`, which should be correct Rust; any other text is divided somehow.
pub(super) fn lex(text: &str) -> Lexed<'_> {
    let mut lexer = Lexer { rest: text, line: 0, lexed: Lexed::default() };
    while lexer.step() {}
    lexer.lexed
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    lexed: Lexed<'a>,
}

impl<'a> Lexer<'a> {
    /// Takes the next token or comment; false at the end.
    fn step(&mut self) -> bool {
        let blanks = self.rest.len() - self.rest.trim_start().len();
        self.take(blanks);
        let Some(first) = self.rest.chars().next() else { return false };
        if self.rest.starts_with("//") {
            self.line_comment();
        } else if self.rest.starts_with("/*") {
            self.block_comment();
        } else if let Some(len) = string_len(self.rest) {
            self.token(len, Kind::Text);
        } else if first == '\'' {
            self.token(quote_len(self.rest), Kind::Other);
        } else if first.is_ascii_digit() {
            self.token(number_len(self.rest), Kind::Other);
        } else if is_word(first) {
            let raw = if self.rest.starts_with("r#") { 2 } else { 0 };
            self.token(raw + word_len(&self.rest[raw..]), Kind::Word);
        } else {
            self.token(first.len_utf8(), Kind::Mark);
        }
        true
    }

    /// Moves past `len` bytes and counts their lines.
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.line += taken.bytes().filter(|&byte| byte == b'\n').count();
        taken
    }

    fn token(&mut self, len: usize, kind: Kind) {
        let line = self.line;
        let text = self.take(len);
        self.lexed.tokens.push(Token { text, kind, line, end: self.line });
    }

    fn line_comment(&mut self) {
        let line = self.line;
        let text = self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        // Four slashes are a comment like any other.
        let is_doc =
            text.starts_with("//!") || (text.starts_with("///") && !text.starts_with("////"));
        let text = if is_doc { &text[3..] } else { text.trim_start_matches('/') };
        self.lexed.comments.push(Comment { text, is_doc, line });
    }

    fn block_comment(&mut self) {
        let (line, text) = (self.line, self.take(block_len(self.rest)));
        let is_doc = text.starts_with("/*!") || (text.starts_with("/**") && text.len() > 4);
        let body = text.trim_start_matches(['/', '*', '!']).trim_end_matches(['/', '*']);
        let lines = body.lines().map(|line| line.trim_start().trim_start_matches('*'));
        let comments = (line..).zip(lines).map(|(line, text)| Comment { text, is_doc, line });
        self.lexed.comments.extend(comments);
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn word_len(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

/// Digits with a suffix, and a fraction that is not a range or a method.
fn number_len(text: &str) -> usize {
    let whole = word_len(text);
    match text[whole..].strip_prefix('.') {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => {
            whole + 1 + word_len(fraction)
        }
        _ => whole,
    }
}

/// A character or a lifetime.
fn quote_len(text: &str) -> usize {
    let mut inside = text[1..].chars();
    match inside.next() {
        // The character after a backslash may be a quote itself.
        Some('\\') => {
            let body = 2 + inside.next().map_or(0, char::len_utf8);
            text[body..].find('\'').map_or(text.len(), |at| body + at + 1)
        }
        Some(c) if inside.next() == Some('\'') => 2 + c.len_utf8(),
        _ => 1 + word_len(&text[1..]),
    }
}

/// The bytes of a string that begins `text`, if one does.
fn string_len(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        let rest = text.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    })?;
    let rest = &text[prefix.len()..];
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let body = prefix.len() + hashes + 1;
    if prefix.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(text[body..].find(&end).map_or(text.len(), |at| body + at + end.len()));
    }
    if hashes > 0 {
        return None;
    }
    let mut is_escaped = false;
    let end = text[body..].find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    Some(end.map_or(text.len(), |at| body + at + 1))
}

/// The bytes of a block comment, which may contain others.
fn block_len(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(found) = text[at..].find(['/', '*']) {
        at += found;
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<&str> {
        lex(text).tokens.iter().map(|token| token.text).collect()
    }

    #[test]
    fn literals_are_one_token_each() {
        let text = r##"a('\'', '\n', 'x', b'"', "say \"//\"", r#"raw " //"#, br"b", 1.5_f64..2, 0..=9, x.0, &'a r#fn)"##;
        let expected = [
            "a",
            "(",
            "'\\''",
            ",",
            "'\\n'",
            ",",
            "'x'",
            ",",
            "b",
            "'\"'",
            ",",
            "\"say \\\"//\\\"\"",
            ",",
            "r#\"raw \" //\"#",
            ",",
            "br\"b\"",
            ",",
            "1.5_f64",
            ".",
            ".",
            "2",
            ",",
            "0",
            ".",
            ".",
            "=",
            "9",
            ",",
            "x",
            ".",
            "0",
            ",",
            "&",
            "'a",
            "r#fn",
            ")",
        ];
        assert_eq!(tokens(text), expected);
    }

    #[test]
    fn comments_are_lines_with_their_kind() {
        let text = "/// a\nfn b() {} // c\n//! d\n//// e\n/* f /* g */\n h */ i /** j */";
        let lexed = lex(text);
        let comments: Vec<_> =
            lexed.comments.iter().map(|c| (c.text.trim(), c.is_doc, c.line)).collect();
        let expected = [
            ("a", true, 0),
            ("c", false, 1),
            ("d", true, 2),
            ("e", false, 3),
            ("f /* g", false, 4),
            ("h", false, 5),
            ("j", true, 5),
        ];
        assert_eq!(
            comments.iter().map(|c| (c.1, c.2)).collect::<Vec<_>>(),
            expected.map(|e| (e.1, e.2))
        );
        assert_eq!(lexed.tokens.last().map(|token| (token.text, token.line)), Some(("i", 5)));
    }

    #[test]
    fn text_that_is_no_rust_ends_all_the_same() {
        for text in ["\"", "'", "'\\", "r#\"", "/*", "/* /*", "b'", "\u{e9}\u{1f980}'\u{e9}"] {
            lex(text);
        }
    }
}
