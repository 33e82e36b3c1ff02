//! Tokenizers, which can stop after any token and continue later.
//!
//! | file | contents |
//! |---|---|
//! | `words` | words by Unicode Standard Annex 29, in lower case |
//! | `fields` | a field of a line |
//! | `token` | tokens, and the sinks that take tokens |

mod fields;
mod token;
mod words;

use arrow_array::{Array, StringArray};
use trommel_kernels::Isa;

pub(crate) use self::fields::Fields;
pub(crate) use self::token::{Token, TokenSink, Words};
pub(crate) use self::words::TextPosition;
use self::words::{Buffers, words, words_of_rows};

/// Text of a row; empty for a null.
fn row_text(texts: &StringArray, row: usize) -> &str {
    if texts.is_null(row) { "" } else { texts.value(row) }
}

/// A tokenizer. The variant is the definition of a token.
pub(crate) enum Tokenizer {
    /// Words in lower case.
    Words(Box<Buffers>),
    /// Text between white space.
    Whitespace,
    /// Runs of this number of characters.
    Qgrams(usize),
    /// One field of a text.
    Field(Fields),
}

impl Tokenizer {
    /// A tokenizer of words, at this level of instructions.
    pub(crate) fn words(isa: Isa) -> Self {
        Self::Words(Box::new(Buffers::new(isa)))
    }

    /// A further tokenizer with the same definition.
    pub(crate) fn new_like(&self) -> Self {
        match self {
            Self::Words(buffers) => Self::words(buffers.isa()),
            Self::Whitespace => Self::Whitespace,
            Self::Qgrams(q) => Self::Qgrams(*q),
            Self::Field(fields) => Self::Field(*fields),
        }
    }

    /// Calls `sink` with the tokens from byte `at` on until it returns false. Returns the byte at
    /// which to continue; the length of the text if nothing is left.
    fn tokens(&mut self, text: &str, at: usize, sink: impl FnMut(Token<'_>) -> bool) -> usize {
        match self {
            Self::Words(buffers) => words(text, at, buffers, sink),
            Self::Whitespace => whitespace(text, at, sink),
            Self::Qgrams(q) => qgrams(text, at, *q, sink),
            Self::Field(fields) => field(text, at, *fields, sink),
        }
    }

    /// Gives `sink` the tokens of all rows from a position on, as long as the sink wants further
    /// tokens. Returns the position at which to continue, which is a row past the last row if
    /// nothing is left.
    pub(crate) fn tokens_of_rows(
        &mut self,
        texts: &StringArray,
        mut from: TextPosition,
        sink: &mut impl TokenSink,
    ) -> TextPosition {
        if let Self::Words(buffers) = self
            && texts.null_count() == 0
        {
            return words_of_rows(texts, from, buffers, sink);
        }
        let mut goes_on = true;
        while goes_on && from.row < texts.len() {
            from.at = self.tokens(row_text(texts, from.row), from.at, |token| {
                goes_on = sink.token(token);
                goes_on
            });
            if goes_on {
                from = TextPosition { row: from.row + 1, at: 0 };
                goes_on = sink.end_row();
            }
        }
        from
    }
}

/// Text between white space.
fn whitespace(text: &str, at: usize, mut sink: impl FnMut(Token<'_>) -> bool) -> usize {
    let mut rest = text[at..].trim_start();
    while !rest.is_empty() {
        let len = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let begin = text.len() - rest.len();
        if !sink(Token::within(text, begin..begin + len)) {
            return begin + len;
        }
        rest = rest[len..].trim_start();
    }
    text.len()
}

/// The field of a text. Only a call from byte 0 on finds the field, so the field comes once.
fn field(text: &str, at: usize, fields: Fields, mut sink: impl FnMut(Token<'_>) -> bool) -> usize {
    if at == 0
        && let Some(field) = fields.find(text)
    {
        sink(Token::within(text, field));
    }
    text.len()
}

/// Runs of `q` characters; a shorter text is one token.
fn qgrams(text: &str, at: usize, q: usize, mut sink: impl FnMut(Token<'_>) -> bool) -> usize {
    let mut start = at;
    // For further q-grams, both ends move by one character, so that no q-gram is scanned again.
    let first_len = text[at..].char_indices().nth(q).map_or(text.len() - at, |(offset, _)| offset);
    let mut end = at + first_len;
    while start < end {
        let goes_on = sink(Token::within(text, start..end));
        let Some(entering) = text[end..].chars().next() else { return text.len() };
        let leaving = text[start..].chars().next().expect("the run is not empty");
        start += leaving.len_utf8();
        end += entering.len_utf8();
        if !goes_on {
            return start;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(mut tokenizer: Tokenizer, text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        let end = tokenizer.tokens(text, 0, |token| {
            tokens.push(token.as_str().to_owned());
            true
        });
        assert_eq!(end, text.len());
        tokens
    }

    /// Stops after every token, and continues from there.
    fn one_by_one(mut tokenizer: Tokenizer, text: &str) -> Vec<String> {
        let (mut tokens, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let mut count = 0;
            at = tokenizer.tokens(text, at, |token| {
                tokens.push(token.as_str().to_owned());
                count += 1;
                false
            });
            assert!(count <= 1);
        }
        tokens
    }

    fn qgrams_oracle(text: &str, q: usize) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        if !characters.is_empty() && characters.len() < q {
            return vec![text.to_owned()];
        }
        characters.windows(q).map(|gram| gram.iter().collect()).collect()
    }

    #[test]
    fn qgrams_count_characters() {
        assert_eq!(all(Tokenizer::Qgrams(2), "aéz"), ["aé", "éz"]);
        assert_eq!(all(Tokenizer::Qgrams(3), "aé"), ["aé"]);
        assert_eq!(all(Tokenizer::Qgrams(3), ""), [""; 0]);
    }

    #[test]
    fn whitespace_is_that_of_unicode() {
        assert_eq!(all(Tokenizer::Whitespace, "\u{a0} A\u{2003}b\t\nc "), ["A", "b", "c"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn whitespace_matches_the_standard_library(text in "[a é\u{3000}\t\n]{0,20}|\\PC{0,20}") {
            let expected: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            prop_assert_eq!(&all(Tokenizer::Whitespace, &text), &expected);
            prop_assert_eq!(&one_by_one(Tokenizer::Whitespace, &text), &expected);
        }

        #[test]
        fn qgrams_are_the_windows_of_the_characters(text in "[aé中]{0,12}", q in 1_usize..8) {
            let expected = qgrams_oracle(&text, q);
            prop_assert_eq!(&all(Tokenizer::Qgrams(q), &text), &expected);
            prop_assert_eq!(&one_by_one(Tokenizer::Qgrams(q), &text), &expected);
        }
    }
}
