//! The habits of the prose in comments.
//!
//! Lines of comments that follow each other are a paragraph; drawings, tables and examples are
//! left out. A sentence ends with a full stop, a question mark or an exclamation mark before a
//! blank, or with its paragraph.

use std::ops::AddAssign;

use super::lexer::Comment;

/// Words after "those" that make it a noun.
const AFTER_THOSE: [&str; 16] = [
    "that", "which", "who", "whose", "of", "in", "on", "at", "for", "from", "with", "without",
    "to", "by", "below", "above",
];

/// Numbers of the prose of one file or of several.
#[derive(Debug, Default, Clone, Copy)]
#[non_exhaustive]
pub struct Prose {
    /// Words.
    pub words: usize,
    /// Sentences.
    pub sentences: usize,
    /// Sentences that begin with "What".
    pub what_sentences: usize,
    /// "what" inside of a sentence.
    pub what_clauses: usize,
    /// "so many" and "so much".
    pub so_many: usize,
    /// "those that", "those of" and the like.
    pub those: usize,
    /// "whoever", "whatever" and the like.
    pub whoever: usize,
    /// "behind".
    pub behind: usize,
}

impl AddAssign for Prose {
    fn add_assign(&mut self, other: Self) {
        for (sum, number) in [
            (&mut self.words, other.words),
            (&mut self.sentences, other.sentences),
            (&mut self.what_sentences, other.what_sentences),
            (&mut self.what_clauses, other.what_clauses),
            (&mut self.so_many, other.so_many),
            (&mut self.those, other.those),
            (&mut self.whoever, other.whoever),
            (&mut self.behind, other.behind),
        ] {
            *sum += number;
        }
    }
}

/// Measures the comments of a file.
pub(super) fn measure(comments: &[Comment<'_>]) -> Prose {
    let mut prose = Prose::default();
    for paragraph in paragraphs(comments) {
        for sentence in sentences(&paragraph) {
            prose += measure_sentence(sentence);
        }
    }
    prose
}

/// The text of paragraphs, without drawings, tables and headings.
fn paragraphs(comments: &[Comment<'_>]) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut is_drawing = false;
    let mut before: Option<Comment<'_>> = None;
    for &comment in comments {
        let goes_on = before.is_some_and(|before| {
            before.line + 1 == comment.line && before.is_doc == comment.is_doc
        });
        let text = comment.text.trim();
        is_drawing &= goes_on;
        let is_fence = text.starts_with("```");
        let is_prose =
            !is_drawing && !is_fence && !text.is_empty() && !text.starts_with(['|', '#']);
        is_drawing ^= is_fence;
        if !goes_on || !is_prose || text.starts_with(['*', '-']) {
            paragraphs.push(String::new());
        }
        if is_prose && let Some(paragraph) = paragraphs.last_mut() {
            paragraph.push_str(text.trim_start_matches(['*', '-']));
            paragraph.push(' ');
        }
        before = Some(comment);
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

/// The sentences of a paragraph.
fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    let mut rest = paragraph;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let ends = rest.char_indices().zip(rest.chars().skip(1));
        let mut ends = ends.filter(|((_, c), next)| ".?!".contains(*c) && next.is_whitespace());
        let end = ends.next().map_or(rest.len(), |((at, _), _)| at + 1);
        let (sentence, after) = rest.split_at(end);
        rest = after;
        Some(sentence)
    })
}

fn measure_sentence(sentence: &str) -> Prose {
    let words: Vec<String> = sentence
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\''))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let count = |is: &dyn Fn(&str, &str) -> bool| {
        let next = words.iter().skip(1).map(String::as_str).chain([""]);
        words.iter().zip(next).filter(|(word, next)| is(word, next)).count()
    };
    let begins = words.first().is_some_and(|word| word == "what");
    Prose {
        words: words.len(),
        sentences: usize::from(!words.is_empty()),
        what_sentences: usize::from(begins),
        what_clauses: count(&|word, _| word == "what") - usize::from(begins),
        so_many: count(&|word, next| word == "so" && matches!(next, "many" | "much")),
        those: count(&|word, next| word == "those" && AFTER_THOSE.contains(&next)),
        whoever: count(&|word, _| {
            matches!(word, "whoever" | "whatever" | "whichever" | "wherever" | "whenever")
        }),
        behind: count(&|word, _| word == "behind"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::lex;
    use super::*;

    #[test]
    fn sentences_go_over_lines_and_end_with_their_paragraph() {
        let text =
            "/// What is here. And so\n/// many more, e.g.that! those of\n///\n/// What\n// What";
        let prose = measure(&lex(text).comments);
        assert_eq!((prose.sentences, prose.what_sentences), (5, 3));
        assert_eq!((prose.so_many, prose.those), (1, 1));
        assert_eq!(prose.words, 14);
    }

    #[test]
    fn drawings_tables_and_headings_are_no_prose() {
        let text = "//! # What\n//! | what | behind |\n//! ```text\n//! what\n//! ```\n//! Whatever behind what.";
        let prose = measure(&lex(text).comments);
        assert_eq!((prose.words, prose.whoever, prose.behind, prose.what_clauses), (3, 1, 1, 1));
    }
}
