//! The length of windows and the distance between windows, from parameters.

use std::fmt::Display;
use std::time::Duration;

use trommel_engine::error::{BindError, BindErrorKind};

use super::borders::Borders;
use crate::shared::parameters::check_range;
use crate::shared::window::{SECONDS_MAX, SECONDS_MIN};

/// Maximum number of panes of a window.
const PANES_MAX: u64 = 1_000;

/// Windows that consist of panes. A window begins with each pane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slides {
    /// Number of panes per window.
    pub(crate) panes: usize,
    pub(crate) borders: Borders,
}

impl Slides {
    /// Windows of `items` items, with a new window every `slide` items. Without `slide`, windows
    /// follow one after the other.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a whole number from 1 to the items, which convert exactly"
    )]
    pub(crate) fn of_items(items: u64, slide: Option<f64>) -> Result<Self, BindError> {
        check_range("window", &items, &(1..=1 << 53))?;
        let slide = slide.unwrap_or(items as f64);
        check_range("window", &slide, &(1.0..=items as f64))?;
        let pane = slide as u64;
        if pane as f64 != slide || !items.is_multiple_of(pane) {
            return Err(uneven(slide, items));
        }
        Ok(Self { panes: panes(items / pane)?, borders: Borders::items(pane) })
    }

    /// Windows of `seconds`, with a new window every `slide` seconds. Without `slide`, windows
    /// follow one after the other.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a whole number from 1 to 1,000"
    )]
    pub(crate) fn of_time(seconds: f64, slide: Option<f64>) -> Result<Self, BindError> {
        check_range("window", &seconds, &(SECONDS_MIN..=SECONDS_MAX))?;
        let slide = slide.unwrap_or(seconds);
        check_range("window", &slide, &(SECONDS_MIN..=seconds))?;
        let ratio = seconds / slide;
        // 0.3 / 0.1 is not 3 in binary.
        if (ratio - ratio.round()).abs() > 1e-9 * ratio {
            return Err(uneven(slide, seconds));
        }
        let panes = panes(ratio.round() as u64)?;
        Ok(Self { panes, borders: Borders::time(Duration::from_secs_f64(seconds), panes) })
    }
}

fn uneven(slide: f64, window: impl Display) -> BindError {
    let value = format!("a slide of {slide}");
    let allowed = format!("the window, {window}, must be a multiple of it");
    BindErrorKind::Value { value, allowed }.at("window")
}

fn panes(panes: u64) -> Result<usize, BindError> {
    if panes <= PANES_MAX {
        return Ok(usize::try_from(panes).expect("at most 1,000"));
    }
    let value = format!("a window of {panes} slides");
    let allowed = format!("at most {PANES_MAX} are possible");
    Err(BindErrorKind::Value { value, allowed }.at("window"))
}

/// Error if not exactly one of two numbers is set.
pub(crate) fn one_of_two(parameter: &'static str, first: &str, second: &str) -> BindError {
    let value = "both or none of its numbers".to_owned();
    let allowed = format!("set either `{first}` or `{second}`");
    BindErrorKind::Value { value, allowed }.at(parameter)
}
