//! The parameter `window` of a join.

use trommel_engine::error::BindError;

use crate::shared::parameters::parameters;
use crate::shared::window::{self, Extent};

/// Length of the window of a streaming join: `{"sets": 100000}` or `{"seconds": 60}`.
///
/// `sets` = N: a set is joined to the N - 1 sets before it. Empty sets count, rows with a null do
/// not. `seconds` = S: a set is joined to the earlier sets whose batch entered the pipeline less
/// than S seconds before its own batch. A batch that is overtaken by a younger one counts as
/// entering with that one.
#[parameters(own_new)]
#[derive(Copy)]
pub struct JoinWindow {
    /// Number of sets in the window.
    #[schemars(range(min = 1))]
    #[setter(none)]
    sets: Option<u64>,
    /// Length of the window in seconds.
    #[schemars(range(min = 0.001, max = 1_000_000_000.0))]
    #[setter(none)]
    seconds: Option<f64>,
}

impl JoinWindow {
    /// A window of `sets` sets, at least 1.
    #[must_use]
    pub fn sets(sets: u64) -> Self {
        Self { sets: Some(sets), ..Self::defaults() }
    }

    /// A window of `seconds` seconds, from 0.001 to 10^9.
    ///
    /// # Examples
    /// ```
    /// use trommel_operators::SetSimilarityJoin;
    /// use trommel_operators::set_similarity_join::JoinWindow;
    ///
    /// let in_an_hour = SetSimilarityJoin::new("4/5".parse()?).window(JoinWindow::seconds(3600.0));
    /// let as_text: JoinWindow = serde_json::from_str(r#"{"seconds": 3600}"#)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn seconds(seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..Self::defaults() }
    }

    /// The extent of the window.
    ///
    /// # Errors
    /// Unless exactly one length is set, within its range.
    pub(crate) fn resolve(self) -> Result<Extent, BindError> {
        window::extent("sets", self.sets, self.seconds)
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
