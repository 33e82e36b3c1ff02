//! The part of the stream that counts: the whole stream, a window, or recent items by decay.

use std::time::Duration;

use trommel_engine::error::{BindError, BindErrorKind};

use crate::shared::parameters::parameters;
use crate::shared::window::Window;
use crate::shared::window::borders::Borders;
use crate::shared::window::slides::{Slides, one_of_two};
use crate::summary::HalfLife;

/// Maximum bytes that a window may take: 1 GiB.
const WINDOW_BYTES_MAX: usize = 1 << 30;

/// Lets counts fade: `{"half_life_items": 1000000}` or `{"half_life_seconds": 60}`.
///
/// An occurrence of a half-life ago counts half, of two half-lives ago a quarter. Age is counted
/// in steps of a 64th of a half-life. N, `count` and `error` are of the counts as they have faded
/// by the newest item, rounded to whole numbers so that the bounds stay bounds, which makes
/// errors up to 2 larger.
///
/// # Examples
/// ```
/// use trommel_operators::{Decay, FrequentItems};
///
/// let trending = FrequentItems::new().n(10).decay(Decay::seconds(300.0));
/// # let _ = trending;
/// ```
#[parameters(own_new, errors_at = "decay")]
pub struct Decay {
    /// Items after which a count is worth half.
    #[range(1..=274_877_906_944)]
    #[setter(none)]
    half_life_items: Option<u64>,
    /// Seconds after which a count is worth half.
    #[range(0.001..=1_000_000_000.0)]
    #[setter(none)]
    half_life_seconds: Option<f64>,
}

impl Decay {
    /// A half-life of `half_life` items.
    #[must_use]
    pub fn items(half_life: u64) -> Self {
        Self { half_life_items: Some(half_life), ..Self::defaults() }
    }

    /// A half-life of `half_life` seconds.
    #[must_use]
    pub fn seconds(half_life: f64) -> Self {
        Self { half_life_seconds: Some(half_life), ..Self::defaults() }
    }

    fn resolve(&self) -> Result<Scope, BindError> {
        self.check_ranges()?;
        match (self.half_life_items, self.half_life_seconds) {
            (Some(items), None) => Ok(Scope::Decay(HalfLife::Items(items))),
            (None, Some(seconds)) => {
                Ok(Scope::Decay(HalfLife::Time(Duration::from_secs_f64(seconds))))
            }
            _ => Err(one_of_two("decay", "half_life_items", "half_life_seconds")),
        }
    }
}

/// The part of the stream that counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope {
    All,
    Window { panes: usize, borders: Borders },
    Decay(HalfLife),
}

impl Scope {
    pub(crate) fn new(window: Option<&Window>, decay: Option<&Decay>) -> Result<Self, BindError> {
        match (window, decay) {
            (None, None) => Ok(Self::All),
            (Some(window), None) => {
                let Slides { panes, borders } = window.slides()?;
                Ok(Self::Window { panes, borders })
            }
            (None, Some(decay)) => decay.resolve(),
            (Some(_), Some(_)) => {
                let value = "`decay` beside `window`".to_owned();
                let allowed = "use one of them".to_owned();
                Err(BindErrorKind::Value { value, allowed }.at("decay"))
            }
        }
    }
}

/// Refuses a window of `panes` panes whose `bytes` bytes are more than a window may take.
pub(crate) fn check_bytes(panes: usize, bytes: usize) -> Result<(), BindError> {
    if bytes <= WINDOW_BYTES_MAX {
        return Ok(());
    }
    let value = format!("a window of {panes} slides, which takes up to {bytes} bytes,");
    let allowed = format!(
        "at most {WINDOW_BYTES_MAX} bytes are possible: use fewer slides or fewer counters"
    );
    Err(BindErrorKind::Value { value, allowed }.at("window"))
}
