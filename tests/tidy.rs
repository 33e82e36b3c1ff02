//! Rules of the repository that a compiler does not check.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cargo_metadata::{DependencyKind, MetadataCommand};
use xtask::house::{File, House};

/// Maximum lines of a file.
const FILE_LINES_MAX: usize = 800;
/// Maximum characters of a comment line of prose. rustfmt takes care of code; drawings and some
/// strings cannot be broken.
const COMMENT_CHARS_MAX: usize = 100;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Rust files of the repository, without build outputs.
fn sources() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        ["src", "engine", "kernels", "operators", "cli", "bench", "python", "tests", "xtask"]
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
        ("trommel-python", &["trommel"]),
        (
            "trommel-fuzz",
            &["trommel", "trommel-cli", "trommel-engine", "trommel-kernels", "trommel-operators"],
        ),
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
    let mut faults = String::new();
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(root()).unwrap().display();
        if text.lines().count() > FILE_LINES_MAX {
            faults += &format!("\n  {shown} is too long");
        }
        let mut is_drawing = false;
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let comment = line.trim_start();
            is_drawing ^= comment.starts_with("//") && comment.contains("```");
            let is_prose = comment.starts_with("//") && !is_drawing && !comment.contains('|');
            if is_prose && line.chars().count() > COMMENT_CHARS_MAX {
                faults += &format!("\n  {shown}:{number} is too long");
            }
            if later.iter().any(|word| line.contains(word)) {
                faults += &format!("\n  {shown}:{number} leaves something for later");
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn unsafe_code_is_in_kernels_only() {
    for file in HOUSE.files() {
        let blocks = file.code.unsafe_blocks;
        assert!(file.path.starts_with("kernels") || blocks == 0, "{}", file.path.display());
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

/// All code of the repository, measured as `cargo xtask house` does.
static HOUSE: LazyLock<House> = LazyLock::new(|| {
    let folders = [
        "engine/src",
        "kernels/src",
        "kernels/shim/src",
        "operators/src",
        "cli/src",
        "src",
        "bench/src",
        "python/src",
        "xtask/src",
    ];
    House::measure(root(), &folders.map(PathBuf::from)).unwrap()
});

#[test]
fn modules_import_each_other_in_no_circle() {
    let circles: Vec<String> = HOUSE
        .circles()
        .into_iter()
        .map(|circle| format!("{}: {}", circle.crate_name, circle.modules.join(", ")))
        .collect();
    assert!(circles.is_empty(), "circles of modules:\n{}", circles.join("\n"));
}

/// Pages of the repository, without those of build outputs and hidden folders.
fn pages() -> Vec<PathBuf> {
    let (mut folders, mut pages) = (vec![root().to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap_or(".");
            if name.starts_with('.') || name == "target" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
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
    for page in pages() {
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
    crate_name: &'static str,
    /// Each of these rooms may import any of those.
    rooms: &'static [(&'static [&'static str], &'static [&'static [&'static str]])],
    /// Imports that are to go. The list may only shrink.
    exceptions: &'static [(&'static str, &'static str)],
}

/// Rooms that operators share.
const SHARED: &[&str] = &[
    "budget",
    "carry",
    "columns",
    "expressions",
    "files",
    "fraction",
    "ids",
    "items",
    "long",
    "names",
    "pairs",
    "panes",
    "parameters",
    "rejected",
    "secret",
    "sets",
    "share",
    "state",
    "summary",
    "texts",
    "tokens",
    "wave",
    "window",
];
/// Operators, sources and sinks.
const OPERATORS: &[&str] = &[
    "basic",
    "clusters",
    "conjunctive_query",
    "epsilon_join",
    "frequent_items",
    "frequent_pairs",
    "heavy_filter",
    "set_similarity_join",
    "sink",
    "source",
    "tokenize",
];

/// Rooms that primitives share.
const COMMON: &[&str] = &["compiled", "isa", "memory", "sets", "simd"];
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
        crate_name: "trommel-operators",
        rooms: &[(SHARED, &[SHARED]), (OPERATORS, &[SHARED])],
        exceptions: &[],
    },
    Layout {
        crate_name: "trommel-kernels",
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
    /// The room of a module, and the rooms that it may import.
    fn room(&self, module: &str) -> (&'static str, &'static [&'static [&'static str]]) {
        let inside = |room: &str| {
            module.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let rooms =
            self.rooms.iter().flat_map(|(rooms, may)| rooms.iter().map(move |room| (*room, *may)));
        let room = rooms.filter(|(room, _)| inside(room)).max_by_key(|(room, _)| room.len());
        room.unwrap_or_else(|| {
            panic!("`{module}` is in no room of the layout of {}", self.crate_name)
        })
    }
}

#[test]
fn rooms_import_each_other_one_way() {
    let imports = HOUSE.imports();
    for layout in &LAYOUTS {
        let ours = imports.iter().filter(|import| import.crate_name == layout.crate_name);
        let between_modules = ours.filter(|import| import.from != "crate" && import.to != "crate");
        let forbidden = between_modules.filter_map(|import| {
            let ((from, may_import), (to, _)) =
                (layout.room(&import.from), layout.room(&import.to));
            let is_allowed = from == to || may_import.iter().any(|rooms| rooms.contains(&to));
            (!is_allowed).then_some((from, to))
        });
        let known = layout.exceptions.iter().copied();
        assert_difference(&format!("import in {}", layout.crate_name), forbidden, known);
    }
}

/// Sentences of comments that begin with "What", per 1,000.
const WHAT_SENTENCES_MAX: f64 = 0.2;
/// "so many" and "so much", per 10,000 words of comments.
const SO_MANY_MAX: f64 = 0.3;
/// Lines of `//` comments, per 1,000 lines of code.
const COMMENT_LINES_MIN: f64 = 15.0;
/// Items with a heading of examples.
const EXAMPLES_MIN: usize = 109;

/// The files of the product for which `key` is largest.
fn worst(key: impl Fn(&File) -> usize) -> String {
    let mut files: Vec<&File> = HOUSE.files().iter().filter(|file| key(file) > 0).collect();
    files.sort_by_key(|file| Reverse(key(file)));
    let shown = |file: &&File| format!("\n  {} ({})", file.path.display(), key(file));
    files.iter().take(10).map(shown).collect()
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn habits_of_prose_do_not_come_back() {
    let sums = HOUSE.sums(|_| true);
    let (prose, code) = (sums.prose, sums.code);
    let rate = |part: usize, whole: usize, scale: f64| scale * part as f64 / whole as f64;
    let what = rate(prose.what_sentences, prose.sentences, 1e3);
    assert!(
        what <= WHAT_SENTENCES_MAX,
        "{what:.2} sentences in 1,000 begin with \"What\"; begin with the noun or the verb:{}",
        worst(|file| file.prose.what_sentences)
    );
    let so_many = rate(prose.so_many, prose.words, 1e4);
    assert!(
        so_many <= SO_MANY_MAX,
        "\"so many\" or \"so much\" stands {so_many:.2} times in 10,000 words; name the parameter:{}",
        worst(|file| file.prose.so_many)
    );
    let remarks = rate(code.comment_lines, code.code_lines, 1e3);
    assert!(
        remarks >= COMMENT_LINES_MIN,
        "there are {remarks:.2} lines of remarks in 1,000 lines of code; none are in:{}",
        worst(|file| if file.code.comment_lines == 0 { file.code.code_lines } else { 0 })
    );
    assert!(
        code.examples >= EXAMPLES_MIN,
        "there are {} `# Examples`; most public items without one are in:{}",
        code.examples,
        worst(|file| if file.code.examples == 0 { file.code.pub_items } else { 0 })
    );
}
