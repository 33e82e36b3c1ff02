//! Databases with an approximate top-k of their own, over the same items.

use std::fs;
use std::io::{self, Write};
use std::time::Duration;

use serde::Deserialize;

use super::stream::{Answer, Estimate, Stream};
use super::table::Cell;
use crate::python::Python;

/// Output of the script for one peer.
#[derive(Debug, Deserialize)]
struct Measured {
    name: String,
    seconds: Vec<f64>,
    /// Items and counts; no count if the peer only names items.
    rows: Vec<(u32, Option<u64>)>,
}

/// Measures all peers of the script on this stream, in rounds after one to warm up.
///
/// # Errors
/// If the script fails.
pub(super) fn measure(
    python: &Python,
    stream: &Stream,
    rounds: usize,
) -> io::Result<Vec<(String, Cell)>> {
    let path = python.file("items.u32le");
    let mut file = io::BufWriter::new(fs::File::create(&path)?);
    for items in stream.items().chunks(1 << 16) {
        let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
        file.write_all(&bytes)?;
    }
    file.flush()?;
    let measured = python.measure(&[
        ("--items", &[path.display().to_string()]),
        ("--counters", &[stream.counters.to_string()]),
        ("--rounds", &[rounds.to_string()]),
    ]);
    fs::remove_file(&path)?;
    let measured: Vec<Measured> = measured?;
    Ok(measured.into_iter().map(|peer| peer.into_cell(stream)).collect())
}

impl Measured {
    fn into_cell(self, stream: &Stream) -> (String, Cell) {
        let estimate = |(item, count)| Estimate { item, count, error: None };
        let estimates = self.rows.into_iter().map(estimate).collect();
        let times = self.seconds.into_iter().map(Duration::from_secs_f64).collect();
        let answer = Answer { estimates, ..Answer::default() };
        let cell = Cell::of(&self.name, stream, times, &answer);
        (self.name, cell)
    }
}
