//! Tables and numbers of the documentation, taken from stored outputs of benchmarks.
//!
//! `bench/results/NAME.txt` holds a command, the date and the machine, then the output of the
//! command. A page names the outputs of each section:
//!
//! ```text
//! ## On the CPU
//! <!-- results: epsilon-join-cpu -->      outputs of the section, up to the next heading
//! The directory takes 0.468 s.            a number with decimals or a unit, which is in one of them
//! <!-- table: epsilon-join-cpu 2 -->      the second table of that output, which follows as it is
//! | vectors | pairs |
//! ```
//!
//! A table without such a line is made by hand: all its numbers have to be in the outputs. A
//! number is in an output if one there rounds to it. Code, links and headings are not looked at.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folder of the outputs below the root.
const OUTPUTS: &str = "bench/results";

/// Folders of pages below the root.
const FOLDERS: [&str; 2] = ["docs", "bench/reports"];

/// Words after a number that make it a measurement.
const UNITS: [&str; 16] = [
    "ns", "µs", "ms", "s", "seconds", "%", "B", "KB", "MB", "GB", "TB", "MB/s", "GB/s", "TB/s",
    "times", "M/s",
];

/// A page beside its stored outputs.
#[derive(Debug)]
pub struct Page {
    /// The file.
    pub path: PathBuf,
    /// Its text with all tables as they are in the outputs.
    pub text: String,
    /// Whether the tables of the file are different ones.
    pub is_stale: bool,
    /// Numbers that are in no output of their section, and lines that name nothing.
    pub faults: Vec<String>,
}

/// The README and all pages below `docs` and `bench/reports`, each beside the outputs that it
/// names.
///
/// # Errors
/// If a file cannot be read.
pub fn pages(root: &Path) -> io::Result<Vec<Page>> {
    let mut outputs = Outputs { folder: root.join(OUTPUTS), read: HashMap::new() };
    let mut paths = vec![root.join("README.md")];
    let mut folders = FOLDERS.map(|folder| root.join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.into_iter().map(|path| page(path, &mut outputs)).collect()
}

fn page(path: PathBuf, outputs: &mut Outputs) -> io::Result<Page> {
    let found = fs::read_to_string(&path)?;
    let mut section = Section::default();
    let (mut text, mut faults) = (String::new(), Vec::new());
    let mut lines = found.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        text += line;
        text.push('\n');
        let mut fault = |said: String| faults.push(format!("line {}: {said}", at + 1));
        if line.starts_with("```") {
            section.is_code = !section.is_code;
        } else if section.is_code {
        } else if line.starts_with('#') {
            section = Section::default();
        } else if let Some(names) = comment(line, "results:") {
            for name in names.split_whitespace() {
                match outputs.get(name)? {
                    Some(output) => section.numbers.extend(numbers(output)),
                    None => fault(format!("there is no {OUTPUTS}/{name}.txt")),
                }
            }
            section.is_measured = true;
        } else if let Some(table) = comment(line, "table:") {
            while lines.next_if(|(_, line)| line.starts_with('|')).is_some() {}
            match outputs.table(table)? {
                Some(rows) => rows.iter().for_each(|row| text += row),
                None => fault(format!("{table:?} is no table of {OUTPUTS}")),
            }
        } else if section.is_measured {
            section.strangers(line).into_iter().for_each(&mut fault);
        }
    }
    let is_stale = text != found;
    Ok(Page { path, text, is_stale, faults })
}

/// The text of a comment that begins with `word`.
fn comment<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let text = line.strip_prefix("<!--")?.strip_suffix("-->")?;
    text.trim().strip_prefix(word).map(str::trim)
}

/// Stored outputs that have been read.
struct Outputs {
    folder: PathBuf,
    read: HashMap<String, Option<String>>,
}

