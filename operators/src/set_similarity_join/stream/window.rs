//! The parameter `window` of a join.

use schemars::JsonSchema;
use serde::Deserialize;
use trommel_engine::error::BindError;

use crate::parameters::{check_range, refuse};
use crate::window::{Extent, duration};

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
                Ok(Extent::Items(sets))
            }
            (None, Some(seconds)) => Ok(Extent::of_time(duration("window", seconds)?)),
            _ => {
                let allowed = "set either `sets` or `seconds`";
                Err(refuse("window", "both or none of its numbers", allowed))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
