"""Measures questions to tables in DuckDB and polars: files `rows.csv`, `rows.jsonl`, `rows.parquet`
and `rows.log` of the same rows.

Creates an environment of its own with pinned packages, once, and runs itself again in it. Prints
the versions with `--prepare`, else JSON, with an object per file and question:

    [{"file": ..., "question": ..., "seconds": ..., "answer": [...]}, ...]

The clock covers the question, from the call to the answer in Python; the fastest round after one to
warm up counts.
"""

import argparse
import json
import os
import pathlib
import sys

import environment

PACKAGES = ["duckdb==2.0.1", "polars==2.1.0", "pyarrow==26.0.1"]
COLUMNS = ["host", "time", "method", "path", "status", "bytes"]
LINE = (
    r'^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+) [^"]+" (\d+) (\d+)$'
)
CONDITIONS = {
    "number": "status >= 500",
    "like": "path LIKE '%/7%'",
    "regexp": "regexp_matches(path, '^/p/[0-9]{2}$')",
}


def duckdb_questions(folder, threads):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {threads}")
    names = ", ".join(f"'{name}'" for name in COLUMNS)
    lines = (
        f"read_csv('{folder}/rows.log', header = false, auto_detect = false, delim = E'\\x01', "
        "quote = '', escape = '', columns = {'line': 'VARCHAR'})"
    )
    log = (
        "(SELECT r.host, r.time, r.method, r.path, r.status::USMALLINT AS status, "
        f"r.bytes::UBIGINT AS bytes FROM (SELECT regexp_extract(line, '{LINE}', [{names}]) AS r "
        f"FROM {lines}))"
    )
    sources = {
        "csv": f"read_csv('{folder}/rows.csv')",
        "jsonl": f"read_json('{folder}/rows.jsonl', format = 'newline_delimited')",
        "parquet": f"read_parquet('{folder}/rows.parquet')",
        "log": log,
    }

    def one(text):
        return lambda: [row[0] for row in connection.execute(text).fetchall()]

    for file, source in sources.items():
        columns = f"SELECT {', '.join(COLUMNS)} FROM {source}"
        yield file, "columns", lambda columns=columns: [connection.sql(columns).to_arrow_table().num_rows]
        for name, condition in CONDITIONS.items():
            yield file, name, one(f"SELECT count(*) FROM {source} WHERE {condition}")
        yield file, "top", one(
            f"SELECT count(*) AS n FROM {source} WHERE status >= 500 GROUP BY host "
            "ORDER BY n DESC LIMIT 5"
        )
    rewrite = (
        f"COPY (SELECT * FROM {sources['parquet']} WHERE status >= 500) "
        f"TO '{folder}/duckdb.parquet' (FORMAT parquet, COMPRESSION zstd)"
    )
    yield "parquet", "rewrite", one(rewrite)


def polars_questions(folder, threads):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    column = polars.col
    lines = polars.scan_csv(
        f"{folder}/rows.log", has_header=False, separator="\x01", quote_char=None, new_columns=["line"]
    )
    parts = column("line").str.extract_groups(LINE).struct.rename_fields(COLUMNS).alias("r")
    log = lines.select(parts).unnest("r").with_columns(column("status", "bytes").cast(polars.Int64))
    sources = {
        "csv": polars.scan_csv(f"{folder}/rows.csv"),
        "jsonl": polars.scan_ndjson(f"{folder}/rows.jsonl"),
        "parquet": polars.scan_parquet(f"{folder}/rows.parquet"),
        "log": log,
    }
    conditions = {
        "number": column("status") >= 500,
        "like": column("path").str.contains("/7", literal=True),
        "regexp": column("path").str.contains("^/p/[0-9]{2}$"),
    }
    for file, source in sources.items():
        yield file, "columns", lambda source=source: [source.collect().height]
        for name, condition in conditions.items():
            count = source.filter(condition).select(polars.len())
            yield file, name, lambda count=count: [count.collect().item()]
        top = source.filter(column("status") >= 500).group_by("host").len()
        top = top.sort("len", descending=True).head(5)
        yield file, "top", lambda top=top: top.collect()["len"].to_list()
    failed = sources["parquet"].filter(column("status") >= 500)

    def rewrite():
        failed.sink_parquet(f"{folder}/polars.parquet", compression="zstd")
        return [polars.scan_parquet(f"{folder}/polars.parquet").select(polars.len()).collect().item()]

    yield "parquet", "rewrite", rewrite


PEERS = {"duckdb": duckdb_questions, "polars": polars_questions}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--environment", type=pathlib.Path, required=True)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--peer", choices=PEERS)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--folder", type=pathlib.Path)
    arguments = parser.parse_args()
    failed = environment.enter(arguments.environment, PACKAGES, retry=arguments.prepare)
    for package, said in failed.items():
        sys.exit(f"pip could not install {package}: {said}")
    if arguments.prepare:
        import duckdb
        import polars

        print(f"duckdb {duckdb.__version__}, polars {polars.__version__}")
        return
    measured = []
    for file, question, ask in PEERS[arguments.peer](arguments.folder, arguments.threads):
        seconds, answer = environment.repeated(arguments.rounds, ask)
        measured.append(
            {"file": file, "question": question, "seconds": min(seconds), "answer": answer}
        )
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
