"""Measures DuckDB's and ClickHouse's approximate top-k over a file of 32-bit integers.

Creates an environment of its own with pinned packages, once, and runs itself again in it. Prints
the versions with `--prepare`, else JSON:

    [{"name": ..., "seconds": [...], "rows": [[item, count or null], ...]}, ...]

The clock covers the query alone, from the call to the result in Python, over a table in memory. It
excludes reading the file and filling the table. The first query warms up. The databases use as many
threads as they choose, which is one for each core that they may use.
"""

import argparse
import json
import math
import pathlib
import sys
import tempfile

import environment

PACKAGES = ["duckdb==2.0.1", "chdb==4.4.0", "numpy==2.4.6"]


def duckdb_rows(path, counters, rounds):
    """DuckDB, which keeps three counters per requested item and names items without counts."""
    import duckdb
    import numpy

    connection = duckdb.connect()
    connection.register("items", {"item": numpy.fromfile(path, dtype="<u4")})
    connection.execute("CREATE TABLE stream AS SELECT item FROM items")
    sql = f"SELECT approx_top_k(item, {-(-counters // 3)}) FROM stream"
    query = lambda: connection.execute(sql).fetchone()
    seconds, row = environment.repeated(rounds, query, math.inf)
    return seconds, [[item, None] for item in row[0]]


def clickhouse_rows(path, counters, rounds):
    """ClickHouse with one counter per requested item; by default it has three."""
    from chdb import session

    with tempfile.TemporaryDirectory() as folder:
        clickhouse = session.Session(folder)
        clickhouse.query("CREATE DATABASE bench ENGINE = Atomic")
        clickhouse.query("CREATE TABLE bench.stream (item UInt32) ENGINE = Memory")
        file = f"file('{path}', 'RowBinary', 'item UInt32')"
        clickhouse.query(f"INSERT INTO bench.stream SELECT item FROM {file}")
        sql = f"SELECT topK({counters}, 1, 'counts')(item) FROM bench.stream"
        query = lambda: clickhouse.query(sql, "JSONCompact")
        seconds, result = environment.repeated(rounds, query, math.inf)
        rows = json.loads(str(result))["data"][0][0]
        clickhouse.close()
    return seconds, [[row["item"], int(row["count"])] for row in rows]


PEERS = {
    "ClickHouse topK, all cores": clickhouse_rows,
    "DuckDB approx_top_k, all cores": duckdb_rows,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--environment", type=pathlib.Path, required=True)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--items", type=pathlib.Path)
    parser.add_argument("--counters", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    failed = environment.enter(arguments.environment, PACKAGES, retry=arguments.prepare)
    for package, said in failed.items():
        sys.exit(f"pip could not install {package}: {said}")
    if arguments.prepare:
        import chdb
        import duckdb

        print(f"duckdb {duckdb.__version__}, chdb {chdb.__version__} ({chdb.engine_version})")
        return
    measured = []
    for name, peer in PEERS.items():
        seconds, rows = peer(arguments.items, arguments.counters, arguments.rounds)
        measured.append({"name": name, "seconds": seconds, "rows": rows})
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
