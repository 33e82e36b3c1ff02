//! Which module of a crate imports which, a module being a file.
//!
//! An import is a `use`, or a path in the code that begins with `crate`, `self`, `super` or the
//! name of a module. It leads to the file that defines the name, through re-exports by name. Two
//! things are no imports: the re-export of a name from inside of the module, and the use of a
//! name from a module around it, such as a type of its `mod.rs`.
//!
//! The reader relies on the lines that rustfmt makes, and knows no grammar: a `use` begins a line,
//! and an item ends on a line that is as far in as its first one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Re-exports that are followed to a definition.
const REEXPORTS_MAX: usize = 8;

/// The modules of one crate by their paths, such as `a::b`; the root's path is empty.
pub(crate) struct Modules(BTreeMap<String, Names>);

/// The names that one file takes from others.
#[derive(Default)]
struct Names {
    uses: Vec<Use>,
    /// Paths in the code.
    paths: Vec<String>,
}

/// One name of a `use`.
struct Use {
    path: String,
    /// The name it has here.
    name: String,
    is_public: bool,
}

impl Modules {
    /// Reads the files of a crate, whose `src` is `folder`.
    pub(crate) fn of_crate(folder: &Path, files: &[impl AsRef<Path>]) -> Self {
        let inside = files.iter().filter_map(|file| {
            let file = file.as_ref();
            let module = file.strip_prefix(folder).ok()?.with_extension("");
            let steps = module.iter().map(|step| step.to_str().expect("a name of Rust"));
            let module = steps.collect::<Vec<_>>().join("::");
            let is_root = matches!(module.as_str(), "lib" | "mod");
            let module = if is_root { "" } else { module.strip_suffix("::mod").unwrap_or(&module) };
            Some((module.to_owned(), fs::read_to_string(file).expect("a file of Rust")))
        });
        Self::of_texts(inside)
    }

    fn of_texts(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let (mut modules, mut tests) = (BTreeMap::new(), Vec::new());
        for (module, text) in texts {
            let (code, test_modules) = without_tests(&text);
            tests.extend(test_modules.into_iter().map(|name| join(&module, name)));
            modules.insert(module, Names::of_code(&code));
        }
        modules.retain(|module, _| !tests.iter().any(|test| is_inside(module, test)));
        Self(modules)
    }

    pub(crate) fn contains(&self, module: &str) -> bool {
        self.0.contains_key(module)
    }

    /// The modules that each module imports.
    pub(crate) fn imports(&self) -> BTreeMap<&str, BTreeSet<String>> {
        let imports_of = |(module, names): (_, &Names)| {
            let uses = names.uses.iter().map(|used| (&used.path, used.is_public));
            let paths = names.paths.iter().map(|path| (path, false));
            let imports = uses.chain(paths).filter_map(|(path, is_public)| {
                let target = self.locate(module, path, REEXPORTS_MAX)?;
                let is_reexport = is_public && is_inside(&target, module);
                (!is_inside(module, &target) && !is_reexport).then_some(target)
            });
            imports.collect()
        };
        self.0.iter().map(|(module, names)| (&**module, imports_of((module, names)))).collect()
    }

    /// The module that defines the name to which `path` leads in `module`; `None` for a path that
    /// leads out of the crate or is the name of an item.
    fn locate(&self, module: &str, path: &str, reexports: usize) -> Option<String> {
        let child =
            |module: &str, name| Some(join(module, name)).filter(|child| self.contains(child));
        let mut steps = path.split("::");
        let mut at = match steps.next()? {
            "crate" => String::new(),
            "self" => module.to_owned(),
            "super" => around(module)?.to_owned(),
            name => child(module, name)?,
        };
        for step in steps {
            at = match step {
                "super" => around(&at)?.to_owned(),
                name => match child(&at, name) {
                    Some(child) => child,
                    None => return Some(self.reexported(&at, name, reexports).unwrap_or(at)),
                },
            };
        }
        Some(at)
    }

    /// The module that defines `name`, which `module` takes from there.
    fn reexported(&self, module: &str, name: &str, reexports: usize) -> Option<String> {
        let used = self.0.get(module)?.uses.iter().find(|used| used.name == name)?;
        self.locate(module, &used.path, reexports.checked_sub(1)?)
    }

