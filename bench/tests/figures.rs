//! `--figures` on the stand-in driver: every figure is drawn, with every line. The measured times
//! have no meaning there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use trommel_shim::{Form, StandIn};

/// 40 families of similar sets, 4 each.
fn write_sets(folder: &Path) {
    let mut lines = String::new();
    for family in 0..40_u32 {
        for member in 0..4 {
            let tokens = (0..12).map(|token| family * 7 + token * (token + 1) + token % 3 * member);
            for token in tokens {
                write!(lines, "{token} ").unwrap();
            }
            lines.push('\n');
        }
    }
    fs::write(folder.join("sets.txt"), lines).unwrap();
}

/// Runs the program; returns its output, and its figures by name.
fn bench(driver: Option<&Path>, arguments: &[&str]) -> (String, BTreeMap<String, String>) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trommel-bench"));
    command.args(arguments).arg("--figures").arg(folder.path()).env_remove("TROMMEL_DEVICE");
    if let Some(driver) = driver {
        command.env("LD_LIBRARY_PATH", driver);
    }
    let ended = command.output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    let figure = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    let figures = fs::read_dir(&folder).unwrap().map(|entry| figure(entry.unwrap())).collect();
    (said, figures)
}

/// Joins the sets.
fn set_join(driver: Option<&Path>, arguments: &[&str]) -> (String, BTreeMap<String, String>) {
    let folder = tempfile::tempdir().unwrap();
    write_sets(folder.path());
    let data = ["set-join", "--data", folder.path().to_str().unwrap()];
    bench(driver, &[&data, arguments].concat())
}

/// Names in the legend. Checks that each has a line with a point for each value of x, and the rest
/// of [`points_of`].
fn lines_of(svg: &str, points: usize) -> Vec<&str> {
    let lines = points_of(svg);
    assert!(lines.iter().all(|line| line.1 == points), "{lines:?}");
    lines.into_iter().map(|(name, _)| name).collect()
}

