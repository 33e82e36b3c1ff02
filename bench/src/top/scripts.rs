//! The most frequent words of texts in several scripts.
//!
//! Texts have the same numbers of a Zipf distribution, spelt with the letters of each script, and
//! are cut into sentences of twelve words, one a line, with a capital, a comma and a full stop.
//! Ideographs are words of one character without spaces between them; there are fewer of them, so
//! their text has numbers of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use trommel::Zipf;

use super::{Arguments, PLACEMENTS, ROWS, Unit, once};
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns};

/// Words of a text.
const WORDS: usize = 10_000_000;
/// Words of a sentence.
const SENTENCE: usize = 12;
/// First ideograph.
const IDEOGRAPHS: u32 = 0x4e00;

/// Letters of a text.
struct Script {
    name: &'static str,
    /// Empty for ideographs.
    letters: &'static str,
    distinct: u32,
    comma: &'static str,
    full_stop: &'static str,
    space: &'static str,
}

impl Script {
    const fn of_letters(name: &'static str, letters: &'static str) -> Self {
        Self { name, letters, distinct: 100_000, comma: ", ", full_stop: ".\n", space: " " }
    }
}

const SCRIPTS: [Script; 5] = [
    Script::of_letters("ASCII", "abcdefghijklmnopqrstuvwxyz"),
    // One letter in eight has an accent, as in Czech.
    Script::of_letters("Latin with accents", "abcdefghijklmnopqrstuvwxyzáéíö"),
    Script::of_letters("Cyrillic", "абвгдежзийклмнопрстуфхцчшщъыьэюя"),
    Script::of_letters("Greek", "αβγδεζηθικλμνξοπρστυφχψωάέήίόύώ"),
    Script {
        name: "CJK",
        letters: "",
        distinct: 20_000,
        comma: "，",
        full_stop: "。\n",
        space: "",
    },
];

/// A text of a script, on the disk.
struct Text {
    name: &'static str,
    path: PathBuf,
    bytes: usize,
    /// The largest counts of its words.
    counts: Vec<u64>,
}

/// Measures and prints words of each script, on one core and on all. Scripts take turns, so that a
/// slow minute of the machine is one of all of them.
///
/// # Errors
/// If a file cannot be written.
///
/// # Panics
/// If counts are wrong.
pub(super) fn measure(arguments: &Arguments, folder: &Path) -> io::Result<()> {
    let mut texts = Vec::new();
    for script in &SCRIPTS {
        let name = script.name;
        let path = folder.join(format!("{name}.txt"));
        let (text, counts) = script.text(WORDS, ROWS);
        fs::write(&path, &text)?;
        texts.push(Text { name, path, bytes: text.len(), counts });
    }
    let counters = arguments.counters;
    let mut turns = Turns::<()>::new(arguments.runs.or(5)).cold();
    for text in &texts {
        for (name, placement) in PLACEMENTS {
            turns.add(name, move || {
                let rows = text.counts.len();
                let (time, found) = once(counters, &text.path, Unit::Words, placement, rows);
                assert_eq!(found, text.counts, "{}", text.name);
                Run { time, answer: (), rest: () }
            });
        }
    }
    println!("{WORDS} words of each script, {counters} counters\n");
    let mut table = Table::new(
        "script | bytes a word: | placement | seconds: | million words/s: | MB/s: | of ASCII:",
    );
    let measured = turns.run();
    let mut of_ascii = [None; PLACEMENTS.len()];
    for (Text { name, bytes, .. }, engines) in texts.iter().zip(measured.chunks(PLACEMENTS.len())) {
        for (engine, ascii) in engines.iter().zip(&mut of_ascii) {
            let seconds = engine.seconds();
            let [words, megabytes] = [WORDS, *bytes].map(|count| count as f64 / 1e6 / seconds);
            let quotient = megabytes / *ascii.get_or_insert(megabytes);
            table.row(format!(
                "{name} | {:.1} | {} | {seconds:.3} | {words:.1} | {megabytes:.0} | {quotient:.2}",
                *bytes as f64 / WORDS as f64,
                engine.name,
            ));
        }
    }
    Ok(())
}

impl Script {
    /// A text, and the `rows` largest counts of its words.
    fn text(&self, words: usize, rows: usize) -> (String, Vec<u64>) {
        let mut items = vec![0; words];
        let mut zipf = Zipf::new(self.distinct, 1.0, 1).expect("a skew within the limits");
        zipf.fill(&mut items);
        let mut counts = vec![0; self.distinct as usize];
        let letters: Vec<char> = self.letters.chars().collect();
        let mut text = String::new();
        for (place, &item) in items.iter().enumerate() {
            counts[item as usize] += 1;
            self.push(item, place % SENTENCE == 0, &letters, &mut text);
            text += match place % SENTENCE {
                5 => self.comma,
                last if last + 1 == SENTENCE => self.full_stop,
                _ => self.space,
            };
        }
        counts.sort_unstable_by(|left, right| right.cmp(left));
        counts.truncate(rows);
        (text, counts)
    }

    /// Adds a word, the digits of whose number are letters.
    fn push(&self, item: u32, is_first: bool, letters: &[char], text: &mut String) {
        if letters.is_empty() {
            return text.push(char::from_u32(IDEOGRAPHS + item).expect("an ideograph"));
        }
        let first = letters[4];
        match is_first {
            true => text.extend(first.to_uppercase()),
            false => text.push(first),
        }
        let mut rest = item as usize;
        while rest > 0 {
            text.push(letters[rest % letters.len()]);
            rest /= letters.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use trommel::placement::Placement;

    use super::*;

    #[test]
    fn words_of_each_script_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("words.txt");
        for script in &SCRIPTS {
            let (text, counts) = script.text(20_000, 50);
            fs::write(&file, text).unwrap();
            let (_, found) = once(30_000, &file, Unit::Words, Placement::Fused, 50);
            assert_eq!(found, counts, "{}", script.name);
        }
    }
}
