//! Repeated measurements, interleaved so that a change of the speed of the machine affects all
//! candidates alike.

use std::time::{Duration, Instant};

/// Default number of rounds: enough for a median and a spread.
pub const ROUNDS: usize = 7;

/// Program to be measured.
pub struct Candidate<'a> {
    name: String,
    run: Box<dyn FnMut() -> u64 + 'a>,
    times: Vec<Duration>,
}

impl std::fmt::Debug for Candidate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Candidate").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Candidate<'a> {
    /// A candidate; `run` does the whole work once and returns its answer.
    pub fn new(name: impl Into<String>, run: impl FnMut() -> u64 + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run), times: Vec::new() }
    }

    /// Name of the candidate.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Median time of a run.
    ///
    /// # Panics
    /// If it has not been measured.
    #[must_use]
    pub fn median(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        times[times.len() / 2]
    }

    /// Time of the fastest run: the best estimate on a machine with other work.
    ///
    /// # Panics
    /// If it has not been measured.
    #[must_use]
    pub fn fastest(&self) -> Duration {
        *self.times.iter().min().expect("it has been measured")
    }

    /// Half the distance between the quartiles, as a share of the median.
    ///
    /// # Panics
    /// If it has not been measured.
    #[must_use]
    pub fn noise(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        let quartile = |q: usize| times[(times.len() - 1) * q / 4].as_secs_f64();
        (quartile(3) - quartile(1)) / 2.0 / self.median().as_secs_f64()
    }
}

/// Runs every candidate once to warm up and then `rounds` times in turn, and checks each answer.
///
/// # Panics
/// If an answer is not `expected`: a time without the correct answer is not a result.
pub fn measure(candidates: &mut [Candidate], expected: u64, rounds: usize) {
    for round in 0..=rounds {
        for candidate in &mut *candidates {
            let start = Instant::now();
            let answer = (candidate.run)();
            let time = start.elapsed();
            assert_eq!(answer, expected, "{} gives a wrong answer", candidate.name);
            if round > 0 {
                candidate.times.push(time);
            }
        }
    }
}
