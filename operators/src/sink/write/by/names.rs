//! Paths of the files of values.
//!
//! A value becomes a part of a path by percent-encoding, as in DuckDB, pyarrow and polars: all
//! bytes but letters, digits and `-_.~` are encoded. No value therefore leaves its folder, and
//! different values have different names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::ValueError;
use crate::shared::files::printable;

/// The name of a missing value, as in Hive.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// Maximum bytes of a name in a folder.
const NAME_BYTES_MAX: usize = 255;
/// Maximum characters of a value in a message.
const SHOWN_MAX: usize = 40;

/// The form of the paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Names {
    /// A path with places for the value: the parts before the first place, and the parts after it.
    Template { folder: PathBuf, parts: Vec<String>, place: String },
    /// `COLUMN=VALUE/part-0.EXTENSION` in this folder.
    Hive { folder: PathBuf, column: String, extension: &'static str },
}

impl Names {
    /// The form that `path` asks for; `None` if the path has no place for the value of `column`.
    pub(super) fn new(path: &str, column: &str, extension: &'static str) -> Option<Self> {
        let place = format!("{{{column}}}");
        let has_place = path.contains(&place);
        if path.ends_with('/') {
            let column = encoded(column);
            let folder = PathBuf::from(path);
            return (!has_place).then_some(Self::Hive { folder, column, extension });
        }
        let parts: Vec<&str> = path.split('/').collect();
        let first = parts.iter().position(|part| part.contains(&place))?;
        let folder = match first {
            0 => ".".to_owned(),
            first => format!("{}/", parts[..first].join("/")),
        };
        let parts = parts[first..].iter().copied().map(str::to_owned).collect();
        Some(Self::Template { folder: PathBuf::from(folder), parts, place })
    }

    /// The folder that has all files.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::Template { folder, .. } | Self::Hive { folder, .. } => folder,
        }
    }

    pub(super) fn is_hive(&self) -> bool {
        matches!(self, Self::Hive { .. })
    }

    /// Path of the first file of a value.
    pub(super) fn first(&self, value: Option<&str>) -> Result<PathBuf, ValueError> {
        let text = match value {
            None => NULL.to_owned(),
            // The encoding differs from the name of a missing value.
            Some(NULL) => format!("%5F{}", &NULL[1..]),
            Some(value) => encoded(value),
        };
        let mut path = self.folder().to_owned();
        match self {
            Self::Hive { column, extension, .. } => {
                path.push(checked(value, format!("{column}={text}"))?);
                path.push(format!("part-0.{extension}"));
            }
            Self::Template { parts, place, .. } => {
                for part in parts {
                    let name = part.replace(place, &text);
                    path.push(checked(value, as_name(name))?);
                }
            }
        }
        Ok(path)
    }

    /// Path of a further file, from 1 on, of the value whose first file is at `first`.
    pub(super) fn further(&self, first: &Path, part: usize) -> PathBuf {
        let mut name = match self {
            Self::Hive { .. } => OsString::from("part"),
            Self::Template { .. } => {
                let mut stem = OsString::from(first.file_stem().unwrap_or_default());
                stem.push(".part");
                stem
            }
        };
        name.push(format!("-{part}"));
        if let Some(extension) = first.extension() {
            name.push(".");
            name.push(extension);
        }
        first.with_file_name(name)
    }
}

/// A name of a file or a folder, which is not empty and not a step to another folder.
fn as_name(name: String) -> String {
    match name.as_str() {
        "" => "%".to_owned(),
        "." | ".." => name.replace('.', "%2E"),
        _ => name,
    }
}

fn checked(value: Option<&str>, name: String) -> Result<String, ValueError> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(name);
    }
    let value: String = value.unwrap_or_default().chars().take(SHOWN_MAX).collect();
    Err(ValueError::Name { value: printable(&value).into_owned(), bytes: name.len() })
}

fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_value_leaves_the_folder_or_has_the_name_of_another() {
        let values = [
            "",
            ".",
            "..",
            "/",
            "../x",
            "a/b",
            "a%2Fb",
            "a\0b",
            "%",
            "a",
            "A",
            "ä",
            "a\nb",
            "~",
            "/etc/passwd",
            "part-1",
            "a.part-1",
            NULL,
        ];
        let forms =
            ["out/{v}.jsonl", "out/{v}/x.jsonl", "out/{v}", "{v}", "out/a{v}b{v}/{v}", "out/"];
        for form in forms {
            let names = Names::new(form, "v", "jsonl").unwrap();
            let mut seen = HashSet::new();
            for value in values.map(Some).into_iter().chain([None]) {
                let path = names.first(value).unwrap();
                let inside = path.strip_prefix(names.folder()).unwrap();
                let steps: Vec<_> = inside.components().collect();
                let is_name = |step: &std::path::Component<'_>| {
                    matches!(step, std::path::Component::Normal(_))
                };
                assert!(!steps.is_empty() && steps.iter().all(is_name), "{path:?}");
                let depth = form.trim_start_matches("out/").matches('/').count() + 1;
                assert_eq!(steps.len(), depth + usize::from(form == "out/"), "{path:?}");
                assert!(seen.insert(path), "{form}: {value:?}");
            }
        }
    }

    #[test]
    fn names_are_those_that_readers_of_hive_know() {
        let names = Names::new("out/", "the host", "parquet").unwrap();
        let first = names.first(Some("a b/ü.org")).unwrap();
        assert_eq!(first, Path::new("out/the%20host=a%20b%2F%C3%BC.org/part-0.parquet"));
        assert_eq!(names.further(&first, 2), first.with_file_name("part-2.parquet"));
        let null = names.first(None).unwrap();
        assert_eq!(null, Path::new("out/the%20host=__HIVE_DEFAULT_PARTITION__/part-0.parquet"));
        let names = Names::new("{v}.csv", "v", "csv").unwrap();
        assert_eq!(names.further(Path::new("./a.csv"), 1), Path::new("./a.part-1.csv"));
        assert_eq!(Names::new("out/x.csv", "v", "csv"), None);
        assert_eq!(Names::new("out/{v}/", "v", "csv"), None);
    }

    #[test]
    fn a_name_that_is_too_long_is_an_error() {
        let names = Names::new("{v}.csv", "v", "csv").unwrap();
        names.first(Some(&"a".repeat(251))).unwrap();
        let error = names.first(Some(&"a".repeat(252))).unwrap_err().to_string();
        assert!(error.contains("256 bytes") && error.len() < 250, "{error}");
    }
}
