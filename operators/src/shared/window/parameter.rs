//! Windows as a parameter.

use trommel_engine::error::BindError;

use super::slides::{Slides, one_of_two};
use crate::shared::parameters::parameters;

/// Counts in windows: `{"items": 1000000}` or `{"seconds": 10}`, one after the other, or
/// overlapping with `slide`.
///
/// When a window closes, its rows are emitted, with the columns `window_start`, `window_end` and
/// `complete`. For a window of items, the borders are positions in the stream from 0, the end not
/// included (UInt64); it closes exactly after its last item. For a window of time they are times
/// (Timestamp, UTC), whole multiples of the slide since 1970: windows of 60 seconds begin with the
/// minute, in every run. A batch belongs to the window in which it entered the pipeline, and a
/// window closes when its time has passed, also if nothing comes. When the stream ends, the last
/// window closes too. `complete` is false for a window that the stream did not fill: it began
/// before the first batch came, or had not ended when the stream did. Windows in which nothing came
/// have no rows.
///
/// # Examples
/// ```
/// use trommel_operators::{FrequentItems, Window};
///
/// let last_minute = Window::seconds(60.0).slide(10.0);
/// let top = FrequentItems::new().n(10).window(last_minute);
/// # let _ = top;
/// ```
#[parameters(own_new)]
pub struct Window {
    /// Items of a window.
    #[schemars(range(min = 1))]
    #[setter(none)]
    items: Option<u64>,
    /// Seconds of a window.
    #[schemars(range(min = 0.001, max = 1_000_000_000.0))]
    #[setter(none)]
    seconds: Option<f64>,
    /// Distance between the beginnings of two windows, in items or seconds; the window must be a
    /// multiple of it, up to 1,000 times. Its own length when left out.
    #[schemars(range(min = 0.001))]
    slide: Option<f64>,
}

impl Window {
    /// Windows of `items` items.
    #[must_use]
    pub fn items(items: u64) -> Self {
        Self { items: Some(items), ..Self::defaults() }
    }

    /// Windows of `seconds` seconds.
    #[must_use]
    pub fn seconds(seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..Self::defaults() }
    }

    /// The panes and the borders of the windows.
    pub(crate) fn slides(&self) -> Result<Slides, BindError> {
        match (self.items, self.seconds) {
            (Some(items), None) => Slides::of_items(items, self.slide),
            (None, Some(seconds)) => Slides::of_time(seconds, self.slide),
            _ => Err(one_of_two("window", "items", "seconds")),
        }
    }
}
