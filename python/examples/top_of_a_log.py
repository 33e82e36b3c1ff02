"""The most frequent values of a field of a log, with a bound on every count.

    python top_of_a_log.py /var/log/dpkg.log 3

The file is read in one pass and bounded memory; `.gz` and `.zst` are decompressed.
"""

import sys

import trommel


def top_of_a_log(path: str, field: int, n: int = 5) -> trommel.Table:
    pipeline = trommel.Pipeline("top of a log")
    lines = pipeline.read("lines", paths=[path])
    fields = pipeline.tokenize("fields", lines, by={"field": field}, quotes=True)
    pipeline.collect("rows", pipeline.frequent_items("top", fields, counters=10_000, n=n))
    return pipeline.run().rows("rows")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: top_of_a_log.py LOG FIELD")
    for row in top_of_a_log(sys.argv[1], int(sys.argv[2])).to_pylist():
        low = row["count"] - row["error"]
        print(f"{row['item']}: {low} to {row['count']}" if row["error"] else f"{row['item']}: {row['count']}")