    /// Modules that import each other, directly or through others: each group once.
    pub(crate) fn circles(&self) -> BTreeSet<Vec<&str>> {
        let imports = self.imports();
        let reachable = |start: &str| {
            let (mut reached, mut open) = (BTreeSet::new(), vec![start]);
            while let Some(module) = open.pop() {
                let imported = imports[module].iter().map(String::as_str);
                open.extend(imported.filter(|&target| reached.insert(target.to_owned())));
            }
            reached
        };
        let reached: BTreeMap<&str, _> =
            imports.keys().map(|&module| (module, reachable(module))).collect();
        let circle = |module: &&str| -> Vec<&str> {
            let mutual = reached.iter().filter(|(other, back)| {
                reached[module].contains(**other) && back.contains(*module)
            });
            mutual.map(|(other, _)| *other).collect()
        };
        imports.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
    }
}

impl Names {
    /// Reads the names of a file, whose tests have been left out.
    fn of_code(code: &str) -> Self {
        let mut names = Self::default();
        // How far in the modules inside of the file stand.
        let mut inner: Vec<usize> = Vec::new();
        let mut lines = code.lines();
        while let Some(line) = lines.next() {
            inner.retain(|&module| indentation(line) > module);
            let item = without_visibility(line);
            if item.starts_with("mod ") && item.ends_with('{') {
                inner.push(indentation(line));
            } else if let Some(tree) = item.strip_prefix("use ")
                && tree.ends_with([';', '{'])
            {
                let mut tree = tree.to_owned();
                while !tree.ends_with(';') {
                    tree += lines.next().expect("a semicolon after `use`").trim();
                }
                let is_public = line.trim_start().starts_with("pub");
                add_uses("", tree.trim_end_matches(';'), &mut |path, name| {
                    let path = outside(&path, inner.len());
                    names.uses.push(Use { path, name: name.to_owned(), is_public });
                });
            } else {
                let words = line.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':'));
                let paths = words.map(|word| word.trim_end_matches(':'));
                let paths = paths.filter(|word| word.contains("::") && !word.starts_with(':'));
                names.paths.extend(paths.map(|path| outside(path, inner.len())));
            }
        }
        names
    }
}

/// Gives `add` each path of a tree such as `a::{b, c as d}` after `prefix`, and its name here.
fn add_uses(prefix: &str, tree: &str, add: &mut impl FnMut(String, &str)) {
    let tree = tree.trim();
    if let Some((path, branches)) = tree.split_once('{') {
        let branches = branches.strip_suffix('}').expect("a brace at the end");
        let mut depth = 0_usize;
        let branches = branches.split(|c| {
            depth = depth + usize::from(c == '{') - usize::from(c == '}');
            c == ',' && depth == 0
        });
        branches.for_each(|branch| add_uses(&format!("{prefix}{path}"), branch, add));
    } else if !tree.is_empty() {
        let (path, renamed) = tree.split_once(" as ").map_or((tree, None), |(p, n)| (p, Some(n)));
        let path = format!("{prefix}{path}");
        // `a::{self}` is `a`.
        let path = path.strip_suffix("::self").unwrap_or(&path);
        let name = path.rsplit("::").next().expect("a last step");
        add(path.to_owned(), renamed.unwrap_or(name));
    }
}

/// A path that stands `inner` modules deep in a file, as it would be written outside of them.
fn outside(path: &str, inner: usize) -> String {
    let mut rest = path;
    for _ in 0..inner {
        rest = rest.strip_prefix("super::").unwrap_or(rest);
    }
    if rest.len() < path.len() { format!("self::{rest}") } else { path.to_owned() }
}

/// The code of a file without comments and without items of tests and of documentation builds, and
/// the names of the modules of tests that are files of their own.
pub(crate) fn without_tests(text: &str) -> (String, Vec<&str>) {
    let (mut code, mut tests) = (String::new(), Vec::new());
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    let mut lines = lines.filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        if !is_test_attribute(line) {
            code = code + line + "\n";
            continue;
        }
        for part in lines.by_ref() {
            let module = without_visibility(part).strip_prefix("mod ");
            tests.extend(module.and_then(|module| module.strip_suffix(';')));
            if indentation(part) == indentation(line) && part.ends_with([';', '}', ',']) {
                break;
            }
        }
    }
    (code, tests)
}

