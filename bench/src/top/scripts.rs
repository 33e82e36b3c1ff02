//! The most frequent words of texts in several scripts.
//!
//! Texts have the same numbers of a Zipf distribution, spelt with the letters of each script, and
//! are cut into sentences of twelve words, one a line, with a capital, a comma and a full stop.
//! Ideographs are words of one character without spaces between them; there are fewer of them, so
//! their text has numbers of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trommel::Zipf;

use super::{Arguments, PLACEMENTS, Unit, median, once};

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
        let (text, counts) = script.text(WORDS, arguments.rows);
        fs::write(&path, &text)?;
        texts.push(Text { name, path, bytes: text.len(), counts });
    }
    let mut times = vec![PLACEMENTS.map(|_| Vec::new()); texts.len()];
    for _ in 0..arguments.rounds.max(1) {
        for (text, times) in texts.iter().zip(&mut times) {
            for ((_, placement), times) in PLACEMENTS.iter().zip(times) {
                let (time, found) = once(arguments, &text.path, Unit::Words, *placement);
                assert_eq!(found, text.counts, "{}", text.name);
                times.push(time);
            }
        }
    }
    print(arguments, &texts, &mut times);
    Ok(())
}

/// Prints the medians of the times of each text, by placement.
fn print(arguments: &Arguments, texts: &[Text], times: &mut [[Vec<Duration>; PLACEMENTS.len()]]) {
    println!("{WORDS} words of each script, {} counters\n", arguments.counters);
    println!("| script | bytes a word | placement | seconds | million words/s | MB/s | of ASCII |");
    println!("|---|---:|---|---:|---:|---:|---:|");
    let mut of_ascii = [None; PLACEMENTS.len()];
    for (Text { name, bytes, .. }, times) in texts.iter().zip(times) {
        for (((placement, _), times), ascii) in PLACEMENTS.iter().zip(times).zip(&mut of_ascii) {
            let seconds = median(times).as_secs_f64();
            let [words, megabytes] = [WORDS, *bytes].map(|count| count as f64 / 1e6 / seconds);
            let quotient = megabytes / *ascii.get_or_insert(megabytes);
            println!(
                "| {name} | {:.1} | {placement} | {seconds:.3} | {words:.1} | {megabytes:.0} | {quotient:.2} |",
                *bytes as f64 / WORDS as f64,
            );
        }
    }
    println!();
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
        let arguments =
            Arguments { file: None, scripts: true, counters: 30_000, rows: 50, rounds: 1 };
        for script in &SCRIPTS {
            let (text, counts) = script.text(20_000, 50);
            fs::write(&file, text).unwrap();
            let (_, found) = once(&arguments, &file, Unit::Words, Placement::Fused);
            assert_eq!(found, counts, "{}", script.name);
        }
    }
}
