//! Starts this program again on the stand-in driver: the suite in all orders and forms, planted
//! bugs, probes, and failures of every call.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output};

use trommel_shim::{Form, Order, StandIn};

use super::REQUIRE_VARIABLE;
use super::bugs::KERNEL_VARIABLE;
use super::failing::OUTCOME_VARIABLE;

/// Seconds after which a child is ended: no test takes a tenth of this time, so such a child hangs.
const LIMIT_SECONDS: &str = "240";

/// An order of threads that is neither forward nor reverse.
const RANDOM: Order = Order::Random(7);

/// A command for the tests of this program whose names contain one of the words of `filter`.
fn tests(stand_in: &StandIn, filter: &str) -> Command {
    let mut command = stand_in.command("timeout");
    command.arg(LIMIT_SECONDS).arg(env::current_exe().unwrap());
    command
        .args(filter.split(' '))
        .args(["--nocapture", "--test-threads=1"])
        .env(REQUIRE_VARIABLE, "1");
    command
}

fn said(output: &Output) -> String {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
    format!("{stdout}{stderr}")
}

#[track_caller]
fn passes(stand_in: &StandIn, filter: &str) {
    let output = tests(stand_in, filter).output().unwrap();
    let said = said(&output);
    assert!(output.status.success() && !said.contains("running 0 tests"), "{said}");
}

/// The suite runs in forward order, as do all tests that name no order.
#[test]
fn the_suite_accesses_only_memory_that_it_has() {
    passes(&StandIn::new(Form::Address), "suite::");
}

#[test]
fn the_suite_has_no_races_in_random_order() {
    passes(&StandIn::new(Form::Race).order(RANDOM), "suite::");
}

#[test]
fn kernels_without_machine_code_for_the_device_are_loaded_as_ptx() {
    for capability in [70, 75, 86, 89, 100] {
        let stand_in = StandIn::new(Form::Plain).capability(capability);
        passes(&stand_in, "suite::lanes_16");
    }
}

#[test]
fn each_device_has_its_own_context() {
    let stand_in = StandIn::new(Form::Address).devices(2);
    let output = tests(&stand_in, "suite::chunk_sum").output().unwrap();
    let said = said(&output);
    assert!(output.status.success() && !said.contains("SKIPPED"), "{said}");
    let losing = StandIn::new(Form::Plain).devices(2).failure_on(1, "kernel", 3, 719);
    let lost = self::said(&tests(&losing, "suite::chunk_sum::devices").output().unwrap());
    assert!(lost.contains("code: 719"), "{lost}");
}

/// Runs a kernel of `bugs.cu`; the message if it was caught.
fn caught(stand_in: &StandIn, kernel: &str) -> Option<String> {
    let output = tests(stand_in, "bugs::").env(KERNEL_VARIABLE, kernel).output().unwrap();
    (!output.status.success()).then(|| said(&output))
}

#[test]
fn right_kernels_pass_all_checks() {
    for kernel in ["right_neighbour", "right_lanes", "right_sum"] {
        for form in [Form::Plain, Form::Address, Form::Race] {
            assert_eq!(caught(&StandIn::new(form), kernel), None, "{kernel} {form:?}");
        }
    }
}

#[test]
fn planted_bugs_are_caught() {
    let cases = [
        (Form::Race, "bug_missing_barrier", "race on shared memory"),
        (Form::Race, "bug_vote_for_syncwarp", "race on shared memory"),
        (Form::Race, "bug_plain_add", "race on device memory"),
        (Form::Address, "bug_behind_shared", "heap-buffer-overflow"),
        (Form::Address, "bug_behind_device", "heap-buffer-overflow"),
        (Form::Plain, "bug_divergent_barrier", "divergent barrier"),
        (Form::Plain, "bug_absent_lanes", "a mask names lanes that are not there"),
    ];
    for (form, kernel, expected) in cases {
        for order in [Order::Forward, Order::Reverse, RANDOM] {
            let said = caught(&StandIn::new(form).order(order), kernel).unwrap_or_default();
            let named =
                said.contains(expected) || said.contains("a lane ends that others wait for");
            assert!(named, "{kernel} {order:?}: {said}");
        }
    }
}

