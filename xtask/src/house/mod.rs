//! The measurements of `cargo xtask house`: sizes, habits of code and prose, circles of modules.
//!
//! ```text
//! files ── lexer ──► tokens, comments ── tests left out ──► code, prose, imports ── report ──► tables
//! ```
//!
//! Nothing here knows the grammar of Rust: tokens suffice to count, and a tree of another project
//! is measured in the same way as ours. The ratchets of `tests/tidy.rs` use the same numbers.

mod code;
mod imports;
mod lexer;
mod prose;
mod report;
mod source;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

pub use code::Code;
pub use prose::Prose;

use imports::{Crate, Module};

/// The folders with the code of the product.
const PRODUCT: [&str; 5] = ["engine/src", "kernels/src", "operators/src", "cli/src", "src"];

/// A tree of Rust, measured.
#[derive(Debug)]
pub struct House {
    files: Vec<File>,
    crates: BTreeMap<String, Crate>,
}

/// The numbers of one file, its tests left out.
#[derive(Debug)]
#[non_exhaustive]
pub struct File {
    /// Its path below the root.
    pub path: PathBuf,
    /// Name of its package.
    pub crate_name: String,
    /// Its code.
    pub code: Code,
    /// Its comments.
    pub prose: Prose,
}

/// One module imports another one of its crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Import {
    /// Name of the package.
    pub crate_name: String,
    /// The importing module, such as `a::b`.
    pub from: String,
    /// The module that defines the imported name.
    pub to: String,
}

/// Modules of one crate that import each other, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Circle {
    /// Name of the package.
    pub crate_name: String,
    /// The modules, sorted.
    pub modules: Vec<String>,
}

/// The sums of several files.
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Sums {
    /// Their code.
    pub code: Code,
    /// Their comments.
    pub prose: Prose,
}

impl House {
    /// Measures the files in `folders` of `root`. No folder stands for the product, or for all of
    /// another tree.
    ///
    /// # Errors
    /// If a folder or file cannot be read.
    pub fn measure(root: &Path, folders: &[PathBuf]) -> io::Result<Self> {
        let sources = match folders {
            [] if root.join(PRODUCT[0]).is_dir() => {
                source::sources(root, &PRODUCT.map(PathBuf::from))?
            }
            [] => source::sources(root, &[PathBuf::new()])?,
            folders => source::sources(root, folders)?,
        };
        let mut house = Self { files: Vec::new(), crates: BTreeMap::new() };
        let mut test_files = Vec::new();
        let mut lexed = Vec::new();
        for source in &sources {
            let mut tokens = lexer::lex(&source.text);
            let left_out = code::leave_out_tests(&mut tokens);
            for module in left_out.modules {
                let mut path = source.module.clone();
                path.push(module.to_owned());
                test_files.push((&source.crate_name, path));
            }
            lexed.push((tokens, source.text.lines().count() - left_out.lines));
        }
        for (source, (lexed, lines)) in sources.iter().zip(lexed) {
            let is_test = test_files.iter().any(|(crate_name, test)| {
                **crate_name == source.crate_name && source.module.starts_with(test)
            });
            if is_test {
                continue;
            }
            let mut code = code::measure(&lexed);
            code.files.push(lines);
            house.files.push(File {
                path: source.path.clone(),
                crate_name: source.crate_name.clone(),
                code,
                prose: prose::measure(&lexed.comments),
            });
            let names = imports::names(&lexed.tokens);
            let crate_names = house.crates.entry(source.crate_name.clone()).or_default();
            crate_names.add(source.module.clone(), names);
        }
        Ok(house)
    }

    /// The files, by path.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The sums of the files that `is_meant` accepts.
    pub fn sums(&self, is_meant: impl Fn(&File) -> bool) -> Sums {
        let mut sums = Sums::default();
        for file in self.files.iter().filter(|file| is_meant(file)) {
            sums.code += &file.code;
            sums.prose += file.prose;
        }
        sums
    }

    /// The names of the crates.
    pub fn crates(&self) -> impl Iterator<Item = &str> {
        self.crates.keys().map(String::as_str)
    }

    /// The imports between modules of one crate, sorted.
    #[must_use]
    pub fn imports(&self) -> Vec<Import> {
        let mut all = Vec::new();
        for (crate_name, modules) in &self.crates {
            for (from, imported) in modules.imports() {
                all.extend(imported.iter().map(|to| Import {
                    crate_name: crate_name.clone(),
                    from: shown(from),
                    to: shown(to),
                }));
            }
        }
        all
    }

    /// The circles of modules, by crate.
    #[must_use]
    pub fn circles(&self) -> Vec<Circle> {
        let circle = |crate_name: &String, modules: &Vec<Module>| Circle {
            crate_name: crate_name.clone(),
            modules: modules.iter().map(shown).collect(),
        };
        let crates = self.crates.iter();
        crates
            .flat_map(|(name, modules)| {
                let circles = modules.circles();
                circles.iter().map(|modules| circle(name, modules)).collect::<Vec<_>>()
            })
            .collect()
    }

    /// The tables, as Markdown: all files as one column, or a column a crate.
    #[must_use]
    pub fn tables(&self, by_crate: bool) -> String {
        report::tables(self, by_crate)
    }
}

fn shown(module: &Module) -> String {
    if module.is_empty() { "crate".to_owned() } else { module.join("::") }
}

/// `part` divided by `whole`; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