impl Outputs {
    fn get(&mut self, name: &str) -> io::Result<Option<&str>> {
        if !self.read.contains_key(name) {
            let text = match fs::read_to_string(self.folder.join(format!("{name}.txt"))) {
                Ok(text) => Some(text),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            self.read.insert(name.to_owned(), text);
        }
        Ok(self.read[name].as_deref())
    }

    /// The lines of table `NAME NUMBER`, the first one of an output is 1.
    fn table(&mut self, table: &str) -> io::Result<Option<Vec<String>>> {
        let Some((name, number)) = table.split_once(' ') else { return Ok(None) };
        let number: usize = number.trim().parse().unwrap_or(0);
        let Some(output) = self.get(name)? else { return Ok(None) };
        let mut tables = Vec::new();
        let mut is_within = false;
        for line in output.lines() {
            let is_row = line.starts_with('|');
            if is_row && !is_within {
                tables.push(Vec::new());
            }
            is_within = is_row;
            if let Some(table) = tables.last_mut().filter(|_| is_row) {
                let cells: Vec<&str> =
                    line.trim().trim_matches('|').split('|').map(str::trim).collect();
                let is_rule =
                    cells.iter().all(|cell| cell.trim_matches(':').trim_matches('-').is_empty());
                let is_rule = is_rule && line.contains("---");
                let row =
                    if is_rule { cells.join("|") } else { format!(" {} ", cells.join(" | ")) };
                table.push(format!("|{row}|\n"));
            }
        }
        let at = number.checked_sub(1).filter(|at| *at < tables.len());
        Ok(at.map(|at| tables.swap_remove(at)))
    }
}

/// Part of a page below a heading.
#[derive(Default)]
struct Section {
    is_code: bool,
    /// Whether it names outputs.
    is_measured: bool,
    /// All numbers of these.
    numbers: Vec<f64>,
}

impl Section {
    /// Measurements of a line that are not in the outputs.
    fn strangers(&self, line: &str) -> Vec<String> {
        let is_table = line.starts_with('|');
        let prose = without_code(line);
        let mut strangers = Vec::new();
        for (number, rest) in shown(&prose) {
            let unit = rest.trim_start_matches(' ');
            let has_unit = UNITS.iter().any(|name| {
                let after = unit.strip_prefix(name);
                after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric()))
            });
            if !(is_table || has_unit || number.decimals > 0) {
                continue;
            }
            let scale =
                if unit.starts_with("M ") || unit.starts_with("million") { 1e6 } else { 1.0 };
            let is_known = self
                .numbers
                .iter()
                .any(|&known| number.is_of(known) || number.is_of(known / scale));
            if !is_known {
                strangers.push(format!("{} is in no output", number.value));
            }
        }
        strangers
    }
}

/// A number as it is shown.
#[derive(Debug, PartialEq)]
struct Number {
    value: f64,
    decimals: i32,
}

impl Number {
    /// Whether it is `known`, rounded.
    fn is_of(&self, known: f64) -> bool {
        let scale = 10_f64.powi(self.decimals);
        ((known * scale).round() - (self.value * scale).round()).abs() < 0.5
    }
}

fn numbers(text: &str) -> impl Iterator<Item = f64> {
    shown(text).into_iter().map(|(number, _)| number.value)
}

/// The numbers of a text, each with what follows it. A number within a word, such as that of
/// `avx2` or `x86-64`, is none.
fn shown(text: &str) -> Vec<(Number, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let is_part = before.is_alphanumeric() || before == '_';
        let is_compound = before == '-' || before == '.';
        let starts = first.is_ascii_digit() || first == '.';
        let number = if starts && !is_part && !is_compound { begin(rest) } else { None };
        let len = number.as_ref().map_or(first.len_utf8(), |(_, len)| *len);
        before = rest[..len].chars().next_back().unwrap_or(' ');
        rest = &rest[len..];
        if let Some((number, _)) = number {
            let is_name = rest.starts_with(|c: char| c.is_alphabetic() && c != 'x');
            found.extend(
                (!is_name || UNITS.iter().any(|unit| rest.starts_with(unit)))
                    .then_some((number, rest)),
            );
        }
    }
    found
}