/// The lines of a kernel source on which a barrier stands.
fn barrier_lines(source: &str) -> Vec<usize> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda").join(source);
    let text = fs::read_to_string(path).unwrap();
    let lines = (1..).zip(text.lines());
    let is_barrier =
        |line: &str| ["__sync", "sync_first"].iter().any(|name| line.starts_with(name));
    lines.filter(|(_, line)| is_barrier(line.trim_start())).map(|(at, _)| at).collect()
}

/// Returns whether tests say a line that `is_sign` knows (the tests are then ended), and whether
/// the tests end well.
fn hear(stand_in: &StandIn, filter: &str, is_sign: impl Fn(&str) -> bool) -> (bool, bool) {
    let (said, saying) = io::pipe().unwrap();
    let mut command = tests(stand_in, filter);
    let mut child = command.stdout(saying.try_clone().unwrap()).stderr(saying).spawn().unwrap();
    // The command holds the writing end of the pipe.
    drop(command);
    let is_heard = BufReader::new(said).lines().any(|line| is_sign(&line.unwrap_or_default()));
    if is_heard {
        // `timeout` hands the signal on.
        Command::new("kill").arg(child.id().to_string()).status().unwrap();
    }
    (is_heard, child.wait().unwrap().success())
}

/// Pulls out each barrier of a source in turn, and runs tests that must notice.
fn pull_out_barriers(source: &str, at_least: usize, filter: &str) {
    let lines = barrier_lines(source);
    assert!(lines.len() >= at_least, "{lines:?}");
    for line in lines {
        let stand_in = StandIn::new(Form::Race).without_line(line);
        let is_race = |line: &str| line.contains("race on ");
        let (is_noticed, _) = hear(&stand_in, filter, is_race);
        assert!(is_noticed, "nothing notices line {line}");
    }
}

#[test]
fn no_barrier_of_overlaps_can_be_pulled_out() {
    pull_out_barriers("overlap.cu", 6, "suite::block_per suite::signed_8");
}

#[test]
fn no_barrier_of_signatures_can_be_pulled_out() {
    pull_out_barriers("signatures.cu", 6, "suite::signatures::signatures_of_1");
}

#[test]
fn no_barrier_of_supports_can_be_pulled_out() {
    pull_out_barriers("supports.cu", 2, "suite::supports::small");
    pull_out_barriers("supports.cuh", 3, "suite::supports::small");
    pull_out_barriers("group_tiles.cuh", 3, "suite::supports::small");
}

/// Whether a test fails; the call does not wait for further tests after a failure.
fn fails(stand_in: &StandIn, filter: &str) -> bool {
    let (is_heard, is_well) = hear(stand_in, filter, |line| line.ends_with("FAILED"));
    is_heard || !is_well
}

/// Widens each bound of `changed` by one, bound after bound, and runs tests that must notice.
/// `changed` is a source or a header of a source.
fn let_out_bounds(source: &str, changed: &str, bounds: &[[&str; 2]], filter: &str) {
    let mut survivors = Vec::new();
    for [bound, wider] in bounds {
        let change = |source: &str| {
            assert!(source.contains(bound), "{bound}");
            source.replace(bound, wider)
        };
        let folder = tempfile::tempdir().unwrap();
        let form = Form::Address;
        let stand_in = StandIn::with_changed_kernels(form, source, changed, change, folder.path());
        if !fails(&stand_in.unwrap(), filter) {
            survivors.push(wider);
        }
    }
    assert!(survivors.is_empty(), "nothing notices {survivors:?}");
}

#[test]
fn no_bound_of_overlaps_can_be_let_out() {
    let bounds = [
        ["i < pairs.entry_count", "i <= pairs.entry_count"],
        ["index < entry.end", "index <= entry.end"],
        ["index < pairs.pair_count", "index <= pairs.pair_count"],
        ["at < len", "at <= len"],
        ["step < end", "step <= end"],
        ["high = pairs.entry_count - 1", "high = pairs.entry_count + 1"],
    ];
    let_out_bounds("overlap.cu", "overlap.cu", &bounds, "_per_probe_matches _per_pair_matches");
    let bounds =
        [["lane < left_len", "lane <= left_len"], ["lane < right_len", "lane <= right_len"]];
    let_out_bounds("overlap.cu", "overlap.cu", &bounds, "suite::lanes_8");
    let bounds = [
        ["word < pairs.words", "word <= pairs.words"],
        ["needed <= sizes;", "needed < sizes;"],
        ["lane < taken", "lane <= taken"],
    ];
    let_out_bounds("overlap.cu", "overlap.cu", &bounds, "suite::signed_8");
}

