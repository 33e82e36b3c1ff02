"""Groups of rows beside those of DuckDB."""

from __future__ import annotations

import math
import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import trommel

CALLS = {
    "count(*)": "count(*)",
    "count(v)": "count(v)",
    "sum(v)": "sum(v)",
    "avg(v)": "avg(v)",
    "min(v)": "min(v)",
    "max(f)": "max(f)",
    "sum(f)": "sum(f)",
    "min(t)": "min(t)",
    "count_distinct(t)": "count(distinct t)",
    "quantile(v, 0.5)": "quantile_disc(v, 0.5)",
    "list(v)": "list(v) filter (where v is not null)",
}


def table(rows: int) -> pa.Table:
    rng = random.Random(11)

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([rng.choice(values) for _ in range(rows)], kind)

    return pa.table({
        "k": column([None, *range(-3, 9)], pa.int64()),
        "s": column([None, "", "a", "b", "ab", "é"], pa.string()),
        "v": column([None, *range(-20, 90)], pa.int32()),
        "f": column([None, 0.0, 1.5, -2.25, 1e9, math.inf], pa.float64()),
        "t": column([None, "x", "y", "zz"], pa.string()),
    })


def near(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and theirs is not None:
        return ours == theirs or math.isclose(ours, float(theirs), rel_tol=1e-9)
    return ours == theirs


def test_the_function_takes_data_as_a_whole() -> None:
    data = {"host": ["b", "a", None, "a"], "ms": [4, 1, 7, 3]}
    found = trommel.aggregate(data, ["count(*) as n", "max(ms) as most"], ["host"]).to_pylist()
    assert found == [
        {"host": None, "n": 1, "most": 7},
        {"host": "a", "n": 2, "most": 3},
        {"host": "b", "n": 1, "most": 4},
    ]
    assert trommel.aggregate([3, 4], "avg(item) as mean")["mean"] == [3.5]
    with pytest.raises(ValueError, match="by"):
        trommel.aggregate(data, "count(*)", "hst")


@pytest.mark.parametrize("by", [["k"], ["s"], ["k", "s"], ["k % 3", "length(s)"], []])
def test_groups_are_those_of_duckdb(by: list[str]) -> None:
    data = table(1500)
    pipeline = trommel.Pipeline()
    rows = pipeline.source("rows", data)
    groups = pipeline.aggregate("groups", rows, by=by, compute=[f"{call} as c{i}" for i, call in enumerate(CALLS)])
    pipeline.collect("out", groups)
    found = pipeline.run(progress=False).rows("out").to_pylist()
    order = ", ".join(f"{column} nulls first" for column in by)
    tail = f"group by {', '.join(by)} order by {order}" if by else ""
    columns = ", ".join([*by, *CALLS.values()])
    connection = duckdb.connect()
    connection.register("data", data)
    expected = connection.execute(f"select {columns} from data {tail}").fetchall()
    assert len(found) == len(expected)
    for row, values in zip(found, expected, strict=True):
        for name, ours, theirs in zip(row, row.values(), values, strict=True):
            assert near(ours, theirs), (row, name, theirs)


def test_a_wrong_call_says_what_is_meant() -> None:
    pipeline = trommel.Pipeline()
    rows = pipeline.source("rows", {"v": [1, 2]})
    pipeline.collect("out", pipeline.aggregate("groups", rows, compute="summ(v)"))
    with pytest.raises(ValueError, match="did you mean `sum`"):
        pipeline.run()
