"""Measures conjunctive queries over inverted lists in DuckDB: queries as lines of terms, and the
terms and documents of all postings as files of 32-bit integers, sorted by term.

Creates an environment of its own with pinned packages, once, and runs itself again in it. Prints
the versions with `--prepare`, else JSON, with an object per way of asking:

    [{"name": ..., "seconds": ..., "counts": [...]}, {"name": ..., "missing": why}, ...]

The clock covers the queries alone, from the call to the count in Python, on as many threads as
DuckDB chooses, over a table in memory that is sorted by term. It excludes reading the files and filling the table. Each
way asks all queries once before, to warm up.
"""

import argparse
import json
import math
import pathlib
import sys

import environment

PACKAGES = ["duckdb==2.0.1", "numpy==2.4.6"]


def grouped(terms):
    """Postings of all terms, and documents that come once for each of them."""
    names = ", ".join(terms)
    return (
        f"SELECT count(*) FROM (SELECT document FROM postings WHERE term IN ({names}) "
        f"GROUP BY document HAVING count(*) = {len(terms)})"
    )


def intersected(terms):
    """An intersection of the lists."""
    lists = [f"SELECT document FROM postings WHERE term = {term}" for term in terms]
    return f"SELECT count(*) FROM ({' INTERSECT '.join(lists)})"


PEERS = {"DuckDB, GROUP BY and HAVING, all cores": grouped, "DuckDB, INTERSECT, all cores": intersected}


def fill(terms, documents):
    import duckdb
    import numpy

    connection = duckdb.connect()
    columns = {"term": numpy.fromfile(terms, dtype="<u4")}
    columns["document"] = numpy.fromfile(documents, dtype="<u4")
    connection.register("columns", columns)
    connection.execute("CREATE TABLE postings AS SELECT term, document FROM columns")
    return connection


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--environment", type=pathlib.Path, required=True)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--queries", type=pathlib.Path)
    parser.add_argument("--terms", type=pathlib.Path)
    parser.add_argument("--documents", type=pathlib.Path)
    arguments = parser.parse_args()
    failed = environment.enter(arguments.environment, PACKAGES, retry=arguments.prepare)
    for package, said in failed.items():
        sys.exit(f"pip could not install {package}: {said}")
    if arguments.prepare:
        import duckdb

        print(f"duckdb {duckdb.__version__}")
        return
    connection = fill(arguments.terms, arguments.documents)
    queries = [line.split() for line in arguments.queries.read_text().splitlines()]
    measured = []
    for name, ask in PEERS.items():
        texts = [ask(terms) for terms in queries]
        count_all = lambda: [connection.execute(text).fetchone()[0] for text in texts]
        seconds, counts = environment.repeated(1, count_all, math.inf)
        measured.append({"name": name, "seconds": seconds[-1], "counts": counts})
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
