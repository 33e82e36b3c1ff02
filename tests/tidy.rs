//! Rules of the repository that a compiler does not check.

use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Longer files should have been divided.
const FILE_LINES_MAX: usize = 800;
/// Of prose in comments; rustfmt sees to the code, and drawings and some strings cannot be broken.
const COMMENT_CHARS_MAX: usize = 100;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Rust files of the repository, without what is built.
fn sources() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        ["src", "engine", "kernels", "operators", "cli", "bench", "tests", "xtask"]
            .map(|f| root().join(f))
            .into();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files
}

#[test]
fn dependencies_between_our_crates_point_one_way() {
    let allowed: &[(&str, &[&str])] = &[
        ("trommel-engine", &[]),
        ("trommel-kernels", &[]),
        ("trommel-shim", &[]),
        ("trommel-operators", &["trommel-engine", "trommel-kernels"]),
        ("trommel", &["trommel-engine", "trommel-operators"]),
        ("trommel-cli", &["trommel"]),
        ("trommel-bench", &["trommel", "trommel-kernels"]),
        ("xtask", &[]),
    ];
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec().unwrap();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let (_, allowed) =
            allowed.iter().find(|(crate_name, _)| *crate_name == name).expect("a known crate");
        let ours = package
            .dependencies
            .iter()
            .filter(|d| d.kind == DependencyKind::Normal && d.name.starts_with("trommel"));
        for dependency in ours {
            let known = allowed.contains(&dependency.name.as_str());
            assert!(known, "{name} must not depend on {}", dependency.name);
        }
    }
}

#[test]
fn files_are_short_and_leave_nothing_for_later() {
    let later =
        ["TO", "FIX"].map(|start| format!("{start}{}", if start == "TO" { "DO" } else { "ME" }));
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let shown = path.display();
        assert!(text.lines().count() <= FILE_LINES_MAX, "{shown} is too long");
        let mut is_drawing = false;
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let comment = line.trim_start();
            is_drawing ^= comment.starts_with("//") && comment.contains("```");
            let is_prose = comment.starts_with("//") && !is_drawing && !comment.contains('|');
            let is_long = line.chars().count() > COMMENT_CHARS_MAX;
            assert!(!(is_prose && is_long), "{shown}:{number} is too long");
            assert!(!later.iter().any(|word| line.contains(word)), "{shown}:{number}");
        }
    }
}

#[test]
fn unsafe_code_is_in_kernels_only() {
    for path in sources() {
        let inside = path.strip_prefix(root()).unwrap();
        if inside.starts_with("kernels") || inside.ends_with("tests/tidy.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("unsafe {"), "{}", path.display());
    }
}

#[test]
fn every_operator_is_documented() {
    let papers = fs::read_to_string(root().join("docs/papers.md")).unwrap();
    assert!(papers.contains("frequent_items") && papers.contains("set_similarity_join"));
    let reference = fs::read_to_string(root().join("README.md")).unwrap();
    for entry in trommel::registry().entries() {
        assert!(reference.contains(&format!("`{}`", entry.name())), "README.md: {}", entry.name());
    }
}
