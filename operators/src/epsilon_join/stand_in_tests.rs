//! The operator over the CUDA kernels, in child processes that find the stand-in driver. The
//! stand-in driver runs the kernels on a CPU, and fails at the calls that a test names.

use trommel_engine::metrics::Metrics;
use trommel_engine::operator::Counters;
use trommel_shim::{Form, StandIn};

use super::parameters::tuning::Tuning;
use super::tests::{Row, Run, clusters, oracle, pairs_of, run};
use super::tests::{check_count, check_first, check_pairs, check_partners};
use super::{EpsilonAlgorithm, EpsilonJoin, EpsilonOutput};
use crate::shared::rejected::OnError;
use crate::testing::children::{self, Child, has};
use crate::wave::Device;

const CHILD: Child = Child { module: module_path!() };

/// A run with larger blocks and parts than `Run::small` has.
const LARGE: Run = Run {
    tuning: Tuning { device_units: 64, device_pairs: 2_000, device_found: 9_000, ..Run::SMALL },
    batch: 100,
    kernels: 2,
};

fn join(epsilon: f64, device: Device) -> EpsilonJoin {
    EpsilonJoin::new(epsilon).device(device).on_error(OnError::Skip)
}

fn counted(metrics: &Metrics, name: &str) -> u64 {
    children::counted(metrics, "join", name)
}

/// Checks an output of a join on a device.
fn check_output(output: usize, inputs: &[&[Row]], epsilon: f64, device: Device, how: Run) {
    let dims = inputs[0].iter().flatten().next().map_or(1, Vec::len);
    let expected = oracle(inputs[0], inputs.get(1).copied(), epsilon);
    let check = [check_pairs, check_count, check_partners, check_first][output];
    check(join(epsilon, device), inputs, i32::try_from(dims).unwrap(), &expected, how);
}

/// Checks pairs, and for some inputs also the number of partners of each row.
fn check(inputs: &[&[Row]], epsilon: f64, device: Device, how: Run) {
    check_output(0, inputs, epsilon, device, how);
    if inputs[0].len().is_multiple_of(3) {
        check_output(2, inputs, epsilon, device, how);
    }
}

/// Checks many numbers of dimensions, with one input and with two inputs.
fn dims(device: Device) {
    for dims in (1..=9).chain([15, 16, 17, 64, 100]) {
        let epsilon = 0.4 * (dims as f64).sqrt();
        let [left, right] = [60, 33].map(|len| clusters(len, dims));
        let how = if dims % 5 == 0 { Run::small() } else { LARGE };
        // Each output is checked in some dimensions, with one input and with two inputs, except
        // `first`, which has one input.
        check_output(dims % 4, &[&left], epsilon, device, how);
        check_output((dims + 1) % 3, &[&left, &right], epsilon, device, how);
    }
}

/// Checks numbers of rows, epsilons at the distance of a pair and just below and above that
/// distance, equal rows, very large and very small coordinates, and empty inputs.
fn borders(device: Device) {
    for len in [0, 1, 2, 15, 16, 17, 33] {
        check(&[&clusters(len, 3)], 0.7, device, Run::small());
    }
    let rows = clusters(130, 3);
    let (left, right, bits) = oracle(&rows, None, 0.3)[7];
    assert!(left < right);
    let distance = f64::from_bits(bits);
    for epsilon in [distance.next_down(), distance, distance.next_up(), 0.0, 1e9] {
        let inputs = if epsilon > 1e8 { &rows[..40] } else { &rows[..] };
        check(&[inputs], epsilon, device, Run::small());
    }
    let equal: Vec<Row> = vec![Some(vec![1.0, 2.0]); 90];
    check(&[&equal], 0.0, device, Run::small());
    for scale in [3e37, 1e-38] {
        let scaled = |row: &Row| row.as_ref().map(|row| row.iter().map(|x| x * scale).collect());
        let rows: Vec<Row> = rows.iter().take(60).map(scaled).collect();
        check(&[&rows], 0.8 * f64::from(scale), device, Run::small());
    }
    let one: &[Row] = &[Some(vec![1.0])];
    for inputs in [&[&[][..]][..], &[one], &[&[], &[]], &[one, &[]], &[&[], one], &[&[None]]] {
        check(inputs, 1.0, device, Run::small());
    }
}

/// Checks blocks that are smaller than the inputs, because of a small maximum, of too many pairs or
/// of a small memory.
fn blocks(device: Device) {
    let tuning = Tuning { block_shift_max: 5, ..Run::SMALL };
    let how = Run { tuning, ..Run::small() };
    let [left, right] = [75, 50].map(|len| clusters(len, 2));
    for output in 0..4 {
        check_output(output, &[&left], 0.3, device, how);
    }
    for output in 0..3 {
        check_output(output, &[&left, &right], 0.3, device, how);
    }
    let [left, right] = [70, 40].map(|len| clusters(len, 20));
    check_output(0, &[&left], 1.5, device, how);
    check_output(2, &[&left], 1.5, device, how);
    check_output(1, &[&left, &right], 1.5, device, how);
    let rows = clusters(400, 2);
    let spec = || join(0.1, device).device_memory_max(80_000);
    let (found, ended) = run(spec(), &[&rows], 2, LARGE);
    assert_eq!(pairs_of(&found), oracle(&rows, None, 0.1));
    let waves = counted(&ended.unwrap(), "waves_on_device");
    assert!(waves > 1, "{waves} blocks");
}