#[test]
fn no_bound_of_chunk_sums_can_be_let_out() {
    let bounds = [
        ["chunk < chunks", "chunk <= chunks"],
        ["at < end", "at <= end"],
        ["smaller(chunk_len, value_count - begin)", "chunk_len"],
    ];
    let_out_bounds("chunk_sum.cu", "chunk_sum.cu", &bounds, "suite::chunk_sum::chunk_sums");
}

#[test]
fn no_bound_of_signatures_can_be_let_out() {
    let bounds = [
        ["i < tiles.tile_count", "i <= tiles.tile_count"],
        ["at < words", "at <= words"],
        ["number < strip_end", "number <= strip_end"],
        ["probe < tile.probe_end", "probe <= tile.probe_end"],
        ["strip.set < probe", "strip.set <= probe"],
        ["strip.set >= from", "strip.set > from"],
        ["strip.set < strip.begin", "strip.set + 1 < strip.begin"],
        ["strip.set >= strip.end", "strip.set > strip.end"],
        ["strip.required <= smaller", "strip.required < smaller"],
        ["bits <= strip", "bits < strip"],
        ["lane_of_warp() < len", "lane_of_warp() <= len"],
        ["set < set_count", "set <= set_count"],
    ];
    let filter = "suite::signatures::signatures_of_1";
    let_out_bounds("signatures.cu", "signatures.cu", &bounds, filter);
    let bounds = [["is_match && at < room", "is_match && at <= room"]];
    let_out_bounds("signatures.cu", "output.cuh", &bounds, filter);
}

#[test]
fn no_bound_of_supports_can_be_let_out() {
    let bounds = [
        ["i < (rows.len - first) * parts", "i <= (rows.len - first) * parts"],
        ["at < chunks; at += blockDim.x) part", "at <= chunks; at += blockDim.x) part"],
        ["at < chunks; at += blockDim.x) {", "at <= chunks; at += blockDim.x) {"],
        ["item < lists.items", "item <= lists.items"],
        ["at < end; at", "at <= end; at"],
        ["support >= least", "support > least"],
    ];
    let_out_bounds("supports.cu", "supports.cu", &bounds, "suite::supports::integer_units");
    let bounds = [["tid < tids", "tid <= tids"]];
    let_out_bounds("supports.cu", "supports.cu", &bounds, "suite::supports::tids_past");
    let bounds = [
        ["next < count", "next <= count"],
        ["wait_for_copies<STAGES - 2>", "wait_for_copies<STAGES - 1>"],
        ["stage < count; ++stage", "stage + 1 < count; ++stage"],
        ["i < tiles.tile_count", "i <= tiles.tile_count"],
        ["pair.left < pair.right", "pair.left <= pair.right"],
        ["i < warp; ++i", "i <= warp; ++i"],
    ];
    let_out_bounds("supports.cu", "supports.cuh", &bounds, "suite::supports::small");
    let bounds = [
        ["(1 + unit.count) * PANEL_BYTES", "2 * PANEL_BYTES"],
        ["tile < unit.count", "tile + 1 < unit.count"],
        ["IS_ADDED || step > 0", "step > 0"],
        ["ring.parity ^ 1", "ring.parity"],
        ["if (i >= paired)", "if (i > paired)"],
        ["TILE >= unit.count", "TILE > unit.count"],
        ["i < threadIdx.x / WARP &&", "i <= threadIdx.x / WARP &&"],
        ["counts >> 16 * tile", "counts >> 15 * tile"],
    ];
    let_out_bounds("supports.cu", "group_tiles.cuh", &bounds, "suite::supports::small");
    let bounds = [
        ["init(GroupShared::WARPS)", "init(4)"],
        ["most >= least", "most > least"],
        ["found_pair.support >= least", "found_pair.support > least"],
    ];
    let filter = "suite::supports::warp_groups suite::supports::leasts";
    let_out_bounds("supports.cu", "group_tiles.cuh", &bounds, filter);
    let bounds = [
        ["at + count <= room", "at + count <= room + 1"],
        ["at + count <= room", "at + count < room"],
        ["&counters[CUT], at + 1", "&counters[CUT], at + 2"],
    ];
    let_out_bounds("supports.cu", "output.cuh", &bounds, "suite::supports::leasts");
}

