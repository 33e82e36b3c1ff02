"""Measures the package beside the packages that people use for the same in Python.

``python bench/peers.py`` runs every task with every package that is installed, each in a process
of its own: once to warm up, then up to three times, until 20 s have passed. It prints a table for
each task. All packages answer the same question on the same data; the answer is compared with the
exact one: ``recall`` is the share of the exact results that were found, ``wrong`` the number of
results that are none. The clock covers the work from the data in the form that a package takes to its
result as a Python object; ``peak`` is the growth of the resident memory during the work. Packages
that find candidates, which are to be verified by other means, have two times: without the verification,
and with a vectorised one (`verified`), which is ours.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

TASKS: dict[str, dict[str, Callable[[Any], Any]]] = {}
VERSIONS = {
    "trommel": "trommel", "datasketch": "datasketch", "rensa": "rensa",
    "SetSimilaritySearch": "SetSimilaritySearch", "py_stringsimjoin": "py_stringsimjoin",
    "mlxtend": "mlxtend", "pyfim": "pyfim", "scipy": "scipy", "scikit-learn": "scikit-learn",
    "faiss": "faiss-cpu", "collections": None, "datasketches": "datasketches", "duckdb": "duckdb",
    "polars": "polars",
}  # fmt: skip


def peer(task: str, name: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A function that prepares the data of a package and returns the work to be timed."""

    def register(prepare: Callable[[Any], Any]) -> Callable[[Any], Any]:
        TASKS.setdefault(task, {})[name] = prepare
        return prepare

    return register


# Sets: 20,000 of 8 to 24 of 5,000 tokens by a Zipf distribution; a fifth are near-duplicates.


def sets() -> list[list[int]]:
    rng = random.Random(1)
    tokens = [min(int(rng.paretovariate(0.6)), 5000) for _ in range(400_000)]
    made: list[list[int]] = []
    for number in range(20_000):
        if number % 5 == 4:
            base = set(rng.choice(made))
            base.discard(next(iter(base)))
            base.add(rng.randrange(5000))
        else:
            begin, size = rng.randrange(390_000), rng.randint(8, 24)
            base = set(tokens[begin : begin + 2 * size])
        made.append(sorted(base))
    return made


SET_THRESHOLD = 0.8


def verifier(data: list[list[int]]) -> Callable[[Any], Any]:
    """Keeps the candidates that reach the threshold, exactly, by products of sparse rows."""
    import numpy as np
    import scipy.sparse as sp

    sizes = np.array([len(s) for s in data])
    indptr, indices = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(data)
    rows = sp.csr_matrix((np.ones(len(indices), dtype="i4"), indices, indptr))

    def verify(candidates: Any) -> Any:
        pairs = np.array(candidates, dtype="i8").reshape(-1, 2)
        pairs = np.unique(np.sort(pairs, axis=1), axis=0)
        a, b = pairs[pairs[:, 0] < pairs[:, 1]].T
        overlap = np.asarray(rows[a].multiply(rows[b]).sum(axis=1)).ravel()
        kept = 5 * overlap >= 4 * (sizes[a] + sizes[b] - overlap)
        return np.stack([a[kept], b[kept]], axis=1)

    return verify


@peer("sets", "trommel")
def _(data):
    import pyarrow as pa

    import trommel

    column = pa.array(data, pa.list_(pa.uint32()))
    return lambda: trommel.set_similarity_join(column, threshold="4/5"), lambda r: {
        (p["left"], p["right"]) for p in r.to_pylist()
    }


@peer("sets", "SetSimilaritySearch")
def _(data):
    from SetSimilaritySearch import all_pairs

    return (
        lambda: list(all_pairs(data, similarity_func_name="jaccard", similarity_threshold=SET_THRESHOLD)),
        lambda r: {(int(min(a, b)), int(max(a, b))) for a, b, _ in r},
    )


@peer("sets", "py_stringsimjoin")
def _(data):
    import pandas as pd
    import py_stringmatching
    import py_stringsimjoin

    frame = pd.DataFrame({"id": range(len(data)), "text": [" ".join(map(str, s)) for s in data]})
    cut = py_stringmatching.WhitespaceTokenizer(return_set=True)

    def work():
        return py_stringsimjoin.jaccard_join(
            frame, frame, "id", "id", "text", "text", cut, SET_THRESHOLD, show_progress=False
        )

    return work, lambda r: {
        (a, b) for a, b in zip(r["l_id"].tolist(), r["r_id"].tolist()) if a < b
    }


@peer("sets", "datasketch")
def _(data):
    from datasketch import MinHash, MinHashLSH

    raw = [[str(t).encode() for t in s] for s in data]

    def work():
        index = MinHashLSH(threshold=SET_THRESHOLD, num_perm=128)
        candidates = []
        for number, minhash in enumerate(MinHash.bulk(raw, num_perm=128)):
            candidates += [(other, number) for other in index.query(minhash)]
            index.insert(number, minhash)
        return candidates

    return work, lambda r: set(map(tuple, r.tolist())), verifier(data)


