//! Errors of declarations that the attribute refuses, each at its place.
#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The library of the attribute that this test was built with: the newest one beside it.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = fs::read_dir(test.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        let suffix = std::env::consts::DLL_SUFFIX;
        name.contains("trommel_macros-") && name.ends_with(suffix)
    };
    let age = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    built.filter(is_ours).max_by_key(age).expect("the library of the attribute")
}

/// The errors of the compiler for a file, each with its line, column and text.
fn errors(code: &str) -> Vec<String> {
    let folder = std::env::temp_dir().join(format!("trommel-macros-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let hash = code.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
    let file = folder.join(format!("{hash}.rs"));
    fs::write(&file, format!("use trommel_macros::parameters;\n{code}")).unwrap();
    let mut library_argument = std::ffi::OsString::from("trommel_macros=");
    library_argument.push(library());
    let run = Command::new("rustc")
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--error-format=short"])
        .arg("--out-dir")
        .arg(&folder)
        .arg("--extern")
        .arg(library_argument)
        .arg(&file)
        .output()
        .unwrap();
    fs::remove_file(&file).unwrap();
    let told = String::from_utf8(run.stderr).unwrap();
    let place = format!("{}:", file.display());
    told.lines().filter_map(|line| Some(line.strip_prefix(&place)?.to_owned())).collect()
}

fn check(code: &str, expected: &str) {
    assert_eq!(errors(code), [expected], "{code}");
}

#[test]
fn a_wrong_attribute_is_told_at_its_place() {
    let field = |attribute: &str, field: &str| {
        format!("#[parameters]\nstruct A {{\n    /// A.\n    {attribute}\n    {field},\n}}\n")
    };
    check(
        &field("#[setter(twice)]", "a: Option<u8>"),
        "5:14: error: expected `each`, `char` or `none`",
    );
    check(
        &field("#[setter(none)]", "a: u8"),
        "5:5: error: `a` is required: the constructor takes it",
    );
    check(
        &field("#[range(1..9)]", "a: u8"),
        "5:16: error: write `min..=max`, which says that `max` is allowed, or `min..`",
    );
    check(&field("#[range(1)]", "a: u8"), "5:14: error: expected `..`");
    check(
        &field("#[default()]", "a: u8"),
        "5:5: error: expected `#[default]` or `#[default(value)]`",
    );
    check(
        &field("#[default]", "a: Option<u8>"),
        "5:5: error: an `Option` is `None` when it is left out; remove `#[default]`",
    );
    check(
        &field("#[default(1)] #[default(2)]", "a: u8"),
        "5:19: error: a second attribute `default`",
    );
    check(
        &field("#[serde(skip)] #[range(1..)]", "a: u8"),
        "5:20: error: `a` is no parameter, since serde skips the field",
    );
}

#[test]
fn a_parameter_without_documentation_is_refused() {
    check(
        "#[parameters]\nstruct A {\n    a: u8,\n}\n",
        "4:5: error: the parameter `a` has no documentation",
    );
}

#[test]
fn only_a_plain_struct_is_one_of_parameters() {
    check("#[parameters]\nenum A {}\n", "3:6: error: expected a struct of parameters");
    let unnamed = "expected a struct whose fields have names";
    check("#[parameters]\nstruct A(u8);\n", &format!("3:8: error: {unnamed}"));
    let generic = "#[parameters]\nstruct A<T> {\n    /// A.\n    a: T,\n}\n";
    check(generic, "3:9: error: parameters have no generic types");
    check(
        "#[parameters(own)]\nstruct A {}\n",
        "2:14: error: expected `own_new` or `errors_at = \"parameter\"`",
    );
}
