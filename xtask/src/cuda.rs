//! `cargo xtask cuda`.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::iter;
use std::num::NonZero;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::compile::{Compiled, Target, compile};
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
    for (name, compiled) in compile_all(&toolchain, &sources, &target)? {
        kernels.extend(Kernel::all(&compiled.resources, &compiled.ptx));
        bytes += compiled.image.len();
        let path = images.join(&name);
        if !check {
            fs::create_dir_all(&images).map_err(Failure::file(&images))?;
            fs::write(&path, &compiled.image).map_err(Failure::file(&path))?;
        } else if fs::read(&path).ok().as_ref() != Some(&compiled.image) {
            stale.push(name.clone());
        }
        expected.push(name);
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

/// All images of all sources by name, compiled on all cores.
fn compile_all(
    toolchain: &Toolchain,
    sources: &Path,
    scratch: &Path,
) -> Result<Vec<(String, Compiled)>, Failure> {
    let files = cu_files(sources)?;
    let jobs: Vec<_> = files.iter().flat_map(|file| Target::ALL.map(|kind| (file, kind))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = iter::from_fn(|| jobs.get(next.fetch_add(1, Ordering::Relaxed)));
        let compiled = taken.map(|&(file, kind)| {
            let name = kind.image(file.trim_end_matches(".cu"));
            compile(toolchain, sources, file, kind, &scratch.join(&name)).map(|done| (name, done))
        });
        compiled.collect::<Result<Vec<_>, Failure>>()
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut all = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let done = workers.into_iter().map(|worker| worker.join().expect("it does not panic"));
        done.collect::<Result<Vec<_>, Failure>>()
    })?
    .concat();
    all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    Ok(all)
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
