"""Measures the way from documents to documents without near-duplicates, beside rensa.

``python bench/documents.py PROGRAM`` takes the path of ``trommel``, makes documents as compressed lines
of JSON, of which a fifth are copies of earlier ones with up to five words replaced, and writes those
that stay as a file of Parquet: with one command of ours, and with a loop around rensa (MinHash, 128
permutations, 16 bands), which checks candidates by its own estimate. Both sides are processes of their
own, whose whole time and largest memory are shown. Ours is exact, so that its result says which
documents rensa drops rightly.

Needs the packages numpy, pyarrow and rensa, and the program ``zstd``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THRESHOLD = 0.8
WORDS, REMEMBERED, PART = 50_000, 200_000, 10_000


def make(path: Path, documents: int) -> None:
    """Documents of 20 to 99 words of a Zipf distribution."""
    import numpy as np

    rng = np.random.default_rng(7)
    words = np.array([f"w{np.base_repr(number, 36).lower()}" for number in range(WORDS)])
    shares = 1 / np.arange(1, WORDS + 1) ** 0.9
    shares /= shares.sum()
    earlier: list[np.ndarray] = []
    packing = subprocess.Popen(["zstd", "-q", "-f", "-o", path], stdin=subprocess.PIPE)
    assert packing.stdin is not None
    for first in range(0, documents, PART):
        count = min(PART, documents - first)
        lengths = rng.integers(20, 100, count)
        drawn = np.split(rng.choice(WORDS, int(lengths.sum()), p=shares), np.cumsum(lengths)[:-1])
        is_copy, replaced = rng.random(count) < 0.2, rng.integers(0, 6, count)
        known, lines = len(earlier), []
        for row, text in enumerate(drawn):
            if is_copy[row] and known:
                text = earlier[rng.integers(known)].copy()
                text[rng.integers(0, len(text), replaced[row])] = rng.integers(0, WORDS, replaced[row])
            if len(earlier) < REMEMBERED:
                earlier.append(text)
            else:
                earlier[rng.integers(REMEMBERED)] = text
            document = {"id": f"doc-{first + row}", "text": " ".join(words[text])}
            lines.append(json.dumps(document) + "\n")
        packing.stdin.write("".join(lines).encode())
    packing.stdin.close()
    if packing.wait():
        sys.exit("zstd failed")


def deduplicate(source: str, target: str) -> None:
    """The loop around rensa."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from rensa import RMinHash, RMinHashLSH

    unpacking = subprocess.Popen(["zstd", "-dc", source], stdout=subprocess.PIPE)
    assert unpacking.stdout is not None
    index = RMinHashLSH(threshold=THRESHOLD, num_perm=128, num_bands=16)
    sketches: list[RMinHash] = []
    kept: list[dict[str, str]] = []
    for line in unpacking.stdout:
        document = json.loads(line)
        sketch = RMinHash(num_perm=128, seed=42)
        sketch.update(document["text"].split())
        near = (sketches[candidate] for candidate in index.query(sketch))
        if not any(other.jaccard(sketch) >= THRESHOLD for other in near):
            kept.append(document)
        index.insert(len(sketches), sketch)
        sketches.append(sketch)
    pq.write_table(pa.Table.from_pylist(kept), target, compression="zstd")


def run(name: str, command: list[str]) -> None:
    begin = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{name} failed")
    seconds = time.perf_counter() - begin
    processor = usage.ru_utime + usage.ru_stime
    print(f"| {name} | {seconds:.1f} | {processor:.1f} | {usage.ru_maxrss / 1e6:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--loop", nargs=2, metavar=("SOURCE", "TARGET"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.loop:
        deduplicate(*arguments.loop)
        return
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "documents.jsonl.zst")
        make(source, arguments.documents)
        print(f"{arguments.documents} documents, {source.stat().st_size / 1e6:.0f} MB\n")
        print("| program | seconds | seconds of processors | GB |\n|---|---:|---:|---:|")
        ours, theirs = Path(folder, "ours.parquet"), Path(folder, "rensa.parquet")
        threshold = ["--threshold", str(THRESHOLD)]
        run("trommel dedup", [arguments.program, "dedup", "--by", "words(text)", *threshold,
                              "--output", str(ours), str(source)])
        run("rensa, a loop of Python", [sys.executable, __file__, "--loop", str(source), str(theirs)])
        stay, kept = (set(pq.read_table(path, columns=["id"])["id"].to_pylist()) for path in (ours, theirs))
    dropped = {f"doc-{number}" for number in range(arguments.documents)} - stay
    found = len(dropped - kept)
    print(f"\n{len(dropped)} documents have an earlier one that is similar; rensa drops {found} of "
          f"these ({found / len(dropped):.4f}) and {len(stay - kept)} others")


if __name__ == "__main__":
    main()
