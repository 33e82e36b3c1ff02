//! Which module of a crate imports which, a module being a file.
//!
//! An import is a `use`, or a path in the code that begins with `crate`, `self`, `super` or the
//! name of a module. It leads to the file that defines the name, through any re-exports. Two
//! things are no imports: the re-export of a name from inside of the module, and the use of a
//! name from a module around it, such as a type of its `mod.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::code::follows;
use super::lexer::{Kind, Token};

/// The path of a module in its crate; empty for its root.
pub(super) type Module = Vec<String>;

/// Words before the name of an item.
const DEFINING: [&str; 11] = [
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "const",
    "static",
    "mod",
    "macro_rules",
    "macro",
];
/// Re-exports that are followed to a definition.
const REEXPORTS_MAX: usize = 8;

/// The names that one file defines, and the names that it takes from others.
#[derive(Debug, Default)]
pub(super) struct Names {
    defined: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths in the code.
    paths: Vec<Vec<String>>,
}

/// One name of a `use`.
#[derive(Debug)]
struct Use {
    path: Vec<String>,
    /// The name it has here; `*` for all names.
    name: String,
    is_public: bool,
}

/// Reads the names of a file, whose tests have been left out.
pub(super) fn names(tokens: &[Token<'_>]) -> Names {
    let mut names = Names::default();
    let mut at = 0;
    let mut depth = 0_usize;
    // The depths at which the modules inside of the file end.
    let mut inner: Vec<usize> = Vec::new();
    while at < tokens.len() {
        let token = tokens[at];
        match token.text {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                inner.pop_if(|end| *end == depth);
            }
            "mod" if follows(tokens, at + 2, &["{"]) => inner.push(depth),
            _ => {}
        }
        if depth == 0 && DEFINING.contains(&token.text) {
            let name = at + 1 + usize::from(follows(tokens, at + 1, &["!"]));
            names.defined.extend(tokens.get(name).map(|name| name.text.to_owned()));
        }
        if token.kind != Kind::Word {
            at += 1;
        } else if token.text == "use" {
            let is_public = at > 0 && (tokens[at - 1].is("pub") || tokens[at - 1].is(")"));
            let mut tree = UseTree { tokens, at: at + 1, leaves: Vec::new() };
            tree.read(&[]);
            at = tree.at;
            let uses = tree.leaves.into_iter().map(|(path, name)| Use {
                path: outside(path, inner.len()),
                name,
                is_public,
            });
            names.uses.extend(uses);
        } else {
            let (path, end) = path(tokens, at);
            let is_beginning = at < 2 || !follows(tokens, at - 2, &[":", ":"]);
            if path.len() > 1 && is_beginning {
                names.paths.push(outside(path, inner.len()));
            }
            at = end;
        }
    }
    names
}

/// The words of the path that begins at `at`, and its end.
fn path(tokens: &[Token<'_>], mut at: usize) -> (Vec<String>, usize) {
    let mut path = vec![tokens[at].text.to_owned()];
    at += 1;
    while follows(tokens, at, &[":", ":"])
        && let Some(next) = tokens.get(at + 2).filter(|next| next.kind == Kind::Word)
    {
        path.push(next.text.to_owned());
        at += 3;
    }
    (path, at)
}

/// A path that stands `inner` modules deep in a file, as it would be written outside of them.
fn outside(mut path: Vec<String>, inner: usize) -> Vec<String> {
    let supers = path.iter().take_while(|step| *step == "super").count().min(inner);
    if supers > 0 {
        path.drain(..supers);
        path.insert(0, "self".to_owned());
    }
    path
}

/// Reads the text between `use` and its semicolon.
struct UseTree<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    /// Paths, and the names they have here.
    leaves: Vec<(Vec<String>, String)>,
}

impl UseTree<'_> {
    fn read(&mut self, prefix: &[String]) {
        let mut path = prefix.to_vec();
        while let Some(token) = self.tokens.get(self.at).copied() {
            self.at += 1;
            match token.text {
                "{" => {
                    while !follows(self.tokens, self.at, &["}"]) && self.at < self.tokens.len() {
                        self.read(&path);
                    }
                    self.at += 1;
                    path.clear();
                }
                ";" => break,
                "," => break,
                "}" => {
                    self.at -= 1;
                    break;
                }
                "as" => {
                    let name = self.tokens.get(self.at).map_or("_", |name| name.text);
                    self.leaves.push((std::mem::take(&mut path), name.to_owned()));
                    self.at += 1;
                }
                ":" => {}
                _ => path.push(token.text.to_owned()),
            }
        }
        if path.len() > prefix.len() {
            // `a::{self}` is `a`.
            path.pop_if(|last| last == "self");
            let name = path.last().cloned().unwrap_or_default();
            self.leaves.push((path, name));
        }
    }
}

/// The modules of one crate.
#[derive(Debug, Default)]
pub(super) struct Crate {
    modules: BTreeMap<Module, Names>,
}

impl Crate {
    pub(super) fn add(&mut self, module: Module, names: Names) {
        self.modules.insert(module, names);
    }

    /// The imports of each module.
    pub(super) fn imports(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let imports = |(module, names): (_, &Names)| (module, self.imports_of(module, names));
        self.modules.iter().map(imports).collect()
    }

    fn imports_of(&self, module: &Module, names: &Names) -> BTreeSet<Module> {
        let uses = names.uses.iter().map(|used| (&used.path, used.is_public));
        let paths = names.paths.iter().map(|path| (path, false));
        let imports = uses.chain(paths).filter_map(|(path, is_public)| {
            let target = self.locate(module, path, REEXPORTS_MAX)?;
            let is_around = module.starts_with(&target);
            let is_reexport = is_public && target.starts_with(module);
            (!is_around && !is_reexport).then_some(target)
        });
        imports.collect()
    }

