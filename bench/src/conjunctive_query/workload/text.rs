//! Documents of text: the paragraphs of the files of a folder.
//!
//! A paragraph of a page in HTML ends at the tag of a block, that of other text at an empty line.
//! Each distinct paragraph is a document once: pages repeat their navigation and their standard
//! sentences, and lists of copies would be runs of ids.
//!
//! The operator `tokenize` makes the words: Unicode Standard Annex 29, in lower case.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use trommel::{DictionaryFull, ForEach, Graph, Tokenize};

use super::documents::Documents;
use crate::runner::pipelines::{memory, run};

/// Endings of the names of files that are read.
const READ: [&str; 6] = ["html", "htm", "md", "rst", "tex", "txt"];

/// Elements whose content is no text.
const HIDDEN: [&str; 3] = ["script", "style", "svg"];

/// Elements that are blocks, between blanks.
const BLOCKS: &str = " address article aside blockquote body dd details div dl dt figure footer form \
    h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table td th title tr ";

/// Characters of an entity such as `&nbsp;` at most.
const ENTITY: usize = 8;

/// Bytes of text of a batch.
const BATCH_BYTES: usize = 1 << 20;

/// Distinct words at most.
const WORDS_MAX: usize = 1 << 24;

/// The folder of the documentation of the standard library, if it is installed.
pub(crate) fn standard_library() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let folder = Path::new(String::from_utf8(output.stdout).ok()?.trim()).join("share/doc");
    folder.is_dir().then_some(folder)
}

/// The distinct paragraphs with words below a folder, in the order of the paths.
///
/// # Errors
/// If a folder or file cannot be read. Files that are no text in UTF-8 are left out.
pub(crate) fn read(folder: &Path) -> io::Result<Documents> {
    let mut paragraphs = Paragraphs::default();
    for path in files(folder)? {
        let Ok(text) = String::from_utf8(fs::read(&path)?) else { continue };
        if path.extension().is_some_and(|end| end == "html" || end == "htm") {
            page(&text, &mut paragraphs);
        } else {
            for paragraph in text.split("\n\n") {
                paragraphs.add(paragraph);
                paragraphs.end();
            }
        }
    }
    Ok(tokenize(paragraphs.finish()))
}

/// Files below a folder whose names have one of the endings.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            let ending = path.extension().and_then(|ending| ending.to_str());
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && ending.is_some_and(|ending| READ.contains(&ending)) {
                files.push(path);
            }
        }
    }
    // The order of a folder differs between machines, and documents have numbers.
    files.sort_unstable();
    Ok(files)
}

/// Paragraphs in batches with the column `text`.
#[derive(Default)]
struct Paragraphs {
    current: String,
    /// All paragraphs so far.
    known: HashSet<String>,
    texts: StringBuilder,
    batches: Vec<RecordBatch>,
}

impl Paragraphs {
    /// Adds to the paragraph.
    fn add(&mut self, text: &str) {
        self.current.push_str(text);
    }

    /// Ends the paragraph.
    fn end(&mut self) {
        let text = self.current.trim();
        if text.contains(char::is_alphanumeric) && !self.known.contains(text) {
            self.texts.append_value(text);
            self.known.insert(text.to_owned());
        }
        self.current.clear();
        if self.texts.values_slice().len() >= BATCH_BYTES {
            self.close();
        }
    }

    fn close(&mut self) {
        let texts: ArrayRef = Arc::new(mem::take(&mut self.texts).finish());
        let batch = RecordBatch::try_from_iter_with_nullable([("text", texts, false)]);
        self.batches.push(batch.expect("one column"));
    }

    fn finish(mut self) -> Vec<RecordBatch> {
        self.close();
        self.batches
    }
}

/// The text after the first `mark`; nothing if there is none.
fn after<'a>(text: &'a str, mark: &str) -> &'a str {
    text.find(mark).map_or("", |at| &text[at + mark.len()..])
}

