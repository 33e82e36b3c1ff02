//! The choice between a GPU and the CPU for the pairs of a window.
//!
//! The counting of all pairs is known work: its cost is modelled before the first task is made. So
//! `auto` compares whole windows, and the tasks of a window are all for the device or all for the
//! CPU, in the form that costs least in that place.

use thiserror::Error;

use super::flights;
use crate::frequent_pairs::data::vertical::VerticalData;
use crate::frequent_pairs::plan::cost;
use crate::frequent_pairs::plan::device_form::DeviceForm;
use crate::frequent_pairs::plan::tasks::Task;
use crate::wave::{Access, DeviceChoice, Estimate};

/// Maximum support of an item, and maximum number of transactions, for batmaps on a device.
const MAP_SUPPORT_MAX: u32 = 1 << 23;
const MAP_TRANSACTIONS_MAX: u32 = 1 << 30;

/// A window exceeds the batmaps of a device.
#[derive(Debug, Error)]
#[error(
    "a window of {transactions} transactions, {support} of them with one item, is too large for \
     batmaps on a device: at most {MAP_TRANSACTIONS_MAX} and {MAP_SUPPORT_MAX}; `layout` \
     \"tensor\" has no such limit"
)]
pub(crate) struct TooLarge {
    transactions: u32,
    support: u32,
}

/// The form, among `forms`, in which a device is to count the pairs of `data`; none if the CPU is
/// to count them, by the tasks `on_cpu` on `kernels` cores.
///
/// # Errors
/// If the device is required, and its form cannot hold the data.
pub(crate) fn choose(
    choice: &mut DeviceChoice,
    forms: &[DeviceForm],
    data: &VerticalData,
    on_cpu: &[Task],
    kernels: usize,
) -> Result<Option<DeviceForm>, TooLarge> {
    let device_ns = |form: &DeviceForm| cost::on_device(data, *form);
    let mut forms = forms.to_vec();
    forms.sort_by(|left, right| device_ns(left).total_cmp(&device_ns(right)));
    let Some(&best) = forms.first().filter(|_| choice.may_use_device() && !on_cpu.is_empty())
    else {
        return Ok(None);
    };
    let (transactions, support) = (data.transactions(), data.support(0));
    if best == DeviceForm::Batmap
        && (transactions > MAP_TRANSACTIONS_MAX || support > MAP_SUPPORT_MAX)
    {
        let too_large = TooLarge { transactions, support };
        return if choice.is_required() { Err(too_large) } else { Ok(None) };
    }
    let cpu_ns = on_cpu.iter().map(|task| task.cpu_ns).sum::<f64>() / kernels as f64;
    if !choice.pays(&Estimate { device_ns: device_ns(&best), ..Estimate::on_cpu(cpu_ns) }) {
        return Ok(None);
    }
    Ok(match choice.open() {
        Access::Missing => None,
        Access::Refused => Some(best),
        Access::Open(_, free) => {
            let has_room = |form: &DeviceForm| flights::data_bytes(data, *form) <= free as u64;
            // If the device is required and no form fits, the device reports the lack of memory.
            forms.into_iter().find(has_room).or(choice.is_required().then_some(best))
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, UInt32Array};
    use arrow_schema::DataType;

    use super::*;
    use crate::frequent_pairs::data::collector::TransactionBlock;
    use crate::frequent_pairs::data::joining::Joining;
    use crate::frequent_pairs::data::transposed::Transposition;
    use crate::frequent_pairs::plan::tasks::tasks;
    use crate::frequent_pairs::{Layout, Support};
    use crate::shared::budget::Budget;
    use crate::shared::names::ItemNames;
    use crate::shared::names::block::ItemBlock;
    use crate::shared::window::borders::WindowSpan;
    use crate::wave::{Device, DevicePrice, DeviceSession, OPENING_NS};

    /// Four transactions of 700 items.
    fn data() -> VerticalData {
        let mut names = ItemNames::new(&DataType::UInt32).unwrap();
        let items: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..700));
        let mut numbers = Vec::new();
        names.number(&items, &mut numbers, Budget::new(usize::MAX)).unwrap();
        let items = ItemBlock::of(numbers.repeat(4));
        let mut block = TransactionBlock { ends: vec![700, 1400, 2100, 2800], items };
        let blocks = vec![Arc::new(Transposition::default().transpose(&mut block))];
        let (support, window) = (Support::Count(1), WindowSpan::default());
        let budget = Budget::new(usize::MAX);
        Joining::new(blocks, &names, support, window, (1, 1), budget).unwrap().run()
    }

    /// The tasks of a CPU; all tasks together take a core `cpu_ns`.
    fn on_cpu(data: &VerticalData, cpu_ns: f64) -> Vec<Task> {
        let mut tasks = tasks(data, Layout::Sliced, 1, f64::MAX);
        tasks.truncate(1);
        tasks[0].cpu_ns = cpu_ns;
        tasks
    }

    fn choice(device: Device, free: usize) -> DeviceChoice {
        DeviceChoice::new(DeviceSession::with_free_bytes(device, free), DevicePrice::MEASURED)
    }

    #[test]
    fn a_device_is_chosen_only_where_it_may_be() {
        let data = data();
        let tasks = on_cpu(&data, 1.0);
        let forms = &[DeviceForm::Bitmap];
        let chosen = |device, forms: &[DeviceForm]| {
            choose(&mut choice(device, 0), forms, &data, &tasks, 1).unwrap()
        };
        // A required device is missing: the kernel reports the reason.
        assert_eq!(chosen(Device::Cuda(0), forms), Some(DeviceForm::Bitmap));
        let both = &[DeviceForm::Bitmap, DeviceForm::Tensor];
        assert_eq!(chosen(Device::Cuda(0), both), Some(DeviceForm::Tensor), "it costs less");
        assert_eq!(chosen(Device::Cuda(0), &[]), None);
        assert_eq!(chosen(Device::Cpu, forms), None);
        assert_eq!(chosen(Device::Auto, forms), None, "it saves nothing");
        let session = DeviceSession::with_free_bytes(Device::Cuda(0), 0);
        let mut left = DeviceChoice::new(session.clone(), DevicePrice::MEASURED);
        session.leave();
        assert_eq!(choose(&mut left, forms, &data, &tasks, 1).unwrap(), None);
        assert_eq!(choose(&mut choice(Device::Cuda(0), 0), forms, &data, &[], 1).unwrap(), None);
    }

    #[test]
    fn cores_share_the_work_of_a_window() {
        let data = data();
        let device_ns = cost::on_device(&data, DeviceForm::Tensor);
        for kernels in [1, 2] {
            let mut auto = choice(Device::Auto, 0);
            let mut is_charged = |of_one: f64| {
                let tasks = on_cpu(&data, of_one * kernels as f64);
                choose(&mut auto, &[DeviceForm::Tensor], &data, &tasks, kernels).unwrap();
                auto.is_next()
            };
            assert!(!is_charged(device_ns + OPENING_NS / 2.0) && !is_charged(device_ns));
            assert!(is_charged(device_ns + OPENING_NS / 2.0 + 1.0) == auto.may_use_device());
        }
    }
}
