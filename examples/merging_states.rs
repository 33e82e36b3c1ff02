//! Counts of two days, each kept as a small state, merged with the bounds kept.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;

use trommel::Isa;
use trommel::frequent_items::Sieve;

fn main() -> Result<(), Box<dyn Error>> {
    let isa = Isa::selected()?;
    let day = |begin: u32| -> Result<Vec<u8>, Box<dyn Error>> {
        let mut counts = Sieve::<u32>::new(isa, 100)?;
        for batch in 0..100_u32 {
            // Item 7 is in each tenth place, the others are spread.
            let items: Vec<u32> = (0..1_000_u32)
                .map(|i| if i % 10 == 0 { 7 } else { 1_000 + (begin + batch + i) % 5_000 })
                .collect();
            counts.observe(&items[..]);
        }
        Ok(counts.snapshot())
    };
    // A state could lie in a file for a year; a damaged one is refused.
    let (monday, tuesday) = (day(0)?, day(1_000)?);
    println!("a state has {} bytes", monday.len());
    let mut both = Sieve::<u32>::restore(isa, &monday)?;
    both.merge(&Sieve::restore(isa, &tuesday)?)?;
    let first = &both.top(1)[0];
    // The count is never below the true one, and above it by at most `error`.
    let (least, most) = (first.count - first.error, first.count);
    assert!((least..=most).contains(&20_000));
    println!("item {}: {least} to {most} of {} items", first.item, both.observed());
    Ok(())
}