/// The number at the beginning of a text, and its length: digits, thousands apart by commas, and
/// decimals.
fn begin(text: &str) -> Option<(Number, usize)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == ',' || c == '.'));
    let taken = text[..end.unwrap_or(text.len())].trim_end_matches([',', '.']);
    // A comma is part of a number only before three digits.
    let mut parts = taken.split(',');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    let mut len = kept.len();
    for part in parts {
        let digits = part.split('.').next().unwrap_or_default();
        if digits.len() != 3 || kept.contains('.') {
            break;
        }
        kept += part;
        len += 1 + part.len();
    }
    let decimals = kept.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let value = kept.parse().ok()?;
    Some((Number { value, decimals: i32::try_from(decimals).ok()? }, len))
}

/// A line without code and without the targets of links.
fn without_code(line: &str) -> String {
    let mut kept = String::new();
    for (at, part) in line.split('`').enumerate() {
        kept += if at % 2 == 0 { part } else { " code " };
    }
    let mut shown = String::new();
    for (at, part) in kept.split("](").enumerate() {
        shown += if at == 0 { part } else { part.split_once(')').map_or(part, |(_, rest)| rest) };
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<f64> {
        numbers(text).collect()
    }

    #[test]
    fn numbers_are_found_as_they_are_shown() {
        assert_eq!(values("1,503 MB, 3.98 times; .5 and 2."), [1503.0, 3.98, 0.5, 2.0]);
        assert_eq!(values("avx512 x86-64 u32 p99 2nd"), [0.0; 0]);
        assert_eq!(values("8, 16, 1,000,000 and 0.0344"), [8.0, 16.0, 1e6, 0.0344]);
        assert_eq!(values("12,34 5ms 300,000x2"), [12.0, 34.0, 5.0, 300_000.0]);
    }

    /// A page and outputs in a folder.
    fn checked(page: &str, output: &str) -> Page {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(OUTPUTS)).unwrap();
        for folder in FOLDERS {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join(OUTPUTS).join("run.txt"), output).unwrap();
        fs::write(root.path().join("README.md"), page).unwrap();
        pages(root.path()).unwrap().remove(0)
    }

    const OUTPUT: &str = "$ bench\n| a  | b |\n|---|--:|\n| x  | 0.4684 |\n\n| c |\n| 7 |\n1503 MB";

    #[test]
    fn tables_are_those_of_the_output() {
        let page = "# T\n<!-- table: run 1 -->\n| old |\n|---|\n\nend\n";
        let read = checked(page, OUTPUT);
        let table = "| a | b |\n|---|--:|\n| x | 0.4684 |\n";
        assert_eq!(read.text, format!("# T\n<!-- table: run 1 -->\n{table}\nend\n"));
        assert!(read.is_stale && read.faults.is_empty());
        let read = checked(&read.text, OUTPUT);
        assert!(!read.is_stale);
        for wrong in ["run 3", "run 0", "run", "none 1"] {
            let read = checked(&format!("<!-- table: {wrong} -->\n"), OUTPUT);
            assert_eq!(read.faults.len(), 1, "{wrong}");
        }
    }

    #[test]
    fn measurements_have_to_be_in_an_output() {
        let of =
            |text: &str| checked(&format!("<!-- results: run -->\n{text}\n"), OUTPUT).faults.len();
        assert_eq!(of("It takes 0.47 s and 1,503 MB, on 3 cores of `5 ms` [1](9.5)."), 0);
        assert_eq!(of("It takes 0.48 s."), 1);
        assert_eq!(of("It takes 8 ms or 9 times."), 2);
        assert_eq!(of("| made | by 7 hand | 8 |"), 1);
        assert_eq!(of("## Next\n0.48 s"), 0);
        assert_eq!(of("```\n0.48 s\n```\n0.47"), 0);
        assert_eq!(checked("<!-- results: other -->\n", OUTPUT).faults.len(), 1);
    }
}
