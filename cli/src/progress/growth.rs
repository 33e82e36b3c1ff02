//! A word about joins whose rows are far more than their input has.
//!
//! A low threshold, or many equal rows, can make billions of pairs of a small input. The number is
//! not known before, so the user is told while there is time to stop the run.

use trommel::Metrics;
use trommel::metrics::StageMetrics;

use crate::units::short;

/// Operators whose output can be the square of their input.
const SQUARE: [&str; 3] = ["set_similarity_join", "epsilon_join", "frequent_pairs"];
/// Rows more than those of the input from which on a stage is told.
const MORE: u64 = 100_000_000;

/// The stages that have been told.
#[derive(Debug)]
pub(crate) struct Growth {
    /// Rows more than those of the input that are told.
    more: u64,
    told: Vec<String>,
}

impl Default for Growth {
    fn default() -> Self {
        Self { more: MORE, told: Vec::new() }
    }
}

impl Growth {
    /// Lines about the stages that have sent many more rows than they took since the last look.
    pub(crate) fn news(&mut self, metrics: &Metrics) -> Vec<String> {
        let grown = |stage: &&StageMetrics| {
            let (rows, of) = (stage.items_out(), stage.items_in());
            SQUARE.contains(&stage.operator) && rows >= of.saturating_add(self.more)
        };
        let stages: Vec<_> = metrics.stages.iter().filter(grown).collect();
        let told = &mut self.told;
        let new = stages.into_iter().filter(|stage| !told.contains(&stage.id));
        let new: Vec<_> = new.map(|stage| (stage.id.clone(), line(stage))).collect();
        self.told.extend(new.iter().map(|(id, _)| id.clone()));
        new.into_iter().map(|(_, line)| line).collect()
    }
}

fn line(stage: &StageMetrics) -> String {
    let (id, rows, of) = (&stage.id, short(stage.items_out()), short(stage.items_in()));
    format!(
        "stage `{id}` has sent {rows} rows for {of} of its input, and more come; a stricter \
         threshold gives fewer"
    )
}

#[cfg(test)]
mod tests {
    use trommel::{Discard, EpsilonJoin, Generate, Graph, RunOptions, VectorDistribution};

    use super::*;

    #[test]
    fn a_join_is_told_once_when_its_rows_are_many() {
        let mut graph = Graph::new();
        let vectors = Generate::vectors(2, VectorDistribution::Uniform).items(100);
        let vectors = graph.add("vectors", vectors);
        let join = graph.add_after(vectors, "near", EpsilonJoin::new(1e6));
        graph.add_after(join, "rows", Discard::new());
        let metrics = graph.build().unwrap().run(RunOptions::new()).unwrap();
        assert_eq!(Growth::default().news(&metrics), [""; 0]);
        let mut growth = Growth { more: 4_850, ..Growth::default() };
        let line = "stage `near` has sent 4.95 k rows for 100 of its input, and more come; a \
                    stricter threshold gives fewer";
        assert_eq!(growth.news(&metrics), [line]);
        assert_eq!(growth.news(&metrics), [""; 0]);
        assert_eq!(Growth { more: 4_851, ..Growth::default() }.news(&metrics), [""; 0]);
    }
}
