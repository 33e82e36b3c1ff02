//! The choice between a GPU and the CPU for a join.
//!
//! The work is known when the inputs have ended: its cost is modelled before the first chunk is
//! made. So `auto` compares whole joins, with the time to open the device. Blocks are as large as
//! the memory of the device allows.

use trommel_kernels::cuda::vectors::{Method, VectorLimits};

use super::flights::slot_bytes;
use crate::epsilon_join::parameters::options::{EpsilonAlgorithm, EpsilonOutput};
use crate::epsilon_join::parameters::rules::Rules;
use crate::epsilon_join::parameters::tuning::Tuning;
use crate::epsilon_join::plan::cost::{self, Shape};
use crate::epsilon_join::plan::job::DevicePlan;
use crate::wave::{Access, DeviceChoice, Estimate};

/// Dimensions up to which a directory is faster on a device than products of all vectors.
const DIRECTORY_DIMS_MAX: usize = 16;
/// Maximum bytes of a store; these bytes are sent in a second or two.
const STORE_BYTES_MAX: usize = 1 << 33;
/// Maximum coordinates of the right vectors of a nested loop; a warp compares these in less than a
/// second.
const LOOP_NUMBERS_MAX: usize = 1 << 28;
/// Maximum blocks of a side.
const SIDE_BLOCKS_MAX: usize = 256;

/// Methods of a device for vectors of `dims` dimensions, the fastest first.
fn methods(algorithm: EpsilonAlgorithm, dims: usize) -> &'static [Method] {
    let is_small = dims <= DIRECTORY_DIMS_MAX;
    match algorithm {
        EpsilonAlgorithm::Auto | EpsilonAlgorithm::Directory if is_small => &[Method::Boxes],
        EpsilonAlgorithm::Directory => &[],
        EpsilonAlgorithm::NestedLoop if is_small => &[Method::NestedLoop],
        EpsilonAlgorithm::Auto | EpsilonAlgorithm::NestedLoop if Method::Tiles.takes(dims) => {
            &[Method::Tiles, Method::NestedLoop]
        }
        EpsilonAlgorithm::Auto | EpsilonAlgorithm::NestedLoop => &[Method::NestedLoop],
    }
}

/// Whether a device has a method for this algorithm.
pub(crate) fn has_method(algorithm: EpsilonAlgorithm, dims: usize) -> bool {
    !methods(algorithm, dims).is_empty()
}

/// Whether a device is to join vectors at any cost.
pub(crate) fn is_asked_for(choice: &mut DeviceChoice) -> bool {
    choice.is_asked_for() && !matches!(choice.open(), Access::Missing)
}

/// The way in which a device is to join vectors; `None` if the CPU joins the vectors.
pub(crate) fn choose(
    choice: &mut DeviceChoice,
    rules: &Rules,
    shape: &Shape,
) -> Option<DevicePlan> {
    let methods = methods(rules.algorithm, shape.dims);
    let first = *methods.first().filter(|_| shape.pairs() > 0)?;
    let work = |method| Estimate {
        device_ns: cost::on_device(method, shape),
        ..Estimate::on_cpu(cost::on_cpu(rules, shape))
    };
    // The question comes before the device is opened, because opening costs time.
    if !choice.may_pay(&work(first)) {
        return None;
    }
    match choice.open() {
        Access::Missing => None,
        // The kernel meets the same reason and reports it.
        Access::Refused => Some(smallest(first)),
        Access::Open(gpu, free) => {
            let is_there = |method: &&Method| method.is_available(gpu.properties());
            let method = *methods.iter().find(is_there)?;
            let is_required = choice.is_required();
            let plan = |devices| match plan_within(free, method, rules, (shape, devices)) {
                Err(smallest) if is_required => Some(smallest),
                plan => plan.ok(),
            };
            // If no plan fits, nothing is paid.
            plan(choice.devices())?;
            if !choice.pays(&work(method)) {
                return None;
            }
            plan(choice.devices())
        }
    }
}

