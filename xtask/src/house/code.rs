//! Counts of the code in one file, tests left out.

use std::ops::{AddAssign, Range};

use super::lexer::{Kind, Lexed, Token};

/// Words that begin an item, which ends with a block or a semicolon.
const ITEM_WORDS: [&str; 16] = [
    "pub",
    "fn",
    "mod",
    "use",
    "struct",
    "enum",
    "union",
    "trait",
    "impl",
    "const",
    "static",
    "type",
    "extern",
    "unsafe",
    "async",
    "macro_rules",
];

/// Words of comments for work that is left.
const LATER: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), "XXX", "HACK"];

/// Numbers of the code and comments of one file or of several.
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Code {
    /// Lines of each file.
    pub files: Vec<usize>,
    /// Lines of each function with a body.
    pub functions: Vec<usize>,
    /// Lines with code.
    pub code_lines: usize,
    /// Lines of documentation.
    pub doc_lines: usize,
    /// Lines of other comments that hold no code.
    pub comment_lines: usize,
    /// Blocks of unsafe code.
    pub unsafe_blocks: usize,
    /// Comments that say why unsafe code is sound.
    pub safety_comments: usize,
    /// Lints that are allowed.
    pub allows: usize,
    /// Lints that are expected.
    pub expects: usize,
    /// Marks of work that is left.
    pub later: usize,
    /// Calls of `unwrap`.
    pub unwraps: usize,
    /// Calls of `expect` with a text.
    pub expect_calls: usize,
    /// Calls of `clone`.
    pub clones: usize,
    /// Public items.
    pub pub_items: usize,
    /// Assertions, with the ones of debug builds.
    pub asserts: usize,
    /// Headings of examples.
    pub examples: usize,
    /// Headings of errors.
    pub errors: usize,
    /// Headings of panics.
    pub panics: usize,
}

impl Code {
    /// Lines of all files.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.files.iter().sum()
    }
}

impl AddAssign<&Code> for Code {
    fn add_assign(&mut self, other: &Code) {
        self.files.extend(&other.files);
        self.functions.extend(&other.functions);
        for (sum, number) in [
            (&mut self.code_lines, other.code_lines),
            (&mut self.doc_lines, other.doc_lines),
            (&mut self.comment_lines, other.comment_lines),
            (&mut self.unsafe_blocks, other.unsafe_blocks),
            (&mut self.safety_comments, other.safety_comments),
            (&mut self.allows, other.allows),
            (&mut self.expects, other.expects),
            (&mut self.later, other.later),
            (&mut self.unwraps, other.unwraps),
            (&mut self.expect_calls, other.expect_calls),
            (&mut self.clones, other.clones),
            (&mut self.pub_items, other.pub_items),
            (&mut self.asserts, other.asserts),
            (&mut self.examples, other.examples),
            (&mut self.errors, other.errors),
            (&mut self.panics, other.panics),
        ] {
            *sum += number;
        }
    }
}

/// The tokens at `at` are these.
pub(super) fn follows(tokens: &[Token<'_>], at: usize, texts: &[&str]) -> bool {
    let found = tokens.get(at..at + texts.len());
    found.is_some_and(|found| found.iter().zip(texts).all(|(token, text)| token.is(text)))
}

/// The tests that were left out of a file.
pub(super) struct LeftOut<'a> {
    /// Modules in files of their own.
    pub(super) modules: Vec<&'a str>,
    /// Lines in this file.
    pub(super) lines: usize,
}

