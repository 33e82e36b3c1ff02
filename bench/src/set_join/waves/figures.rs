//! Figures of joins with a GPU, from the same runs as the tables.
//!
//! After Bellas, Gounaris, *Speeding-up the Verification Phase of Set Similarity Joins in the
//! GPGPU paradigm*, 2018; thresholds are on the x axis unless stated otherwise:
//!
//! | file | content | their figure |
//! |---|---|---|
//! | `verification-ALGORITHM` | the verification of an algorithm's candidates, by kernel | 14 |
//! | `verification-gain` | CPU over GPU, the verification | 9 |
//! | `join-ALGORITHM` | the whole join, by kernel | 13 (of `group_join`) |
//! | `best` | the fastest join on the CPU and with a GPU, published and ours | 10 |
//! | `gain` | CPU over GPU, the whole join | 11 |
//! | `phases` | time of the fastest published join with a GPU, by phase | table IV |
//! | `overlap` | the share of the device's time for which the CPU had other work | 3, 12 |
//! | `transfer` | bytes sent to the device | table IV |
//! | `chunks`, `chunks-overlap` | join and overlap, by bytes of a chunk | 12 |
//! | `outputs` | the whole join, to count and to select | none (§3.3.2) |
//!
//! A figure without data is not drawn. When sizes of chunks or outputs are compared, only these
//! comparisons are drawn.

use std::io;

use trommel::JoinOutput;
use trommel::set_similarity_join::{JoinAlgorithm, VerifyMode};

use super::joins::{Group, Joins, Number, distinct, is_published};
use super::{Counted, Waves};
use crate::runner::Figures;
use crate::runner::plot::{Plot, Scale};

/// Draws all figures of an input that have lines.
///
/// # Errors
/// If a figure cannot be written.
pub(super) fn draw(joins: &Joins, figures: &Figures) -> io::Result<()> {
    let [chunks, chunks_overlap] = by_chunk(joins);
    let named = |(name, plot): (&str, Plot)| (name.to_owned(), plot);
    let mut plots: Vec<(String, Plot)> =
        [("chunks", chunks), ("chunks-overlap", chunks_overlap), ("outputs", outputs(joins))]
            .map(named)
            .into();
    if plots.iter().all(|(_, plot)| plot.lines() == 0) {
        plots.extend(joins.algorithms().into_iter().flat_map(|algorithm| of(joins, algorithm)));
        let all = [
            ("verification-gain", gains(joins, "Verification", Scale::Logarithmic, |c| c.verifier)),
            ("best", best(joins)),
            ("gain", gains(joins, "Whole joins", Scale::Linear, |counted| counted.total)),
            ("phases", phases(joins)),
            ("overlap", overlap(joins)),
            ("transfer", transfer(joins)),
        ];
        plots.extend(all.map(named));
    }
    plots.retain(|(_, plot)| plot.lines() > 0);
    let save = |(name, plot): &(String, Plot)| {
        plot.save(figures, &format!("set-join-{}-{name}", joins.file))
    };
    plots.iter().try_for_each(save)
}

/// Figures of an algorithm; none if there is nothing to compare.
fn of(joins: &Joins, algorithm: JoinAlgorithm) -> Vec<(String, Plot)> {
    let runs = joins.runs().into_iter().filter(|waves| waves.algorithm == algorithm);
    let runs: Vec<Waves> = runs.collect();
    if runs.len() < 2 {
        return Vec::new();
    }
    let name = algorithm.name();
    let plot = |title: &str, of: Number| by_kernel(joins, &format!("{title} {name}"), &runs, of);
    let verification = plot("Verification of the candidates of", |counted| counted.verifier);
    let whole = plot("Joins by", |counted| counted.total);
    vec![(format!("verification-{name}"), verification), (format!("join-{name}"), whole)]
}

/// A figure over the thresholds.
fn plot(joins: &Joins, title: &str, is_better: &str, scale: Scale, y: &str) -> Plot {
    let least = joins.thresholds().into_iter().min().map_or(0.0, f64::from);
    let subtitle = format!("{}; {is_better} is better", joins.title);
    Plot::new(title, subtitle, scale).axes(joins.x, y).x_from(least)
}

/// Adds a line unless it is empty; a logarithmic scale has no place for zero.
fn add(plot: Plot, name: &str, mut points: Vec<(f64, f64)>, scale: Scale) -> Plot {
    points.retain(|&(_, y)| y > 0.0 || scale != Scale::Logarithmic);
    if points.is_empty() { plot } else { plot.line(name, points) }
}

/// Label of a way to verify candidates.
fn mode_title(mode: VerifyMode) -> &'static str {
    match mode {
        VerifyMode::A => "A, a thread a probe",
        VerifyMode::B => "B, a block a probe",
        VerifyMode::C => "C, a block a pair",
        VerifyMode::Warp => "warp, signatures first",
        VerifyMode::Cpu => "CPU, one core",
        _ => "by size of the sets",
    }
}

fn by_kernel(joins: &Joins, title: &str, runs: &[Waves], of: Number) -> Plot {
    let scale = Scale::Logarithmic;
    runs.iter().fold(plot(joins, title, "lower", scale, "seconds"), |plot, &waves| {
        let points = joins.line(|threshold| joins.at(threshold, waves).map(of));
        add(plot, mode_title(waves.verify), points, scale)
    })
}

fn gains(joins: &Joins, what: &str, scale: Scale, of: Number) -> Plot {
    let title = format!("{what}, CPU over GPU");
    let plot = plot(joins, &title, "higher", scale, "times as fast");
    joins.algorithms().into_iter().fold(plot, |plot, algorithm| {
        let points = joins.line(|threshold| joins.gain(threshold, algorithm, of));
        add(plot, algorithm.name(), points, scale)
    })
}

