//! The choice between a GPU and the CPU for the pairs of a window.
//!
//! Supports of all pairs are known work: their cost is modelled before the first task is made. So
//! `auto` compares whole windows, and the tasks of a window are all for the device or all for the
//! CPU, each in the form that is best there. The device is opened when the windows that the CPU
//! has counted would have paid for it, the present one included.

use thiserror::Error;
use trommel_kernels::cuda::NoDevice;

use super::cost;
use super::device_form::DeviceForm;
use super::flights;
use super::plan::Task;
use super::vertical::VerticalData;
use crate::wave::{Device, DeviceSession, OPENING_NS};

/// Supports of the items, and transactions, that the batmaps of a device can have.
const MAP_SUPPORT_MAX: u32 = 1 << 23;
const MAP_TRANSACTIONS_MAX: u32 = 1 << 30;

/// A window exceeds the batmaps of a device.
#[derive(Debug, Error)]
#[error(
    "a window of {transactions} transactions, {support} of them with one item, is too large for \
     batmaps on a device: at most {MAP_TRANSACTIONS_MAX} and {MAP_SUPPORT_MAX}; `layout` \
     \"tensor\" has no such limit"
)]
pub(super) struct TooLarge {
    transactions: u32,
    support: u32,
}

/// Chooses, window by window.
pub(super) struct DeviceChoice {
    device: Device,
    forms: &'static [DeviceForm],
    session: DeviceSession,
    /// Whether `auto` takes the device without a comparison of costs.
    is_forced: bool,
    /// Modelled nanoseconds that the device would have saved so far.
    saved_ns: u64,
    /// Bytes of its memory that were free when it was opened.
    free: Option<u64>,
    /// Whether there is no device, or not any more.
    is_gone: bool,
}

impl DeviceChoice {
    /// A choice between the CPU and a `device`, which has data in one of the given forms.
    pub(super) fn new(
        device: Device,
        forms: &'static [DeviceForm],
        session: DeviceSession,
        is_forced: bool,
    ) -> Self {
        Self { device, forms, session, is_forced, saved_ns: 0, free: None, is_gone: false }
    }

    /// Notes that the CPU has answered a task that was for the device.
    pub(super) fn fell_back(&mut self) {
        self.is_gone = true;
    }

    /// The form in which a device is to count the pairs of `data`, if it is not the CPU, which
    /// would count them by the tasks `on_cpu` on `kernels` cores.
    ///
    /// # Errors
    /// If the device cannot hold the data in its form, and is not to be left.
    pub(super) fn choose(
        &mut self,
        data: &VerticalData,
        on_cpu: &[Task],
        kernels: usize,
    ) -> Result<Option<DeviceForm>, TooLarge> {
        if self.is_gone || on_cpu.is_empty() || self.device == Device::Cpu {
            return Ok(None);
        }
        let mut forms = self.forms.to_vec();
        forms.sort_by_key(|form| cost::on_device(data, *form));
        let Some(&best) = forms.first() else { return Ok(None) };
        let (transactions, support) = (data.transactions(), data.support(0));
        let is_too_large = best == DeviceForm::Batmap
            && (transactions > MAP_TRANSACTIONS_MAX || support > MAP_SUPPORT_MAX);
        let is_auto = self.device == Device::Auto;
        if is_auto && (is_too_large || !self.pays(data, best, on_cpu, kernels)) {
            return Ok(None);
        }
        if is_too_large {
            return Err(TooLarge { transactions, support });
        }
        let chosen = forms.into_iter().find(|form| self.has_room(data, *form));
        // A device that has to count says itself that its memory does not suffice.
        Ok(if is_auto { chosen } else { chosen.or(Some(best)) })
    }

    /// Whether a device saves time, and the windows so far pay for opening it.
    fn pays(
        &mut self,
        data: &VerticalData,
        form: DeviceForm,
        on_cpu: &[Task],
        kernels: usize,
    ) -> bool {
        if self.is_forced {
            return true;
        }
        let cpu = on_cpu.iter().map(|task| task.cost).sum::<u64>() / kernels as u64;
        let saved = cpu.saturating_sub(cost::on_device(data, form));
        self.saved_ns = self.saved_ns.saturating_add(saved / 100);
        saved > 0 && self.saved_ns >= OPENING_NS
    }

