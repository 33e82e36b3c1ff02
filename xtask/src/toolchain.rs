//! The pinned CUDA compiler: NVRTC and ptxas from Python wheels, in a folder below `target/`.

use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::MetadataCommand;

use crate::failure::Failure;

/// PTX of this version loads on every driver from 525 on; newer PTX is refused by older drivers.
pub(crate) const CUDA_VERSION: &str = "12.0";

/// NVRTC compiles to PTX, ptxas assembles that.
const WHEELS: [&str; 2] = ["nvidia-cuda-nvrtc-cu12==12.0.140", "nvidia-cuda-nvcc-cu12==12.0.140"];

/// Paths of the parts of the compiler.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// Holds `libnvrtc.so` and its companion.
    pub(crate) libraries: PathBuf,
    /// The assembler.
    pub(crate) ptxas: PathBuf,
}

/// The folder of the workspace and the one that cargo builds into.
pub(crate) fn folders() -> Result<(PathBuf, PathBuf), Failure> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec()?;
    Ok((metadata.workspace_root.into(), metadata.target_directory.into()))
}

impl Toolchain {
    /// Installs the compiler below `target` unless it is there.
    pub(crate) fn install(target: &Path) -> Result<Self, Failure> {
        let home = target.join(format!("cuda-{CUDA_VERSION}"));
        let complete = home.join("complete");
        if !complete.exists() {
            let stale = home.exists().then(|| fs::remove_dir_all(&home));
            stale.transpose().map_err(Failure::file(&home))?;
            install_wheels(&home)?;
        }
        let packages = packages(&home)?;
        let toolchain = Self {
            libraries: packages.join("cuda_nvrtc/lib"),
            ptxas: packages.join("cuda_nvcc/bin/ptxas"),
        };
        if !complete.exists() {
            toolchain.finish()?;
            fs::write(&complete, WHEELS.join("\n")).map_err(Failure::file(&complete))?;
        }
        Ok(toolchain)
    }

    /// Wheels lose the permission to execute, and the loader looks for the name without a version
    /// first: without the link, it would find another toolkit of the machine before this one.
    fn finish(&self) -> Result<(), Failure> {
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&self.ptxas, executable).map_err(Failure::file(&self.ptxas))?;
        let link = self.libraries.join("libnvrtc.so");
        symlink("libnvrtc.so.12", &link).map_err(Failure::file(&link))
    }

    /// Whether this process finds the compiler first when it loads it by name.
    pub(crate) fn is_on_the_path(&self) -> bool {
        let path = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        env::split_paths(&path).next().is_some_and(|first| first == self.libraries)
    }

    /// A command that finds the compiler first.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let before = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let mut path = self.libraries.clone().into_os_string();
        if !before.is_empty() {
            path.push(":");
            path.push(before);
        }
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", path);
        command
    }
}

fn install_wheels(home: &Path) -> Result<(), Failure> {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(home);
    let mut pip = Command::new(home.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(WHEELS);
    for command in [&mut venv, &mut pip] {
        if let Err(Failure::Program { command, stderr }) = output(command) {
            return Err(Failure::NoToolchain { command, stderr });
        }
    }
    Ok(())
}

/// The folder of the wheels: `lib/python3.N/site-packages/nvidia` for some N.
fn packages(home: &Path) -> Result<PathBuf, Failure> {
    let lib = home.join("lib");
    let python = fs::read_dir(&lib)
        .and_then(|mut entries| entries.next().transpose())
        .map_err(Failure::file(&lib))?;
    Ok(python.map_or(lib, |python| python.path()).join("site-packages/nvidia"))
}

/// The standard output and standard error of a program, if it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<(String, String), Failure> {
    let shown = format!("{command:?}");
    let failed = |stderr: String| Failure::Program { command: shown, stderr };
    match command.output() {
        Err(error) => Err(failed(error.to_string())),
        Ok(output) => {
            let [stdout, stderr] = [output.stdout, output.stderr]
                .map(|said| String::from_utf8_lossy(&said).into_owned());
            if output.status.success() { Ok((stdout, stderr)) } else { Err(failed(stderr)) }
        }
    }
}
