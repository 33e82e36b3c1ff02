//! Classes of characters in the rules of word boundaries.
//!
//! The class of an ASCII character stands in a table of the program. The class of any other
//! character is learned from the crate `unicode-segmentation`, by the boundaries that the crate
//! finds next to letters and digits. The table and the crate therefore always have the same version
//! of Unicode. Characters are learned in pages of 256, once per process, when the first character
//! of a page occurs. A lock guards each page, and costs nothing after the page has been learned.

use std::sync::OnceLock;

use unicode_segmentation::UnicodeSegmentation;

/// Joins letters, digits and underscores.
pub(crate) const LETTER: u16 = 1;
/// Joins letters, digits and underscores.
pub(super) const DIGIT: u16 = 1 << 1;
/// Joins letters, digits, underscores and Katakana, but is not a word alone.
pub(super) const UNDERSCORE: u16 = 1 << 2;
/// Joins Katakana and underscores.
pub(crate) const KATAKANA: u16 = 1 << 3;
/// Joins two letters (WB6, WB7).
pub(crate) const BETWEEN_LETTERS: u16 = 1 << 4;
/// Joins two digits (WB11, WB12).
pub(crate) const BETWEEN_DIGITS: u16 = 1 << 5;
/// Is a word alone, such as an ideograph.
pub(crate) const ALONE: u16 = 1 << 6;
/// Belongs to the character before it (WB4), such as an accent.
pub(crate) const EXTEND: u16 = 1 << 7;
/// Has rules that only the crate knows.
pub(crate) const COMPLEX: u16 = 1 << 8;
/// Differs from its lower case.
pub(crate) const CHANGES: u16 = 1 << 9;

/// Joins two characters of its kind.
pub(crate) const BETWEEN: u16 = BETWEEN_LETTERS | BETWEEN_DIGITS;
/// Joins letters and digits.
pub(crate) const ALPHABET: u16 = LETTER | DIGIT | UNDERSCORE;
/// Joins Katakana.
pub(crate) const SYLLABARY: u16 = KATAKANA | UNDERSCORE;

/// Characters of a page.
const PAGE: usize = 256;

type ClassPage = [u16; PAGE];

/// Pages of all characters.
static PAGES: [OnceLock<Box<ClassPage>>; (char::MAX as usize + 1) / PAGE] =
    [const { OnceLock::new() }; (char::MAX as usize + 1) / PAGE];

/// The characters of two bytes.
const TWO_BYTES: std::ops::Range<u32> = 0x80..0x800;

/// The classes and the lower case of the characters of two bytes, by the numbers of the characters.
#[derive(Debug)]
pub(crate) struct Narrow([(u16, [u8; 2]); TWO_BYTES.end as usize]);

static NARROW: OnceLock<Narrow> = OnceLock::new();

/// Classes of the characters of two bytes: letters of the alphabets of Europe and the Near East.
#[inline]
pub(crate) fn narrow() -> &'static Narrow {
    NARROW.get_or_init(|| {
        let entry = |number: usize| match u32::try_from(number) {
            Ok(number) if TWO_BYTES.contains(&number) => {
                let character = char::from_u32(number);
                character.map_or((0, [0; 2]), |c| (of(c), lower_case(c).unwrap_or_default()))
            }
            _ => (0, [0; 2]),
        };
        Narrow(std::array::from_fn(entry))
    })
}

/// The lower case of a character of two bytes, if the lower case has two bytes, too, and does not
/// depend on neighbours.
fn lower_case(c: char) -> Option<[u8; 2]> {
    let mut lower = c.to_lowercase();
    let (first, rest) = (lower.next()?, lower.next());
    let mut bytes = [0; 4];
    let text = first.encode_utf8(&mut bytes);
    if rest.is_some() || c == 'Σ' { None } else { text.as_bytes().try_into().ok() }
}

impl Narrow {
    /// Class of the letter of two bytes at byte `at`; `None` if no such letter begins there.
    #[inline]
    pub(crate) fn letter(&self, text: &str, at: usize) -> Option<u16> {
        let &bytes = text.as_bytes().get(at..)?.first_chunk()?;
        // Only the first byte of a character of two bytes begins with these bits.
        if bytes[0] & 0xe0 != 0xc0 {
            return None;
        }
        let (class, _) = self.of(bytes);
        (class & LETTER != 0).then_some(class)
    }

    /// Class of the character of two bytes, and its lower case; zeros if the lower case is no
    /// character of two bytes.
    #[inline(always)]
    pub(super) fn of(&self, [lead, next]: [u8; 2]) -> (u16, [u8; 2]) {
        // The number of the character consists of the last bits of both bytes.
        self.0[usize::from(lead & 0x1f) << 6 | usize::from(next & 0x3f)]
    }
}

/// Class of the character of these three bytes.
#[inline(always)]
pub(crate) fn of_three([lead, middle, last]: [u8; 3]) -> u16 {
    let [lead, middle, last] = [lead & 0x0f, middle & 0x3f, last & 0x3f].map(usize::from);
    of_number(lead << 12 | middle << 6 | last)
}

