"""The guide's code for Spark, Ray and Dask, on the engine itself where it is installed.

Their packages are large, so that the group `test` of pyproject.toml leaves them out: `pip install
--group engines` has them. Spark needs Java, too.
"""

import importlib.util
import random
import re
import shutil
import sys
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import oracle
import trommel

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"
RNG = random.Random(4)
ITEMS = [min(int(RNG.paretovariate(0.8)), 3000) for _ in range(20_000)]
SETS = [RNG.sample(range(20), RNG.randint(0, 8)) for _ in range(200)]
TABLE = pa.table({"id": range(1000, 1200), "set": pa.array(SETS, pa.list_(pa.int32()))})
PARTS = 4


def needs(package, command=None):
    missing = [f"the package {package}"] if importlib.util.find_spec(package) is None else []
    missing += [f"the command {command}"] if command and not shutil.which(command) else []
    return pytest.mark.skipif(bool(missing), reason=f"needs {' and '.join(missing)}")


def guide():
    """The functions of the section, with names that engines send to their workers by value."""
    text = GUIDE.read_text()
    section = text[text.index("## Parts on several machines") :]
    section = section[: section.index("\n## ")]
    names = {"__name__": "__main__", "trommel": trommel}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(compile(block, str(GUIDE), "exec"), names)
    return names


def check_top(rows):
    found = [(row["item"], row["count"]) for row in rows.to_pylist()]
    assert found == oracle.top(ITEMS, 10)
    assert all(row["error"] == 0 for row in rows.to_pylist())


def check_pairs(rows):
    found = [frozenset((a - 1000, b - 1000)) for a, b in rows]
    assert len(found) == len(set(found)), "a pair came twice"
    expected = oracle.set_pairs(SETS, Fraction(4, 5))
    assert set(found) == set(map(frozenset, expected)) and len(expected) > 10


def test_batches_as_engines_hand_them_over():
    names = guide()
    column = pa.array(ITEMS)
    parts = [pa.record_batch({"item": column[i::PARTS]}) for i in range(PARTS)]
    halves = [[part.slice(0, 100), part.slice(100)] for part in parts]
    states = [batch["state"][0].as_py() for batches in halves for batch in names["count"](batches)]
    assert len(states) == PARTS
    check_top(names["merged"](states).top(10))
    blocks = [TABLE.slice(i, 50) for i in range(0, 200, 50)]
    check_pairs(
        (row["left_id"], row["right_id"])
        for pair in names["meetings"](blocks)
        for row in names["joined"](*pair).to_pylist()
    )


@needs("pyspark", "java")
def test_spark(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    names = guide()
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    spark = spark.config("spark.sql.shuffle.partitions", PARTS).getOrCreate()
    try:
        items = spark.createDataFrame([(item,) for item in ITEMS], "item long").repartition(PARTS)
        check_top(names["top_of_spark"](items, 10))
        sets = spark.createDataFrame(TABLE.to_pandas(), "id long, set array<int>")
        # With many blocks some are empty.
        for blocks in (1, 3, 40):
            pairs = names["pairs_of_spark"](sets, blocks).collect()
            check_pairs((row["left_id"], row["right_id"]) for row in pairs)
    finally:
        spark.stop()


@needs("ray")
def test_ray():
    import ray

    names = guide()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        items = ray.data.from_arrow(pa.table({"item": ITEMS})).repartition(PARTS)
        check_top(names["top_of_ray"](items, 10))
        pairs = names["pairs_of_ray"](ray.data.from_arrow(TABLE).repartition(PARTS))
        check_pairs(zip(pairs["left_id"].to_pylist(), pairs["right_id"].to_pylist()))
    finally:
        ray.shutdown()


@needs("dask")
def test_dask():
    import dask.dataframe as dd

    names = guide()
    items = dd.from_pandas(pd.DataFrame({"item": ITEMS}), npartitions=PARTS)
    check_top(names["top_of_dask"](items, 10))
    # Lists of Arrow's type: dask makes texts of lists of Python.
    sets = dd.from_pandas(TABLE.to_pandas(types_mapper=pd.ArrowDtype), npartitions=PARTS)
    pairs = names["pairs_of_dask"](sets)
    check_pairs(zip(pairs["left_id"].to_pylist(), pairs["right_id"].to_pylist()))
