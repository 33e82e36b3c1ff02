//! Rules of the repository that a compiler does not check.
#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use modules::{Modules, is_inside};

/// Maximum lines of a file.
const FILE_LINES_MAX: usize = 800;
/// Maximum files of a folder of `kernels/src`.
const FOLDER_FILES_MAX: usize = 10;
/// Maximum characters of a comment line of prose. rustfmt takes care of code; drawings and some
/// strings cannot be broken.
const COMMENT_CHARS_MAX: usize = 100;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files of the repository with this extension, without those of build outputs and hidden folders.
fn files(extension: &str) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![root().to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap_or(".");
            if name.starts_with('.') || name == "target" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
    }
    files
}

/// The packages of the workspace.
static WORKSPACE: LazyLock<Metadata> =
    LazyLock::new(|| MetadataCommand::new().current_dir(root()).no_deps().exec().unwrap());

#[test]
fn dependencies_between_our_crates_point_one_way() {
    let allowed: &[(&str, &[&str])] = &[
        ("trommel-engine", &[]),
        ("trommel-kernels", &[]),
        ("trommel-shim", &[]),
        ("trommel-macros", &[]),
        ("trommel-operators", &["trommel-engine", "trommel-kernels", "trommel-macros"]),
        ("trommel", &["trommel-engine", "trommel-operators"]),
        ("trommel-cli", &["trommel"]),
        ("trommel-bench", &["trommel", "trommel-kernels"]),
        ("trommel-python", &["trommel"]),
        (
            "trommel-fuzz",
            &["trommel", "trommel-cli", "trommel-engine", "trommel-kernels", "trommel-operators"],
        ),
        ("xtask", &[]),
    ];
    for package in &WORKSPACE.packages {
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

/// Faults of a file that its text alone shows, each in a line that begins with `shown`.
fn faults(shown: &str, text: &str) -> Vec<String> {
    let later =
        ["TO", "FIX"].map(|start| format!("{start}{}", if start == "TO" { "DO" } else { "ME" }));
    let mut faults = Vec::new();
    if text.lines().count() > FILE_LINES_MAX {
        faults.push(format!("{shown} is too long"));
    }
    let mut is_drawing = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let comment = line.trim_start();
        is_drawing ^= comment.starts_with("//") && comment.contains("```");
        let is_prose = comment.starts_with("//") && !is_drawing && !comment.contains('|');
        if is_prose && line.chars().count() > COMMENT_CHARS_MAX {
            faults.push(format!("{shown}:{number} is too long"));
        }
        if later.iter().any(|word| line.contains(word)) {
            faults.push(format!("{shown}:{number} leaves something for later"));
        }
        let is_unsafe = line.split("//").next().unwrap().split("unsafe ").skip(1).any(|after| {
            ["{", "fn ", "impl", "extern "].iter().any(|start| after.starts_with(start))
        });
        if is_unsafe && !shown.starts_with("kernels/") {
            faults.push(format!("{shown}:{number} has unsafe code, which is in kernels only"));
        }
    }
    faults
}

#[test]
fn files_are_short_and_safe_and_leave_nothing_for_later() {
    let faults: Vec<String> = files("rs")
        .into_iter()
        .flat_map(|path| {
            let shown = path.strip_prefix(root()).unwrap().to_str().unwrap();
            faults(shown, &fs::read_to_string(&path).unwrap())
        })
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_module_with_a_folder_is_in_the_folder() {
    let beside: Vec<_> =
        files("rs").into_iter().filter(|path| path.with_extension("").is_dir()).collect();
    assert!(beside.is_empty(), "{beside:#?} belong into their folders, as `mod.rs`");
}

/// A folder with more files hides what belongs together.
#[test]
fn folders_have_few_files() {
    let mut folders: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for path in files("rs") {
        // Folders of tests, examples and fuzz targets are lists of cases.
        if path.iter().any(|step| step == "src") {
            *folders
                .entry(path.parent().expect("a file is in a folder").to_owned())
                .or_default() += 1;
        }
    }
    folders.retain(|_, files| *files > FOLDER_FILES_MAX);
    assert!(folders.is_empty(), "more than {FOLDER_FILES_MAX} files in {folders:#?}");
}

#[test]
fn faults_of_files_are_found() {
    let line = "x\n";
    assert_eq!(faults("a.rs", &line.repeat(800)), [""; 0]);
    assert_eq!(faults("a.rs", &line.repeat(801)), ["a.rs is too long"]);
    let comment = |chars: usize| format!("// {}\n", "a".repeat(chars - 3));
    assert_eq!(faults("a.rs", &(comment(100) + &comment(101))), ["a.rs:2 is too long"]);
    assert_eq!(faults("a.rs", &format!("// ```\n{}// ```\n", comment(101))), [""; 0]);
    let later = concat!("// TO", "DO: think");
    assert_eq!(faults("a.rs", later), ["a.rs:1 leaves something for later"]);
    for code in ["let x = WORD { f() };", "pub WORD fn f() {}", "WORD impl Send for X {}"] {
        let code = code.replace("WORD", "unsafe");
        let expected = ["a.rs:1 has unsafe code, which is in kernels only"];
        assert_eq!(faults("a.rs", &code), expected);
        assert_eq!(faults("kernels/a.rs", &code), [""; 0]);
    }
}

#[test]
fn every_operator_is_documented() {
    let papers = fs::read_to_string(root().join("docs/reference/papers.md")).unwrap();
    let of_papers = [
        "frequent_items",
        "set_similarity_join",
        "frequent_pairs",
        "conjunctive_query",
        "epsilon_join",
    ];
    assert!(of_papers.iter().all(|name| papers.contains(&format!("`{name}`"))));
    let reference = fs::read_to_string(root().join("README.md")).unwrap();
    for entry in trommel::registry().entries() {
        assert!(reference.contains(&format!("`{}`", entry.name())), "README.md: {}", entry.name());
    }
}

#[test]
fn modules_import_each_other_in_no_circle() {
    let sources = files("rs");
    for package in &WORKSPACE.packages {
        let folder = package.manifest_path.with_file_name("src");
        let modules = Modules::of_crate(folder.as_std_path(), &sources);
        assert_eq!(modules.circles(), BTreeSet::new(), "circles of modules in {}", package.name);
    }
}

/// Lines of a page outside of its code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The names of the headings of a page, as links have them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    let slug = |line: &str| -> String {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

#[test]
fn links_between_pages_lead_to_files_and_headings() {
    let (mut faults, mut count) = (String::new(), 0);
    for page in files("md") {
        let text = fs::read_to_string(&page).unwrap();
        let text: String = prose(&text).map(|line| format!("{line}\n")).collect();
        for (start, _) in text.match_indices("](") {
            let Some((link, _)) = text[start + 2..].split_once(')') else { continue };
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if link.contains("://") || file.contains(char::is_whitespace) {
                continue;
            }
            count += 1;
            let target = match file {
                "" => page.clone(),
                _ => page.parent().unwrap().join(file),
            };
            let is_there = target.exists()
                && (anchor.is_empty()
                    || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor));
            if !is_there {
                faults += &format!("\n  {}: {link}", page.strip_prefix(root()).unwrap().display());
            }
        }
    }
    assert!(faults.is_empty(), "links that lead nowhere:{faults}");
    assert!(count > 100, "only {count} links were found");
}

/// Folders whose files pages name by their paths from the root.
const NAMED_FOLDERS: [&str; 9] =
    ["bench", "cli", "configs", "docs", "engine", "fuzz", "kernels", "operators", "xtask"];

/// Reports and the changelog tell of the past.
#[test]
fn paths_that_pages_name_are_there() {
    let (mut faults, mut count) = (String::new(), 0);
    for page in files("md") {
        let shown = page.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if shown.starts_with("bench/reports") || shown == "CHANGELOG.md" {
            continue;
        }
        let text = fs::read_to_string(&page).unwrap();
        for line in prose(&text) {
            for word in line.split('`').skip(1).step_by(2) {
                let is_path = word.split_once('/').is_some_and(|(folder, rest)| {
                    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.-".contains(c);
                    NAMED_FOLDERS.contains(&folder) && rest.chars().all(is_plain)
                });
                count += usize::from(is_path);
                if is_path && !root().join(word).exists() {
                    faults += &format!("\n  {shown}: {word}");
                }
            }
        }
    }
    assert!(faults.is_empty(), "paths that lead nowhere:{faults}");
    assert!(count > 100, "only {count} paths were found");
}

/// As `cargo xtask figures --check`.
#[test]
fn measurements_of_the_documentation_are_those_of_stored_results() {
    for page in xtask::figures::pages(root()).unwrap() {
        let name = page.path.display();
        assert!(!page.is_stale, "{name}: other tables; run `cargo xtask figures`");
        assert!(page.faults.is_empty(), "{name}: {:#?}", page.faults);
    }
}

/// Fails if a found item is not known, or a known one is not found.
fn assert_difference<T: Ord + fmt::Debug>(
    thing: &str,
    found: impl IntoIterator<Item = T>,
    known: impl IntoIterator<Item = T>,
) {
    let [found, known] = [found.into_iter().collect(), known.into_iter().collect::<BTreeSet<T>>()];
    let shown = |things: Vec<&T>| -> String {
        things.iter().map(|thing| format!("\n  {thing:?}")).collect()
    };
    let (new, gone) =
        (shown(found.difference(&known).collect()), shown(known.difference(&found).collect()));
    assert!(
        new.is_empty() && gone.is_empty(),
        "{thing}: new:{new}\ngone, to be taken off the list:{gone}"
    );
}

/// The rooms of a crate, which are folders or files of its `src`, and the rooms that they may
/// import. The longest name that fits a module is its room.
struct Layout {
    /// The folder of the crate.
    folder: &'static str,
    /// Each of these rooms may import any of those.
    rooms: &'static [(&'static [&'static str], &'static [&'static [&'static str]])],
    /// Imports that are to go. The list may only shrink.
    exceptions: &'static [(&'static str, &'static str)],
}

