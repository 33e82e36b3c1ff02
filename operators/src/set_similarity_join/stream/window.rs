//! How far back sets are remembered.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use trommel_engine::error::{BindError, BindErrorKind};

use crate::parameters::check_range;

/// Cells of a window: what has left it takes at most a share of 1 / `CELLS` of its memory.
pub(super) const CELLS: u64 = 4;

/// The shortest and the longest time, in seconds.
const SECONDS_MIN: f64 = 0.001;
const SECONDS_MAX: f64 = 1e9;

/// How far back a set looks for similar ones: `{"sets": 100000}` or `{"seconds": 60}`.
///
/// With `sets` = N, two sets are in the window together if they are among N sets that came one
/// after the other; sets are counted in the order of the input, empty ones too, but no rows with a
/// null. With `seconds` = S, they are if the batch of the newer one entered the pipeline less than
/// S seconds after that of the older one; a batch that entered before one that arrived earlier
/// counts as entering with it.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JoinWindow {
    /// Sets of a window.
    #[serde(default)]
    #[schemars(range(min = 1))]
    sets: Option<u64>,
    /// Seconds of a window.
    #[serde(default)]
    #[schemars(range(min = 0.001, max = 1_000_000_000.0))]
    seconds: Option<f64>,
}

impl JoinWindow {
    /// A window of so many sets.
    #[must_use]
    pub fn sets(sets: u64) -> Self {
        Self { sets: Some(sets), seconds: None }
    }

    /// A window of so many seconds.
    #[must_use]
    pub fn seconds(seconds: f64) -> Self {
        Self { sets: None, seconds: Some(seconds) }
    }

    /// Checks it.
    pub(crate) fn resolve(self) -> Result<Extent, BindError> {
        match (self.sets, self.seconds) {
            (Some(sets), None) => {
                check_range("window", &sets, &(1..=u64::MAX))?;
                Ok(Extent::Sets(sets))
            }
            (None, Some(seconds)) => {
                check_range("window", &seconds, &(SECONDS_MIN..=SECONDS_MAX))?;
                let nanoseconds = Duration::from_secs_f64(seconds).as_nanos();
                Ok(Extent::Nanoseconds(u64::try_from(nanoseconds).expect("at most 10^18")))
            }
            _ => {
                let value = "both or none of its numbers".to_owned();
                let allowed = "set either `sets` or `seconds`".to_owned();
                Err(BindErrorKind::Value { value, allowed }.at("window"))
            }
        }
    }
}

/// How far apart two sets may be, in the unit of their stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The stamp of a set is its position in the stream.
    Sets(u64),
    /// The stamp of a set is the time at which it came, since the first one.
    Nanoseconds(u64),
    /// As [`Self::Sets`], without an end.
    Endless,
}

impl Extent {
    /// Whether a set is still remembered when one comes; always if it is the newer one.
    #[inline]
    pub(super) fn reaches(self, older: u64, newer: u64) -> bool {
        match self {
            Self::Sets(length) | Self::Nanoseconds(length) => newer.saturating_sub(older) < length,
            Self::Endless => true,
        }
    }

    /// The cell of a stamp. Sets of one cell are all in the window together.
    pub(super) fn cell(self, stamp: u64) -> u64 {
        stamp / self.cell_length()
    }

    /// How many sets, at most, that come from `position` on are of one cell.
    pub(super) fn left_in_cell(self, position: u64) -> usize {
        match self {
            Self::Sets(_) => {
                let length = self.cell_length();
                usize::try_from(length - position % length).unwrap_or(usize::MAX)
            }
            // A batch has one time.
            Self::Nanoseconds(_) | Self::Endless => usize::MAX,
        }
    }

    fn cell_length(self) -> u64 {
        match self {
            Self::Sets(length) | Self::Nanoseconds(length) => length.div_ceil(CELLS),
            Self::Endless => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_n_sets_is_n_sets() {
        let window = Extent::Sets(3);
        assert!(window.reaches(5, 7) && !window.reaches(5, 8));
        assert!(Extent::Sets(1).reaches(5, 5) && !Extent::Sets(1).reaches(5, 6));
        assert!(Extent::Endless.reaches(0, u64::MAX - 1));
    }

    #[test]
    fn sets_of_a_cell_are_in_the_window_together() {
        for length in 1..40 {
            let window = Extent::Sets(length);
            for stamp in 0..200 {
                let last = stamp + window.left_in_cell(stamp) as u64 - 1;
                assert_eq!(window.cell(stamp), window.cell(last));
                assert_ne!(window.cell(stamp), window.cell(last + 1));
                assert!(window.reaches(stamp, last));
            }
        }
    }

    #[test]
    fn windows_without_a_length_are_refused() {
        let refused = |window: JoinWindow| window.resolve().unwrap_err().to_string();
        let neither = JoinWindow { sets: None, seconds: None };
        assert!(refused(neither).contains("set either `sets` or `seconds`"));
        assert!(refused(JoinWindow { sets: Some(1), ..JoinWindow::seconds(1.0) }).contains("both"));
        assert!(refused(JoinWindow::sets(0)).contains('0'));
        assert!(refused(JoinWindow::seconds(0.0)).contains("0.001"));
        assert!(refused(JoinWindow::seconds(f64::NAN)).contains("NaN"));
        assert_eq!(JoinWindow::seconds(1.5).resolve().unwrap(), Extent::Nanoseconds(1_500_000_000));
    }
}
