//! Words against the crate, over all characters.

use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::*;
use crate::shared::tokens::token::Words;
use trommel_kernels::text::{ByteKinds, byte_kinds};

fn all(text: &str) -> Vec<String> {
    all_on(Isa::selected().unwrap(), text)
}

fn all_on(isa: Isa, text: &str) -> Vec<String> {
    let (mut found, mut lower) = (Vec::new(), Buffers::new(isa));
    let end = words(text, 0, &mut lower, |word| {
        found.push(word.as_str().to_owned());
        true
    });
    assert_eq!(end, text.len());
    found
}

/// Rows that begin and end with punctuation between letters.
#[test]
fn letters_of_two_rows_are_not_joined() {
    let rows = ["ж’", "ж", "’ж", ".ж", "ж.", "é", "中", "文", "，1", "1，", "1", "\u{301}a", "é"];
    for len in 0..70 {
        let rows: Vec<String> =
            rows.iter().map(|row| format!("{}{row}", "x".repeat(len % 7))).collect();
        let first = [" ".repeat(len)];
        let rows: Vec<String> = first.into_iter().chain(rows).collect();
        let expected: Vec<(usize, String)> = (0..)
            .zip(&rows)
            .flat_map(|(row, text)| naive(text).into_iter().map(move |word| (row, word)))
            .collect();
        assert_eq!(of_rows(&rows), expected, "{len}");
    }
}

/// The kernel finds these ideographs by their first bytes.
#[test]
fn ideographs_of_the_kernel_are_words_alone() {
    for c in '\u{4000}'..='\u{9fff}' {
        let is_hexagram = ('\u{4dc0}'..='\u{4dff}').contains(&c);
        let class = if is_hexagram { 0 } else { class::ALONE };
        assert_eq!(class::at(&c.to_string(), 0), (class, 3), "{c}");
    }
}

#[test]
fn ideographs_lie_anywhere_in_a_block() {
    for len in 0..=2 * mask::BLOCK {
        for text in ["字字中，字x一 字'字é字1字\u{301}字䷀䶵字", "一", "䷀", "字"]
        {
            let text = format!("{}{text}", "x".repeat(len));
            for isa in Isa::available() {
                assert_eq!(all_on(isa, &text), naive(&text), "{len}, {isa}");
            }
        }
    }
}

/// Stops after every word, and continues from there.
fn one_by_one(text: &str) -> Vec<String> {
    let (mut found, mut lower, mut at) = (Vec::new(), Buffers::new(Isa::selected().unwrap()), 0);
    while at < text.len() {
        let mut count = 0;
        at = words(text, at, &mut lower, |word| {
            found.push(word.as_str().to_owned());
            count += 1;
            false
        });
        assert!(count <= 1);
    }
    found
}

/// Collects words with the numbers of their rows. Takes every second window at once, unless `stops`
/// is set.
#[derive(Default)]
struct Found {
    row: usize,
    words: Vec<(usize, String)>,
    offered: usize,
    /// Whether the sink wants no more tokens after each word and each row.
    stops: bool,
}

impl TokenSink for Found {
    fn token(&mut self, token: Token<'_>) -> bool {
        self.words.push((self.row, token.as_str().to_owned()));
        !self.stops
    }

    fn end_row(&mut self) -> bool {
        self.row += 1;
        !self.stops
    }

    const NEEDS_ROWS: bool = true;

    fn take_all(&mut self, words: Words<'_>) -> bool {
        self.offered += 1;
        let has_room = !self.stops && self.offered % 2 == 1;
        if has_room {
            words.for_each(
                self,
                |found, word| found.words.push((found.row, word.as_str().to_owned())),
                |found| found.row += 1,
            );
        }
        has_room
    }
}

/// Takes the words of every other window at once, and forgets their rows.
#[derive(Default)]
struct FoundAtOnce {
    words: Vec<String>,
    offered: usize,
}

impl TokenSink for FoundAtOnce {
    fn token(&mut self, token: Token<'_>) -> bool {
        self.words.push(token.as_str().to_owned());
        true
    }

    fn end_row(&mut self) -> bool {
        true
    }

    const NEEDS_ROWS: bool = false;

    fn take_all(&mut self, Words { text, begins, ends, .. }: Words<'_>) -> bool {
        self.offered += 1;
        let has_room = self.offered % 2 == 1;
        if has_room {
            let word = |(&begin, &end): (&u32, &u32)| text[begin as usize..end as usize].to_owned();
            self.words.extend(begins.iter().zip(ends).map(word));
        }
        has_room
    }
}

