//! Counters of the kernel part.

use std::time::{Duration, Instant};

use trommel_engine::operator::Counters;
use trommel_kernels::cuda::FailureKind;

use crate::wave::kernel::Landed;

/// Counters of the kernel part.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    waves: u64,
    waves_on_device: u64,
    bytes_to_device: u64,
    bytes_from_device: u64,
    kernel: Duration,
    opening: Duration,
    /// Time with a chunk in flight.
    in_flight: Duration,
    /// Part of the time in flight during which prepare had no chunk to fill.
    exposed: Duration,
    /// Begin of the present time in flight.
    present: Option<Present>,
    failures: Failures,
}

/// A time in flight that has not ended.
#[derive(Debug, Clone, Copy)]
struct Present {
    since: Instant,
    is_exposed: bool,
}

/// Numbers of failures of devices.
#[derive(Debug, Default)]
struct Failures {
    full: u64,
    lost: u64,
    refused: u64,
}

impl Ledger {
    /// Notes whether a chunk is in flight from `now` on, and whether that time `is_exposed`, so
    /// that prepare cannot work meanwhile.
    pub(crate) fn flying(&mut self, now: Instant, is_flying: bool, is_exposed: bool) {
        if let Some(present) = self.present {
            let time = now.saturating_duration_since(present.since);
            self.in_flight += time;
            if present.is_exposed {
                self.exposed += time;
            }
        }
        self.present = is_flying.then_some(Present { since: now, is_exposed });
    }

    /// Counts a chunk that a device has answered.
    pub(crate) fn landed(&mut self, landed: Landed) {
        self.waves += 1;
        self.waves_on_device += 1;
        self.bytes_to_device += landed.bytes_to_device;
        self.bytes_from_device += landed.bytes_from_device;
        self.kernel += landed.times.kernel;
    }

    /// Adds the time of an attempt to open a device.
    pub(crate) fn opened(&mut self, time: Duration) {
        self.opening += time;
    }

    /// Counts a chunk that the CPU has answered.
    pub(crate) fn ran(&mut self, kernel: Duration) {
        self.waves += 1;
        self.kernel += kernel;
    }

    /// Adds the time in which the CPU made the input of an answer.
    pub(crate) fn prepared(&mut self, kernel: Duration) {
        self.kernel += kernel;
    }

    /// Counts a failure of a device.
    pub(crate) fn failed(&mut self, kind: FailureKind) {
        let Failures { full, lost, refused } = &mut self.failures;
        let count = match kind {
            FailureKind::OutOfMemory => full,
            FailureKind::Lost => lost,
            _ => refused,
        };
        *count += 1;
    }

    /// Whether the device has answered no chunk.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.waves_on_device == 0
    }

    /// The counters, of one of `devices` devices that answer chunks. The counters of all kernels
    /// are added up.
    pub(crate) fn counters(&self, devices: usize) -> Counters {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut counters = vec![
            ("waves", self.waves),
            ("waves_on_device", self.waves_on_device),
            ("kernel_ns", ns(self.kernel)),
            ("bytes_to_device", self.bytes_to_device),
            ("bytes_from_device", self.bytes_from_device),
        ];
        if self.waves_on_device > 0 {
            counters.push(("devices", 1));
            let hidden = self.in_flight - self.exposed;
            let share = hidden.as_nanos() * 1_000_000 / self.in_flight.as_nanos().max(1);
            // The sum is the mean of the shares of all devices.
            let share = share / devices.max(1) as u128;
            counters.push(("overlap_ppm", u64::try_from(share).unwrap_or(u64::MAX)));
            counters.push(("opening_ns", ns(self.opening)));
        }
        let Failures { full, lost, refused } = self.failures;
        let failures = [("device_full", full), ("device_lost", lost), ("device_refused", refused)];
        let lost = failures.iter().map(|(_, times)| times).sum();
        let failures = [("devices_failed", lost)].into_iter().chain(failures);
        counters.extend(failures.filter(|(_, times)| *times > 0));
        counters
    }
}