/// Rooms that operators share.
const SHARED: &[&str] = &["expressions", "shared", "summary", "wave"];
/// Operators, sources and sinks.
const OPERATORS: &[&str] = &[
    "aggregate",
    "basic",
    "clusters",
    "conjunctive_query",
    "epsilon_join",
    "frequent_items",
    "frequent_pairs",
    "heavy_filter",
    "lookup",
    "set_similarity_join",
    "sink",
    "source",
    "tokenize",
];

/// Rooms that primitives share.
const COMMON: &[&str] = &["compiled", "isa", "memory", "sets", "simd", "stdio"];
const PRIMITIVES: &[&str] = &[
    "batmap",
    "filter",
    "inverted",
    "overlap",
    "postings",
    "sieve",
    "signatures",
    "stream_postings",
    "supports",
    "text",
    "vectors",
];
/// Devices, which know no primitive.
const DEVICE: &[&str] = &["cuda"];
const LAUNCHERS: &[&str] =
    &["cuda::overlap", "cuda::queries", "cuda::signatures", "cuda::supports", "cuda::vectors"];

const LAYOUTS: [Layout; 2] = [
    Layout {
        folder: "operators",
        rooms: &[(SHARED, &[SHARED]), (OPERATORS, &[SHARED])],
        exceptions: &[],
    },
    Layout {
        folder: "kernels",
        rooms: &[
            (COMMON, &[COMMON]),
            (PRIMITIVES, &[COMMON]),
            (DEVICE, &[COMMON]),
            (LAUNCHERS, &[COMMON, PRIMITIVES, DEVICE]),
        ],
        exceptions: &[("postings", "overlap"), ("signatures", "overlap"), ("supports", "overlap")],
    },
];