#[test]
fn no_barrier_of_sparse_rows_can_be_pulled_out() {
    pull_out_barriers("sparse.cu", 3, "suite::sparse::few");
}

#[test]
fn no_bound_of_sparse_rows_can_be_let_out() {
    let bounds = [
        ["i < strips.strip_count", "i <= strips.strip_count"],
        [
            "at < width; at += SPARSE_THREADS) counters",
            "at <= width; at += SPARSE_THREADS) counters",
        ],
        ["at < end; at", "at <= end; at"],
        ["i < piece.end", "i <= piece.end"],
        ["left < width) atomicAdd", "left <= width) atomicAdd"],
        ["left < width ? ", "left <= width ? "],
        [">= strips.least;\n        }", "> strips.least;\n        }"],
        ["support >= strips.least", "support > strips.least"],
        ["i < warp; ++i", "i <= warp; ++i"],
    ];
    let_out_bounds("sparse.cu", "sparse.cu", &bounds, "suite::sparse::");
}

/// Tests of queries of few ids, of several units, and of the last ids.
const QUERY_TESTS: &str = "suite::queries::small suite::queries::queries_of suite::queries::ids_up";

#[test]
fn no_barrier_of_queries_can_be_pulled_out() {
    let filter = "suite::queries::queries_of_several";
    pull_out_barriers("queries.cuh", 6, filter);
    pull_out_barriers("queries.cu", 3, filter);
    pull_out_barriers("block_scan.cuh", 2, filter);
    pull_out_barriers("serial.cu", 3, "suite::queries::serial_queries");
}

#[test]
fn no_bound_of_units_of_queries_can_be_let_out() {
    let bounds = [
        ["term >= segment.terms", "term > segment.terms"],
        ["return len == 1 &&", "return"],
        ["<= id) begin += half", "< id) begin += half"],
        ["len -= half", "len -= half + len % 2"],
        [">> list.shift) + 2", ">> list.shift) + 1"],
        ["> position;", ">= position;"],
        ["<= position;", "< position;"],
    ];
    let_out_bounds("queries.cu", "inverted.cuh", &bounds, QUERY_TESTS);
    let bounds = [
        ["smaller(unit, len - begin)", "unit"],
        ["smaller(lists, KNOWN_LISTS)", "lists"],
        ["position >= count", "position > count"],
        ["tile < count", "tile + WARP < count"],
        ["is_empty |= key >> 31 == 0", "is_empty |= false"],
        ["at < end - begin; at", "at <= end - begin; at"],
        ["at < left && is_in", "is_in"],
        ["at < end; at += LANE", "at + LANE_WORDS * WARP < end; at += LANE"],
        ["if (at < end) words", "words"],
        ["i < listed; i", "i <= listed; i"],
        ["smaller(count, queries.unit_room - begin)", "count"],
        ["count < queries.unit_room ? static_cast<u32>(count) : queries.unit_room", "count"],
    ];
    let_out_bounds("queries.cu", "queries.cuh", &bounds, QUERY_TESTS);
}

#[test]
fn no_bound_of_kernels_of_queries_can_be_let_out() {
    let bounds = [
        [
            "query < queries.query_count; query += warps",
            "query <= queries.query_count; query += warps",
        ],
        ["i < units; i", "i <= units; i"],
        ["i == 0 ? listed.count + 1 : i + 1", "i + 1 + 0 * listed.count"],
        ["i == 0 ? listed.count + 1 : i + 1", "listed.count + 1 + i"],
        ["lane < UNIT_GROUPS", "lane <= UNIT_GROUPS"],
        ["at < listed.count ? found[at] : 0", "found[at]"],
        ["sum + documents.tails[query]", "sum"],
        ["sum <= documents.room", "sum <= documents.room + 1"],
        ["begin + share, queries.query_count", "begin + share, queries.query_count + 1"],
        ["rest < WARP ?", "rest <= WARP ?"],
        ["end == UNFINISHED || begin == end", "begin == end"],
        ["[unit.query].count + 1", "[unit.query].count"],
        ["threadIdx.x < left ? ids", "threadIdx.x <= left ? ids"],
        ["i <= own.units(); i += QUERY_WARPS", "i < own.units(); i += QUERY_WARPS"],
        [
            "i <= own.units(); ++i) {\n                    all",
            "i < own.units(); ++i) {\n                    all",
        ],
    ];
    let_out_bounds("queries.cu", "queries.cu", &bounds, QUERY_TESTS);
}

