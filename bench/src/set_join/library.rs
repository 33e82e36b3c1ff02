//! Joins as a library: every algorithm on every level at every threshold.
//!
//! The clock of a join covers counting and building the index, finding candidates, verifying and
//! counting them. It excludes reading, numbering tokens and sorting sets, whose time is printed
//! separately. After Bellas, Gounaris, *Speeding-up the Verification Phase of Set Similarity Joins
//! in the GPGPU paradigm*, 2018: the time of the whole join by threshold (Fig. 10), and the share
//! of the verification (Fig. 2).

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trommel::Isa;
use trommel::set_similarity_join::{
    CandidateChunk, JoinAlgorithm, JoinCounters, SetCollection, SetJoin, Similarity, Threshold,
};

use super::data::{Input, Truth};
use super::waves::{distinct, is_published};
use super::{Arguments, levels, name_of, numbered};
use crate::runner::Runs;
use crate::runner::plot::{Plot, Scale};
use crate::runner::report::{Table, cells, right};
use crate::runner::turns::{Measured, Run, Turns};

/// One similarity and threshold.
pub(super) struct Row {
    pub(super) collection: Arc<SetCollection>,
    pub(super) similarity: Similarity,
    pub(super) threshold: u32,
    /// The right answer, if it is known.
    pub(super) answer: Option<u64>,
}

/// Counts of a join, and the time of the verification.
type Rest = (JoinCounters, Duration);

/// The rows of an input, of each similarity.
pub(super) fn rows(arguments: &Arguments, input: &Input, truth: &Truth) -> Vec<Vec<Row>> {
    let collection = numbered(input, arguments.two_sided);
    let of = |&similarity: &Similarity| {
        let row = |&threshold: &u32| {
            let answer = truth.pairs(&input.name, &name_of(similarity), threshold);
            let answer = answer.map(|truth| truth[usize::from(arguments.two_sided)]);
            Row { collection: Arc::clone(&collection), similarity, threshold, answer }
        };
        arguments.thresholds.iter().map(row).collect()
    };
    arguments.similarities.iter().map(of).collect()
}

impl Row {
    /// Description of the input, and label of the thresholds.
    pub(super) fn named(&self) -> (String, &'static str) {
        let sets = self.collection.len();
        let (mean, similarity) = (self.collection.tokens() / sets.max(1), name_of(self.similarity));
        let is_overlap = self.similarity == Similarity::Overlap;
        let x = if is_overlap { "common tokens" } else { "threshold in %" };
        (format!("{sets} sets of {mean} tokens, {similarity}"), x)
    }

    pub(super) fn threshold(&self) -> Threshold {
        let denominator = if self.similarity == Similarity::Overlap { 1 } else { 100 };
        Threshold::new(self.threshold, denominator).expect("a positive threshold")
    }

    /// Runs all joins by turns, and checks that all counts are equal, and right if that is known.
    pub(super) fn measure(
        &self,
        engines: &[(JoinAlgorithm, Isa)],
        runs: Runs,
    ) -> Vec<Measured<Rest>> {
        let mut turns = Turns::new(runs).cold().expect(self.answer);
        for &(algorithm, isa) in engines {
            turns.add(format!("{} ({isa})", algorithm.name()), move || self.run(algorithm, isa));
        }
        turns.run()
    }

    /// Runs one join once.
    pub(super) fn run(&self, algorithm: JoinAlgorithm, isa: Isa) -> Run<u64, Rest> {
        let begin = Instant::now();
        let join =
            SetJoin::new(&self.collection, self.similarity, self.threshold(), algorithm, isa);
        let mut join = join.expect("a threshold within reach, and enough memory");
        let mut chunk = CandidateChunk::with_bytes(SetJoin::CHUNK_BYTES);
        let (mut verifying, mut answer) = (Duration::ZERO, 0);
        while join.next_chunk(&mut chunk) {
            let begin = Instant::now();
            answer += chunk.count(isa, join.sets());
            verifying += begin.elapsed();
        }
        let mut counters = join.counters();
        counters.results = answer;
        let rest = (counters, verifying);
        Run { time: begin.elapsed(), answer, rest }
    }
}

/// Prints the tables of all inputs, and draws their figures.
///
/// # Errors
/// If a figure cannot be written.
pub(super) fn measure(arguments: &Arguments, inputs: &[Input], truth: &Truth) -> io::Result<()> {
    let levels = levels(arguments);
    let engines = arguments
        .algorithms
        .iter()
        .flat_map(|algorithm| levels.iter().map(move |isa| (*algorithm, *isa)));
    let engines: Vec<(JoinAlgorithm, Isa)> = engines.collect();
    for input in inputs {
        for rows in rows(arguments, input, truth) {
            let summary = Summary::measure(&rows, &engines, arguments.runs);
            summary.print();
            summary.draw(arguments, input, &rows[0])?;
        }
    }
    Ok(())
}

/// Measurements of all algorithms at all thresholds.
struct Summary {
    thresholds: Vec<u32>,
    lines: Vec<Line>,
}

