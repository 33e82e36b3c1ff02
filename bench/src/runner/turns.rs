//! Engines that run by turns, so that a change of the speed of the machine affects all of them
//! alike.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use super::Runs;

/// One run of an engine.
#[derive(Debug, Clone)]
pub(crate) struct Run<K, T = ()> {
    pub(crate) time: Duration,
    /// Answer, which is the same for all engines.
    pub(crate) answer: K,
    /// What else the engine tells.
    pub(crate) rest: T,
}

impl<K> Run<K> {
    /// A run of `work`, from its begin to its answer.
    pub(crate) fn of(work: impl FnOnce() -> K) -> Self {
        let (time, answer) = timed(work);
        Self { time, answer, rest: () }
    }
}

/// The time of some work, and its result.
pub(crate) fn timed<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let begin = Instant::now();
    let result = work();
    (begin.elapsed(), result)
}

type Engine<'a, K, T> = (String, Box<dyn FnMut() -> Run<K, T> + 'a>);

/// Engines to be measured.
pub(crate) struct Turns<'a, K, T = ()> {
    engines: Vec<Engine<'a, K, T>>,
    runs: Runs,
    warms_up: bool,
    expected: Option<K>,
}

impl<'a, K: PartialEq + Debug, T> Turns<'a, K, T> {
    /// A table without engines. Each engine has a run to warm up, then as many as `runs` says.
    pub(crate) fn new(runs: Runs) -> Self {
        Self { engines: Vec::new(), runs, warms_up: true, expected: None }
    }

    /// The first run of each engine counts, too.
    pub(crate) fn cold(mut self) -> Self {
        self.warms_up = false;
        self
    }

    /// Sets the right answer. If nobody knows the answer, all engines have to agree with the first
    /// one.
    pub(crate) fn expect(mut self, answer: impl Into<Option<K>>) -> Self {
        self.expected = answer.into();
        self
    }

    /// Adds an engine; `run` does the whole work once.
    pub(crate) fn add(&mut self, name: impl Into<String>, run: impl FnMut() -> Run<K, T> + 'a) {
        self.engines.push((name.into(), Box::new(run)));
    }

    /// Runs all engines by turns.
    ///
    /// # Panics
    /// If an engine gives another answer: a time without the correct answer is not a result.
    pub(crate) fn run(self) -> Vec<Measured<T>> {
        let Self { mut engines, runs, warms_up, mut expected } = self;
        let empty = |(name, _): &Engine<K, T>| Measured { name: name.clone(), runs: Vec::new() };
        let mut measured: Vec<Measured<T>> = engines.iter().map(empty).collect();
        let first = usize::from(!warms_up);
        for round in first..=runs.rounds(1) {
            for ((name, run), measured) in engines.iter_mut().zip(&mut measured) {
                let spent = measured.runs.iter().map(|(time, _)| time.as_secs_f64()).sum::<f64>();
                if spent > 0.0 && spent >= runs.seconds {
                    continue;
                }
                let Run { time, answer, rest } = run();
                match &expected {
                    Some(known) => assert!(
                        *known == answer,
                        "{name} gives another answer: {answer:?}, not {known:?}"
                    ),
                    None => expected = Some(answer),
                }
                if round > 0 {
                    measured.runs.push((time, rest));
                }
            }
        }
        measured.iter_mut().for_each(|engine| engine.runs.sort_by_key(|(time, _)| *time));
        measured
    }
}

/// An engine that has been measured.
#[derive(Debug, Clone)]
pub(crate) struct Measured<T> {
    pub(crate) name: String,
    /// Times with what else the engine told, in ascending order.
    runs: Vec<(Duration, T)>,
}

impl<T> Measured<T> {
    /// What the engine told in the run of median time.
    pub(crate) fn rest(&self) -> &T {
        &self.runs[self.runs.len() / 2].1
    }

    /// What the engine told in the run of median time; the other runs are dropped.
    pub(crate) fn into_rest(mut self) -> T {
        let middle = self.runs.len() / 2;
        self.runs.swap_remove(middle).1
    }

    /// What the engine told in all runs, the fastest one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.runs.iter().map(|(_, rest)| rest)
    }

    pub(crate) fn median(&self) -> Duration {
        self.runs[self.runs.len() / 2].0
    }

    /// Median in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.median().as_secs_f64()
    }

    /// Time of the fastest run: the best estimate on a machine with other work.
    pub(crate) fn fastest(&self) -> Duration {
        self.runs[0].0
    }

    /// Half the distance between the quartiles, as a share of the median.
    pub(crate) fn noise(&self) -> f64 {
        let quartile = |q: usize| self.runs[(self.runs.len() - 1) * q / 4].0.as_secs_f64();
        (quartile(3) - quartile(1)) / 2.0 / self.seconds()
    }
}

/// The median; of two numbers in the middle, the larger one.
///
/// # Panics
/// If there are no numbers.
pub(crate) fn median<N: Ord + Copy>(mut numbers: Vec<N>) -> N {
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(rounds: usize, seconds: f64) -> Runs {
        Runs { rounds: Some(rounds), seconds }
    }

    #[test]
    fn engines_take_turns_and_the_first_round_warms_up() {
        let order = std::cell::RefCell::new(Vec::new());
        let mut turns = Turns::new(runs(3, f64::INFINITY)).expect(7);
        for (name, step) in [("a", 10), ("b", 1)] {
            let (order, mut time) = (&order, 100);
            turns.add(name, move || {
                order.borrow_mut().push(name);
                time -= step;
                Run { time: Duration::from_secs(time), answer: 7, rest: time }
            });
        }
        let measured = turns.run();
        assert_eq!(order.borrow().join(""), "abababab");
        assert_eq!((measured[0].name.as_str(), *measured[0].rest()), ("a", 70));
        assert_eq!(measured[1].fastest(), Duration::from_secs(96));
        assert_eq!(measured[1].all().count(), 3);
    }

    #[test]
    fn an_engine_that_took_its_seconds_does_not_run_again() {
        let mut turns = Turns::new(runs(5, 3.0)).cold();
        turns.add("slow", || Run { time: Duration::from_secs(2), answer: (), rest: () });
        assert_eq!(turns.run()[0].all().count(), 2);
    }

    #[test]
    #[should_panic(expected = "b gives another answer: 2, not 1")]
    fn a_wrong_answer_ends_the_measurement() {
        let mut turns = Turns::new(runs(1, f64::INFINITY));
        turns.add("a", || Run::of(|| 1));
        turns.add("b", || Run::of(|| 2));
        turns.run();
    }
}
