//! The time at which a device is opened: while input is still read, where the join will need it.

use trommel_kernels::cuda;

use super::costs::JOINED_TOKEN;
use super::verify_plan::VerifyPlan;
use crate::wave::{Device, DeviceSession, OPENING_NS};

/// A device that is not opened yet.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    session: Option<DeviceSession>,
    /// Number of tokens of all sets from which on the device is opened.
    tokens_min: f64,
}

impl Opening {
    /// Opens the device of `session` at once if `device` asks for it. With `auto`, opens the device
    /// when joining the sets that have arrived takes `cores` cores longer than opening the device
    /// takes. On one core, `auto` never opens the device early, because the only kernel would wait
    /// for a device that the join may not use.
    pub(crate) fn new(plan: VerifyPlan, session: &DeviceSession, cores: usize) -> Self {
        let tokens_min = match plan.device {
            device if device.is_required() => 0.0,
            Device::Auto if cores > 1 => OPENING_NS / JOINED_TOKEN * cores as f64,
            _ => return Self::default(),
        };
        Self { session: Some(session.clone()), tokens_min }
    }

    /// The session of a device that is to be opened now that `tokens` tokens have arrived. Returned
    /// once.
    pub(crate) fn due(&mut self, tokens: usize) -> Option<DeviceSession> {
        let session = self.session.take_if(|_| tokens as f64 >= self.tokens_min)?;
        cuda::Device::has_driver().then_some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set_similarity_join::plan::verify_plan::PairKernel;

    #[test]
    fn a_device_is_opened_once_and_at_once_if_it_is_asked_for() {
        let of = |device| {
            let plan = VerifyPlan { device, kernel: PairKernel::BySize };
            Opening::new(plan, &DeviceSession::new(device), 2)
        };
        let mut asked_for = of(Device::Cuda(0));
        // Without a driver there is nothing to open.
        assert_eq!(asked_for.due(0).is_some(), cuda::Device::has_driver());
        assert!(asked_for.due(usize::MAX).is_none());
        assert!(of(Device::Cpu).due(usize::MAX).is_none());
        assert!(of(Device::Auto).due(0).is_none());
    }
}
