//! A message about a pipe whose other end does nothing, since a run that waits for such a pipe
//! looks like a run that hangs.

use std::time::{Duration, Instant};

/// Wait after which the user gets a message.
const PATIENCE: Duration = Duration::from_secs(1);

/// The wait for the other end of a pipe.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    since: Option<Instant>,
    is_told: bool,
}

impl Patience {
    /// Continues the wait at `now`. Calls `tell` once, when the wait has become long. Returns the
    /// time until then, if the wait has not become long yet.
    pub(crate) fn wait(&mut self, now: Instant, tell: impl FnOnce()) -> Option<Duration> {
        if self.is_told {
            return None;
        }
        let left = PATIENCE.saturating_sub(now - *self.since.get_or_insert(now));
        if left > Duration::ZERO {
            return Some(left);
        }
        self.is_told = true;
        tell();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_is_told_once() {
        let (mut patience, begin) = (Patience::default(), Instant::now());
        let mut told = 0;
        let steps = [(0, Some(1_000)), (400, Some(600)), (1_000, None), (1_100, None)];
        for (at, left) in steps {
            let now = begin + Duration::from_millis(at);
            let again = patience.wait(now, || told += 1);
            assert_eq!(again, left.map(Duration::from_millis), "{at}");
        }
        assert_eq!(told, 1);
    }
}
