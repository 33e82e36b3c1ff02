//! Windows over a stream, and their cells.
//!
//! The extent of a window is a number of items or a time. State that expires is kept per *cell*, a
//! fraction of the window, so memory holds the window and at most one further cell.

pub(crate) mod borders;
pub(crate) mod clock;
pub(crate) mod cutter;
pub(crate) mod panes;
mod parameter;
pub(crate) mod slides;

use std::time::Duration;

use trommel_engine::error::BindError;

pub use self::parameter::Window;
use crate::shared::parameters::{check_range, refuse};

/// Minimum and maximum time of a window, in seconds.
pub(crate) const SECONDS_MIN: f64 = 0.001;
pub(crate) const SECONDS_MAX: f64 = 1e9;

/// Number of cells of a window: expired state is at most 1 / `CELLS` of the state of the window.
pub(crate) const CELLS: u64 = 4;

/// `seconds`, from 0.001 to 10^9, as a duration. Errors name `parameter`.
pub(crate) fn duration(parameter: &'static str, seconds: f64) -> Result<Duration, BindError> {
    check_range(parameter, &seconds, &(SECONDS_MIN..=SECONDS_MAX))?;
    Ok(Duration::from_secs_f64(seconds))
}

/// The extent of a window of `items` items, which the parameter calls `unit`, or of `seconds`.
///
/// # Errors
/// Unless exactly one of the two numbers is given, within its range.
pub(crate) fn extent(
    unit: &str,
    items: Option<u64>,
    seconds: Option<f64>,
) -> Result<Extent, BindError> {
    match (items, seconds) {
        (Some(items), None) => {
            check_range("window", &items, &(1..=u64::MAX))?;
            Ok(Extent::Items(items))
        }
        (None, Some(seconds)) => Ok(Extent::of_time(duration("window", seconds)?)),
        _ => {
            let allowed = format!("set either `{unit}` or `seconds`");
            Err(refuse("window", "both or none of its numbers", allowed))
        }
    }
}

/// Extent of a window, in the unit of the stamps of its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Number of items. The stamp of an item is its position in the stream.
    Items(u64),
    /// Time. The stamp of an item is the time from the first arrival to the arrival of the item.
    Nanoseconds(u64),
    /// All items. Stamps are those of [`Self::Items`].
    Endless,
}

impl Extent {
    /// The extent of `time`, at most 10^9 seconds.
    pub(crate) fn of_time(time: Duration) -> Self {
        Self::Nanoseconds(u64::try_from(time.as_nanos()).expect("at most 10^18"))
    }

    /// Whether an item with stamp `older` is in the window of an item with stamp `newer`. True if
    /// `older` is the later stamp.
    #[inline]
    pub(crate) fn reaches(self, older: u64, newer: u64) -> bool {
        match self {
            Self::Items(length) | Self::Nanoseconds(length) => newer.saturating_sub(older) < length,
            Self::Endless => true,
        }
    }

    /// Cell of `stamp`. All items of a cell are in the window together.
    pub(crate) fn cell(self, stamp: u64) -> u64 {
        stamp / self.cell_length()
    }

    /// Number of items from `position` on that are in one cell.
    pub(crate) fn left_in_cell(self, position: u64) -> usize {
        match self {
            Self::Items(_) => {
                let length = self.cell_length();
                usize::try_from(length - position % length).unwrap_or(usize::MAX)
            }
            // All items of a batch have the same time.
            Self::Nanoseconds(_) | Self::Endless => usize::MAX,
        }
    }

    fn cell_length(self) -> u64 {
        match self {
            Self::Items(length) | Self::Nanoseconds(length) => length.div_ceil(CELLS),
            Self::Endless => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_n_items_is_n_items() {
        let window = Extent::Items(3);
        assert!(window.reaches(5, 7) && !window.reaches(5, 8));
        assert!(Extent::Items(1).reaches(5, 5) && !Extent::Items(1).reaches(5, 6));
        assert!(Extent::Endless.reaches(0, u64::MAX - 1));
    }

    #[test]
    fn items_of_a_cell_are_in_the_window_together() {
        for length in 1..40 {
            let window = Extent::Items(length);
            for stamp in 0..200 {
                let last = stamp + window.left_in_cell(stamp) as u64 - 1;
                assert_eq!(window.cell(stamp), window.cell(last));
                assert_ne!(window.cell(stamp), window.cell(last + 1));
                assert!(window.reaches(stamp, last));
            }
        }
    }

    #[test]
    fn times_have_limits() {
        let refused = |seconds| duration("window", seconds).unwrap_err().to_string();
        assert!(refused(0.0).contains("0.001") && refused(f64::NAN).contains("NaN"));
        assert_eq!(
            Extent::of_time(duration("window", 1.5).unwrap()),
            Extent::Nanoseconds(1_500_000_000)
        );
    }
}