fn algorithms(device: Device) {
    let rows = clusters(90, 4);
    for algorithm in [EpsilonAlgorithm::NestedLoop, EpsilonAlgorithm::Directory] {
        let spec = join(0.4, device).algorithm(algorithm);
        let (found, ended) = run(spec, &[&rows], 4, LARGE);
        assert_eq!(pairs_of(&found), oracle(&rows, None, 0.4));
        assert_eq!(counted(&ended.unwrap(), "waves_on_device"), 1, "{algorithm:?}");
    }
    let rows = clusters(60, 40);
    let spec = join(2.3, device).algorithm(EpsilonAlgorithm::NestedLoop);
    let (found, ended) = run(spec, &[&rows], 40, LARGE);
    assert_eq!(pairs_of(&found), oracle(&rows, None, 2.3));
    assert_eq!(counted(&ended.unwrap(), "waves_on_device"), 1);
}

/// Checks two joins of several blocks, and returns the sums of the counters of both joins.
fn waves(device: Device) -> Result<Counters, String> {
    let rows = clusters(100, 2);
    let expected = oracle(&rows, None, 0.4);
    let tuning = Tuning { block_shift_max: 5, ..Run::SMALL };
    let how = Run { tuning, ..Run::small() };
    let partners = join(0.4, device).output(EpsilonOutput::Partners);
    let (found, ended) = run(partners, &[&rows], 2, how);
    let first = ended?;
    let counts = found.iter().flat_map(|rows| super::tests::numbers(rows, "partners").to_vec());
    assert_eq!(counts.sum::<u32>() as usize, 2 * expected.len());
    let (found, ended) = run(join(0.4, device), &[&rows], 2, how);
    let metrics = ended?;
    assert_eq!(pairs_of(&found), expected);
    let names = [
        "waves",
        "waves_on_device",
        "devices",
        "devices_failed",
        "device_full",
        "device_lost",
        "device_refused",
    ];
    let both = |name| counted(&first, name) + counted(&metrics, name);
    Ok(names.map(|name| (name, both(name))).into_iter().collect())
}

#[test]
fn child() {
    let Some((device, case)) = children::case() else { return };
    let check: fn(Device) = match case.as_str() {
        "dims" => dims,
        "borders" => borders,
        "blocks" => blocks,
        "algorithms" => algorithms,
        _ => |device| children::tell_end(waves(device)),
    };
    check(device);
    children::tell("right");
}

#[test]
fn a_device_finds_the_pairs_of_nested_loops_in_any_number_of_dimensions() {
    CHILD.on(&StandIn::new(Form::Plain), "cuda", "dims");
}

#[test]
fn a_device_finds_the_pairs_at_the_border() {
    CHILD.on(&StandIn::new(Form::Plain), "cuda", "borders");
}

#[test]
fn blocks_of_a_join_find_each_pair_once() {
    CHILD.on(&StandIn::new(Form::Plain), "cuda", "blocks");
}

#[test]
fn several_devices_find_the_pairs_of_one() {
    for devices in 1..=3 {
        let stand_in = StandIn::new(Form::Plain).devices(devices);
        CHILD.on(&stand_in, "cuda:all", "blocks");
    }
    CHILD.check_devices("waves");
    CHILD.on(&StandIn::new(Form::Plain).devices(2), "cuda:0,cuda:1", "borders");
}

#[test]
fn a_lost_device_leaves_its_blocks_to_the_others() {
    CHILD.check_losses("waves", &[1, 2, 15]);
}

#[test]
fn a_device_has_both_algorithms() {
    CHILD.on(&StandIn::new(Form::Plain), "cuda", "algorithms");
    CHILD.on(&StandIn::new(Form::Plain).capability(80), "cuda", "algorithms");
    CHILD.on(&StandIn::new(Form::Plain).capability(70), "auto", "algorithms");
}

#[test]
fn failures_in_mid_join_fall_back_if_they_may_and_are_told_if_not() {
    let plain = StandIn::new(Form::Plain);
    let failures = [
        ("kernel", 1, 719, "device_lost"),
        ("kernel", 40, 719, "device_lost"),
        ("kernel", 75, 719, "device_lost"),
        ("cuLaunchKernel", 31, 2, "device_full"),
        ("cuMemcpyHtoDAsync_v2", 4, 2, "device_full"),
        ("cuMemcpyDtoHAsync_v2", 3, 700, "device_lost"),
        ("cuEventQuery", 3, 999, "device_lost"),
        ("cuMemAlloc_v2", 2, 2, "device_full"),
        ("cuModuleLoadData", 1, 1, "device_refused"),
    ];
    for (call, nth, code, counter) in failures {
        let failing = plain.clone().failure(call, nth, code);
        let outcome = CHILD.on(&failing, "auto", "waves");
        let shown = format!("{call} {nth} {code}: {outcome}");
        assert!(!has(&outcome, counter, 0), "{shown}");
        let outcome = CHILD.on(&failing, "cuda", "waves");
        let shown = format!("{call} {nth} {code}: {outcome}");
        assert!(
            outcome.starts_with("stage `join/search` (epsilon_join): `device` is \"cuda\""),
            "{shown}"
        );
        assert!(outcome.ends_with(&format!("({code})")), "{shown}");
    }
}

#[test]
fn a_device_without_enough_memory_is_not_used() {
    for bytes in [40_000, 2_000] {
        let small = StandIn::new(Form::Plain).memory_bytes(bytes);
        let outcome = CHILD.on(&small, "auto", "waves");
        assert!(has(&outcome, "waves_on_device", 0), "{bytes}: {outcome}");
        let outcome = CHILD.on(&small, "cuda", "waves");
        assert!(outcome.contains("cuMemAlloc"), "{bytes}: {outcome}");
    }
}

#[test]
fn without_a_device_auto_is_the_cpu_and_cuda_is_an_error() {
    CHILD.check_without_device("waves");
}
