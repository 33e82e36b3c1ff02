//! Waves over several devices that exist in the tests only: any of them fails anywhere, and the
//! others go on.

use trommel_kernels::cuda::{DeviceError, NoDevice, Work};

use super::flights::{DoubleWaves, END, Failure, LOST, Script, Step, batches, script, waves_on};
use super::*;

/// Runs all numbers through devices with these scripts. Returns the sums of the counters of all
/// kernels; every answer must be there, in order.
#[track_caller]
fn run(scripts: &[Script], session: DeviceSession, cores: Cores) -> Counters {
    let shown = format!("{} {cores:?}", session.device());
    let (answers, ended) = ended(waves_on(scripts.to_vec(), session, [8, 100]), cores);
    let metrics = ended.unwrap();
    assert!(answers.into_iter().eq((0..END).map(|number| 2 * number)), "{shown}");
    sums(&metrics)
}

fn ended(spec: DoubleWaves, cores: Cores) -> (Vec<u32>, Result<Metrics, Box<RunError>>) {
    let (graph, collected) = pipeline(batches(500), spec, cores);
    let ended = end(start(graph));
    (answers(&collected), ended)
}

fn sums(metrics: &Metrics) -> Counters {
    let mut sums = Counters::new();
    for &(name, count) in
        metrics.stage("waves").unwrap().parts.iter().flat_map(|part| &part.counters)
    {
        match sums.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => *sum += count,
            None => sums.push((name, count)),
        }
    }
    sums
}

fn list(devices: usize) -> Device {
    Device::list(&(0..devices).collect::<Vec<_>>()).unwrap()
}

fn failing(step: Step, nth: usize) -> Script {
    Script { failure: Some(Failure(step, nth, LOST)), ..script() }
}

/// Whether one thread gives all kernels their turns. On several threads, a kernel whose thread gets
/// no turn leaves its chunks to the others.
fn takes_turns(cores: Cores) -> bool {
    !matches!(cores, Cores::ByLoad)
}

/// Chunks of a run.
const CHUNKS: u64 = 30;

#[test]
fn answers_do_not_depend_on_the_number_of_devices() {
    for cores in CORES {
        for devices in 1..=3 {
            let scripts = vec![script(); devices];
            let of_auto = DeviceSession::with_shown(Device::Auto, devices);
            for session in [list(devices).into(), of_auto] {
                let counters = run(&scripts, session, cores);
                let counted = ["waves", "waves_on_device", "bytes_to_device"]
                    .map(|name| counter(&counters, name));
                assert_eq!(counted, [CHUNKS, CHUNKS, 4 * u64::from(END)]);
                let used = counter(&counters, "devices");
                assert!(used == devices as u64 || !takes_turns(cores), "{counters:?}");
                assert_eq!(counter(&counters, "devices_failed"), 0);
                assert!(counter(&counters, "overlap_ppm") <= 1_000_000, "{counters:?}");
            }
        }
    }
}

#[test]
fn chunks_go_to_the_device_that_is_free_first() {
    let scripts =
        [2, 2, 40].map(|millis| Script { flight: Duration::from_millis(millis), ..script() });
    let spec = waves_on(scripts.to_vec(), list(3).into(), [30, 50]);
    let (found, ended) = ended(spec, Cores::ByLoad);
    assert_eq!(found.len(), END as usize);
    let metrics = ended.unwrap();
    let parts = &metrics.stage("waves").unwrap().parts[1..=3];
    let waves = parts.iter().map(|part| counter(&part.counters, "waves_on_device"));
    let waves: Vec<u64> = waves.collect();
    // The wave has a third of its chunks for each device at the start, and the others take over
    // those that the slow device has not begun.
    assert!(waves[2] < 10 && waves[0] >= 20 && waves[1] >= 20, "{waves:?}");
}