/// The plan with the largest blocks that the `free` bytes of each of `devices` devices allow, and
/// that give all devices work; if no plan fits, the
/// smallest plan as an error: with `cuda`, the failure of that plan tells the missing memory.
fn plan_within(
    free: usize,
    method: Method,
    rules: &Rules,
    (shape, devices): (&Shape, usize),
) -> Result<DevicePlan, DevicePlan> {
    // Some of the memory is left to the driver.
    let free = free / 10 * 9;
    let longest = shape.left.max(shape.right.unwrap_or(0));
    // Smaller blocks would exceed the maximum number of blocks.
    let least = longest.div_ceil(SIDE_BLOCKS_MAX).next_power_of_two().trailing_zeros();
    // Of several devices, each one gets several blocks, so that all end at about the same time.
    let parts = if devices > 1 { (2 * devices).next_power_of_two().trailing_zeros() } else { 0 };
    let whole = longest.next_power_of_two().trailing_zeros();
    let most = whole.saturating_sub(parts).min(rules.tuning.block_shift_max);
    let mut plans = (least..=most.max(least)).rev().map(|shift| plan(method, shape, shift));
    let fits = |plan: &DevicePlan| {
        let (stores, slots) = bytes(plan, shape.dims, rules.output, &rules.tuning);
        let has_room = stores <= rules.device_memory_max && stores.saturating_add(slots) <= free;
        has_room && is_short(plan, shape.dims)
    };
    plans.find(fits).ok_or_else(|| plan(method, shape, least))
}

/// Whether no step of a block takes long.
fn is_short(plan: &DevicePlan, dims: usize) -> bool {
    let DevicePlan { method, store_len: len, .. } = *plan;
    let is_loop = method == Method::NestedLoop;
    let is_sent_soon = VectorLimits { len, dims, method }.bytes() <= STORE_BYTES_MAX;
    is_sent_soon && !(is_loop && len.saturating_mul(dims) > LOOP_NUMBERS_MAX)
}

/// A plan for a device that cannot be opened.
fn smallest(method: Method) -> DevicePlan {
    DevicePlan { method, shift: 0, store_len: 1, stores: 1 }
}

/// The plan with blocks of 2^`shift` rows.
fn plan(method: Method, shape: &Shape, shift: u32) -> DevicePlan {
    let rows = |len: usize| len.min(1 << shift);
    let [left, right] = [rows(shape.left), shape.right.map_or(0, rows)];
    let is_one = shape.left.max(shape.right.unwrap_or(0)) <= 1 << shift;
    let is_tiled = method == Method::Tiles;
    let (store_len, stores) = match (is_one, is_tiled, shape.right) {
        (true, true, None) => (left, 1),
        // A block that is split into four needs two stores.
        (true, false, _) => (left.max(right), 2),
        (true, true, Some(_)) => (left + right, 1),
        // One store more than a block needs.
        (false, false, _) => (left.max(right), 3),
        (false, true, None) => (2 * left, 2),
        (false, true, Some(_)) => (left + right, 2),
    };
    DevicePlan { method, shift, store_len, stores }
}

/// Bytes of the stores and of the slots of a plan.
fn bytes(plan: &DevicePlan, dims: usize, output: EpsilonOutput, tuning: &Tuning) -> (usize, usize) {
    let DevicePlan { method, store_len: len, stores, .. } = *plan;
    let store = VectorLimits { len, dims, method }.bytes();
    (store.saturating_mul(stores), slot_bytes(plan, output, tuning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_those_of_the_dimensions_and_the_algorithm() {
        use EpsilonAlgorithm::{Auto, Directory, NestedLoop};
        assert_eq!(methods(Auto, 16), [Method::Boxes]);
        assert_eq!(methods(Directory, 1), [Method::Boxes]);
        assert_eq!(methods(NestedLoop, 8), [Method::NestedLoop]);
        assert_eq!(methods(Auto, 17), [Method::Tiles, Method::NestedLoop]);
        assert_eq!(methods(NestedLoop, 896), [Method::Tiles, Method::NestedLoop]);
        assert_eq!(methods(Auto, 897), [Method::NestedLoop]);
        assert!(!has_method(Directory, 17));
    }

    #[test]
    fn stores_have_room_for_the_blocks_of_a_job() {
        let shape = |left, right| Shape { left, right, dims: 20 };
        let stores = |method, left, right, shift| {
            let plan = plan(method, &shape(left, right), shift);
            (plan.store_len, plan.stores)
        };
        assert_eq!(stores(Method::Tiles, 1_000, None, 10), (1_000, 1));
        assert_eq!(stores(Method::Tiles, 1_000, Some(3), 10), (1_003, 1));
        assert_eq!(stores(Method::Tiles, 1_025, None, 10), (2_048, 2));
        assert_eq!(stores(Method::Tiles, 1_025, Some(3), 10), (1_027, 2));
        assert_eq!(stores(Method::NestedLoop, 1_000, None, 10), (1_000, 2));
        assert_eq!(stores(Method::NestedLoop, 10, Some(1_000), 10), (1_000, 2));
        assert_eq!(stores(Method::NestedLoop, 10, Some(1_025), 10), (1_024, 3));
    }
}