    /// The module that defines the name to which `path` leads in `module`; `None` for a path that
    /// leads out of the crate or is the name of an item.
    fn locate(&self, module: &Module, path: &[String], reexports: usize) -> Option<Module> {
        let (first, mut rest) = path.split_first()?;
        let mut at: Module = match first.as_str() {
            "crate" => Module::new(),
            "self" => module.clone(),
            "super" => module[..module.len().checked_sub(1)?].to_vec(),
            name => self.child(module, name)?,
        };
        while let Some((step, after)) = rest.split_first() {
            at = match step.as_str() {
                "super" => at[..at.len().checked_sub(1)?].to_vec(),
                name => match self.child(&at, name) {
                    Some(child) => child,
                    None => return Some(self.definition(&at, name, reexports).unwrap_or(at)),
                },
            };
            rest = after;
        }
        Some(at)
    }

    fn child(&self, module: &Module, name: &str) -> Option<Module> {
        let mut child = module.clone();
        child.push(name.to_owned());
        // A folder whose `mod.rs` was left out is a module all the same.
        self.modules.keys().any(|known| known.starts_with(&child)).then_some(child)
    }

    /// The module that defines `name`, which can be named in `module`.
    fn definition(&self, module: &Module, name: &str, reexports: usize) -> Option<Module> {
        let names = self.modules.get(module)?;
        if names.defined.contains(name) {
            return Some(module.clone());
        }
        let reexports = reexports.checked_sub(1)?;
        let named = names.uses.iter().find(|used| used.name == name);
        if let Some(used) = named {
            return self.locate(module, &used.path, reexports);
        }
        let all = names.uses.iter().filter(|used| used.name == "*");
        all.filter_map(|used| {
            let (_, folder) = used.path.split_last()?;
            self.definition(&self.locate(module, folder, reexports)?, name, reexports)
        })
        .next()
    }

    /// Modules that import each other, directly or through others: each group once.
    pub(super) fn circles(&self) -> Vec<Vec<Module>> {
        let imports = self.imports();
        let reachable: BTreeMap<&Module, BTreeSet<&Module>> =
            imports.keys().map(|&module| (module, reachable(&imports, module))).collect();
        let mut circles: Vec<Vec<Module>> = Vec::new();
        for (&module, reached) in &reachable {
            if circles.iter().any(|circle| circle.contains(module)) {
                continue;
            }
            let is_mutual = |other: &&&Module| reachable[*other].contains(module);
            let circle: Vec<Module> =
                reached.iter().filter(is_mutual).map(|&module| module.clone()).collect();
            if !circle.is_empty() {
                circles.push(circle);
            }
        }
        circles
    }
}

/// The modules to which imports lead from `start`.
fn reachable<'a>(
    imports: &'a BTreeMap<&Module, BTreeSet<Module>>,
    start: &Module,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Module> = imports.get(start).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(imports.get(module).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::super::lexer::lex;
    use super::*;

    fn module(path: &str) -> Module {
        path.split("::").filter(|step| !step.is_empty()).map(str::to_owned).collect()
    }

    fn crate_of(files: &[(&str, &str)]) -> Crate {
        let mut all = Crate::default();
        for (path, text) in files {
            all.add(module(path), names(&lex(text).tokens));
        }
        all
    }

    fn imports(all: &Crate, path: &str) -> Vec<String> {
        all.imports()[&module(path)].iter().map(|target| target.join("::")).collect()
    }

    #[test]
    fn imports_lead_to_the_file_that_defines_the_name() {
        let all = crate_of(&[
            ("", "mod a; mod b; pub use a::Thing as Renamed; pub use b::*;"),
            ("a", "mod inner; pub use self::inner::{Thing, Other as Another}; fn own() {}"),
            ("a::inner", "pub struct Thing; pub enum Other {} use super::own;"),
            ("b", "pub type Made = u8;"),
            ("c", "use crate::a::{self, Another, own}; use std::fmt;"),
            ("d", "fn f(made: crate::Made) -> crate::Renamed { super::a::own::<u8>(made) }"),
            ("e", "mod deep { fn f() { super::super::b::g(super::h()) } } use super::c::x;"),
        ]);
        assert_eq!(imports(&all, "a"), [""; 0]);
        assert_eq!(imports(&all, "a::inner"), [""; 0]);
        assert_eq!(imports(&all, "c"), ["a", "a::inner"]);
        assert_eq!(imports(&all, "d"), ["a", "a::inner", "b"]);
        assert_eq!(imports(&all, "e"), ["b", "c"]);
        assert_eq!(all.circles(), Vec::<Vec<Module>>::new());
    }

    #[test]
    fn circles_go_over_other_modules() {
        let all = crate_of(&[
            ("", "mod a;"),
            ("a", "mod x; use x::f; pub fn shared() {}"),
            ("a::x", "pub fn f() { super::shared(); crate::b::g() }"),
            ("b", "use crate::c; pub fn g() {}"),
            ("c", "fn h() { crate::a::shared() }"),
            ("d", "use crate::a::shared;"),
        ]);
        let circles: Vec<_> = all
            .circles()
            .iter()
            .map(|c| c.iter().map(|m| m.join("::")).collect::<Vec<_>>())
            .collect();
        assert_eq!(circles, [["a", "a::x", "b", "c"]]);
    }
}
