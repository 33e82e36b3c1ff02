//! Figures of the evaluation of the paper (§6, Figs. 11 to 14) and of its equation 5, measured.

use std::collections::BTreeMap;
use std::sync::Arc;

use trommel::{Algorithm, FrequentItems, Isa};

use super::stream::{Shape, Stream};
use super::summaries::pipelines::{parallel_filter, two_cores};
use super::summaries::{filter, selectivity, space_saving};
use super::table::{Candidate, Cell, Rows, print};
use super::{Arguments, Scale as Sizes};
use crate::engine::{Asking, Ingestion, histogram};
use crate::runner::plot::{Plot, Scale};
use crate::runner::{Runs, isa};

/// Zipf exponents.
const SKEWS: [f64; 13] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0];
/// |X| of Figs. 11 to 13.
const BINS: usize = 8;
/// |X| of Fig. 14.
const ALL_BINS: [usize; 3] = [4, 8, 16];
const QUERIES_PER_SECOND: u32 = 2000;

const SEQUENTIAL: &str = "Filter, searched one by one";
const FILTER: &str = "Filter, SIMD";
const PLAIN: &str = "SpaceSaving";
const PARALLEL: [&str; 3] =
    ["Parallel Filter, 4 bins", "Parallel Filter, 8 bins", "Parallel Filter, 16 bins"];
const ASKED: &str = "Filter, 2,000 queries a second";
const ASKED_PARALLEL: &str = "Parallel Filter, 2,000 queries a second";

/// Shares of the items by number of bins, at each skew.
type Shares = BTreeMap<usize, Vec<Option<f64>>>;

/// Numbers by skew.
type Line = Vec<(f64, f64)>;

/// Measures, prints, and draws figures into `folder`.
pub(super) fn run(arguments: &Arguments) -> std::io::Result<()> {
    let (skews, Sizes { figure_items, .. }) = (&SKEWS[..], arguments.scale());
    let shape = Shape { items: figure_items, ..arguments.shape() };
    println!("The paper's filter: {} items, |X| = {BINS} where nothing is said\n", shape.items);
    let candidates = candidates();
    let mut rows = Rows::default();
    let (mut passed, mut exchanged) = (Shares::new(), Shares::new());
    for (column, &skew) in skews.iter().enumerate() {
        let stream = Stream::zipf(shape, skew);
        rows.measure(&candidates, &stream, column, arguments.runs);
        asked(&mut rows, &stream, column, arguments.runs);
        for bins in ALL_BINS {
            let [passes, exchanges] = selectivity(&stream, bins);
            passed.entry(bins).or_default().push(Some(passes));
            exchanged.entry(bins).or_default().push(Some(exchanges));
        }
    }
    rows.print_rates("M items/s", skews);
    let mut shares = Vec::new();
    let mut exchanges = Vec::new();
    for (bins, passed) in &passed {
        let model = skews.iter().map(|&skew| Some(equation_5(*bins, skew, shape.alphabet)));
        shares.push((format!("measured, {bins} bins"), passed.clone()));
        shares.push((format!("equation 5, {bins} bins"), model.collect()));
        // §3.3: σ' ≲ σ / |Y|.
        let counters = (shape.counters - bins) as f64;
        let bound = passed.iter().map(|share| share.map(|share| share / counters)).collect();
        exchanges.push((format!("measured, {bins} bins"), exchanged[bins].clone()));
        exchanges.push((format!("σ / Y, {bins} bins"), bound));
    }
    let share = |share: f64| format!("{:.1} %", share * 100.0);
    print("share that passes the filter", skews, shares, share);
    let title = "exchanges with the counters, per million items";
    print(title, skews, exchanges, |share| format!("{:.1}", share * 1e6));
    let sizes = format!(
        "{} million items, alphabet of {} million, {} counters",
        shape.items as f64 / 1e6,
        f64::from(shape.alphabet) / 1e6,
        shape.counters
    );
    for (name, plot) in plots(&rows, &passed, skews, shape.alphabet, &sizes) {
        plot.save(&arguments.figures, name)?;
    }
    Ok(())
}

fn candidates() -> Vec<Candidate> {
    let mut candidates = vec![
        Candidate::new(PLAIN, space_saving),
        Candidate::new(SEQUENTIAL, |stream| filter(stream, Isa::Scalar, BINS)),
        Candidate::new(FILTER, |stream| filter(stream, isa(), BINS)),
    ];
    for (name, bins) in PARALLEL.into_iter().zip(ALL_BINS) {
        candidates.push(Candidate::new(name, move |stream| parallel_filter(stream, bins)));
    }
    candidates
}

/// Measures the two algorithms that are queried while they count.
fn asked(rows: &mut Rows, stream: &Stream, column: usize, runs: Runs) {
    let counting = FrequentItems::new().counters(stream.counters).filter_bins(BINS);
    let ways = [
        (ASKED, Algorithm::Filter, Vec::new()),
        (ASKED_PARALLEL, Algorithm::ParallelFilter, two_cores().to_vec()),
    ];
    let batches = Arc::new(stream.records().collect());
    for (name, algorithm, cores) in ways {
        let counting = counting.clone().algorithm(algorithm);
        let ingestion = Ingestion { counting, batches: Arc::clone(&batches), repeats: 1, cores };
        let asking = Asking::PerSecond(QUERIES_PER_SECOND);
        let rates = (0..runs.rounds(1)).map(|_| ingestion.run(asking, &mut histogram()));
        let mut rates: Vec<f64> = rates.collect();
        rates.sort_by(f64::total_cmp);
        let cell = Cell { rate: rates[rates.len() / 2], ..Cell::default() };
        rows.set(name, column, cell);
    }
}

