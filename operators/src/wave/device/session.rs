//! The devices of one operator, each opened once, by the part that needs it first.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use trommel_kernels::cuda::{self, NoDevice};

use super::parameter::Device;

/// A device that is opened at most once, together with the other devices of its operator. Clones
/// share the devices: the parts of an operator run on several threads, and the cost model of one
/// part can need a device before the kernel of another part needs it.
///
/// # Examples
/// ```
/// use trommel_operators::wave::{Device, DeviceSession};
///
/// let session = DeviceSession::new(Device::Auto);
/// let place = match session.open() {
///     Ok(device) => format!("{} bytes of device memory", device.memory_bytes()?.1),
///     Err(reason) => format!("the CPU: {reason}"),
/// };
/// println!("candidates are verified with {place}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DeviceSession {
    devices: Arc<SessionDevices>,
    /// Place of this device among the devices.
    place: usize,
}

/// The devices of an operator. The devices from the first one on, as many as are in use, get
/// chunks. All atomics are read and written in one order (`SeqCst`), so that of two devices that
/// are lost at the same time at least one sees that no other device is left.
#[derive(Debug)]
struct SessionDevices {
    device: Device,
    slots: Vec<DeviceSlot>,
    /// Number of devices in use, with those that are lost.
    in_use: AtomicUsize,
    /// Maximum number of devices in use.
    most: AtomicUsize,
    /// Number of devices that have answered a chunk.
    answering: AtomicUsize,
    /// Number of devices that the driver shows.
    shown: OnceLock<usize>,
    /// Bytes of device memory that were free at the first question.
    free: OnceLock<usize>,
}

#[derive(Debug)]
struct DeviceSlot {
    ordinal: usize,
    opened: OnceLock<Result<cuda::Device, NoDevice>>,
    is_lost: AtomicBool,
}

impl DeviceSlot {
    fn new(ordinal: usize) -> Self {
        Self { ordinal, opened: OnceLock::new(), is_lost: AtomicBool::new(false) }
    }
}

impl From<Device> for DeviceSession {
    fn from(device: Device) -> Self {
        Self::new(device)
    }
}

impl From<&Self> for DeviceSession {
    fn from(session: &Self) -> Self {
        session.clone()
    }
}

impl DeviceSession {
    /// A session with `device`. No device is opened yet.
    #[must_use]
    pub fn new(device: Device) -> Self {
        Self::of_devices(device, OnceLock::new(), OnceLock::new())
    }

    /// A session that reports `free` bytes of device memory without opening a device.
    #[cfg(test)]
    pub(crate) fn with_free_bytes(device: Device, free: usize) -> Self {
        Self::of_devices(device, OnceLock::new(), OnceLock::from(free))
    }

    /// A session on a machine that shows `shown` devices.
    #[cfg(test)]
    pub(crate) fn with_shown(device: Device, shown: usize) -> Self {
        Self::of_devices(device, OnceLock::from(shown), OnceLock::new())
    }

    fn of_devices(device: Device, shown: OnceLock<usize>, free: OnceLock<usize>) -> Self {
        let slots: Vec<DeviceSlot> = device.ordinals().into_iter().map(DeviceSlot::new).collect();
        let (in_use, most) = match device {
            Device::Cpu => (0, 0),
            Device::Auto => (1, slots.len()),
            Device::Cuda(_) | Device::CudaAll | Device::CudaList(_) => (slots.len(), slots.len()),
        };
        let (in_use, most) = (AtomicUsize::new(in_use), AtomicUsize::new(most));
        let answering = AtomicUsize::new(0);
        let devices = SessionDevices { device, slots, in_use, most, answering, shown, free };
        Self { devices: Arc::new(devices), place: 0 }
    }

    /// Limits the devices in use to one for each of `kernels`.
    pub(crate) fn share_among(&self, kernels: usize) {
        self.devices.most.fetch_min(kernels, Ordering::SeqCst);
        self.devices.in_use.fetch_min(kernels, Ordering::SeqCst);
    }

    /// The device at `place`, which belongs to the kernel with this number; none if the operator
    /// has fewer devices.
    pub(crate) fn at(&self, place: usize) -> Option<Self> {
        let is_there = self.device() != Device::Cpu && place < self.devices.slots.len();
        is_there.then(|| Self { devices: Arc::clone(&self.devices), place })
    }

    /// The devices that the parameter names.
    #[must_use]
    pub(crate) fn device(&self) -> Device {
        self.devices.device
    }

    /// Place of this device among the devices of its operator: the number of its kernel.
    #[must_use]
    pub fn place(&self) -> usize {
        self.place
    }

