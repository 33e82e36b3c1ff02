//! Compiles the shim, and all kernels with it, to three forms of `libcuda.so.1`.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The forms: what kernels, and what the rest, are compiled with beside the common flags.
const FORMS: [(&str, &[&str], &[&str]); 3] = [
    ("plain", &[], &[]),
    ("address", &["-fsanitize=address"], &["-fsanitize=address"]),
    ("race", &["-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0"], &["-DSHIM_RACE"]),
];

const COMMON: [&str; 8] =
    ["-std=c++17", "-O1", "-g", "-fPIC", "-Wall", "-Wextra", "-Werror", "-fno-omit-frame-pointer"];

fn main() {
    let home = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let kernels = home.join("../cuda");
    let cpp = home.join("cpp");
    for folder in [&kernels, &cpp] {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    println!("cargo::rerun-if-env-changed=CXX");
    let compiler = cc::Build::new().cpp(true).opt_level(1).warnings(false).get_compiler();
    let mut sources = files(&kernels, "cu");
    sources.extend(files(&cpp, "cu"));
    let wrappers: Vec<PathBuf> = sources.iter().map(|source| wrap(source, &out)).collect();
    for (form, for_kernels, for_others) in FORMS {
        let folder = out.join(form);
        fs::create_dir_all(&folder).expect("the output folder can be written");
        let mut objects = Vec::new();
        let kernel_files = wrappers.iter().map(|file| (file.clone(), for_kernels));
        let other_files = files(&cpp, "cpp").into_iter().map(|file| (file, for_others));
        for (file, flags) in kernel_files.chain(other_files) {
            let object = folder.join(file.file_stem().expect("a name")).with_extension("o");
            let mut command = Command::new(compiler.path());
            command.args(COMMON).args(flags).arg("-I").arg(&cpp).arg("-I").arg(&kernels);
            command.arg("-c").arg(&file).arg("-o").arg(&object);
            run(&mut command);
            objects.push(object);
        }
        let library = folder.join("libcuda.so.1");
        let mut link = Command::new(compiler.path());
        link.args(["-shared", "-Wl,-soname,libcuda.so.1", "-o"]).arg(&library).args(&objects);
        run(link.args(if form == "address" { for_others } else { &[] }));
        // The name without a version is looked for first, and another one must not be found.
        let link = folder.join("libcuda.so");
        if !link.exists() {
            symlink("libcuda.so.1", &link).expect("the output folder can be written");
        }
    }
    println!("cargo::rustc-env=STAND_IN_HOME={}", out.display());
    let runtime = Command::new(compiler.path()).arg("-print-file-name=libasan.so").output();
    let runtime = runtime.expect("the compiler has just run").stdout;
    println!("cargo::rustc-env=STAND_IN_ASAN={}", String::from_utf8_lossy(&runtime).trim());
}

/// The files of a folder with an ending, sorted.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("part of the repository");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let mut files: Vec<_> =
        paths.filter(|path| path.extension() == Some(OsStr::new(extension))).collect();
    files.sort();
    files
}

/// A C++ file that includes a kernel source and registers its entry points.
fn wrap(source: &Path, out: &Path) -> PathBuf {
    let text = fs::read_to_string(source).expect("part of the repository");
    let mut wrapper = format!("#include \"cuda.h\"\n#include \"{}\"\n", source.display());
    for name in entry_points(&text) {
        wrapper += &format!("SHIM_KERNEL({name});\n");
    }
    let path = out.join(source.file_stem().expect("a name")).with_extension("cu.cpp");
    fs::write(&path, wrapper).expect("the output folder can be written");
    path
}

/// The names behind `extern "C" __global__`, each the last word before a parenthesis.
fn entry_points(text: &str) -> Vec<&str> {
    let starts = text.split("extern \"C\" __global__").skip(1);
    starts
        .map(|start| {
            let head = start.split_once(") {").map_or(start, |(head, _)| head);
            let before = head.rsplit_once('(').map_or(head, |(before, _)| before);
            before.split_whitespace().next_back().expect("an entry point has a name")
        })
        .collect()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed\n{said}");
}
