//! What a wave part counts.

use std::time::{Duration, Instant};

use trommel_engine::operator::Counters;
use trommel_kernels::cuda::FailureKind;

use super::kernel::Landed;

/// The numbers of a wave part.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    waves: u64,
    waves_on_device: u64,
    bytes_to_device: u64,
    bytes_from_device: u64,
    kernel: Duration,
    opening: Duration,
    /// Time with something in flight, and the part of it for which prepare had no chunk to fill.
    in_flight: Duration,
    exposed: Duration,
    /// Since when that is counted, and how the time since then counts.
    since: Option<(Instant, bool)>,
    failures: [u64; 3],
}

impl Ledger {
    /// From now on, something is in flight or not; `is_exposed` if nobody can work meanwhile.
    pub(super) fn flying(&mut self, now: Instant, is_flying: bool, is_exposed: bool) {
        if let Some((since, was_exposed)) = self.since {
            let time = now.saturating_duration_since(since);
            self.in_flight += time;
            if was_exposed {
                self.exposed += time;
            }
        }
        self.since = is_flying.then_some((now, is_exposed));
    }

    pub(super) fn landed(&mut self, landed: Landed) {
        self.waves += 1;
        self.waves_on_device += 1;
        self.bytes_to_device += landed.bytes_to_device;
        self.bytes_from_device += landed.bytes_from_device;
        self.kernel += landed.times.kernel;
    }

    /// A device was opened, or what it had no kernel for yet; or it was found that there is none.
    pub(super) fn opened(&mut self, time: Duration) {
        self.opening += time;
    }

    pub(super) fn ran(&mut self, kernel: Duration) {
        self.waves += 1;
        self.kernel += kernel;
    }

    pub(super) fn failed(&mut self, kind: FailureKind) {
        let index = match kind {
            FailureKind::OutOfMemory => 0,
            FailureKind::Lost => 1,
            _ => 2,
        };
        self.failures[index] += 1;
    }

    pub(super) fn counters(&self) -> Counters {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut counters = vec![
            ("waves", self.waves),
            ("waves_on_device", self.waves_on_device),
            ("kernel_ns", ns(self.kernel)),
            ("bytes_to_device", self.bytes_to_device),
            ("bytes_from_device", self.bytes_from_device),
        ];
        if self.waves_on_device > 0 {
            let hidden = self.in_flight - self.exposed;
            let share = hidden.as_nanos() * 1_000_000 / self.in_flight.as_nanos().max(1);
            counters.push(("overlap_ppm", u64::try_from(share).unwrap_or(u64::MAX)));
            counters.push(("opening_ns", ns(self.opening)));
        }
        let names = ["device_full", "device_lost", "device_refused"];
        let failures = names.into_iter().zip(self.failures).filter(|(_, times)| *times > 0);
        counters.extend(failures);
        counters
    }
}
