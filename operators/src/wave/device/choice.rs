//! The choice between devices and the CPU: the rule of `device: "auto"`.
//!
//! A device answers work faster than a CPU, but the device has to be opened and needs data that the
//! host has to send. The amount of work is not known before the end of the stream. So the CPU
//! answers, and an account adds up the time that a device would have saved. When the account
//! reaches the time for opening the device and sending the data, the choice pays both, and the
//! device answers the work that it answers faster than the CPU. For any amount of work, this costs
//! at most twice as much as the better of the two choices (the *ski rental* rule: Karlin, Manasse,
//! Rudolph, Sleator, *Competitive Snoopy Caching*, Algorithmica 3, 1988). Costs are modelled, not
//! timed, so equal runs make equal decisions.
//!
//! A further device is taken by the same rule: `n + 1` devices save a share of `1 / (n + 1)` of the
//! time that `n` devices need, and the further device has to be opened and needs the same data.
//!
//! An operator whose chunks are small pieces of unknown work gives their [`Estimate`]s, and the
//! wave decides chunk by chunk. An operator that knows its work before it cuts chunks, such as the
//! work of a window, asks a [`DeviceChoice`] of its own, and its chunks name their
//! [`Target`](crate::wave::Target).

use trommel_kernels::cuda::{self, NoDevice};

use super::parameter::Device;
use super::session::DeviceSession;

/// Nanoseconds to open a device. Measured with an H200: 0.2 to 0.4 s for the driver and its
/// context, 0.02 to 0.07 s for kernels and pinned memory (bench/reports/gpu.md).
pub(crate) const OPENING_NS: f64 = 4e8;

/// Share of the opening that is left on a device that another part has opened: loading kernels and
/// pinning memory (the same measurement).
const LOADING_SHARE: f64 = 0.125;

/// Nanoseconds to send a byte from pageable host memory to a device (bench/reports/gpu.md, *The
/// whole way*).
pub(crate) const SEND_NS_PER_BYTE: f64 = 1.0 / 6.0;

/// A modelled number, rounded down to a whole number. A negative number becomes 0, and a number
/// beyond the range becomes the largest number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
pub(crate) fn whole(number: f64) -> usize {
    number as usize
}

/// Modelled cost of a piece of work.
///
/// # Examples
/// ```
/// use trommel_operators::wave::Estimate;
///
/// let sum = Estimate::on_cpu(2.5e6);
/// assert_eq!((sum.cpu_ns, sum.device_ns, sum.bytes), (2.5e6, 0.0, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Nanoseconds of the CPU. For a chunk: nanoseconds of one core. For work that an operator cuts
    /// into chunks: nanoseconds until all cores are done.
    pub cpu_ns: f64,
    /// Nanoseconds of a device that is open, with the transfer of data that the device does not
    /// keep; 0 if that time is short compared with `cpu_ns`.
    pub device_ns: f64,
    /// Bytes of the data that the device needs and keeps.
    pub bytes: u64,
    /// Versions of this data: work with equal versions shares one transfer. `None` if each piece of
    /// work names the bytes that are still missing on the device.
    pub data: Option<[u64; 2]>,
}

impl Estimate {
    /// Work that takes a core `cpu_ns` nanoseconds, and needs no data on a device.
    #[must_use]
    pub fn on_cpu(cpu_ns: f64) -> Self {
        Self { cpu_ns, ..Self::default() }
    }
}

/// Costs of a device in addition to the costs of its work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DevicePrice {
    /// Nanoseconds to open the device.
    pub opening_ns: f64,
    /// Factor of the modelled costs of work on a device; 0 takes the device for all work that it
    /// can do.
    pub factor: f64,
}

impl DevicePrice {
    /// The measured costs.
    pub const MEASURED: Self = Self { opening_ns: OPENING_NS, factor: 1.0 };

    /// The price of a device that is taken for all work that it can do.
    pub const FREE: Self = Self { opening_ns: 0.0, factor: 0.0 };
}

/// Outcome of an attempt to open the device that pays.
#[derive(Debug)]
pub(crate) enum Access {
    /// The device, and the bytes of its memory that were free when it was opened.
    Open(cuda::Device, usize),
    /// The device cannot be opened, for a reason that the user must know. The operator goes on as
    /// if the device were open: the kernel meets the same reason and ends the run with an error.
    Refused,
    /// There is no device, and the CPU answers.
    Missing,
}

/// The choice between a device and the CPU, for all work of an operator.
#[derive(Debug, Clone)]
pub(crate) struct DeviceChoice {
    session: DeviceSession,
    price: DevicePrice,
    /// Nanoseconds that the device would have saved so far.
    saved_ns: f64,
    /// Nanoseconds that have been paid for the device and its data.
    spent_ns: f64,
    /// Whether the opening has been paid.
    is_paid: bool,
    /// Versions of the data that was paid last.
    data: Option<[u64; 2]>,
    /// Nanoseconds that one device more would have saved since the last device was taken.
    further_ns: f64,
    /// Whether there is no device.
    is_gone: bool,
}

