//! The compilation of kernels and the shim to a library, for the build script and for tests that
//! change a kernel.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Form;

const COMMON: [&str; 8] = [
    "-std=c++17",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Wno-unknown-pragmas",
    "-Werror",
    "-fno-omit-frame-pointer",
    "-ffp-contract=off",
];

/// Flags for the machine: without this flag, a function of the compiler counts bits.
const MACHINE: &[&str] = if cfg!(target_arch = "x86_64") { &["-mpopcnt"] } else { &[] };

/// The folder of the shim in the repository.
const HOME: &str = env!("CARGO_MANIFEST_DIR");

impl Form {
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Address => "address",
            Self::Race => "race",
        }
    }

    /// Flags for kernels, for all other sources, and for the linker. The race check answers the
    /// calls of the thread sanitizer itself, so that the library of the sanitizer is not linked.
    const fn flags(self) -> [&'static [&'static str]; 3] {
        match self {
            Self::Plain => [&[], &[], &[]],
            Self::Address => {
                [&["-fsanitize=address"], &["-fsanitize=address"], &["-fsanitize=address"]]
            }
            Self::Race => [
                &["-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0"],
                &["-DSHIM_RACE"],
                &[],
            ],
        }
    }
}

/// A C++ compiler.
#[derive(Debug)]
pub(crate) struct Compiler {
    pub(crate) path: PathBuf,
    pub(crate) form: Form,
    /// Level of optimisation.
    pub(crate) level: &'static str,
    /// The folder of [`HEADER`].
    pub(crate) header: PathBuf,
}

/// The header of each kernel source, and its content. A compiler spends most of the time of a
/// source on this header, so it is compiled in advance: GCC takes the compiled header, other
/// compilers read the text.
pub(crate) const HEADER: [&str; 2] = ["language.h", "#include \"cuda.h\"\n"];

impl Compiler {
    /// The compiler of changed kernels, without optimisation: such kernels run a few tests, which
    /// take less time than the optimiser. `built` is the folder of the form.
    pub(crate) fn of_changes(path: PathBuf, form: Form, built: &Path) -> Self {
        Self { path, form, level: "-O0", header: built.join("changed") }
    }

    /// Compiles a file of the shim, a header, or a kernel source, whose entry points it registers.
    pub(crate) fn compile(&self, file: &Path, folder: &Path) -> io::Result<PathBuf> {
        let [for_kernels, for_others, _] = self.form.flags();
        if file.extension() == Some(OsStr::new("h")) {
            let compiled = file.with_extension("h.gch");
            return self.output(&["-x", "c++-header"], file, compiled, for_kernels);
        }
        if file.extension() != Some(OsStr::new("cu")) {
            return self.object(file, folder, for_others);
        }
        let text = fs::read_to_string(file)?;
        let mut wrapper = format!("#include \"{}\"\n#include \"{}\"\n", HEADER[0], file.display());
        for name in entry_points(&text) {
            wrapper += &format!("SHIM_KERNEL({name});\n");
        }
        let path = folder.join(file.file_stem().unwrap_or_default()).with_extension("cu.cpp");
        fs::write(&path, wrapper)?;
        self.object(&path, folder, for_kernels)
    }

    fn object(&self, file: &Path, folder: &Path, flags: &[&str]) -> io::Result<PathBuf> {
        let object = folder.join(file.file_stem().unwrap_or_default()).with_extension("o");
        self.output(&["-c"], file, object, flags)
    }

    fn output(
        &self,
        kind: &[&str],
        file: &Path,
        output: PathBuf,
        flags: &[&str],
    ) -> io::Result<PathBuf> {
        let mut command = Command::new(&self.path);
        command.args(COMMON).args(MACHINE).arg(self.level).args(flags);
        for folder in [&self.header, &Path::new(HOME).join("cpp"), &kernels()] {
            command.arg("-I").arg(folder);
        }
        run(command.args(kind).arg(file).arg("-o").arg(&output))?;
        Ok(output)
    }

    /// Links the driver's library into `folder`, under both names by which programs look for it.
    pub(crate) fn link(&self, objects: &[PathBuf], folder: &Path) -> io::Result<()> {
        let mut command = Command::new(&self.path);
        command.args(["-shared", "-Wl,-soname,libcuda.so.1", "-o"]);
        command.arg(folder.join("libcuda.so.1")).args(objects);
        run(command.args(self.form.flags()[2]))?;
        // Programs look for the name without a version first, and must not find another driver.
        let link = folder.join("libcuda.so");
        if link.exists() { Ok(()) } else { symlink("libcuda.so.1", link) }
    }
}

/// The folder of the kernels.
pub(crate) fn kernels() -> PathBuf {
    Path::new(HOME).join("../cuda")
}

/// The names after `extern "C" __global__`, each the last word before a parenthesis.
fn entry_points(text: &str) -> Vec<&str> {
    let starts = text.split("extern \"C\" __global__").skip(1);
    starts
        .filter_map(|start| {
            let head = start.split_once(") {").map_or(start, |(head, _)| head);
            let before = head.rsplit_once('(').map_or(head, |(before, _)| before);
            before.split_whitespace().next_back()
        })
        .collect()
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?} failed\n{said}")))
}
