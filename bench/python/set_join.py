"""Measures Python packages that join similar sets, over a file of sets: one set per line, tokens as
numbers. Jaccard similarity, self-join, on one thread; DuckDB uses
as many as it chooses.

Creates an environment of its own with pinned packages, once, and runs itself again in it. Prints
the versions with `--prepare`, else JSON, with an object per peer and threshold, or for a peer that
could not be installed:

    [{"name": ..., "threshold": percent, "seconds": [...], "pairs": ..., "candidates": ...},
     {"name": ..., "missing": why}, ...]

The clock covers the join alone, from the call to its result in Python. It excludes reading the file
and filling the tables. A join that takes more than five seconds runs once, else `--rounds` times
after once to warm up.

MinHash peers find candidates: their clock covers signatures, the index and a query for each set.
`pairs` is the number of candidates that reach the threshold, counted exactly and outside of the
clock; `candidates` is null for joins that verify their pairs themselves.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib

import environment

NUMPY, PANDAS = "numpy==1.26.4", "pandas==2.3.3"
SET_SIMILARITY_SEARCH, STRING_SIM_JOIN = "SetSimilaritySearch==1.0.1", "py_stringsimjoin==0.3.6"
STRING_MATCHING, DUCKDB = "py_stringmatching==0.4.7", "duckdb==2.0.1"
RENSA, DATASKETCH = "rensa==0.5.0", "datasketch==2.0.0"
PACKAGES = [
    NUMPY, PANDAS, STRING_MATCHING, SET_SIMILARITY_SEARCH, STRING_SIM_JOIN, DUCKDB, RENSA, DATASKETCH
]

# Hash functions of a MinHash signature: the default of both packages.
HASHES = 128

# Later versions have no `distutils.msvccompiler`, which the build of py_stringsimjoin needs.
CONSTRAINTS = ["setuptools<74", NUMPY, PANDAS]

# Ranks tokens, rare ones first; finds pairs that share a token of their prefixes and whose sizes
# fit; computes their overlaps. Whole numbers, so that no pair is lost to rounding.
SQL = """
WITH frequency AS (
    SELECT token, row_number() OVER (ORDER BY count(*), token) AS rank FROM sets GROUP BY token
), ranked AS (
    SELECT id, rank, count(*) OVER (PARTITION BY id) AS size,
        row_number() OVER (PARTITION BY id ORDER BY rank) AS position
    FROM sets JOIN frequency USING (token)
), prefix AS (
    SELECT id, rank, size FROM ranked WHERE position <= size - ($t * size + 99) // 100 + 1
), candidate AS (
    SELECT DISTINCT a.id AS one, b.id AS other
    FROM prefix a JOIN prefix b ON a.rank = b.rank AND a.id < b.id
        AND 100 * a.size >= $t * b.size AND 100 * b.size >= $t * a.size
), whole AS (
    SELECT id, list(rank) AS ranks FROM ranked GROUP BY id
), overlap AS (
    SELECT len(list_intersect(a.ranks, b.ranks)) AS common, len(a.ranks) + len(b.ranks) AS sizes
    FROM candidate JOIN whole a ON a.id = one JOIN whole b ON b.id = other
)
SELECT count(*) FROM overlap WHERE (100 + $t) * common >= $t * sizes
"""


def set_similarity_search(lines):
    """SetSimilaritySearch, in pure Python over tokens as strings; finds each pair once."""
    from SetSimilaritySearch import all_pairs

    sets = [line.split() for line in lines]

    def join(threshold):
        pairs = all_pairs(sets, similarity_func_name="jaccard", similarity_threshold=threshold / 100)
        return sum(1 for _ in pairs)

    return join


def string_sim_join(lines):
    """py_stringsimjoin, which tokenizes strings within the join. It joins a table with itself as two
    tables: finds each pair twice, and each set with itself."""
    import pandas
    from py_stringmatching import WhitespaceTokenizer
    from py_stringsimjoin import jaccard_join

    table = pandas.DataFrame({"id": range(len(lines)), "set": lines})
    tokenizer = WhitespaceTokenizer(return_set=True)

    def join(threshold):
        columns = ("id", "id", "set", "set")
        pairs = jaccard_join(
            table, table, *columns, tokenizer, threshold / 100, allow_empty=False,
            show_progress=False,
        )
        return (len(pairs) - len(lines)) // 2

    return join


def duckdb_sql(lines):
    """DuckDB with a query of ours: prefixes and sizes, as joins of tables."""
    import duckdb
    import numpy

    sets = [line.split() for line in lines]
    ids = numpy.repeat(numpy.arange(len(sets)), [len(tokens) for tokens in sets])
    tokens = numpy.array([int(token) for tokens in sets for token in tokens], dtype="int64")
    connection = duckdb.connect()
    connection.register("columns", {"id": ids, "token": tokens})
    connection.execute("CREATE TABLE sets AS SELECT id, token FROM columns")
    return lambda threshold: connection.execute(SQL, {"t": threshold}).fetchone()[0]


# Weights of false and of lost pairs in the choice of bands: equal, as is the default of datasketch,
# and for those who want most pairs.
EQUAL, RECALL = (0.5, 0.5), (0.1, 0.9)


def bands(threshold, weights):
    """Number of bands of equal length with the smallest weighted sum of the probabilities of false
    and of lost pairs, over all similarities: the criterion of datasketch."""

    def error(count):
        length = HASHES // count
        is_found = lambda at: 1 - (1 - (at / 1000) ** length) ** count
        false = sum(map(is_found, range(10 * threshold)))
        lost = sum(1 - is_found(at) for at in range(10 * threshold, 1000))
        return weights[0] * false + weights[1] * lost

    return min((count for count in range(2, HASHES + 1) if HASHES % count == 0), key=error)


def rensa_lsh(weights):
    """rensa, in Rust; all sets at once."""

    def prepare(lines):
        from rensa import RMinHash, RMinHashLSH

        sets = [line.split() for line in lines]

        def join(threshold):
            hashes = RMinHash.from_token_sets(sets, HASHES, 1)
            index = RMinHashLSH(threshold / 100, HASHES, bands(threshold, weights))
            index.insert_many(hashes)
            return index.query_all(hashes)

        return join

    return prepare


def datasketch_lsh(weights):
    """datasketch, in Python with NumPy; tokens are their own hash values, which it mixes."""

    def prepare(lines):
        from datasketch import MinHash, MinHashLSH

        sets = [[int(token) for token in line.split()] for line in lines]

        def join(threshold):
            hashes = MinHash.bulk(sets, num_perm=HASHES, hashfunc=lambda token: token)
            index = MinHashLSH(threshold / 100, HASHES, weights)
            with index.insertion_session() as session:
                for key, signature in enumerate(hashes):
                    session.insert(key, signature)
            return [index.query(signature) for signature in hashes]

        return join

    return prepare


def verified(lines, neighbours, threshold):
    """The candidates of all sets that reach the threshold, and all candidates, each once."""
    sets = [frozenset(line.split()) for line in lines]
    pairs = {(min(a, b), max(a, b)) for a, found in enumerate(neighbours) for b in found if a != b}
    similar = 0
    for a, b in pairs:
        common, sizes = len(sets[a] & sets[b]), len(sets[a]) + len(sets[b])
        similar += (100 + threshold) * common >= threshold * sizes
    return similar, len(pairs)


PEERS = {
    "SetSimilaritySearch": (SET_SIMILARITY_SEARCH, set_similarity_search),
    "py_stringsimjoin": (STRING_SIM_JOIN, string_sim_join),
    "DuckDB SQL, all cores": (DUCKDB, duckdb_sql),
    "rensa MinHash LSH": (RENSA, rensa_lsh(EQUAL)),
    "rensa MinHash LSH, for recall": (RENSA, rensa_lsh(RECALL)),
    "datasketch MinHash LSH": (DATASKETCH, datasketch_lsh(EQUAL)),
    "datasketch MinHash LSH, for recall": (DATASKETCH, datasketch_lsh(RECALL)),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--environment", type=pathlib.Path, required=True)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--sets", type=pathlib.Path)
    parser.add_argument("--thresholds", type=int, nargs="+", help="in percent")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    # Read by the thread pools of packages when they are imported.
    os.environ.update(RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    failed = environment.enter(
        arguments.environment, PACKAGES, CONSTRAINTS, retry=arguments.prepare
    )
    if arguments.prepare:
        names = [package.split("==")[0] for package in PACKAGES if package not in failed]
        print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))
        return
    lines = [line for line in arguments.sets.read_text().splitlines() if line]
    measured = []
    for name, (package, peer) in PEERS.items():
        if package in failed:
            measured.append({"name": name, "missing": failed[package]})
            continue
        join = peer(lines)
        for threshold in arguments.thresholds:
            seconds, pairs = environment.repeated(arguments.rounds, lambda: join(threshold))
            candidates = None
            if isinstance(pairs, list):
                pairs, candidates = verified(lines, pairs, threshold)
            row = {"threshold": threshold, "seconds": seconds, "pairs": pairs}
            measured.append({"name": name, **row, "candidates": candidates})
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