/// Classes of ASCII; 0 for all other bytes.
const OF_ASCII: [u16; 256] = {
    let mut of = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        of[byte as usize] = match byte {
            b'a'..=b'z' => LETTER,
            b'A'..=b'Z' => LETTER | CHANGES,
            b'0'..=b'9' => DIGIT,
            b'_' => UNDERSCORE,
            b':' => BETWEEN_LETTERS,
            b',' | b';' => BETWEEN_DIGITS,
            b'.' | b'\'' => BETWEEN,
            _ => 0,
        };
        byte += 1;
    }
    of
};

/// Class of an ASCII character.
#[inline]
pub(crate) fn of_byte(byte: u8) -> u16 {
    OF_ASCII[usize::from(byte)]
}

/// Class of the character that begins at byte `at`, and the number of its bytes; zeros at the end
/// of the text.
#[inline]
pub(crate) fn at(text: &str, at: usize) -> (u16, usize) {
    match text.as_bytes().get(at) {
        None => (0, 0),
        Some(&byte) if byte.is_ascii() => (of_byte(byte), 1),
        Some(_) => {
            let next = text[at..].chars().next().expect("there is a byte");
            (of(next), next.len_utf8())
        }
    }
}

/// Class of a character that is not ASCII.
#[inline]
fn of(character: char) -> u16 {
    of_number(character as usize)
}

#[inline(always)]
fn of_number(number: usize) -> u16 {
    let page = PAGES[number / PAGE].get_or_init(|| learn(number / PAGE));
    page[number % PAGE]
}

/// Whether a character of class `here` joins its neighbours.
#[inline]
pub(crate) fn is_joined(before: u16, here: u16, after: u16) -> bool {
    // One AND tests both sides for a common class.
    let sides = before & after;
    (here & BETWEEN_LETTERS != 0 && sides & LETTER != 0)
        || (here & BETWEEN_DIGITS != 0 && sides & DIGIT != 0)
}

#[cold]
fn learn(page: usize) -> Box<ClassPage> {
    let class = |place: usize| {
        let number = u32::try_from(page * PAGE + place).expect("characters have 21 bits");
        // Surrogates are no characters.
        char::from_u32(number).map_or(0, learn_one)
    };
    Box::new(std::array::from_fn(class))
}

/// Number of stretches between boundaries.
fn stretches(text: &[char]) -> usize {
    text.iter().collect::<String>().split_word_bounds().count()
}

fn learn_one(c: char) -> u16 {
    let is_joined = |text: &[char]| stretches(text) == 1;
    // A letter, a digit, Katakana, and half a flag.
    let neighbours = [c, c, 'a', c, 'a', c, '1', c, '1', c, 'カ', c, '_', c, '\u{1f1e9}', c, '\''];
    let is_single = stretches(&neighbours) == neighbours.len();
    let in_word = c.is_alphanumeric();
    let class = if is_single {
        if in_word { ALONE } else { 0 }
    } else if is_joined(&['a', c]) && is_joined(&[c, 'a']) {
        let is_letter = is_joined(&['a', '.', c]) && is_joined(&[c, '.', 'a']);
        let is_digit = is_joined(&['1', ',', c]) && is_joined(&[c, ',', '1']);
        // Hebrew letters also join quotation marks (WB7a to WB7c).
        let joins_quotes = is_joined(&[c, '\'']);
        let joins_katakana = is_joined(&['カ', c]) && is_joined(&[c, 'カ']);
        match (is_letter, is_digit, joins_katakana) {
            (true, false, false) if in_word && !joins_quotes => LETTER,
            (false, true, false) if in_word => DIGIT,
            (false, false, true) if !in_word => UNDERSCORE,
            _ => COMPLEX,
        }
    } else if is_joined(&['a', c]) {
        // A joiner also joins pictures (WB3c).
        let extends = [['a', c, 'a'], ['1', c, '1'], ['カ', c, 'カ']];
        let is_extend = extends.iter().all(|text| is_joined(text)) && is_joined(&[' ', c]);
        if is_extend && !is_joined(&[c, '\u{1f44d}']) { EXTEND } else { COMPLEX }
    } else if is_joined(&['カ', c]) && is_joined(&[c, 'カ']) && is_joined(&[c, c]) {
        if in_word { KATAKANA } else { COMPLEX }
    } else {
        let between = |side: char, class: u16| if is_joined(&[side, c, side]) { class } else { 0 };
        let between = between('a', BETWEEN_LETTERS) | between('1', BETWEEN_DIGITS);
        let is_between = between != 0 && !in_word && !is_joined(&[c, c]);
        match (is_between, c.is_whitespace()) {
            (true, _) => between,
            // Spaces join spaces (WB3d), which are in no word.
            (false, true) => 0,
            (false, false) => COMPLEX,
        }
    };
    let changes = !c.to_lowercase().eq([c]);
    class | if changes { CHANGES } else { 0 }
}