#[test]
fn no_bound_of_serial_queries_can_be_let_out() {
    let bounds = [
        ["begin < left;", "begin + TILE < left;"],
        ["at < left && is_in", "is_in"],
        ["if (at < left) serial.sums", "serial.sums"],
        ["left % TILE != 0", "0"],
        ["begin < tiles;", "begin + SCAN_THREADS < tiles;"],
        ["tile < tiles ? serial.tiles[tile] : 0", "serial.tiles[tile]"],
        ["before + sum - own", "sum - own"],
        ["at < left; at += threads", "at <= left; at += threads"],
        ["at % TILE ? ", "at ? "],
        ["step == 1 ?", "step <= 2 ?"],
    ];
    let filter = "suite::queries::serial_queries";
    let_out_bounds("serial.cu", "serial.cu", &bounds, filter);
    let bounds = [["threadIdx.x >= distance", "threadIdx.x > distance"]];
    let_out_bounds("serial.cu", "block_scan.cuh", &bounds, filter);
    let_out_bounds("queries.cu", "block_scan.cuh", &bounds, QUERY_TESTS);
}

#[test]
fn no_bound_of_batmaps_can_be_let_out() {
    let bounds = [
        ["TABLES << table_bits", "(TABLES + 1) << table_bits"],
        ["<< map.table_bits) - 1)", "<< map.table_bits) * 2 - 1)"],
        ["left > right ? left : right)", "left < right ? left : right)"],
        ["pair.right >= len", "pair.right > len"],
        ["+ failed >= least", "+ failed > least"],
        ["maps[pair.right].failed", "0"],
        ["(left ^ right) & 0x7f7f7f7f", "left ^ right"],
        ["common_bits(left, FLAGS), common", "0, common"],
        ["common_bits(right, FLAGS));", "0);"],
    ];
    let_out_bounds("batmaps.cu", "batmaps.cu", &bounds, "suite::batmaps::");
}

/// The message of a child that may fail about its end.
fn outcome(stand_in: &StandIn, settings: &[(&str, &str)]) -> String {
    let mut command = tests(stand_in, "failing::");
    let output =
        command.env(OUTCOME_VARIABLE, "1").envs(settings.iter().copied()).output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    let outcome = said.lines().find_map(|line| line.split_once("OUTCOME "));
    outcome.unwrap_or_else(|| panic!("{said}")).1.to_owned()
}

#[test]
fn a_probe_says_why_there_is_no_device() {
    let plain = StandIn::new(Form::Plain);
    assert_eq!(outcome(&plain, &[]), "fine");
    let cases = [
        (plain.clone().devices(0), "none: the NVIDIA driver shows no CUDA device"),
        (
            plain.clone().capability(61),
            "none: stand-in on the CPU is too old: its compute capability is 6.1, needed is 7.0",
        ),
        (
            plain.clone().driver_version(11080),
            "none: the NVIDIA driver is too old: it is for CUDA 11.8, needed is 12.0 (driver 525)",
        ),
    ];
    for (stand_in, expected) in cases {
        assert_eq!(outcome(&stand_in, &[]), expected);
    }
    let off = outcome(&plain, &[("TROMMEL_DEVICE", "cpu")]);
    assert_eq!(off, "none: switched off by TROMMEL_DEVICE=cpu");
    let unknown = outcome(&plain, &[("TROMMEL_DEVICE", "gpu")]);
    assert_eq!(unknown, "none: TROMMEL_DEVICE is \"gpu\"; allowed are \"auto\" and \"cpu\"");
    let small = outcome(&plain.memory_bytes(100), &[]);
    assert!(small.starts_with("full: cuMemAlloc of "), "{small}");
}

