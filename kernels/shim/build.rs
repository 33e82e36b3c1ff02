//! Compiles the shim, and all kernels with it, to three forms of `libcuda.so.1`.

#[path = "src/compile.rs"]
mod compile;
#[path = "src/form.rs"]
#[expect(unreachable_pub, reason = "public in the library that has it, too")]
mod form;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use compile::{Compiler, HEADER, kernels};
use form::Form;

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let cpp = Path::new(env!("CARGO_MANIFEST_DIR")).join("cpp");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/compile.rs");
    for watched in [&kernels(), &cpp, &own] {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    println!("cargo::rerun-if-env-changed=CXX");
    let found = cc::Build::new().cpp(true).opt_level(1).warnings(false).get_compiler();
    let sources = [files(&kernels(), "cu")?, files(&cpp, "cu")?, files(&cpp, "cpp")?].concat();
    for form in [Form::Plain, Form::Address, Form::Race] {
        let folder = out.join(form.folder());
        let path = found.path().to_owned();
        let compiler = Compiler { path, form, level: "-O1", header: folder.clone() };
        compile_header(&compiler)?;
        let mut objects = Vec::new();
        for file in &sources {
            objects.push(compiler.compile(file, &folder)?);
        }
        compiler.link(&objects, &folder)?;
    }
    // Tests change kernels in this form.
    let address = out.join(Form::Address.folder());
    compile_header(&Compiler::of_changes(found.path().to_owned(), Form::Address, &address))?;
    println!("cargo::rustc-env=STAND_IN_HOME={}", out.display());
    println!("cargo::rustc-env=STAND_IN_CXX={}", found.path().display());
    let runtime = Command::new(found.path()).arg("-print-file-name=libasan.so").output()?.stdout;
    println!("cargo::rustc-env=STAND_IN_ASAN={}", String::from_utf8_lossy(&runtime).trim());
    Ok(())
}

fn compile_header(compiler: &Compiler) -> io::Result<()> {
    fs::create_dir_all(&compiler.header)?;
    let header = compiler.header.join(HEADER[0]);
    fs::write(&header, HEADER[1])?;
    compiler.compile(&header, &compiler.header)?;
    Ok(())
}

/// The files of a folder with an ending, sorted.
fn files(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    let mut files: Vec<_> =
        paths.filter(|path| path.extension() == Some(OsStr::new(extension))).collect();
    files.sort();
    Ok(files)
}