fn best(joins: &Joins) -> Plot {
    let scale = Scale::Logarithmic;
    let mut plot = plot(joins, "The fastest joins", "lower", scale, "seconds");
    let groups: [(&str, Group); 3] = [
        ("published", is_published),
        ("auto", |algorithm| algorithm == JoinAlgorithm::Auto),
        ("gpu_signatures", |algorithm| algorithm == JoinAlgorithm::GpuSignatures),
    ];
    for (group, is_in_group) in groups {
        for (place, is_on_gpu) in [("CPU, two cores", false), ("with a GPU", true)] {
            let is_it =
                |waves: Waves| is_in_group(waves.algorithm) && waves.is_on_gpu() == is_on_gpu;
            let points = joins.line(|threshold| {
                Some(joins.least(threshold, is_it, |counted| counted.total)?.counted.total)
            });
            plot = add(plot, &format!("{group}, {place}"), points, scale);
        }
    }
    plot
}

fn phases(joins: &Joins) -> Plot {
    let scale = Scale::Logarithmic;
    let title = "Where the time of the fastest published join with a GPU goes";
    let phases: [(&str, Number); 5] = [
        ("whole join", |counted| counted.total),
        ("index and filter", |counted| counted.filter),
        ("feeding the device", |counted| counted.feeding),
        ("kernels", |counted| counted.verifier),
        ("opening the device", |counted| counted.opening),
    ];
    phases.into_iter().fold(plot(joins, title, "lower", scale, "seconds"), |plot, (name, of)| {
        add(plot, name, on_gpu(joins, is_published, of), scale)
    })
}

/// A number of the fastest join with a GPU, over the thresholds.
fn on_gpu(joins: &Joins, which: impl Fn(JoinAlgorithm) -> bool, of: Number) -> Vec<(f64, f64)> {
    let is_it = |waves: Waves| waves.is_on_gpu() && which(waves.algorithm);
    joins.line(|threshold| {
        Some(of(&joins.least(threshold, is_it, |counted| counted.total)?.counted))
    })
}

/// One line for the fastest join of each algorithm with a GPU.
fn by_algorithm(joins: &Joins, mut plot: Plot, scale: Scale, of: Number) -> Plot {
    for algorithm in joins.algorithms() {
        let points = on_gpu(joins, |other| other == algorithm, of);
        plot = add(plot, algorithm.name(), points, scale);
    }
    plot
}

fn overlap(joins: &Joins) -> Plot {
    let (title, y) = ("Time of the device behind other work", "share of it");
    let plot = plot(joins, title, "higher", Scale::Share, y);
    by_algorithm(joins, plot, Scale::Share, |counted| counted.overlap)
}

fn transfer(joins: &Joins) -> Plot {
    let scale = Scale::Logarithmic;
    let plot = plot(joins, "Sent to the device", "lower", scale, "MB");
    by_algorithm(joins, plot, scale, Counted::megabytes)
}

/// Time of joins and their overlap by the size of chunks, one line per run and threshold.
fn by_chunk(joins: &Joins) -> [Plot; 2] {
    let mut sizes = distinct(joins.measured.iter().map(|measured| measured.waves.chunk_bytes));
    sizes.sort_unstable();
    let names: Vec<String> = sizes.iter().map(|&size| shown_bytes(size)).collect();
    let chunks = |title: &str, is_better: &str, scale, y| {
        let subtitle = format!("{}; {is_better} is better", joins.title);
        Plot::new(title, subtitle, scale).axes("bytes of a chunk", y).x_names(names.clone())
    };
    let mut plots = [
        chunks("Joins by the size of chunks", "lower", Scale::Linear, "seconds"),
        chunks("Overlap by the size of chunks", "higher", Scale::Share, "time behind other work"),
    ];
    if sizes.len() < 2 {
        return plots;
    }
    for waves in joins.runs() {
        for threshold in joins.thresholds() {
            let line = |of: Number| -> Vec<(f64, f64)> {
                let at = |&chunk_bytes: &usize| {
                    Some(of(joins.at(threshold, Waves { chunk_bytes, ..waves })?))
                };
                let points = (0_u32..).map(f64::from).zip(sizes.iter().map(at));
                points.filter_map(|(x, y)| Some((x, y?))).collect()
            };
            let name = format!("{}, {threshold}", waves.name());
            let [seconds, overlap] = plots;
            let seconds = add(seconds, &name, line(|counted| counted.total), Scale::Linear);
            let overlap = match waves.is_on_gpu() {
                true => add(overlap, &name, line(|counted| counted.overlap), Scale::Share),
                false => overlap,
            };
            plots = [seconds, overlap];
        }
    }
    plots
}

/// Formats a size with its unit.
fn shown_bytes(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

fn outputs(joins: &Joins) -> Plot {
    let scale = Scale::Logarithmic;
    let title = "Joins that count their pairs, and that select them";
    let mut plot = plot(joins, title, "lower", scale, "seconds");
    let of = |waves: Waves, output| {
        let waves = Waves { output, ..waves };
        joins.line(|threshold| joins.at(threshold, waves).map(|counted| counted.total))
    };
    for waves in joins.runs() {
        let [count, pairs] = [JoinOutput::Count, JoinOutput::Pairs].map(|output| of(waves, output));
        if !count.is_empty() && !pairs.is_empty() {
            let number = plot.lines();
            plot = plot.line(&format!("{}, count", waves.name()), count);
            plot = plot.dashed(&format!("{}, select", waves.name()), number, pairs);
        }
    }
    plot
}