impl Layout {
    fn rooms(&self) -> impl Iterator<Item = (&'static str, &'static [&'static [&'static str]])> {
        self.rooms.iter().flat_map(|(rooms, may)| rooms.iter().map(move |room| (*room, *may)))
    }

    /// The room of a module, and the rooms that it may import.
    fn room(&self, module: &str) -> (&'static str, &'static [&'static [&'static str]]) {
        let rooms = self.rooms().filter(|(room, _)| is_inside(module, room));
        rooms
            .max_by_key(|(room, _)| room.len())
            .unwrap_or_else(|| panic!("`{module}` is in no room of the layout of {}", self.folder))
    }

    /// The rooms that import what they may not, and the rooms that they import.
    fn forbidden(&self, modules: &Modules) -> BTreeSet<(&'static str, &'static str)> {
        let imports = modules.imports().into_iter().filter(|(module, _)| !module.is_empty());
        let pairs = imports.flat_map(|(module, imported)| {
            let (from, may_import) = self.room(module);
            imported.into_iter().filter_map(move |target| {
                let (to, _) = self.room(&target);
                let is_allowed = from == to || may_import.iter().any(|rooms| rooms.contains(&to));
                (!is_allowed).then_some((from, to))
            })
        });
        pairs.collect()
    }
}

#[test]
fn rooms_import_each_other_one_way() {
    let sources = files("rs");
    for layout in &LAYOUTS {
        let modules = Modules::of_crate(&root().join(layout.folder).join("src"), &sources);
        for (room, _) in layout.rooms() {
            assert!(modules.contains(room), "{}: `{room}` is no module", layout.folder);
        }
        let known = layout.exceptions.iter().copied();
        let thing = format!("import in {}", layout.folder);
        assert_difference(&thing, layout.forbidden(&modules), known);
    }
}

#[test]
fn forbidden_imports_are_found() {
    let [operators, kernels] = &LAYOUTS;
    let forbidden = operators.forbidden(&Modules::from([
        ("", "pub use tokenize::Tokenize;"),
        ("shared", "use crate::{wave::a, sink::b};"),
        ("wave", ""),
        ("sink", "mod c;\nuse crate::shared::d;"),
        ("sink::c", "use super::e;\nfn f() {\n    crate::Tokenize::new()\n}"),
        ("tokenize", "struct Tokenize;"),
    ]));
    assert!(forbidden.into_iter().eq([("shared", "sink"), ("sink", "tokenize")]));
    let forbidden = kernels.forbidden(&Modules::from([
        ("cuda", "mod grid;"),
        ("cuda::grid", "use crate::{overlap, simd};"),
        ("cuda::overlap", "use super::grid;\nuse crate::overlap;"),
        ("overlap", "use crate::cuda::overlap::launch;"),
        ("simd", ""),
    ]));
    assert!(forbidden.into_iter().eq([("cuda", "overlap"), ("overlap", "cuda::overlap")]));
}