/// Words of all rows of a column, each with its row.
fn of_rows(rows: &[String]) -> Vec<(usize, String)> {
    let (texts, mut buffers) =
        (StringArray::from(rows.to_vec()), Buffers::new(Isa::selected().unwrap()));
    let mut found = Found::default();
    let end = words_of_rows(&texts, TextPosition::default(), &mut buffers, &mut found);
    assert_eq!((end, found.row), (TextPosition { row: rows.len(), at: 0 }, rows.len()));
    // The tokenizer stops after every word and every row, and continues from there.
    let mut one_by_one = Found { stops: true, ..Found::default() };
    let mut place = TextPosition::default();
    while place.row < rows.len() {
        let (row, count) = (one_by_one.row, one_by_one.words.len());
        place = words_of_rows(&texts, place, &mut buffers, &mut one_by_one);
        assert_eq!(place.row, one_by_one.row);
        assert!(one_by_one.row - row + one_by_one.words.len() - count == 1);
    }
    assert_eq!(one_by_one.words, found.words);
    for isa in Isa::available() {
        let mut at_once = FoundAtOnce::default();
        words_of_rows(&texts, TextPosition::default(), &mut Buffers::new(isa), &mut at_once);
        assert!(at_once.words.iter().eq(found.words.iter().map(|(_, word)| word)), "{isa}");
    }
    found.words
}

/// Windows of short rows without special characters.
#[test]
fn words_of_plain_windows_are_taken_at_once() {
    for len in 0..70 {
        for row in
            ["a", "don't x_y 1,000.5", "é中文 ж", "word ", " two  words", "", "中", "a.", ".b"]
        {
            let (mut rows, times) = (vec!["x".repeat(len)], 1100 / (row.len() + 1));
            let mut words = vec![naive(&rows[0])];
            rows.extend(std::iter::repeat_n(row.to_owned(), times));
            words.extend(std::iter::repeat_n(naive(row), times));
            let expected: Vec<(usize, String)> = (0..)
                .zip(words)
                .flat_map(|(row, words)| words.into_iter().map(move |word| (row, word)))
                .collect();
            assert_eq!(of_rows(&rows), expected, "{len} {row:?}");
        }
    }
    // A plain text is offered to the sink.
    let texts = StringArray::from(vec!["some words"; 100]);
    let mut at_once = FoundAtOnce::default();
    let mut buffers = Buffers::new(Isa::selected().unwrap());
    words_of_rows(&texts, TextPosition::default(), &mut buffers, &mut at_once);
    assert_eq!((at_once.offered, at_once.words.len()), (1, 200));
    // Underscores alone are no words, wherever they are.
    let rows = ["_", "_a", "a __ b", "__init__"].map(str::to_owned);
    let words: Vec<String> = of_rows(&rows).into_iter().map(|(_, word)| word).collect();
    assert_eq!(words, ["_a", "a", "b", "__init__"]);
    let texts = StringArray::from(rows.to_vec());
    let mut at_once = FoundAtOnce::default();
    words_of_rows(&texts, TextPosition::default(), &mut buffers, &mut at_once);
    assert_eq!((at_once.offered, at_once.words), (1, words));
}

/// The text with a space before each sign between letters or digits that has a joiner and a
/// picture after it, where WB6 and WB12 see a boundary and the crate sees none.
fn with_boundaries(text: &str) -> String {
    let is_one = |text: String| text.split_word_bounds().count() == 1;
    let joins = |c: char| is_one(format!("a{c}a")) || is_one(format!("1{c}1"));
    let is_sign = |c: char| joins(c) && !is_one(format!("a{c}")) && !c.is_alphanumeric();
    let extends = |c: char| c == '\u{200d}' || is_one(format!("a{c}")) && !is_one(format!("{c}a"));
    let is_picture = |c: char| is_one(format!("\u{200d}{c}")) && !is_one(format!("a{c}"));
    let mut made = String::new();
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let next = rest.trim_start_matches(extends);
        let joined = &rest[..rest.len() - next.len()];
        let is_before_picture =
            joined.ends_with('\u{200d}') && next.chars().next().is_some_and(is_picture);
        if is_before_picture && is_sign(c) {
            made.push(' ');
        }
        made.push(c);
    }
    made
}

/// General rules of the crate: the last letter prevents its ASCII shortcut.
fn naive(text: &str) -> Vec<String> {
    let text = if text.contains('\u{200d}') { with_boundaries(text) } else { text.to_owned() };
    let text = format!("{text} é");
    let mut words: Vec<_> = text.unicode_words().map(str::to_lowercase).collect();
    assert_eq!(words.pop().as_deref(), Some("é"));
    words
}

fn check(text: &str) {
    assert_eq!(all(text), naive(text), "{text:?}");
}

