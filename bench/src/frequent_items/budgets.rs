//! All summaries within equal budgets of memory.
//!
//! The bytes of a state are those that it holds after the stream, counted by the allocator. Each
//! summary gets as many counters as the budget has room for. The sieve divides it between counters
//! and cells, and is measured with the most counters and with fewer that have more cells each.

use std::rc::Rc;

use trommel::frequent_items::Sieve;

use super::Arguments;
use super::stream::{Shape, Stream};
use super::summaries::{sieve_of, space_saving, stream_summary};
use super::table::{Candidate, Rows};
use crate::runner::isa;

/// Budgets of the state in KB.
const BUDGETS_KB: [usize; 9] = [8, 16, 32, 64, 128, 256, 512, 1024, 1536];

/// Cells that the sieve keeps for each counter, at least: with fewer than two, most items enter its
/// counters.
const CELLS_PER_COUNTER: [usize; 2] = [2, 5];

/// The numbers of counters that are tried.
const COUNTERS_MIN: usize = 8;
const COUNTERS_LOG_MAX: u32 = 17;

/// Items after which the bytes of a state are known: it holds as many counters as it will.
const SAMPLE_ITEMS: usize = 1 << 19;

/// Zipf exponents.
const SKEWS: [f64; 4] = [0.8, 1.0, 1.5, 3.0];

/// A summary of some counters, and the budget that it fills.
struct Fitted {
    candidate: Candidate,
    counters: usize,
    bytes_max: usize,
}

/// Speed, precision and errors of each summary by its budget of memory.
///
/// # Errors
/// If the peers cannot be built.
pub(super) fn run(arguments: &Arguments) -> std::io::Result<()> {
    println!("Summaries within a budget of memory, with as many counters as it has room for\n");
    let shape = Shape { items: SAMPLE_ITEMS.min(arguments.items), ..arguments.shape() };
    let mut sample = Stream::zipf(shape, SKEWS[0]);
    let budgets = BUDGETS_KB.into_iter().map(|kilobytes| (kilobytes, kilobytes * 1000));
    let mut others = vec![
        Candidate::new("space_saving", space_saving),
        Candidate::new("Stream-Summary", stream_summary),
    ];
    others.extend(super::peers(arguments)?);
    let others: Vec<Rc<Candidate>> = others.into_iter().map(Rc::new).collect();
    let fitted: Vec<Fitted> =
        budgets.flat_map(|budget| fit(&mut sample, arguments.counters, budget, &others)).collect();
    let mut rows = Rows::default();
    for (column, &skew) in SKEWS.iter().enumerate() {
        let mut stream = Stream::zipf(arguments.shape(), skew);
        for Fitted { candidate, counters, bytes_max } in &fitted {
            stream.counters = *counters;
            let cell = rows.measure_one(candidate, &stream, column, arguments.runs);
            let held = cell.state_bytes.expect("the bytes of all summaries are counted");
            // Hash tables of random seeds grow a little earlier or later than over the sample.
            let name = &candidate.name;
            assert!(held <= *bytes_max + *bytes_max / 8, "{name} holds {held} bytes");
        }
    }
    rows.print_rates("M items/s", &SKEWS);
    rows.print_accuracy(&SKEWS, "bytes");
    Ok(())
}

/// All summaries that fit into the budget.
fn fit(
    sample: &mut Stream,
    counters: usize,
    (kilobytes, bytes_max): (usize, usize),
    others: &[Rc<Candidate>],
) -> Vec<Fitted> {
    let mut all = Vec::new();
    let sieve = move |counters| Sieve::<u32>::within(isa(), counters, bytes_max);
    for cells in CELLS_PER_COUNTER {
        let has_cells = |k| sieve(k).is_ok_and(|sieve| sieve.cells() >= cells * k);
        let Some(counters) = largest(counters, has_cells) else { continue };
        let run = move |stream: &Stream| sieve_of(stream, || sieve(counters).expect("it fitted"));
        let name = format!("{kilobytes} KB, sieve, {counters} counters");
        // With room for all counters that are asked for, both have the same.
        if all.iter().all(|fitted: &Fitted| fitted.candidate.name != name) {
            all.push(Fitted { candidate: Candidate::new(name, run), counters, bytes_max });
        }
    }
    for other in others {
        let mut fits = |counters| {
            sample.counters = counters;
            (other.run)(sample).state_bytes.is_some_and(|bytes| bytes <= bytes_max)
        };
        if let Some(counters) = largest(1 << COUNTERS_LOG_MAX, &mut fits) {
            let name = format!("{kilobytes} KB, {}, {counters} counters", other.name);
            let other = Rc::clone(other);
            let candidate = Candidate::new(name, move |stream: &Stream| (other.run)(stream));
            all.push(Fitted { candidate, counters, bytes_max });
        }
    }
    all
}

/// The largest number of counters up to `most` that fits, if any does: what fits, fits with fewer.
fn largest(most: usize, mut fits: impl FnMut(usize) -> bool) -> Option<usize> {
    let (mut least, mut beyond) = (COUNTERS_MIN, most + 1);
    if !fits(least) {
        return None;
    }
    while beyond - least > 1 {
        let middle = least.midpoint(beyond);
        if fits(middle) { least = middle } else { beyond = middle }
    }
    Some(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_that_fits_is_found() {
        for limit in [8, 9, 100, 999, 1_000] {
            assert_eq!(largest(1_000, |counters| counters <= limit), Some(limit));
        }
        assert_eq!(largest(1_000, |_| true), Some(1_000));
        assert_eq!(largest(1_000, |_| false), None);
    }
}
