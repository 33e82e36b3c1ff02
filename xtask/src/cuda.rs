//! `cargo xtask cuda`.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process;

use crate::compile::{Target, compile};
use crate::failure::Failure;
use crate::resources::{Kernel, table};
use crate::toolchain::{Toolchain, folders};

/// Compiles all kernels; writes the images, or with `check` compares them with the existing ones.
/// Returns a report.
pub(crate) fn run(check: bool) -> Result<String, Failure> {
    let (workspace, target) = folders()?;
    let toolchain = Toolchain::install(&target)?;
    if !toolchain.is_on_the_path() {
        start_again(&toolchain);
    }
    let sources = workspace.join("kernels/cuda");
    let images = sources.join("images");
    let mut kernels = Vec::new();
    let mut stale = Vec::new();
    let mut bytes = 0;
    let mut expected = Vec::new();
    for file in cu_files(&sources)? {
        for target_kind in Target::ALL {
            let compiled = compile(&toolchain, &sources, &file, target_kind, &target)?;
            kernels.extend(Kernel::all(&compiled.resources, &compiled.ptx));
            bytes += compiled.image.len();
            let name = target_kind.image(file.trim_end_matches(".cu"));
            let path = images.join(&name);
            if !check {
                fs::create_dir_all(&images).map_err(Failure::file(&images))?;
                fs::write(&path, &compiled.image).map_err(Failure::file(&path))?;
            } else if fs::read(&path).ok().as_ref() != Some(&compiled.image) {
                stale.push(name.clone());
            }
            expected.push(name);
        }
    }
    stale.extend(leftovers(&images, &expected)?);
    let mut report = table(&kernels).to_string();
    let spilling: Vec<&str> = kernels
        .iter()
        .filter(|kernel| kernel.spills())
        .map(|kernel| kernel.name.as_str())
        .collect();
    if !spilling.is_empty() {
        return Err(Failure::Spills(spilling.join(", "), report));
    }
    if !stale.is_empty() {
        return Err(Failure::Stale(stale.join(", ")));
    }
    let done = if check { "agree with the sources" } else { "written" };
    let _ = write!(report, "\n\n{} images of {bytes} bytes {done}", expected.len());
    Ok(report)
}

/// Starts this program again: the loader reads the path of the compiler's library only at the
/// start of a process.
fn start_again(toolchain: &Toolchain) -> ! {
    let ended = env::current_exe()
        .and_then(|program| toolchain.command(&program).args(env::args_os().skip(1)).status());
    match ended {
        Ok(status) => process::exit(status.code().unwrap_or(1)),
        Err(error) => {
            eprintln!("error: cannot start again with the compiler's library: {error}");
            process::exit(1)
        }
    }
}

/// The names of the sources, sorted.
fn cu_files(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut files: Vec<String> =
        names(folder)?.into_iter().filter(|name| name.ends_with(".cu")).collect();
    files.sort_unstable();
    Ok(files)
}

/// Images without a source.
fn leftovers(images: &Path, expected: &[String]) -> Result<Vec<String>, Failure> {
    Ok(names(images)?.into_iter().filter(|name| !expected.contains(name)).collect())
}

fn names(folder: &Path) -> Result<Vec<String>, Failure> {
    let entries = fs::read_dir(folder).map_err(Failure::file(folder))?;
    Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}
