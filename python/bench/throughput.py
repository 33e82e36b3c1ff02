"""Measures what the package costs beside the Rust program that does the same.

``python bench/throughput.py PROGRAM`` takes the path of ``trommel-bench``. Both sides work on the same
data, which is in memory: a join of two Polars frames of 1,000,000 sets each, and a count of a NumPy
array of 50 million items. The clock of Python covers the whole call; that of Rust covers the whole
pipeline. Both sides take turns, in processes of their own; the fastest round of each counts. The size
of the native half is printed, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

SETS, ITEMS = 1_000_000, 50_000_000


def make(folder: Path) -> None:
    """Sets of 8 to 24 of 200,000 tokens; a twentieth of those on the right resemble one on the left."""
    import numpy as np

    rng = np.random.default_rng(1)
    sides = {}
    for side in ("left", "right"):
        lengths = rng.integers(8, 25, SETS)
        tokens = (rng.zipf(1.3, (SETS, 24)) % 200_000).astype("u4")
        sides[side] = [np.unique(row[:length]) for row, length in zip(tokens, lengths)]
    for row in range(0, SETS, 20):
        sides["right"][row] = sides["left"][rng.integers(SETS)][1:]
    for side, sets in sides.items():
        offsets = np.cumsum([0] + [len(s) for s in sets], dtype="u4")
        offsets.tofile(folder / f"{side}.offsets")
        np.concatenate(sets).tofile(folder / f"{side}.tokens")
    (rng.zipf(1.2, ITEMS) % (1 << 22)).astype("u4").tofile(folder / "items")


def frame(folder: Path, side: str) -> Any:
    import numpy as np
    import polars as pl
    import pyarrow as pa

    offsets = pa.array(np.fromfile(folder / f"{side}.offsets", dtype="u4").astype("i8"))
    tokens = pa.array(np.fromfile(folder / f"{side}.tokens", dtype="u4"))
    return pl.DataFrame({"set": pl.from_arrow(pa.LargeListArray.from_arrays(offsets, tokens))})


def fastest(rounds: int, work: Callable[[], Any]) -> tuple[float, Any]:
    times, result = [], work()
    for _ in range(rounds):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    return min(times), result


def measure(folder: Path, rounds: int) -> dict[str, Any]:
    import numpy as np

    import trommel

    left, right = frame(folder, "left"), frame(folder, "right")
    items = np.fromfile(folder / "items", dtype="u4")

    def count() -> trommel.FrequentItems:
        counted = trommel.FrequentItems(1000, seed=1)
        counted.observe(items)
        return counted

    join, pairs = fastest(rounds, lambda: trommel.set_similarity_join(left, right, threshold="4/5"))
    seconds, counted = fastest(rounds, count)
    return {"join": join, "pairs": len(pairs), "count": seconds, "largest": counted.top(1)["count"][0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the path of trommel-bench, built with --release")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in a process")
    parser.add_argument("--turns", type=int, default=3, help="processes of each side")
    parser.add_argument("--one", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(Path(arguments.one), arguments.rounds)))
        return
    rounds = ["--rounds", str(arguments.rounds)]
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        commands = {
            "rust": [arguments.program, "arrays", folder, *rounds],
            "python": [sys.executable, __file__, arguments.program, "--one", folder, *rounds],
        }
        runs: dict[str, list[dict[str, Any]]] = {side: [] for side in commands}
        for _ in range(arguments.turns):
            for side, command in commands.items():
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                runs[side].append(json.loads(done.stdout))
    answers = {(run["pairs"], run["largest"]) for side in runs.values() for run in side}
    if len(answers) != 1:
        sys.exit(f"the answers differ: {answers}")
    [(pairs, _)] = answers
    packages = ", ".join(f"{name} {version(name)}" for name in ("trommel", "polars", "numpy"))
    print(f"Python {platform.python_version()}, {packages}\n")
    print("| task | Rust | Python | Python / Rust |\n|---|---:|---:|---:|")
    tasks = {
        "join": f"join of two Polars frames of {SETS:,} sets, Jaccard at least 4/5, {pairs:,} pairs",
        "count": f"`FrequentItems.observe` of a NumPy array of {ITEMS:,} uint32",
    }
    for task, name in tasks.items():
        rust, python = (min(run[task] for run in runs[side]) for side in ("rust", "python"))
        print(f"| {name} | {rust:.4f} s | {python:.4f} s | {python / rust:.3f} |")
    native = importlib.util.find_spec("trommel._trommel")
    if native is None or native.origin is None:
        sys.exit("the native half of trommel is not installed")
    print(f"\nnative half: {Path(native.origin).stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
