//! The operator over the CUDA kernels, in child processes that find the stand-in driver: that
//! driver runs the kernels on a CPU and fails when a test says so.

use arrow_array::RecordBatch;
use trommel_engine::metrics::Metrics;
use trommel_engine::operator::Counters;
use trommel_shim::{Form, StandIn};

use super::parameters::tuning::Tuning;
use super::tests::{Transaction, by_hand, check_texts, mixed, pairs_of, run};
use super::tests::{windows_by_hand, windows_of};
use super::{FrequentPairs, Layout, PairWindow, Support};
use crate::Share;
use crate::testing::children::{self, Child, has};
use crate::wave::Device;

const CHILD: Child = Child { module: module_path!() };

/// Layouts that a device can count.
const LAYOUTS: [Layout; 5] =
    [Layout::Auto, Layout::Tensor, Layout::Bitmap, Layout::Batmap, Layout::Sparse];

/// Sizes at which data of several tiles has several tasks.
const TILES: Tuning = Tuning { block_items: 2000, batch_rows: 1000, ..Tuning::SMALL };

fn pairs(least: u32, layout: Layout, device: Device) -> FrequentPairs {
    FrequentPairs::new(Support::Count(least)).layout(layout).device(device).tuning(TILES)
}

fn counted(metrics: &Metrics, name: &str) -> u64 {
    children::counted(metrics, "pairs", name)
}

/// Compares pairs with nested loops; returns the rows' metrics.
#[track_caller]
fn check(
    transactions: &[Transaction],
    least: u32,
    (layout, device): (Layout, Device),
    kernels: usize,
) -> Metrics {
    let spec = pairs(least, layout, device);
    let (rows, ended) = run(transactions, spec, 50, kernels);
    let metrics = ended.unwrap();
    let expected = by_hand(transactions, least);
    let shown = format!("{layout:?} {device} {least} {kernels} {}", transactions.len());
    assert!(pairs_of(&rows) == expected, "{shown}");
    let is_tiled = counted(&metrics, "tasks") > 0;
    assert_eq!(counted(&metrics, "waves_on_device") > 0, is_tiled, "{shown}");
    metrics
}

/// Numbers of items around the side of a tile. One transaction holds all items, so a task has room
/// for only a part of the pairs.
fn sizes(device: Device) {
    for items in [0, 1, 2, 127, 128, 129, 257] {
        let mut transactions = vec![Some((0..items).collect::<Vec<u32>>())];
        let some = |t: u32| (0..items).filter(|i| (i * 7 + t * 3).is_multiple_of(t + 2)).collect();
        transactions.extend((0..9).map(|t| Some(some(t))));
        for layout in LAYOUTS {
            let metrics = check(&transactions, 1, (layout, device), 1);
            let side = if layout == Layout::Batmap { 64 } else { 128 };
            let sides = u64::from(items.div_ceil(side));
            let tiles = match layout {
                Layout::Sparse => u64::from(items.saturating_sub(1)),
                _ => sides * (sides + 1) / 2,
            };
            let tasks = counted(&metrics, "tasks");
            let [on_device, lost] =
                ["waves_on_device", "device_lost"].map(|name| counted(&metrics, name));
            // With `auto`, some windows have another form.
            if layout != Layout::Auto {
                assert_eq!(tasks, if items > 1 { tiles.div_ceil(2) } else { 0 });
                // Tiles without room were submitted again; a strip always has room.
                let is_large = items == 257 && layout != Layout::Sparse
                    || layout == Layout::Batmap && items > 2;
                assert_eq!(on_device > tasks, is_large, "{layout:?} {items}: {on_device}");
            }
            assert_eq!(lost, 0, "{layout:?} {items}");
            if items < 200 {
                check(&transactions, 3, (layout, device), 2);
            }
        }
    }
}

/// Numbers of transactions around the size of a block of the device.
fn transactions(device: Device) {
    for count in [0, 1, 511, 513, 65_536, 65_537] {
        let items =
            |t: u32| (0..5).filter(move |i| t.wrapping_mul(0x9E37_79B1) >> (9 + i) & 1 == 1);
        let transactions: Vec<Transaction> = (0..count).map(|t| Some(items(t).collect())).collect();
        let expected = by_hand(&transactions, 1);
        for layout in LAYOUTS {
            let (rows, ended) = run(&transactions, pairs(1, layout, device), 9_999, 2);
            assert!(pairs_of(&rows) == expected, "{layout:?} {count}");
            ended.unwrap();
        }
    }
}