/// Whether a line is a `cfg` that asks for tests or documentation.
fn is_test_attribute(line: &str) -> bool {
    let asked = line.trim_start().strip_prefix("#[cfg(").unwrap_or_default();
    let asked = asked.replace("not(test)", "");
    let mut words = asked.split(|c: char| !c.is_alphanumeric());
    words.any(|word| matches!(word, "test" | "doc" | "doctest"))
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A line from its first word after `pub` or `pub(...)` on.
fn without_visibility(line: &str) -> &str {
    let line = line.trim_start();
    match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or(line, |(_, item)| item),
        Some(rest) => rest.trim_start(),
        None => line,
    }
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// The module around `module`; `None` for the root.
fn around(module: &str) -> Option<&str> {
    (!module.is_empty()).then(|| module.rsplit_once("::").map_or("", |(around, _)| around))
}

/// Whether `module` is `room` or inside of it.
pub(crate) fn is_inside(module: &str, room: &str) -> bool {
    let rest = module.strip_prefix(room);
    room.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

impl<const N: usize> From<[(&str, &str); N]> for Modules {
    /// Modules of the given texts.
    fn from(texts: [(&str, &str); N]) -> Self {
        Self::of_texts(texts.map(|(module, text)| (module.to_owned(), text.to_owned())))
    }
}

#[test]
fn imports_lead_to_the_file_that_defines_the_name() {
    let all = Modules::from([
        ("", "mod a;\nmod b;\npub use a::Thing as Renamed;\npub use b::Made;"),
        ("a", "mod inner;\npub use self::inner::{Other as Another, Thing};\nfn own() {}"),
        ("a::inner", "pub struct Thing;\nuse super::own; // as crate::b::g\n"),
        ("b", "pub type Made = u8;"),
        ("c", "use crate::{\n    a::{self, Another, own},\n    b::*,\n};\nuse std::fmt;"),
        ("d", "fn f(x: crate::Made) -> crate::Renamed {\n    super::a::own::<u8>(x)\n}"),
        ("e", "mod deep {\n    use super::super::b::g;\n    use super::h;\n}\nuse super::c::x;"),
    ]);
    let imports = all.imports();
    assert!(imports["a"].is_empty() && imports["a::inner"].is_empty(), "{imports:?}");
    assert!(imports["c"].iter().eq(["a", "a::inner", "b"]), "{:?}", imports["c"]);
    assert!(imports["d"].iter().eq(["a", "a::inner", "b"]), "{:?}", imports["d"]);
    assert!(imports["e"].iter().eq(["b", "c"]), "{:?}", imports["e"]);
    assert_eq!(all.circles(), BTreeSet::new());
}

#[test]
fn imports_of_tests_and_of_documentation_are_left_out() {
    let file = "\
#[cfg(not(test))]
use crate::kept::a;
#[cfg(all(test, unix))]
pub(crate) mod helpers;
#[cfg(doc)]
use crate::documented;
enum E {
    #[cfg(test)]
    #[expect(dead_code, reason = \"of a test\")]
    Left(crate::left::Out),
    Kept(crate::kept::b::C),
}
#[cfg(test)]
mod tests {
    fn f() {
        crate::left::out();
    }
}
";
    let names = ["kept", "kept::b", "left", "documented"].map(|name| (name, ""));
    let [kept, b, left, documented] = names;
    let all = Modules::from([
        ("x", file),
        ("x::helpers", "use crate::left;"),
        ("x::helpers::deep", "use crate::left;"),
        kept,
        b,
        left,
        documented,
    ]);
    assert!(!all.contains("x::helpers") && !all.contains("x::helpers::deep"));
    assert!(all.imports()["x"].iter().eq(["kept", "kept::b"]), "{:?}", all.imports()["x"]);
}

#[test]
fn circles_go_over_other_modules() {
    let all = Modules::from([
        ("", "mod a;"),
        ("a", "mod x;\nuse x::f;\npub fn shared() {}"),
        ("a::x", "pub fn f() {\n    super::shared();\n    crate::b::g()\n}"),
        ("b", "use crate::c;\npub fn g() {}"),
        ("c", "fn h() {\n    crate::a::shared()\n}"),
        ("d", "use crate::a::shared;"),
    ]);
    assert_eq!(all.circles(), BTreeSet::from([vec!["a", "a::x", "b", "c"]]));
}