#[test]
fn a_sign_before_a_picture_joins_nothing() {
    for (text, expected) in [
        ("a'\u{200d}😀", &["a"][..]),
        ("a'\u{200d}😀b", &["a", "b"]),
        ("x a.\u{301}\u{200d}😀 c", &["x", "a", "c"]),
        ("1,\u{200d}❤ 2", &["1", "2"]),
        ("a'b'\u{200d}😀", &["a'b"]),
        // A joiner is no reason to end a word (WB4), nor is a picture after it (WB3c).
        ("a'\u{200d}b", &["a'\u{200d}b"]),
        ("a\u{200d}b", &["a\u{200d}b"]),
        ("a\u{200d}😀 b", &["a\u{200d}😀", "b"]),
        // No letter stands before the sign, and the vowel sign makes a word of the whole.
        (":\u{113c2}\u{200d}👍", &[":\u{113c2}\u{200d}👍"]),
        ("a'\u{113c2}\u{200d}👍", &["a", "'\u{113c2}\u{200d}👍"]),
        ("a'\u{113c2}\u{200d}👍b.\u{200d}😀", &["a", "'\u{113c2}\u{200d}👍", "b"]),
    ] {
        assert_eq!(all(text), expected, "{text:?}");
        assert_eq!(one_by_one(text), expected, "{text:?}");
    }
}

#[test]
fn words_keep_what_belongs_together() {
    let text = "Don't split 3.14, 1,000 or e.g. snake_case; _ is no word. a:b 1:2 x..y ÉTÉ ΟΔΟΣ";
    let expected = "don't split 3.14 1,000 or e.g snake_case is no word a:b 1 2 x y été οδος";
    assert_eq!(all(text).join(" "), expected);
}

/// Characters of the alphabets and of emoji, and every 61st other character: ideographs and
/// syllables are alike, and a loop over all characters takes minutes without optimisation.
fn is_tested(number: &u32) -> bool {
    matches!(number, 0..0x3100 | 0xa640..0xac00 | 0xf900..0x10600 | 0x1f000..0x1fb00)
        || number.is_multiple_of(61)
}

#[test]
fn characters_are_cut_as_the_crate_cuts_them() {
    let characters = (0..=u32::from(char::MAX)).filter(is_tested);
    for c in characters.filter_map(char::from_u32) {
        // The text stands next to each kind of character, twice, before and after marks and at both
        // ends.
        check(&format!(
            "{c}a{c}1{c}.{c}カ{c}_{c}é{c}'{c}{c} {c}\u{301}{c}a.{c}b 1,{c}2 é{c}'é X{c}"
        ));
    }
}

#[test]
fn pairs_of_the_difficult_characters_are_cut_as_the_crate_cuts_them() {
    let kinds = [
        'a',
        'Z',
        '1',
        '_',
        '.',
        ':',
        ',',
        '\'',
        '"',
        ' ',
        '\t',
        '\r',
        '\n',
        '-',
        'é',
        'Σ',
        'σ',
        'ß',
        'İ',
        'ı',
        'カ',
        'ー',
        'か',
        '中',
        '한',
        'א',
        '’',
        '·',
        '\u{301}',
        '\u{93e}',
        '\u{200d}',
        '\u{ad}',
        '\u{3000}',
        '\u{a0}',
        '\u{85}',
        '\u{1f1e9}',
        '\u{1f44d}',
        '\u{fe0f}',
        '\u{203f}',
        '\u{2c2}',
        '\u{e33}',
        '٣',
        '\u{10400}',
        '\u{20000}',
        '\u{1f170}',
        'ᾈ',
        'K',
        'Ⱥ',
    ];
    for a in kinds {
        for b in kinds {
            for c in kinds {
                for text in
                    [format!("{a}{b}{c}"), format!("ж{a}{b}{c}ж"), format!("x {a}{b}{c}{a}")]
                {
                    check(&text);
                    assert_eq!(one_by_one(&text), naive(&text), "{text:?}");
                }
            }
        }
    }
}

#[test]
fn windows_end_anywhere() {
    for text in [
        "ab c_d 1.5 ",
        "Ёж и ёж, ",
        "中文字 a",
        "中文，字",
        "中\u{301}文字。カ字",
        "e\u{301}a  \u{301}b ",
        "don’t ÉTÉ x",
    ] {
        for first in 0..80 {
            let text = format!("{}{}", "y".repeat(first), text.repeat(3 * WINDOW / text.len()));
            check(&text);
        }
    }
    for length in (0..200).chain(WINDOW - 3..WINDOW + 3) {
        check(&"x".repeat(length));
        check(&format!("{} é", "x".repeat(length)));
        check(&format!("{}é", "x".repeat(length)));
        check(&format!("{} \u{301}x", "é".repeat(length)));
    }
}

