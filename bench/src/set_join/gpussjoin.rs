//! The program gpussjoin beside ours: the joins of Mann, Augsten and Bouros in C++, and their
//! verification on a GPU by Bellas and Gounaris.
//!
//! The user names a folder with its sources, which are compiled with `cpp/set_join.cpp`. It reads a
//! file, numbers tokens and sorts sets (*preparing*), then finds pairs (*joining*). It computes
//! bounds in floating-point and may lose pairs at the threshold, so their number is printed and
//! does not stop the bench.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use tempfile::TempDir;

use super::data::Input;
use super::waves::Joins;
use crate::runner::report::Table;
use crate::runner::{Runs, cpp};

/// Source that runs a join of the program.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cpp/set_join.cpp");

/// Names of the joins, and their macros.
const JOINS: [(&str, &str); 3] =
    [("AllPairs", "ALL_PAIRS"), ("PPJoin", "PP_JOIN"), ("GroupJoin", "GROUP_JOIN")];

/// Threads of a block on a GPU, and candidates of a wave: more than there are, since the program
/// loses pairs, or fails, where a wave ends within the candidates of a set.
const WAVE: [&str; 2] = ["64", "268435456"];

/// Flags for a GPU. Up to CUDA 12, other headers of Thrust included the one that is named here.
const GPU_FLAGS: &str = "-arch=native -rdc=true -DDEVICE -include thrust/execution_policy.h -x cu";

/// Where the program verifies candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verified {
    OnCpu,
    OnGpu,
}

/// Compiled program.
pub(super) struct GpuSsJoin {
    pub(super) joins: Vec<Join>,
    folder: TempDir,
}

/// Join of the program, with its way to verify.
pub(super) struct Join {
    pub(super) name: String,
    program: PathBuf,
    /// Arguments of this way to verify, which follow the four of [`Join::run`].
    arguments: Vec<&'static str>,
}

/// Medians of a join.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Joined {
    pub(super) pairs: u64,
    /// Seconds of reading, numbering and sorting.
    pub(super) preparing: f64,
    /// Seconds from sorted sets to the number of pairs.
    pub(super) joining: f64,
}

impl GpuSsJoin {
    /// Compiles the joins of the sources, by `$CXX` or `c++`, or by `$NVCC` or `nvcc`.
    ///
    /// # Errors
    /// If there is no folder for temporary files, or the compiler fails.
    pub(super) fn compile(sources: &Path, verified: Verified) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let is_on_gpu = verified == Verified::OnGpu;
        let (compiler, flags) = if is_on_gpu {
            (cpp::compiler("NVCC", "nvcc"), GPU_FLAGS)
        } else {
            (cpp::compiler("CXX", "c++"), "-march=native")
        };
        let mut files = vec!["statistics.cxx"];
        if is_on_gpu {
            files.extend(["gpu_handler.cu", "gpujoin/device_timing.cu", "gpujoin/scenarios.cu"]);
        }
        let mut joins = Vec::new();
        for (name, join) in JOINS {
            let program = folder.path().join(name);
            let flags = flags.split(' ').chain(["-O3", "-std=c++17", "-w", "-I"]);
            let mut arguments: Vec<OsString> = flags.map(OsString::from).collect();
            arguments.extend([sources.into(), format!("-D{join}").into(), SOURCE.into()]);
            arguments.extend(files.iter().map(|file| sources.join(file).into()));
            cpp::compile(&compiler, &program, &arguments)?;
            if is_on_gpu {
                joins.extend([("A", "1"), ("B", "2"), ("C", "3")].map(|(letter, scenario)| Join {
                    name: format!("{name}, {letter}"),
                    program: program.clone(),
                    arguments: vec![scenario, WAVE[0], WAVE[1]],
                }));
            } else {
                joins.push(Join { name: name.to_owned(), program, arguments: Vec::new() });
            }
        }
        let version = cpp::version(&compiler)?;
        println!("gpussjoin of {}: {version}, -O3 {flags}\n", sources.display());
        Ok(Self { joins, folder })
    }

    /// Prints the joins of `input` at the thresholds of ours in waves, and which of them fail.
    ///
    /// # Errors
    /// If the file of sets can't be written.
    pub(super) fn in_waves(&self, input: &Input, ours: &Joins, runs: Runs) -> io::Result<()> {
        let path = self.folder.path().join("sets.txt");
        fs::write(&path, input.lines())?;
        let mut table = Table::new(
            "threshold: | gpussjoin | pairs: | preparing: | joining: | fastest of ours:",
        );
        for percent in ours.thresholds() {
            let fastest = ours.least(percent, |_| true, |counted| counted.total);
            let fastest = fastest.map_or(f64::NAN, |fastest| fastest.counted.total);
            for join in &self.joins {
                // A kernel may read beyond its arrays.
                let joined = join.run(&path, percent, runs).map_or_else(
                    |_| "failed |  | ".to_owned(),
                    |Joined { pairs, preparing, joining }| {
                        format!("{pairs} | {preparing:.4} | {joining:.4}")
                    },
                );
                table.row(format!("{percent} | {} | {joined} | {fastest:.4}", join.name));
            }
        }
        Ok(())
    }
}

impl Join {
    /// Joins the sets of a file.
    ///
    /// # Errors
    /// If the program fails.
    pub(super) fn run(&self, path: &Path, percent: u32, runs: Runs) -> io::Result<Joined> {
        let mut command = Command::new(&self.program);
        command.arg(path).arg((f64::from(percent) / 100.0).to_string());
        command.arg(runs.rounds(3).to_string()).arg(runs.seconds.to_string());
        let output = cpp::successful(command.args(&self.arguments).output()?)?;
        let lines = String::from_utf8_lossy(&output.stdout);
        let rounds = lines.lines().map(serde_json::from_str).collect::<Result<Vec<Joined>, _>>()?;
        let first = rounds.first().ok_or_else(|| io::Error::other("no round was printed"))?;
        let median = |of: fn(&Joined) -> f64| {
            let mut times: Vec<f64> = rounds.iter().map(of).collect();
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        Ok(Joined {
            pairs: first.pairs,
            preparing: median(|round| round.preparing),
            joining: median(|round| round.joining),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_rounds_counts_and_a_failure_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("join.sh");
        // Called in place of a join, whose first argument is the file.
        let lines = r#"[ "$1 $2" = "0.8 3" ] || { echo lost >&2; exit 1; }
            for time in 30 10 20; do
                echo "{\"pairs\": 5, \"preparing\": $time, \"joining\": 1$time}"
            done"#;
        fs::write(&script, lines).unwrap();
        let join = Join { name: "join".to_owned(), program: "sh".into(), arguments: Vec::new() };
        let runs = Runs { rounds: Some(3), seconds: f64::INFINITY };
        let joined = join.run(&script, 80, runs).unwrap();
        assert_eq!((joined.pairs, joined.preparing, joined.joining), (5, 20.0, 120.0));
        assert_eq!(join.run(&script, 60, runs).unwrap_err().to_string(), "lost");
        fs::write(&script, "").unwrap();
        assert_eq!(join.run(&script, 80, runs).unwrap_err().to_string(), "no round was printed");
    }
}