@peer("sets", "rensa")
def _(data):
    from rensa import RMinHash, RMinHashLSH

    raw = [[str(t) for t in s] for s in data]

    def work():
        index = RMinHashLSH(threshold=SET_THRESHOLD, num_perm=128, num_bands=16)
        candidates = []
        for number, tokens in enumerate(raw):
            minhash = RMinHash(num_perm=128, seed=42)
            minhash.update(tokens)
            candidates += [(other, number) for other in index.query(minhash)]
            index.insert(number, minhash)
        return candidates

    return work, lambda r: set(map(tuple, r.tolist())), verifier(data)


# Pairs: 20,000 baskets of 10 to 30 of 1,000 items; support 200.


def baskets() -> list[list[int]]:
    rng = random.Random(2)
    return [
        sorted({min(int(rng.paretovariate(0.5)), 999) for _ in range(rng.randint(10, 30))})
        for _ in range(20_000)
    ]


SUPPORT = 200


@peer("pairs", "trommel")
def _(data):
    import pyarrow as pa

    import trommel

    column = pa.array(data, pa.list_(pa.uint32()))
    return lambda: trommel.frequent_pairs(column, SUPPORT), lambda r: {
        (frozenset((p["left"], p["right"])), p["support"]) for p in r.to_pylist()
    }


@peer("pairs", "pyfim")
def _(data):
    import fim

    return lambda: fim.eclat(data, target="s", supp=-SUPPORT, zmin=2, zmax=2), lambda r: {
        (frozenset(items), count if isinstance(count, int) else count[0]) for items, count in r
    }


@peer("pairs", "mlxtend")
def _(data):
    import pandas as pd
    from mlxtend.frequent_patterns import fpgrowth
    from mlxtend.preprocessing import TransactionEncoder

    encoder = TransactionEncoder()
    frame = pd.DataFrame(encoder.fit_transform(data), columns=encoder.columns_)

    def work():
        found = fpgrowth(frame, min_support=SUPPORT / len(data), max_len=2, use_colnames=True)
        return found[found["itemsets"].map(len) == 2]

    return work, lambda r: {
        (frozenset(items), round(share * len(data))) for items, share in zip(r["itemsets"], r["support"])
    }


@peer("pairs", "scipy")
def _(data):
    import numpy as np
    import scipy.sparse as sp

    indptr = np.cumsum([0] + [len(b) for b in data])
    indices = np.concatenate([np.array(b) for b in data])
    matrix = sp.csr_matrix((np.ones(len(indices), dtype="i4"), indices, indptr), (len(data), 1000))

    def work():
        counts = sp.triu(matrix.T @ matrix, k=1).tocoo()
        kept = counts.data >= SUPPORT
        return counts.row[kept], counts.col[kept], counts.data[kept]

    return work, lambda r: {
        (frozenset((int(a), int(b))), int(n)) for a, b, n in zip(*r)
    }


# Vectors: 50,000 of 8 coordinates, in clusters; distance 0.25.


def vectors():
    import numpy as np

    rng = np.random.default_rng(3)
    centers = rng.normal(size=(2_000, 8))
    return (centers[rng.integers(0, 2_000, 50_000)] + rng.normal(size=(50_000, 8)) * 0.1).astype("f4")


EPSILON = 0.25


@peer("vectors", "trommel")
def _(data):
    import trommel

    return lambda: trommel.epsilon_join(data, epsilon=EPSILON), lambda r: {
        (p["left"], p["right"]) for p in r.to_pylist()
    }


@peer("vectors", "scipy")
def _(data):
    from scipy.spatial import cKDTree

    return lambda: cKDTree(data).query_pairs(EPSILON, output_type="ndarray"), lambda r: {
        (int(a), int(b)) for a, b in r
    }


@peer("vectors", "scikit-learn")
def _(data):
    from sklearn.neighbors import NearestNeighbors

    return lambda: NearestNeighbors(radius=EPSILON).fit(data).radius_neighbors(
        data, return_distance=False
    ), lambda r: {(a, int(b)) for a, row in enumerate(r) for b in row if a < b}


@peer("vectors", "faiss")
def _(data):
    import faiss
    import numpy as np

    def work():
        index = faiss.IndexFlatL2(data.shape[1])
        index.add(data)
        return index.range_search(data, EPSILON * EPSILON)

    def pairs(r):
        limits, _, ids = r
        left = np.repeat(np.arange(len(data)), np.diff(limits).astype("i8"))
        return {(int(a), int(b)) for a, b in zip(left[left < ids], ids[left < ids])}

    return work, pairs


