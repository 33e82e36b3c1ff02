//! Compilation from CUDA C++ to PTX and to cubins.

use std::fs;
use std::path::Path;
use std::process::Command;

use cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts};

use crate::failure::Failure;
use crate::toolchain::{CUDA_VERSION, Toolchain, output};

/// The kinds of images of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// PTX, which the driver compiles for any GPU of this or a later capability.
    Ptx(&'static str),
    /// Machine code for GPUs of the second name, assembled from PTX of the first name.
    Cubin(&'static str, &'static str),
}

impl Target {
    /// Machine code for the two capabilities that matter most, 9.0 with the instructions that no
    /// later one has; PTX for all others.
    pub(crate) const ALL: [Self; 3] = [
        Self::Ptx("compute_70"),
        Self::Cubin("compute_80", "sm_80"),
        Self::Cubin("compute_90a", "sm_90a"),
    ];

    /// The name of the image of a source.
    pub(crate) fn image(self, stem: &str) -> String {
        match self {
            Self::Ptx(name) => format!("{stem}.{name}.ptx"),
            Self::Cubin(_, name) => format!("{stem}.{name}.cubin"),
        }
    }
}

/// An image, and the assembler's report on its kernels.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    pub(crate) image: Vec<u8>,
    pub(crate) ptx: String,
    /// Empty for PTX.
    pub(crate) resources: String,
}

/// Compiles `file`, which lies in `folder`; other files are `scratch` with other endings.
pub(crate) fn compile(
    toolchain: &Toolchain,
    folder: &Path,
    file: &str,
    target: Target,
    scratch: &Path,
) -> Result<Compiled, Failure> {
    let (Target::Ptx(architecture) | Target::Cubin(architecture, _)) = target;
    let ptx = to_ptx(folder, file, architecture)?;
    match target {
        Target::Ptx(_) => {
            let image = ptx.clone().into_bytes();
            Ok(Compiled { image, ptx, resources: String::new() })
        }
        Target::Cubin(_, machine) => {
            let (image, resources) = assemble(toolchain, &ptx, machine, scratch)?;
            Ok(Compiled { image, ptx, resources })
        }
    }
}

fn to_ptx(folder: &Path, file: &str, architecture: &'static str) -> Result<String, Failure> {
    let path = folder.join(file);
    let source = fs::read_to_string(&path).map_err(Failure::file(path))?;
    let options = CompileOptions {
        name: Some(file.to_owned()),
        arch: Some(architecture),
        include_paths: vec![folder.display().to_string()],
        options: vec!["--std=c++17".to_owned()],
        ..CompileOptions::default()
    };
    let ptx = compile_ptx_with_opts(source, options).map_err(|error| Failure::Compile {
        file: file.to_owned(),
        target: architecture,
        log: match error {
            CompileError::CompileError { log, .. } => log.to_string_lossy().into_owned(),
            other => other.to_string(),
        },
    })?;
    let ptx = ptx.to_src();
    let signature = ptx.lines().find(|line| line.contains("release")).unwrap_or("no signature");
    if signature.contains(&format!("release {CUDA_VERSION},")) {
        Ok(ptx)
    } else {
        Err(Failure::OtherCompiler { expected: CUDA_VERSION, found: signature.to_owned() })
    }
}

fn assemble(
    toolchain: &Toolchain,
    ptx: &str,
    machine: &str,
    scratch: &Path,
) -> Result<(Vec<u8>, String), Failure> {
    let [source, image] = ["source", "image"].map(|ending| scratch.with_added_extension(ending));
    fs::write(&source, ptx).map_err(Failure::file(&source))?;
    let mut ptxas = Command::new(&toolchain.ptxas);
    ptxas.args(["--verbose", "--gpu-name", machine, "--output-file"]).arg(&image).arg(&source);
    let (_, resources) = output(&mut ptxas)?;
    let image = fs::read(&image).map_err(Failure::file(&image))?;
    Ok((image, resources))
}