#[test]
fn rows_end_anywhere_in_a_window() {
    for len in 0..150 {
        let rows = ["x".repeat(len), "ab".to_owned(), String::new(), "it's, a".to_owned()];
        let rows: Vec<String> = rows.into_iter().cycle().take(40).collect();
        let expected: Vec<(usize, String)> = (0..)
            .zip(&rows)
            .flat_map(|(row, text)| naive(text).into_iter().map(move |word| (row, word)))
            .collect();
        assert_eq!(of_rows(&rows), expected, "{len}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn ascii_words_follow_the_general_rules(text in "[ab1_.:,;'\"\\- A\r\n]{0,24}|[ -~]{0,140}") {
        let expected = naive(&text);
        prop_assert_eq!(&all(&text), &expected);
        prop_assert_eq!(&one_by_one(&text), &expected);
    }

    #[test]
    fn words_can_stop_anywhere(
        text in "([ab1_.:,;' ]|[éΣσ中文カ\u{113c2}\u{3000}\u{301}\u{200d}🇩🇪👍\u{5d0}’\"]){0,24}|\\PC{0,40}",
    ) {
        let expected = naive(&text);
        prop_assert_eq!(&all(&text), &expected);
        prop_assert_eq!(&one_by_one(&text), &expected);
    }

    #[test]
    fn texts_of_many_blocks_follow_the_general_rules_on_each_level(
        text in "[a-zÀ-ÿА-я .,]{0,150}|[Α-ωά-ώ .’]{0,150}|[一-三，。a1 ]{0,100}|[a-cЖñ中한カ1٣_.:' ’\u{301}]{0,150}",
    ) {
        let expected = naive(&text);
        for isa in Isa::available() {
            prop_assert_eq!(&all_on(isa, &text), &expected, "{}", isa);
        }
        prop_assert_eq!(&one_by_one(&text), &expected);
    }
}

/// A row: of some letters, or, more seldom because it takes long, of more than a window.
fn row() -> impl Strategy<Value = String> {
    prop_oneof![
        60 => "[А-яñ]{0,40}|[中文，。’]{0,9}|[ab1_.:,;'A é]{0,9}|[a-zA-Z ]{0,70}|[a-z]{0,3}|[éΣ中カ\u{301}\u{200d}’ a]{0,9}",
        1 => "[ -~]{900,1100}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn rows_are_cut_as_each_of_them_is(rows in prop::collection::vec(row(), 0..40)) {
        let expected: Vec<(usize, String)> = (0..)
            .zip(&rows)
            .flat_map(|(row, text)| naive(text).into_iter().map(move |word| (row, word)))
            .collect();
        prop_assert_eq!(of_rows(&rows), expected);
    }
}

/// The page about the masks shows a block as an example. The drawing has to agree with the masks
/// that the code computes.
#[test]
fn the_page_of_the_masks_shows_the_masks_of_its_block() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/word-masks.md");
    let page = std::fs::read_to_string(page).unwrap();
    let text = page.lines().find_map(|line| line.strip_prefix("The block: `")?.strip_suffix("`."));
    let text = text.expect("the page names the text of its block");
    assert_eq!(text.len(), mask::BLOCK);
    for isa in Isa::available() {
        let (mut kinds, mut lower) = ([ByteKinds::default()], [0; mask::BLOCK]);
        byte_kinds(isa, text.as_bytes(), &mut kinds, &mut lower);
        let mut window = Window::new();
        let (_, blocks) = window.fill(isa, text);
        let (kinds, masks) = (kinds[0], blocks.at(0));
        let (starts, ends, is_inside) = mask::Cuts::default().runs(masks, false);
        let rows = [
            ("letters", kinds.letters),
            ("digits", kinds.digits),
            ("underscores", kinds.underscores),
            ("join_letters", kinds.join_letters),
            ("join_digits", kinds.join_digits),
            ("wide", kinds.wide),
            ("leads", kinds.leads),
            ("ideographs", kinds.ideographs),
            ("words", masks.words),
            ("joined", masks.joined),
            ("breaks", masks.breaks),
            ("starts", starts),
            ("ends", ends),
        ];
        assert!(masks.is_plain() && is_inside, "the last word goes on in the next block");
        for half in [0..32, 32..64] {
            let text = drawn_text(text, half.clone());
            assert!(page.contains(&text), "the page lacks\n{text}");
            for (name, mask) in rows {
                let bits = half.clone().map(|bit| if mask >> bit & 1 == 1 { "1 " } else { ". " });
                let line = format!("{name:<13}{}", bits.collect::<String>());
                assert!(page.contains(line.trim_end()), "{isa}: the page lacks\n{line}");
            }
        }
    }
}

/// The bytes of a text, two columns each.
fn drawn_text(text: &str, bytes: std::ops::Range<usize>) -> String {
    let columns = |(at, c): (usize, char)| {
        let (width, rest) =
            (if c.len_utf8() == 3 { "" } else { " " }, "· ".repeat(c.len_utf8() - 1));
        bytes.contains(&at).then(|| format!("{c}{width}{rest}"))
    };
    let columns: String = text.char_indices().filter_map(columns).collect();
    format!("text         {}", columns.trim_end())
}