fn windows(device: Device) {
    let transactions: Vec<Transaction> = (0..130_u32)
        .map(|t| Some((0..6).map(|i| t / 20 + (t * (i + 3) + i) % 9).collect()))
        .collect();
    for (window, slide) in [(50, 50), (60, 20), (1000, 500)] {
        let expected = windows_by_hand(&transactions, window, slide);
        let layouts =
            [Layout::Tensor, Layout::Bitmap, Layout::Batmap, Layout::Sparse, Layout::Auto];
        for (layout, kernels) in layouts.into_iter().zip([1, 3, 2, 1, 2]) {
            let windows = PairWindow::transactions(window as u64).slide(slide as f64);
            let (rows, ended) =
                run(&transactions, pairs(2, layout, device).window(windows), 33, kernels);
            assert_eq!(windows_of(&rows), expected, "{window} {slide} {layout:?} {kernels}");
            let metrics = ended.unwrap();
            // Tasks of a lost device, and of the windows after the loss, are counted on the CPU.
            let is_lost = counted(&metrics, "device_lost") > 0;
            let [tasks, on_device] =
                ["tasks", "waves_on_device"].map(|name| counted(&metrics, name));
            assert_eq!(on_device < tasks, is_lost, "{tasks} tasks, {on_device} on the device");
        }
    }
}

/// Windows of many empty transactions: first few items; then many items in two transactions each,
/// for which counters cost less than bits.
fn forms(device: Device) {
    const WINDOW: u32 = 200_000;
    let few = |t: u32| if t < 100 { (0..5).filter(|i| t & 1 << i > 0).collect() } else { vec![] };
    let many = |t: u32| if t < 260 { (t % 130 * 10..t % 130 * 10 + 10).collect() } else { vec![] };
    let of_window = |number: u32, t: u32| if number.is_multiple_of(2) { few(t) } else { many(t) };
    let windows = (0..4).flat_map(|number| (0..WINDOW).map(move |t| (number, t)));
    let transactions: Vec<Transaction> =
        windows.map(|(number, t)| Some(of_window(number, t))).collect();
    let expected = windows_by_hand(&transactions, WINDOW as usize, WINDOW as usize);
    let window = PairWindow::transactions(WINDOW.into());
    let spec = pairs(2, Layout::Auto, device).window(window);
    let tuning = Tuning { block_items: 1 << 20, batch_rows: 1000, task_tiles: 500, ..TILES };
    let (rows, ended) = run(&transactions, spec.tuning(tuning), 50_000, 2);
    let metrics = ended.unwrap();
    assert_eq!(windows_of(&rows), expected);
    let [tasks, on_device] = ["tasks", "waves_on_device"].map(|name| counted(&metrics, name));
    // Each window of bits has one tile; each window of strips has 1,299 strips.
    assert_eq!((tasks, on_device), (2 + 2 * 3, 2 + 2 * 3));
}

fn items(device: Device) {
    for layout in LAYOUTS {
        check_texts(&pairs(3, layout, device));
        let share = Support::Share(Share::new(1, 10).unwrap());
        let transactions = mixed(95);
        let counted = transactions.iter().flatten().count().div_ceil(10);
        let spec = FrequentPairs::new(share).layout(layout).device(device);
        let (rows, ended) = run(&transactions, spec.tuning(TILES), 10, 2);
        assert_eq!(pairs_of(&rows), by_hand(&transactions, u32::try_from(counted).unwrap()));
        ended.unwrap();
    }
}

/// Transactions of enough items for several tasks, whose pairs mostly fit.
fn several_tasks() -> Vec<Transaction> {
    let items = |t: u32| (0..400).filter(|i| (i * 31 + t * 17) % 13 == t % 13).collect();
    (0..60).map(|t| Some(items(t))).collect()
}

fn tasks(device: Device) -> Result<Counters, String> {
    let transactions = several_tasks();
    let spec = pairs(2, Layout::Auto, device).tuning(Tuning { block_items: 100, ..TILES });
    let (rows, ended): (Vec<RecordBatch>, _) = run(&transactions, spec, 7, 3);
    let metrics = ended?;
    assert!(pairs_of(&rows) == by_hand(&transactions, 2), "{device}");
    let names = [
        "tasks",
        "waves_on_device",
        "devices",
        "devices_failed",
        "device_full",
        "device_lost",
        "device_refused",
    ];
    let mut counters: Counters =
        names.map(|name| (name, counted(&metrics, name))).into_iter().collect();
    // Kernels that have answered chunks on the CPU.
    let parts = &metrics.stage("pairs").unwrap().parts;
    let is_busy = |counters: &Counters| {
        counters.iter().any(|&(name, count)| name == "kernel_ns" && count > 0)
    };
    let busy = parts.iter().filter(|part| is_busy(&part.counters)).count();
    counters.push(("busy", busy as u64));
    Ok(counters)
}

#[test]
fn child() {
    let Some((device, case)) = children::case() else { return };
    let check: fn(Device) = match case.as_str() {
        "sizes" => sizes,
        "transactions" => transactions,
        "windows" => windows,
        "forms" => forms,
        "items" => items,
        _ => |device| children::tell_end(tasks(device)),
    };
    check(device);
    children::tell("right");
}