/// Names in the legend, each with the number of points of its line. Checks that every tag is
/// closed, and that every number is valid.
fn points_of(svg: &str) -> Vec<(&str, usize)> {
    let is_alone = |tag: &str| tag.starts_with('/') || tag.ends_with('/');
    let tags = svg.split('<').skip(1).map(|rest| rest.split('>').next().unwrap());
    let opened = tags.clone().filter(|tag| !is_alone(tag)).count();
    assert_eq!(opened, tags.filter(|tag| tag.starts_with('/')).count(), "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
    let drawn = svg.lines().filter(|line| {
        ["line", "main", "dashed"].iter().any(|c| line.starts_with(&format!("<path class=\"{c} ")))
    });
    let drawn: Vec<&str> = drawn.map(|line| line.split('"').nth(3).unwrap()).collect();
    let names: Vec<&str> = svg
        .lines()
        .filter(|line| line.starts_with("<text class=\"name\""))
        .map(|line| line.split(['<', '>']).nth(2).unwrap())
        .collect();
    // One in the legend, one in the plot.
    assert_eq!(drawn.len(), 2 * names.len(), "{svg}");
    let points = drawn[names.len()..].iter().map(|path| path.matches('L').count() + 1);
    names.into_iter().zip(points).collect()
}

const PUBLISHED: [&str; 3] = ["all_pairs", "pp_join", "group_join"];
const KERNELS: [&str; 4] =
    ["A, a thread a probe", "B, a block a probe", "C, a block a pair", "warp, signatures first"];

#[test]
fn joins_with_a_gpu_are_drawn_and_tabulated() {
    let driver = StandIn::new(Form::Plain);
    let verify = ["all_pairs", "pp_join", "group_join"]
        .iter()
        .flat_map(|algorithm| ["cpu", "a", "b", "c", "warp"].map(|m| format!("{algorithm}:{m}")))
        .chain(["auto:cpu", "auto:auto", "gpu_signatures:auto"].map(str::to_owned));
    let verify: Vec<String> = verify.collect();
    let (said, figures) = set_join(
        Some(driver.folder()),
        &["--thresholds", "70,60,50", "--verify", &verify.join(","), "--rounds", "1"],
    );
    let figure = |name: &str| {
        let svg = figures.get(&format!("set-join-sets-jaccard-{name}.svg"));
        svg.unwrap_or_else(|| panic!("no {name} in {:?}", figures.keys()))
    };
    let lines = |name: &str| lines_of(figure(name), 3);
    for algorithm in PUBLISHED {
        for kind in ["verification", "join"] {
            let name = format!("{kind}-{algorithm}");
            assert_eq!(lines(&name), [&["CPU, one core"][..], &KERNELS].concat(), "{name}");
        }
    }
    assert_eq!(lines("join-auto"), ["CPU, one core", "by size of the sets"]);
    let with_gpu = ["auto", "all_pairs", "pp_join", "group_join", "gpu_signatures"];
    for name in ["overlap", "transfer"] {
        assert_eq!(lines(name), with_gpu, "{name}");
    }
    assert_eq!(lines("gain"), &with_gpu[..4]);
    // On several cores a join may verify where it searches, which the timing of the run decides: at
    // some thresholds or at all of them, the verification then has no time of its own.
    for (name, points) in points_of(figure("verification-gain")) {
        assert!(with_gpu[..4].contains(&name) && points <= 3, "{name}: {points}");
    }
    let best = [
        "published, CPU, two cores",
        "published, with a GPU",
        "auto, CPU, two cores",
        "auto, with a GPU",
        "gpu_signatures, with a GPU",
    ];
    assert_eq!(lines("best"), best);
    let phases =
        ["whole join", "index and filter", "feeding the device", "kernels", "opening the device"];
    assert_eq!(lines("phases"), phases);
    assert_eq!(figures.len(), 2 * 4 + 6, "{:?}", figures.keys());

    let rows = |head: &str, rows: usize| -> Vec<Vec<String>> {
        let lines = said.lines().skip_while(|line| !line.starts_with(&format!("| {head} |")));
        let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect();
        lines.skip(2).take(rows).map(cells).collect()
    };
    for (head, count) in [("join, seconds", 18), ("verification, seconds", 18)] {
        for row in rows(head, count) {
            assert!(row[2..5].iter().all(|cell| cell.parse::<f64>().is_ok()), "{head}: {row:?}");
        }
    }
    for row in rows("fastest published, GPU", 3) {
        assert!(PUBLISHED.iter().any(|name| row[2].starts_with(name)), "{row:?}");
    }
    for (head, algorithms) in [("of the published ones", &PUBLISHED[..]), ("of all", &with_gpu)] {
        let head = format!("fastest with a GPU, {head}: inputs");
        let rows = rows(&head, algorithms.len());
        let names: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(names, algorithms);
        for threshold in 2..5 {
            let wins = rows.iter().map(|row| row[threshold].parse::<u32>().unwrap());
            assert_eq!(wins.sum::<u32>(), 1, "one input: {rows:?}");
        }
    }
}

#[test]
fn sizes_of_chunks_and_outputs_are_drawn() {
    let driver = StandIn::new(Form::Plain);
    let (_, figures) = set_join(
        Some(driver.folder()),
        &[
            "--thresholds",
            "70,50",
            "--verify",
            "pp_join:cpu,pp_join:b",
            "--chunk-bytes",
            "4096,1024,5242880",
            "--outputs",
            "count,pairs",
            "--rounds",
            "1",
        ],
    );
    let svg = |name: &str| figures[&format!("set-join-sets-jaccard-{name}.svg")].as_str();
    let joins = ["pp_join, cpu, 70", "pp_join, cpu, 50", "pp_join, b, 70", "pp_join, b, 50"];
    assert_eq!(lines_of(svg("chunks"), 3), joins);
    assert_eq!(lines_of(svg("chunks-overlap"), 3), &joins[2..]);
    for size in ["1 KiB", "4 KiB", "5 MiB"] {
        assert!(svg("chunks").contains(&format!(">{size}</text>")), "{size}");
    }
    let outputs =
        ["pp_join, cpu, count", "pp_join, cpu, select", "pp_join, b, count", "pp_join, b, select"];
    assert_eq!(lines_of(svg("outputs"), 2), outputs);
    // The figures of the usual runs are not drawn again.
    assert_eq!(figures.len(), 3, "{:?}", figures.keys());
}

#[test]
fn joins_on_one_core_are_drawn() {
    let (_, figures) = set_join(None, &["--thresholds", "50,80", "--algorithms", "auto,pp_join"]);
    for name in ["set-join-sets-jaccard.svg", "set-join-sets-jaccard-verification.svg"] {
        let names: Vec<&str> = lines_of(&figures[name], 2);
        let algorithms = names.iter().map(|name| name.split(' ').next().unwrap());
        assert_eq!(algorithms.collect::<Vec<&str>>(), ["auto", "pp_join"], "{name}");
    }
    assert_eq!(figures.len(), 2);
}

#[test]
fn kernels_are_drawn_over_the_threads_of_a_block() {
    let driver = StandIn::new(Form::Plain);
    let small = ["--pairs", "400", "--sizes", "12,40", "--chunks", "2", "--rounds", "1"];
    let (_, figures) = bench(
        Some(driver.folder()),
        &[&["overlap", "--threads", "64,32,128"][..], &small].concat(),
    );
    assert_eq!(figures.len(), 2);
    for size in [12, 40] {
        let svg = &figures[&format!("overlap-threads-{size}.svg")];
        let kernels = ["thread_per_probe", "block_per_probe", "block_per_pair"];
        let lanes = ["lanes_8_per_pair", "lanes_16_per_pair", "lanes_32_per_pair"];
        let signed = ["signed_8_per_pair", "signed_32_per_pair"];
        assert_eq!(lines_of(svg, 3), [&kernels[..], &lanes, &signed].concat());
        for threads in [32, 64, 128] {
            assert!(svg.contains(&format!(">{threads}</text>")), "{svg}");
        }
    }
}
