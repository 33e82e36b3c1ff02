"""Uses of the whole interface, for type checkers; a test runs it, too."""

from __future__ import annotations

import asyncio
import pickle
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trommel

if sys.version_info >= (3, 11):
    from typing import assert_type
else:

    def assert_type(value: Any, kind: Any, /) -> Any:
        return value


def functions() -> None:
    assert_type(trommel.top(["a", "b"], n=1, threshold=Fraction(1, 3)), trommel.Table)
    pairs = trommel.set_similarity_join([[1, 2], [2, 1]], threshold="4/5", carry=())
    assert_type(pairs.to_pylist(), list[dict[str, Any]])
    assert_type(pairs.to_pydict(), dict[str, list[Any]])
    assert_type(pairs["left"], list[Any])
    assert_type(len(pairs), int)
    assert_type(pairs.schema, trommel.Schema)
    assert_type(pairs.schema.names, list[str])
    assert_type(trommel.near_duplicates(["a b", "b a"], 1, by="words"), trommel.Table)
    assert_type(trommel.frequent_pairs([[1, 2]], 1, measures=["lift"]), trommel.Table)
    assert_type(trommel.epsilon_join([[0.0], [1.0]], epsilon=1.5), trommel.Table)
    assert_type(trommel.tokenize(["a b"], "qgrams", q=2), trommel.Table)
    assert_type(trommel.table({"a": [1]}), trommel.Table)


def objects(folder: Path) -> None:
    with trommel.FrequentItems(100, seed=1) as items:
        items.observe(["a", "b", "a"])
        items.merge(trommel.FrequentItems.from_bytes(items.to_bytes()))
        assert_type(items.top(2), trommel.Table)
        assert_type(items.at_least("1/3"), trommel.Table)
        assert_type(items.estimate("a"), trommel.Counted)
        assert_type(items.observed, int)
        pickle.dumps(items)
    with trommel.SetJoinStream("1/2", window={"sets": 10}) as stream:
        assert_type(stream.add([["a"]]), trommel.Table)
        assert_type(stream.finish(), trommel.Table)
    with trommel.EpsilonStream(0.5, window={"vectors": 10}) as near:
        assert_type(near.add([[1.0]]), trommel.Table)
        assert_type(near.take(), trommel.Table)
    with trommel.ConjunctiveIndex() as index:
        index.add([["a", "b"]])
        assert_type(index.query(["a"]), list[Any])
        assert_type(index.count(["a"]), int)
        assert_type(index.query_batch([["a"]]), trommel.Table)
        index.save(folder / "index")
    with trommel.ConjunctiveIndex.open(folder / "index") as opened:
        assert_type(opened, trommel.ConjunctiveIndex)


def rows() -> Iterator[dict[str, list[str]]]:
    yield {"item": ["a", "b"]}


async def watched(running: trommel.Running) -> trommel.Table | None:
    async for answer in running.watch("top", "top", n=1):
        return answer
    return None


def pipelines() -> None:
    taken: list[trommel.Table] = []
    pipeline = trommel.Pipeline("usage", queue={"batches": 4, "bytes": 1 << 20})
    top = pipeline.frequent_items("top", pipeline.source("rows", rows()), n=3)
    pipeline.for_each("each", top, taken.append)
    assert_type(pipeline.plan(), dict[str, Any])
    with pipeline.start() as running:
        assert_type(running, trommel.Running)
        assert_type(running.join(), bool)
    assert_type(running.metrics(), dict[str, Any])
    assert_type(running.metrics_table(), trommel.Table)
    endless = trommel.Pipeline()
    endless.discard("end", endless.frequent_items("top", endless.generate("items")))
    with endless.start({"stages.top.with.counters": 10}) as running:
        assert_type(running.query("top", "top", n=1, timeout=10.0), trommel.Table)
        watch = running.watch("top", "top", n=1)
        assert_type(watch.latest(), trommel.Table | None)
        for answer in watch:
            assert_type(answer, trommel.Table)
            break
        asyncio.run(watched(running))
        running.stop(within=10.0)


def stages() -> None:
    pipeline = trommel.Pipeline()
    files = pipeline.read("files", paths=[Path("x.csv")], format="csv", schema={"item": "u32", "tags": ["text"]})
    joined = pipeline.epsilon_join("near", files, epsilon=1, id_="name", window={"vectors": 10}, device="cuda:1")
    pairs = pipeline.frequent_pairs("pairs", joined, support=Fraction(1, 3), measures=["lift"], cores=[1])
    assert_type(pipeline.write("out", pairs, path=Path("x"), rotate={"bytes": 10, "compress": "gzip"}), str)
    if TYPE_CHECKING:
        # Each mistake is one for mypy, too, which would call the comment unused.
        pipeline.frequent_pairs("pairs", files, suport=1)  # type: ignore[call-arg]
        pipeline.frequent_pairs("pairs", files)  # type: ignore[call-arg]
        pipeline.frequent_pairs("pairs", files, support=1, layout="lines")  # type: ignore[arg-type]
        pipeline.frequent_pairs("pairs", files, support=1, window={"items": 1})  # type: ignore[arg-type]
        pipeline.frequent_pairs("pairs", files, support=1, itemset="3")  # type: ignore[arg-type]


def everything() -> None:
    """Run all uses."""
    functions()
    with tempfile.TemporaryDirectory() as folder:
        objects(Path(folder))
    pipelines()
    stages()