    /// The name of this device alone.
    pub(crate) fn name(&self) -> Device {
        Device::Cuda(self.devices.slots[self.place].ordinal)
    }

    /// Whether a device is open.
    pub(crate) fn is_open(&self) -> bool {
        let mut slots = self.devices.slots.iter();
        slots.any(|slot| slot.opened.get().is_some_and(Result::is_ok))
    }

    /// Opens this device, unless an earlier call has tried that. [`Device::Auto`] begins with the
    /// first GPU, as does [`Device::Cpu`]. Waits while another part opens the device.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn open(&self) -> Result<cuda::Device, NoDevice> {
        let slot = &self.devices.slots[self.place];
        slot.opened.get_or_init(|| cuda::Device::probe(slot.ordinal)).clone()
    }

    /// Opens the first device in use that can be opened.
    ///
    /// # Errors
    /// If no device can be opened; the reason is that of the last one.
    pub(crate) fn open_any(&self) -> Result<cuda::Device, NoDevice> {
        let mut places = self.left().filter_map(|place| self.at(place));
        let mut opened = places.next().as_ref().unwrap_or(self).open();
        while opened.is_err()
            && let Some(next) = places.next()
        {
            opened = next.open();
        }
        opened
    }

    /// The bytes of device memory that were free at the first question, so that all parts of the
    /// operator plan with the same number. Opens a device.
    ///
    /// # Errors
    /// If there is no device, or the device fails.
    pub(crate) fn free_bytes(&self) -> Result<usize, NoDevice> {
        if let Some(free) = self.devices.free.get() {
            return Ok(*free);
        }
        let free = self.open_any()?.memory_bytes()?.0;
        Ok(*self.devices.free.get_or_init(|| free))
    }

    /// Number of devices in use, with those that are lost.
    pub(crate) fn in_use(&self) -> usize {
        self.devices.in_use.load(Ordering::SeqCst)
    }

    /// Takes one device more in use; false if there is none.
    pub(crate) fn take_further(&self) -> bool {
        let SessionDevices { in_use, most, shown, .. } = &*self.devices;
        let most = most.load(Ordering::SeqCst);
        let used = in_use.load(Ordering::SeqCst);
        if used >= most {
            return false;
        }
        let shown = *shown.get_or_init(|| cuda::Device::count().unwrap_or(0));
        let is_there = used < shown;
        if is_there {
            in_use.store(used + 1, Ordering::SeqCst);
        }
        is_there
    }

    /// Notes that this device answers its first chunk.
    pub(crate) fn note_answer(&self) {
        self.devices.answering.fetch_add(1, Ordering::SeqCst);
    }

    /// Number of devices that have answered a chunk.
    pub(crate) fn answering(&self) -> usize {
        self.devices.answering.load(Ordering::SeqCst)
    }

    /// Places of the devices in use that are not lost.
    pub(crate) fn left(&self) -> impl Iterator<Item = usize> {
        let slots = self.devices.slots.iter().take(self.in_use()).enumerate();
        slots.filter(|(_, slot)| !slot.is_lost.load(Ordering::SeqCst)).map(|(place, _)| place)
    }

    /// Leaves this device, which is missing, full or lost; returns whether another device in use is
    /// left.
    pub(crate) fn leave(&self) -> bool {
        let slot = &self.devices.slots[self.place];
        slot.is_lost.store(true, Ordering::SeqCst);
        self.left().next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_in_use_are_those_that_were_asked_for_or_taken() {
        let session = |device| DeviceSession::with_shown(device, 3);
        let left = |session: &DeviceSession| session.left().collect::<Vec<_>>();
        let list = session(Device::list(&[5, 1]).unwrap());
        assert_eq!(left(&list), [0, 1]);
        assert!(!list.take_further() && list.at(2).is_none());
        let [first, second] = [0, 1].map(|place| list.at(place).unwrap());
        assert_eq!([first.name(), second.name()], [Device::Cuda(1), Device::Cuda(5)]);
        assert!(first.leave() && left(&list) == [1] && !second.leave());
        assert_eq!((left(&list), list.in_use()), (vec![], 2));
        let auto = session(Device::Auto);
        assert_eq!(left(&auto), [0]);
        assert!(auto.take_further() && auto.take_further() && !auto.take_further());
        assert_eq!(left(&auto), [0, 1, 2]);
        let of_two = session(Device::Auto);
        of_two.share_among(2);
        assert!(of_two.take_further() && !of_two.take_further());
        assert!(left(&session(Device::Cpu)).is_empty());
    }
}
