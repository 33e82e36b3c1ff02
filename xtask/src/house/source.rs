//! The Rust files of a tree, and the crate and module that each of them is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders without code of a product.
const LEFT_OUT: [&str; 6] = ["target", "tests", "benches", "examples", "fuzz", ".git"];

/// A file of Rust.
#[derive(Debug)]
pub(super) struct Source {
    /// Below the root.
    pub(super) path: PathBuf,
    pub(super) crate_name: String,
    /// Its path in the crate: `a::b`; empty for `lib.rs`.
    pub(super) module: Vec<String>,
    pub(super) text: String,
}

/// The files in `folders` of `root`, sorted by path.
pub(super) fn sources(root: &Path, folders: &[PathBuf]) -> io::Result<Vec<Source>> {
    let mut paths = Vec::new();
    for folder in folders {
        add_paths(&root.join(folder), &mut paths)?;
    }
    paths.sort();
    paths.dedup();
    paths.iter().map(|path| source(root, path)).collect()
}

fn add_paths(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !LEFT_OUT.contains(&name.as_str()) {
                add_paths(&path, paths)?;
            }
        } else if name.ends_with(".rs") && !matches!(name.as_str(), "tests.rs" | "build.rs") {
            paths.push(path);
        }
    }
    Ok(())
}

fn source(root: &Path, path: &Path) -> io::Result<Source> {
    let home = path.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").is_file());
    let home = home.unwrap_or(root);
    let inside = path.strip_prefix(home).unwrap_or(path);
    let inside = inside.strip_prefix("src").unwrap_or(inside).with_extension("");
    let mut module: Vec<String> =
        inside.iter().map(|step| step.to_string_lossy().into_owned()).collect();
    let is_folder = module.last().is_some_and(|name| name == "mod");
    let is_root = matches!(module.as_slice(), [name] if name == "lib");
    if is_folder || is_root {
        module.pop();
    }
    Ok(Source {
        path: path.strip_prefix(root).unwrap_or(path).to_owned(),
        crate_name: package_name(home),
        module,
        text: fs::read_to_string(path)?,
    })
}

/// The name in the manifest of a folder; the folder's own where there is none.
fn package_name(home: &Path) -> String {
    let manifest = fs::read_to_string(home.join("Cargo.toml")).unwrap_or_default();
    let package = manifest.split("[package]").nth(1).unwrap_or_default();
    let name = package.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "name").then(|| value.trim().trim_matches('"').to_owned())
    });
    let folder = || home.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.unwrap_or_else(folder)
}