    /// Whether there is a device, with room for the data. A device that cannot be opened for a
    /// reason that a user must know is taken, so that the kernel meets the same reason.
    fn has_room(&mut self, data: &VerticalData, form: DeviceForm) -> bool {
        if self.is_gone {
            return false;
        }
        if self.free.is_none() {
            let free = || Ok(self.session.open()?.memory_bytes()?.0 as u64);
            self.free = match free() {
                Ok(free) => Some(free),
                Err(NoDevice::UnknownSetting { .. } | NoDevice::Failed(_)) => return true,
                Err(_) => None,
            };
        }
        self.is_gone = self.free.is_none();
        self.free.is_some_and(|free| flights::data_bytes(data, form) <= free)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, UInt32Array};
    use arrow_schema::DataType;

    use super::*;
    use crate::budget::Budget;
    use crate::frequent_pairs::collector::TransactionBlock;
    use crate::frequent_pairs::joining::Joining;
    use crate::frequent_pairs::plan::tasks;
    use crate::frequent_pairs::transposed::Transposition;
    use crate::frequent_pairs::{Layout, Support};
    use crate::names::ItemNames;
    use crate::window::borders::WindowSpan;

    /// Four transactions of 700 items.
    fn data() -> VerticalData {
        let mut names = ItemNames::new(&DataType::UInt32).unwrap();
        let items: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..700));
        let mut numbers = Vec::new();
        names.number(&items, &mut numbers, Budget::new(usize::MAX)).unwrap();
        let block =
            TransactionBlock { ends: vec![700, 1400, 2100, 2800], items: numbers.repeat(4) };
        let blocks = vec![Arc::new(Transposition::default().transpose(&block))];
        let (support, window) = (Support::Count(1), WindowSpan::default());
        let budget = Budget::new(usize::MAX);
        Joining::new(blocks, &names, support, window, (1, 1), budget).unwrap().run()
    }

    fn choice(device: Device, forms: &'static [DeviceForm]) -> DeviceChoice {
        DeviceChoice::new(device, forms, DeviceSession::new(device), false)
    }

    /// The tasks of a CPU, which take `cost` hundredths of a nanosecond.
    fn on_cpu(data: &VerticalData, cost: u64) -> Vec<Task> {
        let mut tasks = tasks(data, Layout::Sliced, 1, u64::MAX / 100);
        tasks.truncate(1);
        tasks[0].cost = cost;
        tasks
    }

    #[test]
    fn windows_save_until_they_have_paid_for_the_device() {
        let data = data();
        let form = DeviceForm::Tensor;
        let mut auto = choice(Device::Auto, &[DeviceForm::Tensor]);
        let device = cost::on_device(&data, form);
        let mut pays = |cpu: u64, kernels| auto.pays(&data, form, &on_cpu(&data, cpu), kernels);
        let opening = 100 * OPENING_NS;
        assert!(!pays(device + opening / 2, 1) && !pays(device, 1), "nothing is saved");
        assert!(!pays(2 * device + opening - 200, 2), "two kernels take half the time");
        assert!(pays(device + 100, 1), "half, half and the rest");
        assert!(!pays(device, 1) && pays(device + 100, 1), "windows that cost more stay");
    }

    #[test]
    fn a_device_is_chosen_only_where_it_may_be() {
        let data = data();
        let tasks = on_cpu(&data, 1);
        let forms = &[DeviceForm::Bitmap];
        let chosen = |device, forms| choice(device, forms).choose(&data, &tasks, 1).unwrap();
        assert_eq!(chosen(Device::Cuda(0), forms), Some(DeviceForm::Bitmap));
        let both = &[DeviceForm::Bitmap, DeviceForm::Tensor];
        assert_eq!(chosen(Device::Cuda(0), both), Some(DeviceForm::Tensor), "it costs less");
        assert_eq!(chosen(Device::Cuda(0), &[]), None);
        assert_eq!(chosen(Device::Cpu, forms), None);
        assert_eq!(chosen(Device::Auto, forms), None, "it saves nothing");
        let mut left = choice(Device::Auto, forms);
        left.is_forced = true;
        left.fell_back();
        assert_eq!(left.choose(&data, &tasks, 1).unwrap(), None);
        assert_eq!(choice(Device::Cuda(0), forms).choose(&data, &[], 1).unwrap(), None);
    }
}