/// The resources that are left at the end of a child, and the number of times that the child made
/// each call.
fn report(path: &Path) -> (String, BTreeMap<String, u32>) {
    let text = fs::read_to_string(path).unwrap();
    let left = text.lines().find_map(|line| line.strip_prefix("left ")).unwrap().to_owned();
    let calls = text.lines().filter_map(|line| line.strip_prefix("call ")?.split_once(' '));
    let calls = calls.map(|(call, times)| (call.to_owned(), times.parse().unwrap()));
    (left, calls.collect())
}

/// Calls that end something, or prepare for its end: no caller can learn about their failure.
fn ends_something(call: &str) -> bool {
    ["Free", "Destroy", "Release", "Unload", "SetCurrent"].iter().any(|word| call.contains(word))
}

#[test]
fn a_failure_of_any_call_is_an_error_and_leaks_nothing() {
    const NOTHING: &str = "memory 0 pinned 0 streams 0 events 0 modules 0 contexts 0";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report");
    let plain = StandIn::new(Form::Plain).report(&path);
    assert_eq!(outcome(&plain, &[]), "fine");
    let (left, calls) = report(&path);
    assert_eq!(left, NOTHING);
    assert!(calls.len() > 25, "{calls:?}");
    for (call, times) in &calls {
        for nth in [1, 2, *times] {
            for (code, kind) in [(2, "full"), (1, "refused"), (719, "lost")] {
                let nth = nth.min(*times);
                let failing = plain.clone().failure(call, nth, code);
                let outcome = outcome(&failing, &[]);
                let shown = format!("{call}, call {nth} of {times}, code {code}: {outcome}");
                let (left, calls) = report(&path);
                assert_eq!(left, NOTHING, "{shown}");
                let is_reached = calls.get(call).is_some_and(|made| *made >= nth);
                if outcome == "fine" && (ends_something(call) || !is_reached) {
                    // There was no work left, or the join of tiles took fewer rounds: the rounds
                    // depend on the order in which blocks find room.
                } else if ends_something(call) {
                    let is_named = outcome.starts_with(&format!("{kind}: {call}"));
                    assert!(is_named || (code == 719 && outcome.starts_with(kind)), "{shown}");
                } else if call == "kernel" {
                    // The first later call reports the failure: a query, a wait, a copy.
                    let named = outcome.starts_with(&format!("{kind}: cu"));
                    assert!(named && outcome.ends_with(&format!("({code})")), "{shown}");
                } else {
                    let name = call.trim_end_matches("_v2");
                    assert!(outcome.starts_with(&format!("{kind}: {name}")), "{shown}");
                    assert!(outcome.ends_with(&format!("({code})")), "{shown}");
                }
            }
        }
    }
}

/// Tests of joins of few vectors, by each method.
const VECTOR_TESTS: &str = "suite::vectors::small";

#[test]
fn vectors_are_joined_on_devices_of_all_kinds() {
    for capability in [75, 86, 100] {
        passes(&StandIn::new(Form::Plain).capability(capability), VECTOR_TESTS);
    }
}

#[test]
fn no_barrier_of_vectors_can_be_pulled_out() {
    pull_out_barriers("vector_loops.cuh", 2, VECTOR_TESTS);
    pull_out_barriers("vector_order.cuh", 9, VECTOR_TESTS);
}

#[test]
fn no_bound_of_vectors_can_be_let_out() {
    let bounds = [
        ["left < first + i", "left <= first + i"],
        ["left < from.len", "left <= from.len"],
        ["i < count; ++i", "i <= count; ++i"],
        ["square <= question.limit", "square < question.limit / 2"],
    ];
    let_out_bounds("vectors.cu", "vector_loops.cuh", &bounds, VECTOR_TESTS);
    let bounds = [
        ["row < left.len && column < right.len", "row <= left.len && column <= right.len"],
        ["row < column", "row <= column"],
        ["leaf >= first + own", "leaf > first + own"],
        ["i <= leaves; ++i", "i < leaves; ++i"],
    ];
    let_out_bounds("vectors.cu", "vector_boxes.cuh", &bounds, VECTOR_TESTS);
}
