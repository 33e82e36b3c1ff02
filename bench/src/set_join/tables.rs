//! Tables over the thresholds.
//!
//! After Bellas, Gounaris, *Speeding-up the Verification Phase of Set Similarity Joins in the
//! GPGPU paradigm*, 2018: the phases of a join with a GPU (Table IV), and the number of inputs on
//! which each algorithm is the fastest one with a GPU (Table V).

use super::joins::{Group, Joins, Number, distinct, is_published};
use super::waves::Waves;

/// Prints the names of the columns.
pub(super) fn head(what: &str, thresholds: &[u32]) {
    let columns: Vec<String> = thresholds.iter().map(u32::to_string).collect();
    println!("| {what} | {} |", columns.join(" | "));
    println!("|---|{}", "---:|".repeat(thresholds.len()));
}

/// Prints a row; missing values are left empty.
pub(super) fn row(
    name: &str,
    values: impl IntoIterator<Item = Option<f64>>,
    shown: impl Fn(f64) -> String,
) {
    let values = values.into_iter().map(|value| value.map(&shown).unwrap_or_default());
    println!("| {name} | {} |", values.collect::<Vec<String>>().join(" | "));
}

/// Prints the tables of one input.
pub(super) fn print(joins: &Joins) {
    let thresholds = joins.thresholds();
    let by_run = |what: &str, of: Number| {
        head(what, &thresholds);
        for waves in joins.runs() {
            let values = thresholds.iter().map(|&threshold| joins.at(threshold, waves).map(of));
            row(&waves.name(), values, |value| format!("{value:.4}"));
        }
        println!();
    };
    by_run("join, seconds", |counted| counted.total);
    by_run("verification, seconds", |counted| counted.verifier);
    let gains = |what: &str, of: Number| {
        head(what, &thresholds);
        for algorithm in joins.algorithms() {
            let gain = |&threshold: &u32| joins.gain(threshold, |other| other == algorithm, of);
            row(algorithm.name(), thresholds.iter().map(gain), |gain| format!("{gain:.2}"));
        }
        println!();
    };
    gains("verification, CPU / GPU", |counted| counted.verifier);
    gains("join, CPU / GPU", |counted| counted.total);
    phases(joins, "fastest published, GPU", |waves| is_published(waves.algorithm));
    phases(joins, "fastest, GPU", |_| true);
}

/// Table IV: the fastest join with a GPU at each threshold, by phases.
fn phases(joins: &Joins, what: &str, which: impl Fn(Waves) -> bool) {
    println!(
        "| {what} | algorithm, mode | join | filter | feeding | kernels | overlap | verified | MB to GPU |"
    );
    println!("|---:|---|---:|---:|---:|---:|---:|---:|---:|");
    for threshold in joins.thresholds() {
        let is_it = |waves: Waves| waves.is_on_gpu() && which(waves);
        let Some(fastest) = joins.least(threshold, is_it, |counted| counted.total) else {
            continue;
        };
        let counted = fastest.counted;
        println!(
            "| {threshold} | {} | {:.4} | {:.4} | {:.4} | {:.4} | {:.1} % | {} | {:.1} |",
            fastest.waves.name(),
            counted.total,
            counted.filter,
            counted.feeding,
            counted.verifier,
            100.0 * counted.overlap,
            counted.verified,
            counted.megabytes(),
        );
    }
    println!();
}

/// Table V: number of inputs on which each algorithm is the fastest one with a GPU, among the
/// published ones and among all.
pub(super) fn print_winners(all: &[Joins]) {
    let thresholds = distinct(all.iter().flat_map(Joins::thresholds));
    let algorithms = distinct(all.iter().flat_map(Joins::algorithms));
    let groups: [(&str, Group); 2] =
        [("of the published ones", is_published), ("of all", |_| true)];
    for (group, is_in_group) in groups {
        head(&format!("fastest with a GPU, {group}: inputs"), &thresholds);
        for &algorithm in algorithms.iter().filter(|&&algorithm| is_in_group(algorithm)) {
            let wins = |&threshold: &u32| {
                let is_it = |waves: Waves| waves.is_on_gpu() && is_in_group(waves.algorithm);
                let fastest = all
                    .iter()
                    .filter_map(|joins| joins.least(threshold, is_it, |counted| counted.total));
                let won = fastest.filter(|fastest| fastest.waves.algorithm == algorithm).count();
                u32::try_from(won).ok().map(f64::from)
            };
            row(algorithm.name(), thresholds.iter().map(wins), |wins| wins.to_string());
        }
        println!();
    }
}