impl DeviceChoice {
    /// A choice between the CPU and the device of `session`.
    pub(crate) fn new(session: DeviceSession, price: DevicePrice) -> Self {
        Self {
            is_gone: false,
            session,
            price,
            saved_ns: 0.0,
            spent_ns: 0.0,
            is_paid: false,
            data: None,
            further_ns: 0.0,
        }
    }

    /// Whether the device takes all work that it can do, at any cost.
    pub(crate) fn is_asked_for(&self) -> bool {
        let is_auto = self.session.device() == Device::Auto;
        self.is_required() || is_auto && self.price == DevicePrice::FREE
    }

    /// Whether devices are the only allowed place, so that the failure of the last one ends the
    /// run.
    pub(crate) fn is_required(&self) -> bool {
        self.session.device().is_required()
    }

    /// Whether the operator may still use a device: there is one, and not all are lost.
    pub(crate) fn may_use_device(&self) -> bool {
        !self.is_gone && self.session.left().next().is_some()
    }

    /// Number of devices that the operator uses, with those that are lost.
    pub(crate) fn devices(&self) -> usize {
        self.session.in_use()
    }

    /// Adds the time that a device would save if the device did this work, and the time that one
    /// device more would save.
    pub(crate) fn charge(&mut self, work: &Estimate) {
        let gain = self.gain(work);
        if gain > 0.0 {
            self.saved_ns += gain;
            self.further_ns += self.further_gain(work);
        }
    }

    /// Whether the device would do this work if the data were there. An operator asks this before
    /// it searches for the data that the device lacks.
    pub(crate) fn may_pay(&self, work: &Estimate) -> bool {
        let (gain, due) = (self.gain(work), self.opening_ns());
        let is_faster = gain > 0.0 && self.saved_ns + gain >= self.spent_ns + due;
        self.may_use_device() && (self.is_asked_for() || is_faster)
    }

    /// Whether the device is to do this work. Charges the work. If the device does the work, the
    /// opening and the transfer are paid.
    pub(crate) fn pays(&mut self, work: &Estimate) -> bool {
        let may_pay = self.may_pay(work);
        self.charge(work);
        let sent = work.data.is_some() && work.data == self.data;
        let sending_ns = if sent { 0.0 } else { work.bytes as f64 * SEND_NS_PER_BYTE };
        let due_ns = self.opening_ns() + self.price.factor * sending_ns;
        let pays = may_pay && (self.is_asked_for() || self.saved_ns >= self.spent_ns + due_ns);
        if pays {
            self.spent_ns += due_ns;
            self.is_paid = true;
            self.data = work.data;
            self.pay_further(work);
        }
        pays
    }

    /// Takes further devices while the time that one device more would have saved pays for the
    /// device and the data.
    fn pay_further(&mut self, work: &Estimate) {
        let sending_ns = self.price.factor * work.bytes as f64 * SEND_NS_PER_BYTE;
        while self.further_ns >= self.price.opening_ns + sending_ns && self.session.take_further() {
            self.further_ns = self.further_gain(work);
        }
    }

    /// Whether the device does the next work, as far as the choice can tell before the work is
    /// known.
    pub(crate) fn is_next(&self) -> bool {
        let is_paid = self.saved_ns >= self.spent_ns + self.opening_ns();
        self.may_use_device() && (self.is_asked_for() || is_paid)
    }

    /// Opens the first device that can be opened, unless that has been done or tried.
    pub(crate) fn open(&mut self) -> Access {
        if !self.may_use_device() {
            return Access::Missing;
        }
        let opened = self.session.open_any().and_then(|gpu| Ok((gpu, self.session.free_bytes()?)));
        match opened {
            Ok((gpu, free)) => Access::Open(gpu, free),
            Err(reason) => self.refused(&reason),
        }
    }

    /// The outcome of an attempt to open the device that has failed for `reason`.
    pub(crate) fn refused(&mut self, reason: &NoDevice) -> Access {
        let is_told = matches!(reason, NoDevice::UnknownSetting { .. } | NoDevice::Failed(_));
        if is_told || self.is_required() {
            return Access::Refused;
        }
        self.is_gone = true;
        Access::Missing
    }

    /// Nanoseconds that the device saves in this work; negative if the CPU is faster.
    fn gain(&self, work: &Estimate) -> f64 {
        work.cpu_ns - self.price.factor * work.device_ns
    }

    /// Nanoseconds that one device more saves in this work.
    fn further_gain(&self, work: &Estimate) -> f64 {
        let devices = self.devices() as f64;
        self.price.factor * work.device_ns / (devices * (devices + 1.0))
    }

