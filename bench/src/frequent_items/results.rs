//! Numbers of the table in a file, so that a long run can be divided.

use std::path::Path;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::Arguments;
use super::table::{Cell, Rows};

/// Numbers, with the parameters of their streams.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Results {
    items: usize,
    alphabet: u32,
    counters: usize,
    /// Names of peers on which a product could be built.
    pub(super) product_peers: Vec<String>,
    cells: Vec<Measured>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    name: String,
    skew: f64,
    cell: Cell,
}

impl Results {
    /// Loads the results of the file if it exists; none without a file.
    ///
    /// # Errors
    /// If the file cannot be read, or its streams have other parameters.
    pub(super) fn load(path: Option<&Path>, arguments: &Arguments) -> io::Result<Self> {
        let Arguments { items, alphabet, counters, .. } = *arguments;
        let none = Self { items, alphabet, counters, product_peers: Vec::new(), cells: Vec::new() };
        let Some(path) = path.filter(|path| path.exists()) else { return Ok(none) };
        let results: Self = serde_json::from_slice(&fs::read(path)?)?;
        let same = (results.items, results.alphabet, results.counters);
        if same == (items, alphabet, counters) {
            return Ok(results);
        }
        Err(io::Error::other(format!("{}: results of other streams: {same:?}", path.display())))
    }

    pub(super) fn add_peers<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            if !self.product_peers.iter().any(|known| known == name) {
                self.product_peers.push(name.to_owned());
            }
        }
    }

    /// Adds a number, or replaces that of the same name and skew.
    pub(super) fn add(&mut self, name: &str, skew: f64, cell: Cell) {
        let known = self.cells.iter_mut().find(|old| (old.name.as_str(), old.skew) == (name, skew));
        match known {
            Some(known) => known.cell = cell,
            None => self.cells.push(Measured { name: name.to_owned(), skew, cell }),
        }
    }

    pub(super) fn save(&self, path: Option<&Path>) -> io::Result<()> {
        let Some(path) = path else { return Ok(()) };
        fs::write(path, serde_json::to_vec_pretty(self)?)
    }

    /// All skews in order, and the rows with a cell for each.
    pub(super) fn rows(&self) -> (Vec<f64>, Rows) {
        let mut skews: Vec<f64> = self.cells.iter().map(|measured| measured.skew).collect();
        skews.sort_by(f64::total_cmp);
        skews.dedup();
        let mut rows = Rows::default();
        for Measured { name, skew, cell } in &self.cells {
            let column = skews.iter().position(|other| other == skew).expect("it is one of them");
            rows.set(name, column, *cell);
        }
        (skews, rows)
    }
}