/// Measurements of one algorithm on one level, by threshold.
struct Line {
    algorithm: JoinAlgorithm,
    isa: Isa,
    name: String,
    seconds: Vec<f64>,
    /// Seconds of verification within that time.
    verifying: Vec<f64>,
}

impl Line {
    /// Share of verification.
    fn shares(&self) -> impl Iterator<Item = f64> {
        self.verifying.iter().zip(&self.seconds).map(|(part, all)| part / all)
    }
}

impl Summary {
    /// Measures all rows and prints each.
    fn measure(rows: &[Row], engines: &[(JoinAlgorithm, Isa)], runs: Runs) -> Self {
        let line = |&(algorithm, isa): &(JoinAlgorithm, Isa)| {
            let name = format!("{} ({isa})", algorithm.name());
            Line { algorithm, isa, name, seconds: Vec::new(), verifying: Vec::new() }
        };
        let mut lines: Vec<Line> = engines.iter().map(line).collect();
        let mut table = Table::new(
            "threshold, algorithm       |   results: | seconds: | verifying: |      postings: | \
             pre-candidates: |  candidates: |   verified:",
        );
        for row in rows {
            let mark = if row.answer.is_some() { "=" } else { "" };
            for (measured, line) in row.measure(engines, runs).iter().zip(&mut lines) {
                let (counters, verifying) = measured.rest();
                let JoinCounters { postings, pre_candidates, candidates, verified, .. } = counters;
                let results = counters.results;
                let (seconds, verifying) = (measured.seconds(), verifying.as_secs_f64());
                table.row(format!(
                    "{} {} | {mark}{results} | {seconds:.4} | {verifying:.4} | {postings} | \
                     {pre_candidates} | {candidates} | {verified}",
                    row.threshold, measured.name,
                ));
                line.seconds.push(seconds);
                line.verifying.push(verifying);
            }
        }
        Self { thresholds: rows.iter().map(|row| row.threshold).collect(), lines }
    }

    /// Prints one column per threshold: the times, the gain of `auto` over the best published
    /// algorithm, both verified on the same level and, as published, without vectors, and the
    /// share of verification.
    fn print(&self) {
        let head = |what: &str| Table::new(&format!("{what} | {}", right(&self.thresholds)));
        let mut table = head("seconds");
        for line in &self.lines {
            let seconds = line.seconds.iter().map(|seconds| format!("{seconds:.3}"));
            table.row(format!("{} | {}", line.name, cells(seconds)));
        }
        for line in self.lines.iter().filter(|line| line.algorithm == JoinAlgorithm::Auto) {
            for isa in distinct([Isa::Scalar, line.isa].into_iter()) {
                if let Some(best) = self.best_published(isa) {
                    let ratios = best.iter().zip(&line.seconds);
                    let ratios = ratios.map(|(best, own)| format!("{:.1}", best / own));
                    let name = &line.name;
                    table.row(format!("best published ({isa}) / {name} | {}", cells(ratios)));
                }
            }
        }
        drop(table);
        let mut table = head("verification");
        for line in &self.lines {
            let shares = line.shares().map(|share| format!("{:.0} %", 100.0 * share));
            table.row(format!("{} | {}", line.name, cells(shares)));
        }
    }

    /// Time of the fastest published algorithm on a level, by threshold, if one was measured.
    fn best_published(&self, isa: Isa) -> Option<Vec<f64>> {
        let published = self.lines.iter().filter(|line| is_published(line.algorithm));
        let times = published.filter(|line| line.isa == isa).map(|line| line.seconds.clone());
        times.reduce(|best, times| best.iter().zip(times).map(|(b, time)| b.min(time)).collect())
    }

    /// Draws the time of whole joins, and the share of verification.
    fn draw(&self, arguments: &Arguments, input: &Input, row: &Row) -> io::Result<()> {
        let (sets, x) = row.named();
        let least = self.thresholds.iter().min().map_or(0.0, |&least| f64::from(least));
        let plot = |what: &str, subtitle, scale, y| {
            Plot::new(format!("Joins of {sets}{what}"), subtitle, scale).axes(x, y).x_from(least)
        };
        let mut seconds = plot("", "one core; lower is better", Scale::Logarithmic, "seconds");
        let subtitle = "one core; the rest is the index and the filter";
        let mut shares = plot(": verification", subtitle, Scale::Share, "share of the time");
        for line in &self.lines {
            seconds = self.add(seconds, line, line.seconds.iter().copied());
            shares = self.add(shares, line, line.shares());
        }
        let name = format!("set-join-{}-{}", input.name, name_of(row.similarity));
        seconds.save(&arguments.figures, &name)?;
        shares.save(&arguments.figures, &format!("{name}-verification"))
    }

    fn add(&self, plot: Plot, line: &Line, values: impl Iterator<Item = f64>) -> Plot {
        let mut points: Vec<(f64, f64)> =
            self.thresholds.iter().map(|&threshold| f64::from(threshold)).zip(values).collect();
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        match line.algorithm {
            JoinAlgorithm::Auto => plot.main_line(&line.name, points),
            _ => plot.line(&line.name, points),
        }
    }
}
