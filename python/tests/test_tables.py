"""Tables written by pyarrow and polars, read by a pipeline."""

import datetime
import decimal

import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

import trommel

ROWS = 3000


def column(every, value):
    """A column with a null at each multiple of `every`."""
    return [None if row % every == 0 else value(row) for row in range(ROWS)]


TABLE = pa.table(
    {
        "whole": pa.array(column(7, lambda row: row * row - 1000), pa.int64()),
        "large": pa.array(column(5, lambda row: 2**63 + row), pa.uint64()),
        "number": pa.array(column(3, lambda row: row / 7), pa.float64()),
        "text": pa.array(column(4, lambda row: f't{row % 11}é\n"'), pa.string()),
        "flag": pa.array(column(2, lambda row: row % 3 == 0), pa.bool_()),
        "day": pa.array(column(8, lambda row: datetime.date(2020, 1, 1) + datetime.timedelta(row)), pa.date32()),
        "time": pa.array(column(8, lambda row: row * 10**6), pa.timestamp("us")),
        "sum": pa.array(column(3, lambda row: decimal.Decimal(row) / 100), pa.decimal128(20, 2)),
        "words": pa.array(column(6, lambda row: [f"x{word}" for word in range(row % 4)]), pa.list_(pa.string())),
        "user": pa.array(
            column(9, lambda row: {"id": row, "name": "q" * (row % 5)}),
            pa.struct([("id", pa.int32()), ("name", pa.string())]),
        ),
    }
)


def read(path, **parameters):
    pipeline = trommel.Pipeline("tables")
    rows = pipeline.read("rows", paths=[str(path)], **parameters)
    pipeline.collect("table", rows)
    return pa.table(pipeline.run().rows("table"))


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_parquet_of_pyarrow(tmp_path, compression, version):
    path = tmp_path / "table.parquet"
    pyarrow.parquet.write_table(
        TABLE, path, compression=compression, data_page_version=version, row_group_size=700
    )
    assert read(path, format="parquet").to_pylist() == TABLE.to_pylist()
    chosen = ["user", "text", "whole"]
    assert read(path, format="parquet", columns=chosen).to_pylist() == TABLE.select(chosen).to_pylist()


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("new", [pyarrow.ipc.new_file, pyarrow.ipc.new_stream])
def test_arrow_of_pyarrow(tmp_path, new, compression):
    path = tmp_path / "table.arrow"
    table = TABLE.set_column(3, "text", TABLE["text"].dictionary_encode())
    with new(path, table.schema, options=pyarrow.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, 700)
    assert read(path, format="arrow").to_pylist() == TABLE.to_pylist()


def test_files_of_polars(tmp_path):
    frame = polars.from_arrow(TABLE)
    frame.write_parquet(tmp_path / "table.parquet")
    frame.write_ipc(tmp_path / "table.arrow")
    for name in ["parquet", "arrow"]:
        assert read(tmp_path / f"table.{name}", format=name).to_pylist() == TABLE.to_pylist()


def test_csv_and_json(tmp_path):
    plain = TABLE.select(["whole", "large", "number", "text", "flag", "day"])
    pyarrow.csv.write_csv(plain, tmp_path / "table.csv")
    assert read(tmp_path / "table.csv", format="csv").to_pylist() == plain.to_pylist()
    nested = TABLE.select(["whole", "large", "number", "text", "flag", "words", "user"])
    polars.from_arrow(nested).write_ndjson(tmp_path / "table.jsonl")
    columns = nested.column_names
    assert read(tmp_path / "table.jsonl", format="jsonl", columns=columns).to_pylist() == nested.to_pylist()
