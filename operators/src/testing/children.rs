//! Tests in child processes, which find the stand-in CUDA driver: it runs the kernels on a CPU and
//! fails when it is told to. A child is the test program again, with a single test.

use std::fmt::{Debug, Display};
use std::process::Command;
use std::{env, io};

use trommel_engine::metrics::Metrics;
use trommel_kernels::cuda::{Device as Gpu, NoDevice};
use trommel_shim::{Form, StandIn};

use crate::wave::Device;

/// Variables of a child.
const DEVICE: &str = "TEST_DEVICE";
const CASE: &str = "TEST_CASE";

/// Seconds after which a child is ended: it hangs.
const LIMIT_SECONDS: &str = "240";

/// Precedes the outcome in the output of a child.
const OUTCOME: &str = "OUTCOME ";

/// The device and the case of this process, or `None` if it is no child.
pub(crate) fn case() -> Option<(Device, String)> {
    let device = env::var(DEVICE).ok()?.parse().expect("a device");
    Some((device, env::var(CASE).expect("a child has a case")))
}

/// Ends the work of a child.
pub(crate) fn tell(outcome: impl Display) {
    println!("{OUTCOME}{outcome}");
}

/// Ends the work of a child with what it counted, or with its error.
pub(crate) fn tell_end<T: Debug, E: Display>(ended: Result<T, E>) {
    match ended {
        Ok(counters) => tell(format_args!("{counters:?}")),
        Err(error) => tell(error),
    }
}

/// Whether `outcome` has a counter `name` of `count`.
pub(crate) fn has(outcome: &str, name: &str, count: u64) -> bool {
    outcome.contains(&format!("({name:?}, {count})"))
}

/// The counter `name` of an outcome.
#[track_caller]
pub(crate) fn count_of(outcome: &str, name: &str) -> u64 {
    let (_, rest) = outcome.split_once(&format!("({name:?}, ")).expect("it is counted");
    rest.split_once(')').and_then(|(count, _)| count.parse().ok()).expect("a number")
}

/// Sum of a counter over the parts of `stage`.
pub(crate) fn counted(metrics: &Metrics, stage: &str, name: &str) -> u64 {
    let parts = &metrics.stage(stage).expect("the stage ran").parts;
    let counters = parts.iter().flat_map(|part| &part.counters);
    counters.filter(|(other, _)| *other == name).map(|(_, count)| count).sum()
}

/// The test `child` of a module.
pub(crate) struct Child {
    /// Path of the module, with the crate.
    pub(crate) module: &'static str,
}

impl Child {
    /// Outcome of a case on a device of the stand-in driver.
    #[track_caller]
    pub(crate) fn on(&self, stand_in: &StandIn, device: &str, case: &str) -> String {
        self.outcome(stand_in.command("timeout"), device, case)
    }

    /// Checks that `auto` is the CPU where no device is to be had, and that `cuda:1` is an error.
    #[track_caller]
    pub(crate) fn check_without_device(&self, case: &str) {
        let mut reasons = vec![("cpu", "switched off by TROMMEL_DEVICE=cpu")];
        if Gpu::count() == Err(NoDevice::NoDriver) {
            reasons.push(("auto", "no NVIDIA driver: libcuda.so.1 cannot be loaded"));
        }
        let outcome = |value: &str, device| {
            let mut command = Command::new("timeout");
            command.env("TROMMEL_DEVICE", value);
            self.outcome(command, device, case)
        };
        for (value, reason) in reasons {
            let auto = outcome(value, "auto");
            assert!(has(&auto, "waves_on_device", 0), "{auto}");
            let error = outcome(value, "cuda:1");
            assert!(error.ends_with(&format!("`device` is \"cuda:1\", but {reason}")), "{error}");
        }
        let error = outcome("gpu", "auto");
        assert!(error.contains("allowed are \"auto\" and \"cpu\""), "{error}");
    }

    /// Checks a case that tells its counters on one to three devices: all are used. The case
    /// checks the answers. Returns the outcomes of two devices with `cuda:all` and with `auto`.
    #[track_caller]
    pub(crate) fn check_devices(&self, case: &str) -> [String; 2] {
        let outcomes = |devices| {
            let stand_in = StandIn::new(Form::Plain).devices(devices);
            ["cuda:all", "auto"].map(|device| self.on(&stand_in, device, case))
        };
        let [one, two, three] = [1, 2, 3].map(outcomes);
        let used = [&one, &two, &three].map(|outcomes| count_of(&outcomes[0], "devices"));
        // A device whose thread gets no turn leaves its chunks to the others.
        assert!(used[1] > used[0] || used[2] > used[0], "{used:?} {two:?} {three:?}");
        two
    }

    /// Checks a case that tells its counters on two devices, of which one is lost, or both one
    /// after the other, when they run their kernels `nth`. The case checks the answers.
    #[track_caller]
    pub(crate) fn check_losses(&self, case: &str, nth: &[u32]) {
        let two = StandIn::new(Form::Plain).devices(2);
        let mut losses = 0;
        for (&nth, lost) in nth.iter().flat_map(|nth| [(nth, 0), (nth, 1)]) {
            let losing = two.clone().failure_on(lost, "kernel", nth, 719);
            let outcome = self.on(&losing, "cuda:0,cuda:1", case);
            assert!(outcome.starts_with('['), "{case}: device {lost} at kernel {nth}: {outcome}");
            losses += usize::from(count_of(&outcome, "devices_failed") > 0);
            let losing = losing.failure_on(1 - lost, "kernel", nth + 1, 719);
            let outcome = self.on(&losing, "cuda:all", case);
            let shown = format!("{case}: both at kernel {nth}: {outcome}");
            let is_named = outcome.contains("`device` is \"cuda:all\", ");
            assert!(is_named && outcome.ends_with("(719)"), "{shown}");
            let outcome = self.on(&losing, "auto", case);
            let shown = format!("{case}: both at kernel {nth}: {outcome}");
            assert!(outcome.starts_with('[') && !has(&outcome, "devices_failed", 0), "{shown}");
        }
        // A device whose thread gets no turn may not come to its kernel.
        assert!(losses >= nth.len(), "{case}: {losses} losses");
    }

    #[track_caller]
    fn outcome(&self, mut command: Command, device: &str, case: &str) -> String {
        let (_, module) = self.module.split_once("::").expect("a module of the crate");
        command.arg(LIMIT_SECONDS).arg(env::current_exe().expect("the test program"));
        command.args([&format!("{module}::child"), "--exact", "--nocapture"]);
        let output = command.env(DEVICE, device).env(CASE, case).output();
        let said = output.and_then(|output| {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            if output.status.success() { Ok(said) } else { Err(io::Error::other(said)) }
        });
        let said = said.unwrap_or_else(|error| panic!("{device}, {case}: {error}"));
        let outcome = said.lines().find_map(|line| line.split_once(OUTCOME));
        outcome.unwrap_or_else(|| panic!("{device}, {case}: {said}")).1.to_owned()
    }
}
