//! Text for people: on a terminal, in messages and in tables.

use std::borrow::Cow;

/// Whether `character` would act on a terminal or hide text instead of being seen: a control
/// character (C0, DEL, C1), a character that changes the direction of the text after it, or a
/// character without width that is no part of a word or of an emoji.
#[must_use]
pub fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        )
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// `text`, in which each character that would not be seen is escaped, such as `\u{1b}`; line ends
/// are escaped, too.
///
/// # Examples
/// ```
/// use trommel_operators::files::printable;
///
/// assert_eq!(printable("grüße 👩‍🔬"), "grüße 👩‍🔬");
/// assert_eq!(printable("a\u{1b}[31mb\u{202e}c\nd"), r"a\u{1b}[31mb\u{202e}c\nd");
/// ```
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// As [`printable`], for text of several lines: line ends and tabs stay.
///
/// # Examples
/// ```
/// use trommel_operators::files::printable_lines;
/// assert_eq!(printable_lines("one\n\ttwo\r"), "one\n\ttwo\\r");
/// ```
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escape(text, |character| matches!(character, '\n' | '\t'))
}

fn escape(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_hidden = |character: char| is_unprintable(character) && !stays(character);
    // The usual text has no such character and is not copied.
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hidden(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}
