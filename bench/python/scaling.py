"""Answers a question of `trommel-bench scaling` in DuckDB or polars, once, with the packages of the
Python that runs it.

With `--versions` prints the versions of the packages that are there, else

    {"seconds": ..., "rows": [[item, count], ...]}

with the most frequent items of a file and their exact counts, or of a file of sets all pairs of
items that are together in 100 sets or more, `[item, item, sets]`. The clock begins when packages are
imported and DuckDB is connected, and ends with the rows in Python: neither the start of Python nor
that of a package counts.

What they read is the file that `trommel` reads. Both read a text as a CSV file of one column, whose
separator is in no text, which each does by all threads. Integers are mapped into memory as an array
of numpy, which both scan without a copy: of numpy and pyarrow, copied and mapped, it is the fastest
input for both.
"""

import argparse
import importlib
import importlib.util
import json
import os
import sys
import time

ROWS = 20
SUPPORT = 100
PACKAGES = ["duckdb", "polars"]


def duckdb_question(question, file, threads):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {threads}")
    # A program that is given by -c looks like a session of a user, to whom DuckDB shows progress.
    connection.execute("SET enable_progress_bar = false")
    # What does not fit into memory goes beside the file.
    folder = os.path.dirname(file).replace("'", "''")
    connection.execute(f"SET temp_directory = '{folder}/duckdb'")
    if question == "integers":
        import numpy

        def ask():
            # DuckDB finds the variable by its name.
            integers = {"item": numpy.memmap(file, numpy.uint32, mode="r")}  # noqa: F841
            return connection.execute(grouped("item", "integers")).fetchall()

        return ask
    name = file.replace("'", "''")
    lines = (
        f"read_csv('{name}', header = false, auto_detect = false, delim = E'\\x01', quote = '', "
        "escape = '', strict_mode = false, columns = {'line': 'VARCHAR'})"
    )
    query = {
        "words": grouped(
            "item", f"(SELECT unnest(string_split(lower(line), ' ')) AS item FROM {lines})"
        ),
        "field": grouped("split_part(line, ' ', 1)", lines),
        "lines": grouped("line", lines),
        # Items that are too rare are left out before pairs are made.
        "pairs": f"""
            WITH sets AS MATERIALIZED (
                SELECT id, unnest(string_split(line, ' ')::UINTEGER[]) AS item
                FROM (SELECT line, row_number() OVER () AS id FROM {lines})
            ), frequent AS (
                SELECT item FROM sets GROUP BY item HAVING count(*) >= {SUPPORT}
            ), kept AS MATERIALIZED (
                SELECT id, item FROM sets SEMI JOIN frequent USING (item)
            )
            SELECT a.item AS one, b.item AS other, count(*) AS n
            FROM kept a JOIN kept b ON a.id = b.id AND a.item < b.item
            GROUP BY one, other HAVING n >= {SUPPORT}""",
    }[question]
    return lambda: connection.execute(query).fetchall()


def grouped(item, table):
    return f"SELECT {item} AS i, count(*) AS n FROM {table} GROUP BY i ORDER BY n DESC LIMIT {ROWS}"


def polars_question(question, file, threads):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    column = polars.col
    engine = "streaming"  # Faster than "in-memory" for all questions.

    def top(items):
        counts = items.group_by("item").len().top_k(ROWS, by="len").sort("len", descending=True)
        return counts.collect(engine=engine).rows()

    if question == "integers":
        import numpy

        def ask():
            integers = polars.Series("item", numpy.memmap(file, numpy.uint32, mode="r"))
            return top(integers.to_frame().lazy())

        return ask
    lines = polars.scan_csv(
        file, has_header=False, separator="\x01", quote_char=None, infer_schema=False,
        new_columns=["item"],
    )
    item = column("item")
    if question == "pairs":

        def ask():
            sets = lines.select(item.str.split(" ").cast(polars.List(polars.UInt32)))
            sets = sets.with_row_index("id").explode("item").collect(engine=engine).lazy()
            frequent = sets.group_by("item").len().filter(column("len") >= SUPPORT)
            # Items that are too rare are left out before pairs are made.
            kept = sets.join(frequent, on="item", how="semi").collect(engine=engine).lazy()
            pairs = kept.join(kept, on="id").filter(item < column("item_right"))
            supports = pairs.group_by("item", "item_right").len().filter(column("len") >= SUPPORT)
            return supports.collect(engine=engine).rows()

        return ask
    items = {
        "words": item.str.to_lowercase().str.split(" ").explode(),
        "field": item.str.splitn(" ", 2).struct.field("field_0").alias("item"),
        "lines": item,
    }[question]
    return lambda: top(lines.select(items))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--versions", action="store_true")
    parser.add_argument("--peer", choices=PACKAGES)
    parser.add_argument("--question", choices=["words", "field", "lines", "integers", "pairs"])
    parser.add_argument("--file")
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.versions:
        there = [name for name in PACKAGES if importlib.util.find_spec(name)]
        print(json.dumps({name: importlib.import_module(name).__version__ for name in there}))
        return
    question = {"duckdb": duckdb_question, "polars": polars_question}[arguments.peer]
    ask = question(arguments.question, arguments.file, arguments.threads)
    start = time.perf_counter()
    rows = ask()
    seconds = time.perf_counter() - start
    if arguments.question != "pairs":
        rows = [(str(item), count) for item, count in rows]
    json.dump({"seconds": seconds, "rows": rows}, sys.stdout)


if __name__ == "__main__":
    main()