    /// Nanoseconds to open the device that have not been paid yet.
    fn opening_ns(&self) -> f64 {
        match (self.is_paid, self.session.is_open()) {
            (true, _) => 0.0,
            (false, true) => LOADING_SHARE * self.price.opening_ns,
            (false, false) => self.price.opening_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto() -> DeviceChoice {
        DeviceChoice::new(DeviceSession::new(Device::Auto), DevicePrice::MEASURED)
    }

    #[test]
    fn a_device_pays_when_it_would_have_saved_as_much_as_it_costs() {
        let mut choice = auto();
        let data = |cpu_ns, version| Estimate {
            bytes: 600,
            data: Some([1, version]),
            ..Estimate::on_cpu(cpu_ns)
        };
        assert!(!choice.is_next() && !choice.pays(&data(OPENING_NS - 1.0, 1)));
        assert!(!choice.pays(&data(100.0, 1)), "the data costs 100 ns");
        assert!(choice.pays(&data(1.0, 1)) && choice.is_next());
        assert!(choice.pays(&data(0.5, 1)), "the data is there");
        assert!(!choice.pays(&data(99.0, 2)), "other data is to be sent");
        assert!(choice.pays(&data(0.5, 2)));
        choice.session.leave();
        assert!(!choice.pays(&data(1e12, 2)) && !choice.is_next());
    }

    #[test]
    fn a_further_device_pays_when_it_would_have_saved_as_much_as_it_costs() {
        let session = DeviceSession::with_shown(Device::Auto, 3);
        let mut choice = DeviceChoice::new(session.clone(), DevicePrice::MEASURED);
        let work = |device_ns| Estimate { device_ns, ..Estimate::on_cpu(1e18) };
        assert!(choice.pays(&work(OPENING_NS)) && session.in_use() == 1, "half of the opening");
        assert!(choice.pays(&work(OPENING_NS - 2.0)) && session.in_use() == 1);
        assert!(choice.pays(&work(2.0)) && session.in_use() == 2);
        // The third device saves a sixth.
        assert!(choice.pays(&work(6.0 * OPENING_NS - 12.0)) && session.in_use() == 2);
        let data = Estimate { bytes: 60, data: Some([1, 1]), ..work(12.0) };
        assert!(choice.pays(&data) && session.in_use() == 2, "the data costs 10 ns");
        assert!(choice.pays(&Estimate { device_ns: 60.0, ..data }) && session.in_use() == 3);
        assert!(choice.pays(&work(1e15)) && session.in_use() == 3, "there is no other device");
        for place in [1, 0] {
            session.at(place).unwrap().leave();
            assert!(choice.may_use_device());
        }
        session.at(2).unwrap().leave();
        assert!(!choice.may_use_device() && !choice.pays(&work(1.0)));
    }

    #[test]
    fn one_large_work_takes_all_devices_that_pay() {
        for (device_ns, price, devices) in [
            (2.0 * OPENING_NS - 1.0, DevicePrice::MEASURED, 1),
            (2.0 * OPENING_NS, DevicePrice::MEASURED, 2),
            (6.0 * OPENING_NS, DevicePrice::MEASURED, 3),
            (12.0 * OPENING_NS, DevicePrice::MEASURED, 4),
            (0.0, DevicePrice::FREE, 5),
        ] {
            let mut choice = DeviceChoice::new(DeviceSession::with_shown(Device::Auto, 5), price);
            assert!(choice.pays(&Estimate { device_ns, ..Estimate::on_cpu(1e12) }));
            assert_eq!(choice.devices(), devices);
        }
    }

    #[test]
    fn work_that_a_device_does_not_do_faster_stays_on_the_cpu() {
        let mut choice = auto();
        let work = |cpu_ns, device_ns| Estimate { device_ns, ..Estimate::on_cpu(cpu_ns) };
        assert!(!choice.pays(&work(1.0 + OPENING_NS / 2.0, 1.0)) && !choice.pays(&work(5.0, 5.0)));
        assert!(choice.pays(&work(7.0 + OPENING_NS / 2.0, 7.0)), "one half, and the other one");
        assert!(!choice.pays(&work(5.0, 5.0)) && !choice.pays(&work(1.0, 5.0)));
        assert!(choice.pays(&work(5.5, 5.0)));
        let mut known = auto();
        known.charge(&Estimate::on_cpu(f64::INFINITY));
        assert!(known.is_next() && known.pays(&work(1.0, 0.5)));
    }

    #[test]
    fn a_device_that_is_asked_for_is_not_compared() {
        let cost = Estimate { device_ns: 9.0, bytes: 1 << 40, ..Estimate::on_cpu(1.0) };
        let choice = |device, price| DeviceChoice::new(DeviceSession::new(device), price);
        let (measured, free) = (DevicePrice::MEASURED, DevicePrice::FREE);
        for (device, price) in [(Device::Cuda(0), measured), (Device::Auto, free)] {
            let mut choice = choice(device, price);
            assert!(choice.is_next() && choice.pays(&cost), "{device}");
            choice.session.leave();
            assert!(!choice.pays(&cost), "{device}");
        }
        assert!(!choice(Device::Cpu, free).pays(&cost));
        let told = NoDevice::UnknownSetting { value: "gpu".to_owned() };
        for (device, reason, is_refused) in [
            (Device::Auto, &NoDevice::NoDriver, false),
            (Device::Auto, &told, true),
            (Device::Cuda(0), &NoDevice::NoDriver, true),
        ] {
            let mut choice = choice(device, measured);
            assert_eq!(matches!(choice.refused(reason), Access::Refused), is_refused, "{device}");
            assert_eq!(choice.may_use_device(), is_refused);
        }
    }
}
