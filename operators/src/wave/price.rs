//! The rule of `device: "auto"`: when a device pays.
//!
//! A device answers chunks faster than a CPU, but it has to be opened, and data has to be sent to
//! it. The amount of work is not known before its end. So chunks are answered on the CPU until its
//! kernels have each worked as long as opening the device and sending the data take, and on the
//! device from then on. For any amount of work, this costs at most twice as much as the better of
//! the two choices (the *ski rental* rule: Karlin, Manasse, Rudolph, Sleator, *Competitive Snoopy
//! Caching*, Algorithmica 3, 1988). Costs are modelled, not timed, so equal runs take equal
//! decisions.

use super::chunk::Cost;

/// Nanoseconds to open a device. Measured with an H200: 0.2 to 0.4 s for the driver and its
/// context, 0.02 to 0.07 s for kernels and pinned memory (bench/reports/gpu.md).
pub(crate) const OPENING_NS: u64 = 400_000_000;

/// Bytes per nanosecond from pageable host memory to a device (bench/reports/gpu.md, *The whole
/// way*).
const BYTES_PER_NS: u64 = 6;

/// Modelled time of the CPU, compared with the cost of a device.
#[derive(Debug)]
pub(super) struct Price {
    /// Kernels that share the work on the CPU.
    kernels: u64,
    /// Nanoseconds of all these kernels for all chunks.
    spent_ns: u64,
    /// The same for the chunks of the present data.
    spent_on_data_ns: u64,
    /// Versions of the present data.
    data: Option<[u64; 2]>,
    /// Nanoseconds to send it.
    sending_ns: u64,
}

impl Price {
    /// The price of nothing, for `kernels` kernels.
    pub(super) fn new(kernels: usize) -> Self {
        let kernels = kernels as u64;
        Self { kernels, spent_ns: 0, spent_on_data_ns: 0, data: None, sending_ns: 0 }
    }

    /// Switches to the data of the next chunks, if it is other data.
    pub(super) fn switch_data(&mut self, cost: &Cost) {
        if self.data != Some(cost.data) {
            self.data = Some(cost.data);
            self.sending_ns = cost.data_bytes / BYTES_PER_NS;
            self.spent_on_data_ns = 0;
        }
    }

    /// Charges the time that a CPU needs for a chunk, also if a device answers it.
    pub(super) fn charge(&mut self, cost: &Cost) {
        self.spent_ns = self.spent_ns.saturating_add(cost.cpu_ns);
        self.spent_on_data_ns = self.spent_on_data_ns.saturating_add(cost.cpu_ns);
    }

    /// Whether the device pays for the chunks that follow.
    pub(super) fn device_pays(&self) -> bool {
        let [spent, on_data] =
            [self.spent_ns, self.spent_on_data_ns].map(|time| time / self.kernels);
        spent >= OPENING_NS && on_data >= self.sending_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_pays_when_the_cpu_has_spent_as_much() {
        let mut price = Price::new(1);
        let cost = |cpu_ns| Cost { cpu_ns, data: [1, 1], data_bytes: 600 };
        price.switch_data(&cost(0));
        assert!(!price.device_pays(), "at the beginning");
        price.charge(&cost(OPENING_NS - 1));
        price.switch_data(&cost(0));
        assert!(!price.device_pays());
        price.charge(&cost(1));
        assert!(price.device_pays());
        let other = |cpu_ns| Cost { cpu_ns, data: [1, 2], data_bytes: 600 };
        price.switch_data(&other(0));
        price.charge(&other(99));
        assert!(!price.device_pays(), "other data is to be sent");
        price.charge(&other(1));
        assert!(price.device_pays());
    }

    #[test]
    fn kernels_share_the_time_of_the_cpu() {
        let mut price = Price::new(4);
        let cost = |cpu_ns| Cost { cpu_ns, data: [1, 1], data_bytes: 0 };
        price.switch_data(&cost(0));
        price.charge(&cost(4 * OPENING_NS - 1));
        assert!(!price.device_pays());
        price.charge(&cost(1));
        assert!(price.device_pays());
    }
}
