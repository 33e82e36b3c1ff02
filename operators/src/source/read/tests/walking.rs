//! Folders, links, and files of several names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use super::super::files::paths::resolve;
use super::*;

fn folder_of(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{name}\n")).unwrap();
    }
    folder
}

fn read(folder: &tempfile::TempDir, patterns: &[&str]) -> Vec<String> {
    let paths = patterns.iter().map(|pattern| text(&folder.path().join(pattern)));
    lines_of(&drain_source(&mut *bind_source(Read::new(paths, ReadFormat::Lines))).unwrap())
}

#[test]
fn links_that_form_circles_end() {
    let folder = folder_of(&["d/x/a.txt", "e/y/a.txt"]);
    symlink("..", folder.path().join("d/x/loop")).unwrap();
    for link in ["l1", "l2", "l3"] {
        symlink(".", folder.path().join("e/y").join(link)).unwrap();
    }
    assert_eq!(read(&folder, &["d/**/*.txt"]), ["d/x/a.txt"]);
    assert_eq!(read(&folder, &["e/**/*.txt"]), ["e/y/a.txt"]);
    assert_eq!(read(&folder, &["**/x/**/a.*", "**/**/*.txt"]), ["d/x/a.txt", "e/y/a.txt"]);
}

#[test]
fn a_file_is_read_once_however_it_is_named() {
    let folder = folder_of(&["x/a.txt", "x/b.txt"]);
    fs::hard_link(folder.path().join("x/a.txt"), folder.path().join("x/hard.txt")).unwrap();
    symlink("a.txt", folder.path().join("x/soft.txt")).unwrap();
    symlink("x", folder.path().join("y")).unwrap();
    let names = ["x/a.txt", "x/../x/a.txt", "./x/a.txt", "x/hard.txt", "y/a.txt", "x/soft.txt"];
    assert_eq!(read(&folder, &names), ["x/a.txt"]);
    assert_eq!(read(&folder, &["x/*.txt", "*/*.txt"]), ["x/a.txt", "x/b.txt"]);
    // The walk finds the link before the folder, and still reports the file under its own path.
    symlink("x", folder.path().join("a")).unwrap();
    let pattern = text(&folder.path().join("**/b.txt"));
    let batches = drain_source(&mut *bind_source(Read::new([pattern], ReadFormat::Files))).unwrap();
    assert_eq!(texts_of(&batches, "path"), [text(&folder.path().join("x/b.txt"))]);
}

#[test]
fn a_link_leads_to_a_folder_outside() {
    let elsewhere = folder_of(&["deep/o.txt"]);
    let folder = folder_of(&["a.txt"]);
    symlink(elsewhere.path(), folder.path().join("link")).unwrap();
    assert_eq!(read(&folder, &["**/*.txt"]), ["a.txt", "deep/o.txt"]);
    assert_eq!(read(&folder, &["l*/*/o.txt"]), ["deep/o.txt"]);
}

#[test]
fn names_that_are_no_text_match_wildcards() {
    let folder = folder_of(&["a.txt"]);
    let name = OsStr::from_bytes(b"b\xff.txt");
    fs::write(folder.path().join(name), "odd\n").unwrap();
    assert_eq!(read(&folder, &["*.txt"]), ["a.txt", "odd"]);
    assert_eq!(read(&folder, &["b?.txt"]), ["odd"]);
}

/// The walk finds the files that the crate `glob` finds, in trees without links.
#[test]
fn patterns_mean_what_they_mean_to_glob() {
    let folder = folder_of(&[
        "a.txt",
        "b.log",
        ".hidden.txt",
        "s/a.txt",
        "s/.h/a.txt",
        "s/t/a.txt",
        "s/t/b.log",
        "[x]/a.txt",
        "s/t/u/v/a.txt",
    ]);
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    for pattern in [
        "*",
        "*.txt",
        "**",
        "**/*",
        "**/*.txt",
        "**/a.txt",
        "s/**",
        "s/**/*.txt",
        "s/*/a.txt",
        "*/*",
        "s/.h/*",
        "s/./*.txt",
        "s/../*.txt",
        "[ab].*",
        "[!a].*",
        "[[]x]/*",
        "?/?/*",
        "**/t/**/a.txt",
        "*/",
        "s//a*",
        "**/u/v/*",
        "nothing*",
    ] {
        let whole = text(&folder.path().join(pattern));
        let mut expected: Vec<_> = glob::glob_with(&whole, options)
            .unwrap()
            .map(Result::unwrap)
            .filter(|path| !path.is_dir())
            .map(|path| fs::canonicalize(path).unwrap())
            .collect();
        expected.sort();
        expected.dedup();
        let files = resolve(&[whole.into()], OnError::Fail);
        let found: Vec<_> = match files {
            Err(errors) if matches!(errors[..], [ReadError::NoMatch { .. }]) => Vec::new(),
            files => files.unwrap().unwrap().places,
        };
        let mut found: Vec<_> =
            found.iter().map(|place| fs::canonicalize(&*place.name()).unwrap()).collect();
        found.sort();
        assert_eq!(found, expected, "{pattern}");
    }
    // The crate does not know these patterns of a shell.
    assert_eq!(read(&folder, &["s/{a,t/b}.*"]), ["s/a.txt", "s/t/b.log"]);
    assert_eq!(read(&folder, &["[^a].*"]), ["b.log"]);
    assert_eq!(read(&folder, &["[[:lower:]].{txt,log}"]), ["a.txt", "b.log"]);
    // As in a shell, a dot in the pattern matches the dot of a hidden file.
    assert_eq!(read(&folder, &[".h*", "s/.?/*"]), [".hidden.txt", "s/.h/a.txt"]);
}