# Top: 20 million uint32 items, Zipf; the 100 most frequent.


def items():
    import numpy as np

    rng = np.random.default_rng(4)
    return (rng.zipf(1.2, 20_000_000) % (1 << 22)).astype("u4")


@peer("top", "trommel")
def _(data):
    import trommel

    return lambda: trommel.top(data, n=100, counters=10_000), lambda r: set(r["item"])


@peer("top", "collections")
def _(data):
    plain = data.tolist()
    return lambda: Counter(plain).most_common(100), lambda r: {item for item, _ in r}


@peer("top", "polars")
def _(data):
    import polars as pl

    series = pl.Series("item", data)
    return lambda: series.value_counts(sort=True).head(100), lambda r: set(r["item"].to_list())


@peer("top", "duckdb")
def _(data):
    import duckdb
    import pyarrow as pa

    table = pa.table({"item": data})  # noqa: F841, the query names it
    connection = duckdb.connect()
    text = "select item, count(*) as n from table group by item order by n desc limit 100".replace(
        "from table", "from data_table"
    )
    connection.register("data_table", table)
    return lambda: connection.execute(text).fetchall(), lambda r: {item for item, _ in r}


@peer("top", "datasketches")
def _(data):
    import datasketches as ds

    plain = data[:2_000_000].tolist()

    def work():
        sketch = ds.frequent_items_sketch(14)
        for item in plain:
            sketch.update(item)
        return sketch.get_frequent_items(ds.frequent_items_error_type.NO_FALSE_NEGATIVES)[:100]

    return work, lambda r: {row[0] for row in r}


DATA = {"sets": sets, "pairs": baskets, "vectors": vectors, "top": items}
# The package whose answer is taken as the exact one; never the package itself.
EXACT = {"sets": "SetSimilaritySearch", "pairs": "scipy", "vectors": "scipy", "top": "polars"}
NOTES = {("top", "datasketches"): "2 M items, which its loop in Python takes one by one"}


class Peak(threading.Thread):
    """The largest resident memory while it runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.begin = self.largest = self.resident()
        self.stop = threading.Event()

    @staticmethod
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def run(self) -> None:
        while not self.stop.wait(0.005):
            self.largest = max(self.largest, self.resident())


def measure(task: str, name: str) -> dict[str, Any]:
    data = DATA[task]()
    work, answer, *verify = TASKS[task][name](data)
    peak = Peak()
    peak.start()
    result = work()
    peak.stop.set()
    peak.join()
    grown = max(peak.largest, Peak.resident()) - peak.begin
    seconds, begin = [], time.perf_counter()
    while len(seconds) < 3 and (not seconds or time.perf_counter() - begin < 20):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    verified = []
    for _ in range(3 if verify else 0):
        start = time.perf_counter()
        kept = verify[0](result)
        verified.append(time.perf_counter() - start)
    found = answer(kept if verify else result)
    version = importlib.metadata.version(VERSIONS[name]) if VERSIONS[name] else sys.version.split()[0]
    listed = sorted(map(repr, ((sorted(r[0]), r[1]) if isinstance(r, tuple) and isinstance(r[0], frozenset) else r for r in found)))
    return {
        "task": task, "package": name, "version": version, "seconds": min(seconds),
        "verified": min(seconds) + min(verified) if verify else None,
        "rounds": len(seconds), "peak_mb": grown / 1e6, "found": listed, "note": NOTES.get((task, name), ""),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=list(DATA), action="append", help="only these tasks")
    parser.add_argument("--one", nargs=2, metavar=("TASK", "PACKAGE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*arguments.one)))
        return
    for task in arguments.task or DATA:
        rows = []
        for name in TASKS[task]:
            command = [sys.executable, __file__, "--one", task, name]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                rows.append(json.loads(done.stdout.splitlines()[-1]))
            else:
                why = (done.stderr.strip().splitlines() or ["no message"])[-1]
                rows.append({"task": task, "package": name, "missing": why})
        exact = {row["package"]: set(row["found"]) for row in rows if "found" in row}.get(EXACT[task])
        print(f"\n{task}\n\n| package | seconds | verified | peak MB | results | recall | wrong |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for row in rows:
            if "missing" in row:
                print(f"| {row['package']} | not run: {row['missing']} | | | | | |")
                continue
            found = set(row["found"])
            recall = f"{len(found & exact) / len(exact):.4f}" if exact else ""
            wrong = "" if exact is None else len(found - exact)
            note = f" ({row['note']})" if row["note"] else ""
            whole = f"{row['verified']:.3f}" if row["verified"] is not None else ""
            print(
                f"| {row['package']} {row['version']}{note} | {row['seconds']:.3f} | {whole} | {row['peak_mb']:.0f} "
                f"| {len(found):,} | {recall} | {wrong} |"
            )


if __name__ == "__main__":
    main()