/// 1 - P(|X|, z, |A|): share of a Zipf stream outside of its |X| most frequent items.
fn equation_5(bins: usize, skew: f64, alphabet: u32) -> f64 {
    let bins = u32::try_from(bins).expect("at most 64 bins");
    1.0 - weights(bins.min(alphabet), skew) / weights(alphabet, skew)
}

/// Sum of 1 / i^z over the ranks i; from rank 1,001 on by the integral, which is exact to six
/// digits there.
fn weights(ranks: u32, skew: f64) -> f64 {
    let first = ranks.min(1000);
    let sum: f64 = (1..=first).map(|rank| f64::from(rank).powf(-skew)).sum();
    let (from, to) = (f64::from(first) + 0.5, f64::from(ranks) + 0.5);
    let power = 1.0 - skew;
    let tail =
        if power == 0.0 { (to / from).ln() } else { (to.powf(power) - from.powf(power)) / power };
    sum + tail
}

/// §3.4: cost of the filter itself, taken where nearly no item passes it, plus that of
/// SpaceSaving for the share that passes.
fn predicted(filter: &Line, plain: &Line, alphabet: u32) -> Line {
    let Some(&(_, fastest)) = filter.last() else { return Vec::new() };
    let rate = |&(skew, plain): &(f64, f64)| {
        (skew, 1.0 / (1.0 / fastest + equation_5(BINS, skew, alphabet) / plain))
    };
    plain.iter().map(rate).collect()
}

fn plots(
    rows: &Rows,
    passed: &Shares,
    skews: &[f64],
    alphabet: u32,
    sizes: &str,
) -> Vec<(&'static str, Plot)> {
    let line = |name| rows.line(name, skews);
    let throughput = |title: &str, what: &str| {
        let subtitle = if what.is_empty() { sizes.to_owned() } else { format!("{what}; {sizes}") };
        Plot::new(title, subtitle, Scale::Linear).axes("Zipf exponent", "million items a second")
    };
    let filter = throughput("Algorithm Filter on one core", "|X| = 8")
        .main_line(FILTER, line(FILTER))
        .line(SEQUENTIAL, line(SEQUENTIAL))
        .line(PLAIN, line(PLAIN))
        .dashed("Filter, SIMD, predicted", 0, predicted(&line(FILTER), &line(PLAIN), alphabet));
    let parallel = throughput("Filter and Parallel Filter", "|X| = 8")
        .main_line("Parallel Filter, 2 cores", line(PARALLEL[1]))
        .line("Filter, 1 core", line(FILTER))
        .line(PLAIN, line(PLAIN));
    let asked = throughput("The same, asked 2,000 times a second", "|X| = 8")
        .main_line("Parallel Filter, asked", line(ASKED_PARALLEL))
        .line("Filter, asked", line(ASKED))
        .dashed("Parallel Filter, not asked", 0, line(PARALLEL[1]))
        .dashed("Filter, not asked", 1, line(FILTER));
    let mut bins = throughput("Parallel Filter with 4, 8 and 16 bins", "");
    let mut selectivity = Plot::new(
        "What passes the filter",
        format!("measured, and as equation 5 says; {sizes}"),
        Scale::Share,
    )
    .axes("Zipf exponent", "share of the items that is forwarded");
    for (name, &(count, passed)) in PARALLEL.iter().zip(&passed.iter().collect::<Vec<_>>()) {
        let name_of_bins = name.rsplit(", ").next().unwrap_or(name);
        bins = bins.line(name_of_bins, line(name));
        let points = skews.iter().zip(passed).filter_map(|(&skew, share)| Some((skew, (*share)?)));
        selectivity = selectivity.line(&format!("{count} bins"), points.collect());
    }
    for (index, bins) in ALL_BINS.into_iter().enumerate() {
        let fine = (0..=100).map(|i| f64::from(i) / 20.0);
        let fine = fine.filter(|&skew| skews.last().is_some_and(|&last| skew <= last));
        let points = fine.map(|skew| (skew, equation_5(bins, skew, alphabet))).collect();
        selectivity = selectivity.dashed(&format!("equation 5, {bins} bins"), index, points);
    }
    vec![
        ("filter", filter),
        ("parallel-filter", parallel),
        ("parallel-filter-queries", asked),
        ("filter-bins", bins),
        ("filter-selectivity", selectivity),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equation_5_is_what_the_paper_reads_off_its_figure() {
        // §3.3: for z = 1 and |A| = 1000, eight bins save more than 35 % of the work.
        let passed = equation_5(8, 1.0, 1000);
        assert!((0.63..0.65).contains(&passed), "{passed}");
        assert!((equation_5(8, 0.0, 1000) - 0.992).abs() < 1e-12);
        assert!(equation_5(8, 1.0, 8).abs() < 1e-12);
        for skew in [0.5, 1.0, 3.0] {
            let sum: f64 = (1..=50_000).map(|rank| f64::from(rank).powf(-skew)).sum();
            assert!((weights(50_000, skew) / sum - 1.0).abs() < 1e-6, "{skew}");
        }
    }
}