/// Leaves out the items of tests and of documentation builds.
pub(super) fn leave_out_tests<'a>(lexed: &mut Lexed<'a>) -> LeftOut<'a> {
    let mut modules = Vec::new();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let tokens = &lexed.tokens;
    let mut at = 0;
    while at < tokens.len() {
        if !is_test_attribute(tokens, at) {
            at += 1;
            continue;
        }
        let end = item_end(tokens, at);
        let item = &tokens[at..end];
        // `mod tests;`: the module is in a file of its own.
        if let [.., name, semicolon] = item
            && semicolon.is(";")
            && item.iter().any(|token| token.is("mod"))
        {
            modules.push(name.text);
        }
        ranges.push(at..end);
        at = end;
    }
    let lines: Vec<Range<usize>> = ranges
        .iter()
        .map(|range| tokens[range.start].line..tokens[range.end - 1].end + 1)
        .collect();
    lexed.comments.retain(|comment| !lines.iter().any(|lines| lines.contains(&comment.line)));
    // From the end, so that the ranges before stay valid.
    for range in ranges.into_iter().rev() {
        lexed.tokens.drain(range);
    }
    LeftOut { modules, lines: lines.iter().map(Range::len).sum() }
}

/// Whether an attribute for tests begins at `at`: `#[test]`, or a `cfg` that asks for tests or
/// documentation.
fn is_test_attribute(tokens: &[Token<'_>], at: usize) -> bool {
    if follows(tokens, at, &["#", "[", "test", "]"]) {
        return true;
    }
    follows(tokens, at, &["#", "[", "cfg", "("]) && {
        let end = group_end(tokens, at + 1);
        let asked = (at + 4..end)
            .filter(|&word| ["test", "doc", "doctest"].iter().any(|name| tokens[word].is(name)));
        // `cfg(not(test))` is code of the product.
        let mut asked = asked.filter(|&word| !follows(tokens, word - 2, &["not", "("]));
        asked.next().is_some()
    }
}

/// The end of the group that begins at `at`.
fn group_end(tokens: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        if token.kind == Kind::Mark {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// The end of the item, field, arm or expression that the attribute at `at` belongs to.
fn item_end(tokens: &[Token<'_>], mut at: usize) -> usize {
    while follows(tokens, at, &["#", "["]) {
        at = group_end(tokens, at + 1);
    }
    let is_item = tokens.get(at).is_some_and(|token| ITEM_WORDS.contains(&token.text));
    while let Some(token) = tokens.get(at) {
        match token.text {
            ";" => return at + 1,
            // In an item, a comma may stand between the parameters of a type.
            "," if !is_item => return at + 1,
            ")" | "]" | "}" if token.kind == Kind::Mark => return at,
            "{" if is_item => {
                // A `use` of several names has a semicolon after its braces.
                let end = group_end(tokens, at);
                return end + usize::from(follows(tokens, end, &[";"]));
            }
            "(" | "[" | "{" if token.kind == Kind::Mark => at = group_end(tokens, at),
            _ => at += 1,
        }
    }
    tokens.len()
}

/// Measures a file of `lines` lines, whose tests have been left out.
pub(super) fn measure(lexed: &Lexed<'_>) -> Code {
    let Lexed { tokens, comments } = lexed;
    let mut has_code = Vec::new();
    for token in tokens {
        has_code.resize((token.end + 1).max(has_code.len()), false);
        has_code[token.line..=token.end].fill(true);
    }
    let is_alone = |line: usize| !has_code.get(line).copied().unwrap_or(false);
    let count = |texts: &[&str]| (0..tokens.len()).filter(|&at| follows(tokens, at, texts)).count();
    let headings = |name: &str| {
        let is_heading =
            |text: &str| text.trim().strip_prefix('#').is_some_and(|rest| rest.trim() == name);
        comments.iter().filter(|comment| comment.is_doc && is_heading(comment.text)).count()
    };
    let remarks = || comments.iter().filter(|comment| !comment.is_doc);
    let calls_with_text = |at: usize| {
        follows(tokens, at, &[".", "expect", "("])
            && tokens.get(at + 3).is_some_and(|token| token.kind == Kind::Text)
    };
    let assertion = |at: usize| {
        let name = tokens[at].text.trim_start_matches("debug_");
        matches!(name, "assert" | "assert_eq" | "assert_ne") && follows(tokens, at + 1, &["!"])
    };
    Code {
        files: Vec::new(),
        functions: functions(tokens),
        code_lines: has_code.iter().filter(|&&has_code| has_code).count(),
        doc_lines: comments.iter().filter(|comment| comment.is_doc).count(),
        comment_lines: remarks().filter(|comment| is_alone(comment.line)).count(),
        unsafe_blocks: count(&["unsafe", "{"]),
        safety_comments: remarks().filter(|comment| comment.text.contains("SAFETY")).count(),
        allows: count(&["[", "allow", "("]),
        expects: count(&["[", "expect", "("]),
        later: comments
            .iter()
            .map(|comment| words(comment.text).filter(|word| LATER.contains(word)).count())
            .sum(),
        unwraps: count(&[".", "unwrap", "(", ")"]),
        expect_calls: (0..tokens.len()).filter(|&at| calls_with_text(at)).count(),
        clones: count(&[".", "clone", "(", ")"]),
        pub_items: (0..tokens.len()).filter(|&at| is_public_item(tokens, at)).count(),
        asserts: (0..tokens.len()).filter(|&at| assertion(at)).count(),
        examples: headings("Examples") + headings("Example"),
        errors: headings("Errors"),
        panics: headings("Panics"),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn is_public_item(tokens: &[Token<'_>], at: usize) -> bool {
    tokens[at].is("pub")
        && tokens.get(at + 1).is_some_and(|next| {
            next.text != "pub" && (ITEM_WORDS.contains(&next.text) || next.is("macro"))
        })
}

/// Lines of each function that has a body.
fn functions(tokens: &[Token<'_>]) -> Vec<usize> {
    let begins = |at: &usize| {
        tokens[*at].is("fn") && tokens.get(at + 1).is_some_and(|name| name.kind == Kind::Word)
    };
    let lines = |at: usize| {
        let mut body = at;
        while !tokens.get(body)?.is("{") {
            match tokens[body].text {
                // Declared in a trait, without a body.
                ";" => return None,
                "(" | "[" => body = group_end(tokens, body),
                _ => body += 1,
            }
        }
        Some(tokens[group_end(tokens, body) - 1].line - tokens[at].line + 1)
    };
    (0..tokens.len()).filter(begins).filter_map(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lexer::lex;
    use super::*;

    const FILE: &str = "\
//! Doc of the file.
use std::fmt;

/// # Panics
/// Never.
pub fn one(a: [u8; 2]) -> u8 {
    // SAFETY: no reason.
    let b = unsafe { f(a) }; // beside code
    b.clone().expect(\"why\").unwrap()
}

pub(crate) trait Two {
    fn declared(&self) -> fn(u8) -> u8;
    fn given() { debug_assert!(true) }
}

#[cfg(not(test))]
pub const KEPT: u8 = 1;
#[cfg(all(test, unix))]
pub const LEFT_OUT: [u8; 2] = [1, 2];
#[cfg(test)]
mod helpers;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = \"a test\")]
mod tests {
    // A comment of a test.
    #[test]
    fn test() { f().unwrap() }
}
";

    #[test]
    fn tests_are_left_out_and_the_rest_is_counted() {
        let mut lexed = lex(FILE);
        let left_out = leave_out_tests(&mut lexed);
        assert_eq!((left_out.modules, left_out.lines), (vec!["helpers"], 11));
        let code = measure(&lexed);
        assert_eq!(code.functions, [5, 1]);
        assert_eq!((code.code_lines, code.doc_lines, code.comment_lines), (11, 3, 1));
        assert_eq!((code.unsafe_blocks, code.safety_comments, code.panics), (1, 1, 1));
        assert_eq!((code.unwraps, code.expect_calls, code.clones), (1, 1, 1));
        assert_eq!((code.pub_items, code.asserts, code.expects), (2, 1, 0));
    }
}