#[test]
fn a_device_finds_the_pairs_of_nested_loops_with_any_number_of_items() {
    CHILD.on(&StandIn::new(Form::Plain), "cuda", "sizes");
}

#[test]
fn a_device_finds_the_pairs_of_any_number_of_transactions() {
    CHILD.on(&StandIn::new(Form::Plain), "cuda", "transactions");
}

#[test]
fn a_device_counts_windows_items_and_shares() {
    let stand_in = StandIn::new(Form::Plain);
    for case in ["windows", "items"] {
        CHILD.on(&stand_in, "cuda", case);
        CHILD.on(&stand_in, "auto", case);
    }
}

#[test]
fn several_devices_count_the_pairs_of_one() {
    for devices in 1..=3 {
        let stand_in = StandIn::new(Form::Plain).devices(devices);
        CHILD.on(&stand_in, "cuda:all", "windows");
    }
    let outcomes = CHILD.check_devices("tasks");
    assert!(outcomes.iter().all(|outcome| has(outcome, "tasks", 5)), "{outcomes:?}");
    CHILD.on(&StandIn::new(Form::Plain).devices(2), "cuda:0,cuda:1", "sizes");
}

#[test]
fn a_lost_device_leaves_its_tasks_to_the_others() {
    CHILD.check_losses("tasks", &[1, 2]);
}

#[test]
fn windows_change_the_form_of_their_data() {
    CHILD.on(&StandIn::new(Form::Plain), "cuda", "forms");
}

#[test]
fn other_capabilities_count_by_integer_units() {
    for capability in [70, 100] {
        let outcome = CHILD.on(&StandIn::new(Form::Plain).capability(capability), "cuda", "tasks");
        assert!(has(&outcome, "tasks", 5) && !has(&outcome, "waves_on_device", 0), "{outcome}");
    }
}

#[test]
fn several_kernels_transpose_while_a_device_counts() {
    for device in ["auto", "cuda"] {
        let outcome = CHILD.on(&StandIn::new(Form::Plain), device, "tasks");
        assert!(has(&outcome, "tasks", 5) && has(&outcome, "busy", 3), "{device}: {outcome}");
        assert!(!has(&outcome, "waves_on_device", 0), "{device}: {outcome}");
    }
}

#[test]
fn failures_in_mid_stream_fall_back_if_they_may_and_are_told_if_not() {
    let plain = StandIn::new(Form::Plain);
    let failures = [
        ("kernel", 1, 719, "device_lost"),
        ("kernel", 3, 719, "device_lost"),
        ("cuLaunchKernel", 4, 2, "device_full"),
        ("cuMemcpyHtoDAsync_v2", 2, 2, "device_full"),
        ("cuMemcpyDtoHAsync_v2", 3, 700, "device_lost"),
        ("cuEventQuery", 3, 999, "device_lost"),
        ("cuMemAlloc_v2", 2, 2, "device_full"),
        ("cuModuleLoadData", 1, 1, "device_refused"),
    ];
    for (call, nth, code, counter) in failures {
        let failing = plain.clone().failure(call, nth, code);
        let outcome = CHILD.on(&failing, "auto", "tasks");
        let shown = format!("{call} {nth} {code}: {outcome}");
        assert!(has(&outcome, counter, 1) && has(&outcome, "tasks", 5), "{shown}");
        let outcome = CHILD.on(&failing, "cuda", "tasks");
        let shown = format!("{call} {nth} {code}: {outcome}");
        assert!(
            outcome.starts_with("stage `pairs/count` (frequent_pairs): `device` is \"cuda\""),
            "{shown}"
        );
        assert!(outcome.ends_with(&format!("({code})")), "{shown}");
    }
}

#[test]
fn windows_after_a_lost_device_are_counted_on_the_cpu() {
    CHILD.on(&StandIn::new(Form::Plain).failure("kernel", 6, 719), "auto", "windows");
}

#[test]
fn a_device_without_enough_memory_is_not_used() {
    // Room for the tasks' buffers, but not for the rows; room for the rows alone; room for neither,
    // which the choice knows before any task.
    for (bytes, full, reason) in [
        (600_000, 1, "of device memory exceed the budget"),
        (100_000, 1, "cuMemAlloc"),
        (20_000, 0, "cuMemAlloc"),
    ] {
        let small = StandIn::new(Form::Plain).memory_bytes(bytes);
        let outcome = CHILD.on(&small, "auto", "tasks");
        assert!(has(&outcome, "waves_on_device", 0), "{bytes}: {outcome}");
        assert!(has(&outcome, "device_full", full), "{bytes}: {outcome}");
        let outcome = CHILD.on(&small, "cuda", "tasks");
        assert!(outcome.contains(reason), "{bytes}: {outcome}");
    }
}

#[test]
fn without_a_device_auto_is_the_cpu_and_cuda_is_an_error() {
    CHILD.check_without_device("tasks");
}
