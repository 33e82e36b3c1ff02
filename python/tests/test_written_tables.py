"""Tables that `write` makes, read by pyarrow, polars and DuckDB."""

import datetime as dt
import decimal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import trommel

ZONE = dt.timezone.utc
DAY = dt.datetime(2026, 11, 30, 1, 2, 3, 456789)
VALUES = {
    "truth": (pa.bool_(), True),
    "small": (pa.int8(), -7),
    "large": (pa.uint64(), 2**64 - 1),
    "share": (pa.float64(), 0.1),
    "text": (pa.string(), 'é, "quoted"\n'),
    "bytes": (pa.binary(), b"\x00\xff"),
    "date": (pa.date32(), DAY.date()),
    "time": (pa.time64("us"), DAY.time()),
    "stamp": (pa.timestamp("us"), DAY),
    "zoned": (pa.timestamp("us", "UTC"), DAY.replace(tzinfo=ZONE)),
    "price": (pa.decimal128(12, 2), decimal.Decimal("-12.50")),
    "list": (pa.list_(pa.int32()), [1, None, 3]),
    "row": (pa.struct([("a", pa.int64()), ("b", pa.string())]), {"a": 1, "b": None}),
    "rows": (pa.list_(pa.struct([("a", pa.int16())])), [{"a": 1}, {"a": None}]),
}


def table():
    """Rows of values and of nulls."""
    columns = {
        name: pa.array([value, None] * 500, kind) for name, (kind, value) in VALUES.items()
    }
    columns["map"] = pa.array([[("k", 1)], None] * 500, pa.map_(pa.string(), pa.int32()))
    columns["number"] = pa.array(range(1000), pa.int64())
    return pa.table(columns)


def written(path, rows, **parameters):
    pipeline = trommel.Pipeline()
    source = pipeline.source("rows", rows)
    pipeline.write("file", source, path=str(path), **parameters)
    pipeline.run()
    return path


@pytest.mark.parametrize("extension", ["parquet", "arrow"])
def test_tables_keep_types_and_values(tmp_path, extension):
    rows = table()
    path = written(tmp_path / f"rows.{extension}", rows, format=extension)
    found = pq.read_table(path) if extension == "parquet" else pa.ipc.open_file(path).read_all()
    assert found.schema.types == rows.schema.types
    assert found.schema.names == rows.schema.names
    assert found.to_pylist() == rows.to_pylist()
    read = pl.read_parquet if extension == "parquet" else pl.read_ipc
    expected = pl.from_arrow(rows.drop_columns("map"))
    assert read(path, columns=expected.columns).equals(expected)


def test_duckdb_reads_types_values_and_statistics(tmp_path):
    rows = table()
    path = written(tmp_path / "rows.parquet", rows, format="parquet", row_group_bytes=65_536)
    database = duckdb.connect()
    found = database.execute(f"from read_parquet('{path}') order by number").fetchall()
    expected = [tuple(row.values()) for row in rows.to_pylist()]
    position = rows.schema.get_field_index("map")
    for mine, theirs in zip(found, expected, strict=True):
        theirs = [dict(value) if i == position and value else value for i, value in enumerate(theirs)]
        assert list(mine) == theirs
    kinds = database.execute(f"describe from read_parquet('{path}')").fetchall()
    kinds = {name: kind for name, kind, *_ in kinds}
    assert kinds["large"] == "UBIGINT"
    assert kinds["price"] == "DECIMAL(12,2)"
    assert kinds["zoned"] == "TIMESTAMP WITH TIME ZONE"
    assert kinds["rows"] == "STRUCT(a SMALLINT)[]"
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert columns["number"].compression == "ZSTD"
    found = columns["number"].statistics
    assert (found.min, found.max, found.null_count) == (0, 999, 0)