/// Adds the paragraphs of a page.
fn page(html: &str, paragraphs: &mut Paragraphs) {
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        plain(&rest[..begin], paragraphs);
        let tag = &rest[begin + 1..];
        rest = after(tag, if tag.starts_with("!--") { "-->" } else { ">" });
        // An end tag ends a paragraph as well as a start tag.
        let name = tag.trim_start_matches('/').split(|c: char| !c.is_ascii_alphanumeric());
        let name = name.into_iter().next().unwrap_or_default();
        if HIDDEN.contains(&name) && !tag.starts_with('/') {
            // A script may have `<` in it, so only its end tag counts.
            rest = after(after(rest, &format!("</{name}")), ">");
        } else if BLOCKS.contains(&format!(" {name} ")) {
            paragraphs.end();
        }
    }
    plain(rest, paragraphs);
    paragraphs.end();
}

/// Adds text of a page; entities are spaces.
fn plain(text: &str, paragraphs: &mut Paragraphs) {
    let mut parts = text.split('&');
    paragraphs.add(parts.next().unwrap_or_default());
    for part in parts {
        paragraphs.add(" ");
        match part.find(';') {
            Some(end) if end <= ENTITY => paragraphs.add(&part[end + 1..]),
            _ => paragraphs.add(part),
        }
    }
}

/// The sets of words of texts, as the operator makes them.
fn tokenize(batches: Vec<RecordBatch>) -> Documents {
    let documents = Arc::new(Mutex::new(Documents::default()));
    let place = Arc::clone(&documents);
    let mut graph = Graph::new();
    let source = graph.add("texts", memory(batches));
    let words = Tokenize::words().into_sets().dictionary_max(WORDS_MAX);
    let words = words.dictionary_full(DictionaryFull::Fail);
    let words = graph.add_after(source, "words", words);
    let sink = ForEach::new(move |records: RecordBatch| {
        let mut documents = place.lock().unwrap_or_else(PoisonError::into_inner);
        let sets = records.column_by_name("set").ok_or("no sets")?.as_list::<i32>();
        for set in (0..sets.len()).map(|row| sets.value(row)) {
            documents.push(set.as_primitive::<UInt32Type>().values());
        }
        Ok(())
    });
    graph.add_after(words, "sets", sink);
    run(graph);
    let mut documents = documents.lock().unwrap_or_else(PoisonError::into_inner);
    mem::take(&mut *documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paragraphs(html: &str) -> Vec<String> {
        let mut paragraphs = Paragraphs::default();
        page(html, &mut paragraphs);
        let batches = paragraphs.finish();
        let texts = batches.iter().flat_map(|batch| batch.column(0).as_string::<i32>());
        texts.map(|text| text.unwrap().trim().to_owned()).collect()
    }

    #[test]
    fn blocks_end_paragraphs_and_scripts_are_no_text() {
        let html = "<!-- <p>no --><p>one <b>t</b>wo</p>\n<script>if (a<b) p()</script><div>\n\
                    <li class=\"x\">3 &lt;4<p>!?</p>rest";
        assert_eq!(paragraphs(html), ["one two", "3  4", "rest"]);
        assert_eq!(paragraphs("plain & simple < "), ["plain   simple"]);
    }

    #[test]
    fn paragraphs_of_files_are_documents() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("deep")).unwrap();
        fs::write(folder.path().join("deep/a.html"), "<p>The cat</p><p>the dog, the cat</p>")
            .unwrap();
        fs::write(folder.path().join("b.txt"), "A cat\nand\n\n\na dog\n\na dog\n").unwrap();
        fs::write(folder.path().join("c.js"), "not read").unwrap();
        let documents = read(folder.path()).unwrap();
        // In the order of the paths: b.txt, deep/a.html.
        assert_eq!(documents.len(), 4);
        assert_eq!(documents.terms(0), [0, 1, 2]);
        assert_eq!(documents.terms(1), [0, 3]);
        assert_eq!(documents.terms(2), [1, 4]);
        assert_eq!(documents.terms(3), [1, 3, 4]);
    }
}