#[test]
fn a_device_that_is_lost_anywhere_leaves_its_chunks_to_the_others() {
    for cores in CORES {
        for devices in [2, 3] {
            for lost in 0..devices {
                // The last call of a device that answers a half or a third of the chunks.
                for (step, nth) in [
                    (Step::Submit, 1),
                    (Step::Submit, 2),
                    (Step::Submit, 5),
                    (Step::IsDone, 3),
                    (Step::Collect, 1),
                    (Step::Collect, 4),
                ] {
                    let mut scripts = vec![script(); devices];
                    scripts[lost] = failing(step, nth);
                    let of_auto = DeviceSession::with_shown(Device::Auto, devices);
                    for session in [list(devices).into(), of_auto] {
                        let counters = run(&scripts, session, cores);
                        let shown = format!("{devices} {lost} {step:?} {nth} {counters:?}");
                        let [waves, on_device, lost, left] =
                            ["waves", "waves_on_device", "device_lost", "devices_failed"]
                                .map(|name| counter(&counters, name));
                        let losses = if takes_turns(cores) { 1 } else { lost.min(1) };
                        assert_eq!([waves, lost, left], [CHUNKS, losses, losses], "{shown}");
                        // With `auto`, the first chunk may be sent before there is another device.
                        assert!(on_device >= CHUNKS - 1, "{shown}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_cpu_takes_over_when_the_last_device_is_lost_if_it_may() {
    for cores in CORES {
        for (first, second) in [(1, 1), (1, 3), (4, 1), (3, 4)] {
            let scripts = [failing(Step::Collect, first), failing(Step::Collect, second)];
            let counters = run(&scripts, DeviceSession::with_shown(Device::Auto, 2), cores);
            let counted = ["waves", "devices_failed"].map(|name| counter(&counters, name));
            assert_eq!(counted, [CHUNKS, 2], "{first} {second} {counters:?}");
            let (_, ended) = ended(waves_on(scripts.to_vec(), list(2).into(), [8, 100]), cores);
            let error = ended.expect_err("both devices fail").to_string();
            let expected = "`device` is \"cuda:0,cuda:1\", and the last device failed: cuTest \
                            failed: CUDA_ERROR_TEST (719)";
            assert!(error.ends_with(expected), "{error}");
        }
    }
}

/// The reason why a device cannot be opened.
fn full() -> NoDevice {
    let name = "CUDA_ERROR_TEST".to_owned();
    DeviceError::Driver { call: "cuTest", work: Work::Plain, code: 2, name }.into()
}

#[test]
fn a_device_that_cannot_be_opened_is_left_while_there_is_another() {
    let absent = |reason| Script { absent: Some(reason), ..script() };
    for cores in CORES {
        for place in 0..2 {
            let mut scripts = vec![script(); 2];
            scripts[place] = absent(full());
            let counters = run(&scripts, list(2).into(), cores);
            let counted = ["waves", "waves_on_device", "device_full", "devices_failed", "devices"]
                .map(|name| counter(&counters, name));
            assert_eq!(counted, [CHUNKS, CHUNKS, 1, 1, 1], "{place} {counters:?}");
        }
        let reasons = [(full(), "cuTest failed"), (NoDevice::NoDriver, "no NVIDIA driver")];
        for (reason, said) in reasons {
            let scripts = vec![absent(reason); 2];
            let (_, ended) = ended(waves_on(scripts, list(2).into(), [8, 100]), cores);
            let error = ended.expect_err("there is no device").to_string();
            let expected = format!("`device` is \"cuda:0,cuda:1\", but {said}");
            assert!(error.contains(&expected), "{error}");
        }
    }
}

#[test]
fn a_stream_without_chunks_asks_for_the_first_device() {
    for (scripts, is_error) in [
        (vec![Script { absent: Some(NoDevice::NoDriver), ..script() }, script()], true),
        (vec![script(), Script { absent: Some(NoDevice::NoDriver), ..script() }], false),
    ] {
        let spec = waves_on(scripts, list(2).into(), [8, 100]);
        let (graph, _) = pipeline(std::iter::empty(), spec, Cores::ByLoad);
        assert_eq!(end(start(graph)).is_err(), is_error);
    }
}
