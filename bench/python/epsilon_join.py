"""Measures Python packages that find all pairs of near vectors, over a file of float32 numbers.

Creates an environment of its own with pinned packages, once, and runs itself again in it. Prints
the versions with `--prepare`, else JSON, with an object per peer, or for a peer that could not be
installed or would not end; `pairs` is a file of pairs of rows, smaller one first, as 32-bit numbers:

    [{"name": ..., "build": seconds, "join": seconds, "pairs": path}, {"name": ..., "missing": why}, ...]

The clock covers the join alone, from vectors in memory to pairs of rows as an array, on one thread,
and is the faster of two runs after one to warm up, or that one if it takes more than 10 s.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import time

import environment

NUMPY, SCIPY = "numpy==2.4.6", "scipy==1.17.1"
SKLEARN, FAISS = "scikit-learn==1.9.1", "faiss-cpu==1.15.1"
PACKAGES = [NUMPY, SCIPY, SKLEARN, FAISS]

LONG_SECONDS = 10

# Dimensions or pairs of vectors above which a peer is left out: it takes minutes.
TREE_DIMS_MAX = 16
PAIRS_MAX = 20_000_000_000


def scipy_tree(vectors, epsilon):
    """The pairs of a k-d tree with itself."""
    from scipy.spatial import cKDTree

    if vectors.shape[1] > TREE_DIMS_MAX:
        raise ValueError("left out: a k-d tree of many dimensions")
    tree = cKDTree(vectors)
    return lambda: tree.query_pairs(epsilon, output_type="ndarray")


def sklearn_neighbors(vectors, epsilon):
    """A query by radius for each vector, in one call."""
    import numpy
    from sklearn.neighbors import NearestNeighbors

    if vectors.shape[1] > TREE_DIMS_MAX:
        raise ValueError("left out: a k-d tree of many dimensions")
    index = NearestNeighbors(radius=epsilon, algorithm="kd_tree", n_jobs=1).fit(vectors)

    def pairs():
        near = index.radius_neighbors(vectors, return_distance=False)
        rows = numpy.repeat(numpy.arange(len(near)), [len(found) for found in near])
        return halved(rows, numpy.concatenate(near))

    return pairs


def faiss_flat(vectors, epsilon):
    """A search by range over all vectors."""
    import faiss
    import numpy

    if len(vectors) ** 2 > PAIRS_MAX:
        raise ValueError("left out: all pairs of so large an input")
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(vectors)

    def pairs():
        limits, _, near = index.range_search(vectors, epsilon * epsilon)
        rows = numpy.repeat(numpy.arange(len(vectors)), numpy.diff(limits.astype(numpy.int64)))
        return halved(rows, near)

    return pairs


def halved(left, right):
    """Each pair once."""
    import numpy

    kept = left < right
    return numpy.stack([left[kept], right[kept]], axis=1)


PEERS = [
    ("scipy, cKDTree.query_pairs", SCIPY, scipy_tree),
    ("scikit-learn, radius_neighbors", SKLEARN, sklearn_neighbors),
    ("faiss, flat range_search", FAISS, faiss_flat),
]


def measure(vectors, epsilon, prepare, path):
    """Times, and the pairs in a file."""
    start = time.perf_counter()
    join = prepare(vectors, epsilon)
    build = time.perf_counter() - start
    seconds, pairs = environment.repeated(2, join, LONG_SECONDS)
    pairs.astype("<u4").tofile(path)
    return {"build": build, "join": min(seconds), "pairs": str(path)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--environment", type=pathlib.Path, required=True)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--vectors", type=pathlib.Path)
    parser.add_argument("--dims", type=int)
    parser.add_argument("--epsilon", type=float)
    options = parser.parse_args()
    os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    failed = environment.enter(options.environment, PACKAGES, retry=options.prepare)
    if options.prepare:
        names = [package.split("==")[0] for package in PACKAGES if package not in failed]
        print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))
        return
    import numpy

    vectors = numpy.fromfile(options.vectors, dtype="<f4").reshape(-1, options.dims)
    results = []
    for number, (name, wanted, prepare) in enumerate(PEERS):
        if wanted in failed:
            results.append({"name": name, "missing": failed[wanted]})
            continue
        try:
            path = options.environment / f"{number}.pairs"
            results.append({"name": name, **measure(vectors, options.epsilon, prepare, path)})
        except (ValueError, MemoryError) as why:
            results.append({"name": name, "missing": str(why) or "out of memory"})
    print(json.dumps(results))


main()
