"""Pipelines: JSON and builder, queries while they run, Python sources and sinks."""

import asyncio
import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import oracle
import trommel
from trommel import _trommel

CONFIGS = Path(__file__).parents[2] / "configs"


def endless():
    pipeline = trommel.Pipeline("endless")
    items = pipeline.generate("items", alphabet=1000)
    top = pipeline.frequent_items("top", items, n=3)
    pipeline.collect("rows", top)
    return pipeline


@pytest.mark.parametrize(
    "path",
    # The schema is no pipeline.
    sorted(path for path in CONFIGS.glob("*.json") if path.name != "pipeline.schema.json"),
    ids=lambda path: path.name,
)
def test_the_builder_mirrors_every_configuration(path, monkeypatch):
    """Each stage of a file is one call of the method of its operator."""
    monkeypatch.chdir(CONFIGS.parent)
    document = json.loads(path.read_text())
    settings = {key: value for key, value in document.items() if key not in ("stages", "$schema")}
    built = trommel.Pipeline(**settings)
    for stage in document["stages"]:
        inputs = [stage["inputs"]] if "inputs" in stage else []
        cores = {"cores": stage["cores"]} if "cores" in stage else {}
        getattr(built, stage["operator"])(stage["id"], *inputs, **cores, **stage.get("with", {}))
    del document["$schema"]
    assert built.to_dict() == document
    # A machine with fewer cores than a file names refuses it, in the same words both ways.
    try:
        assert built.plan()["stages"] == trommel.Pipeline.from_json(path).plan()["stages"]
    except ValueError as error:
        assert "core" in str(error)


def test_every_operator_has_a_method():
    for operator, summary in _trommel.OPERATORS:
        assert callable(getattr(trommel.Pipeline, operator)), operator
        assert summary


def test_a_pipeline_runs_from_a_file_and_a_dict(tmp_path):
    text = tmp_path / "words.txt"
    text.write_text("to be or not to be\n" * 3)
    document = {
        "name": "words",
        "stages": [
            {"id": "lines", "operator": "read", "with": {"paths": [str(text)], "format": "lines"}},
            {"id": "words", "operator": "tokenize", "inputs": ["lines"], "with": {"by": "words"}},
            {"id": "top", "operator": "frequent_items", "inputs": ["words"], "with": {"n": 2}},
            {"id": "out", "operator": "write", "inputs": ["top"],
             "with": {"path": str(tmp_path / "top.jsonl"), "format": "jsonl"}},
        ],
    }  # fmt: skip
    file = tmp_path / "words.json"
    file.write_text(json.dumps(document))
    for source in (file, str(file), document):
        running = trommel.Pipeline.from_json(source).run()
        rows = [json.loads(line) for line in (tmp_path / "top.jsonl").read_text().splitlines()]
        assert [(row["item"], row["count"]) for row in rows] == [("be", 6), ("to", 6)]
        assert running.metrics()["pipeline"] == "words"
    # Runs can be repeated, and changed as on the command line.
    trommel.Pipeline.from_json(file).run({"stages.top.with.n": 1})
    assert len((tmp_path / "top.jsonl").read_text().splitlines()) == 1


def test_mistakes_are_those_of_the_command_line(tmp_path):
    file = tmp_path / "broken.json"
    file.write_text(
        '{ "stages": [\n'
        '  { "id": "a", "operator": "generate", "with": { "alphabet": 0, "item": 3 } },\n'
        '  { "id": "b", "operator": "discard", "inputs": ["aa"] } ] }\n'
    )
    with pytest.raises(ValueError) as raised:
        trommel.Pipeline.from_json(file).plan()
    lines = [line for line in str(raised.value).splitlines() if str(file) in line]
    assert lines[0].startswith(f"{file}:2:62: stages[0].with.alphabet: 0 is out of range; allowed: 1 to")
    assert "there is no key `item` here" in lines[1] and lines[1].endswith("did you mean `items`?")
    assert lines[2] == (
        f'{file}:3:50: stages[1].inputs[0]: there is no stage "aa"; stages: a, b; did you mean `a`?'
    )
    with pytest.raises(ValueError, match="is not of the form PATH=VALUE|there is no element `x` here"):
        endless().plan({"stages.x.with.n": 1})
    with pytest.raises(FileNotFoundError):
        trommel.Pipeline.from_json(tmp_path / "missing.json")
    with pytest.raises(ValueError, match="not valid JSON"):
        file.write_text("{ nothing")
        trommel.Pipeline.from_json(file).plan()
    with pytest.raises(ValueError, match="the program supplies `collect` for \"rows\", which is no stage"):
        trommel.Pipeline.from_json({"stages": [{"id": "a", "operator": "generate"}]}, sinks={"rows": None}).plan()


def test_a_wrong_parameter_is_refused_where_it_is_given():
    pipeline = trommel.Pipeline()
    items = pipeline.generate("items")
    said = "frequent_items() has no parameter `counter`; parameters: algorithm, cores, counters, decay,"
    with pytest.raises(TypeError, match=re.escape(said)) as raised:
        pipeline.frequent_items("top", items, counter=5)
    assert str(raised.value).endswith("; did you mean `counters`?")
    with pytest.raises(TypeError, match="has no parameter `zzz`; parameters: [a-z_, ]*$"):
        pipeline.generate("more", zzz=5)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'support'"):
        pipeline.frequent_pairs("pairs", items)
    assert [stage["id"] for stage in pipeline.to_dict()["stages"]] == ["items"]


def test_parameters_become_json():
    pipeline = trommel.Pipeline()
    # The name of `from` is taken by Python, that of `id` by the stage.
    pipeline.read("a", paths=(Path("x"), "y"), from_="end", follow=True, dims=None)
    pipeline.read("b", paths={"x"}, **{"from": "end"})
    pipeline.epsilon_join("c", "a", epsilon=np.float32(0.1), id_="name", carry=np.array(["x", "y"]), cores=[1])
    pipeline.frequent_pairs("d", "a", support=Fraction(1, 3), window={"seconds": 2, "slide": 1})
    pipeline.heavy_filter("e", ["a", "b"])
    pipeline.tokenize("f", "a", by={"field": 2})
    assert [stage.get("with") for stage in pipeline.to_dict()["stages"]] == [
        {"paths": ["x", "y"], "from": "end", "follow": True},
        {"paths": ["x"], "from": "end"},
        {"epsilon": 0.1, "id": "name", "carry": ["x", "y"]},
        {"support": "1/3", "window": {"seconds": 2, "slide": 1}},
        None,
        {"by": {"field": 2}},
    ]
    assert pipeline.to_dict()["stages"][2]["cores"] == [1]


def test_queries_of_a_running_pipeline():
    with endless().start() as running:
        assert running.phase == "running"
        while running.metrics()["stages"][1]["items_in"] == 0:
            pass
        first = running.query("top", "top", n=5)
        assert first.column_names == ["rank", "item", "count", "error"] and len(first) == 5
        second = running.query("top", "top", n=5, timeout=5.0)
        assert second["count"][0] >= first["count"][0]
        item = first["item"][0]
        assert running.query("top", "estimate", item=item)["count"][0] >= first["count"][0]
        for call, said in [
            (lambda: running.query("nothing", "top"), "there is no stage `nothing`; the stages are items, top, rows"),
            (lambda: running.query("top", "mean"), "the operator has no query `mean`; it answers top"),
            (lambda: running.query("top", "top", m=1), "parameters of query `top`: unknown field `m`"),
            (lambda: running.query("top", "top", timeout=-1), "invalid time -1"),
            (lambda: running.watch("nothing", "top"), "there is no stage `nothing`"),
        ]:
            with pytest.raises(ValueError, match=re.escape(said)):
                call()
        running.stop()
        assert running.join()
        assert running.phase == "ended"
        assert len(running.rows("rows")) == 3
        with pytest.raises(trommel.PipelineError, match="stage `top` has finished"):
            running.query("top", "top")
        assert running.take("rows").num_rows == 3 and running.take("rows").num_rows == 0
        with pytest.raises(RuntimeError, match="there is no sink `x`; there is `rows`"):
            running.rows("x")


def test_a_watch_iterates_until_the_run_ends():
    with endless().start() as running:
        watch = running.watch("top", "top", n=1, interval=0.01)
        counts = []
        for rows in watch:
            if len(rows):
                counts.append(rows["count"][0])
            if len(counts) == 3:
                running.stop()
        assert counts[:3] == sorted(counts[:3]) and len(counts) >= 3
        assert watch.latest() is not None and watch.age() >= 0
    with endless().start() as running:
        with pytest.raises(ValueError, match="no query `mean`"):
            for _ in running.watch("top", "mean", interval=0):
                pass
        with pytest.raises(ValueError, match="interval: -1 is out of range"):
            running.watch("top", "top", interval=-1)


def test_a_watch_is_an_async_iterator():
    async def watched(running):
        counts = []
        async for rows in running.watch("top", "top", n=1, interval=0.01):
            if len(rows):
                counts.append(rows["count"][0])
            if len(counts) == 3:
                running.stop()
        return counts

    with endless().start() as running:
        counts = asyncio.run(watched(running))
        assert len(counts) >= 3 and counts[:3] == sorted(counts[:3])


def test_metrics_are_a_dict_and_a_table():
    pipeline = trommel.Pipeline("numbers")
    pipeline.discard("end", pipeline.generate("items", items=1000))
    running = pipeline.run()
    metrics = running.metrics()
    assert [stage["id"] for stage in metrics["stages"]] == ["items", "end"]
    assert metrics["stages"][1]["items_in"] == 1000 and metrics["wall_seconds"] > 0
    table = running.metrics_table()
    assert table["id"] == ["items", "end"] and table["items_in"] == [0, 1000]
    assert pa.table(table).num_rows == 2
    shown = running._repr_html_()
    assert "<td>end</td>" in shown and "<td>1,000</td>" in shown
    plan = pipeline._repr_html_()
    assert "<td>generate</td>" in plan and "item: UInt32" in plan
    assert repr(pipeline) == "trommel.Pipeline of 2 stages: items, end"
    assert repr(running) == "trommel.Running 'numbers', ended"


def test_sources_and_sinks_in_python():
    words = ["to", "be", "or", "not", "to", "be"]
    taken = []
    pipeline = trommel.Pipeline()
    lines = pipeline.source("words", ({"item": words[i : i + 2]} for i in range(0, 6, 2)))
    top = pipeline.frequent_items("top", lines, n=10)
    pipeline.for_each("print", top, lambda rows: taken.extend(rows.to_pylist()))
    pipeline.run()
    assert [(row["item"], row["count"]) for row in taken] == oracle.top(words, 10)
    with pytest.raises(ValueError, match="an iterator gives its data to one run"):
        pipeline.run()
    # A table is read in every run.
    pipeline = trommel.Pipeline()
    source = pipeline.source("words", pa.table({"item": pa.array(words, pa.large_string())}))
    pipeline.collect("rows", pipeline.frequent_items("top", source, n=10))
    for _ in range(2):
        rows = pipeline.run().rows("rows").to_pylist()
        assert [(row["item"], row["count"]) for row in rows] == oracle.top(words, 10)


def test_json_names_sources_and_sinks_in_python():
    document = {
        "stages": [
            {"id": "words", "operator": "memory"},
            {"id": "top", "operator": "frequent_items", "inputs": ["words"]},
            {"id": "each", "operator": "for_each", "inputs": ["top"]},
            {"id": "rows", "operator": "collect", "inputs": ["top"]},
        ]
    }
    taken = []
    pipeline = trommel.Pipeline.from_json(
        document, sources={"words": {"item": ["a", "a"]}}, sinks={"each": taken.append, "rows": None}
    )
    running = pipeline.run()
    assert taken[0]["count"] == [2] and running.rows("rows")["item"] == ["a"]


def test_exceptions_of_python_sources_and_sinks_are_the_cause():
    def broken():
        yield {"item": ["a"]}
        raise LookupError("no more words")

    pipeline = trommel.Pipeline()
    pipeline.discard("end", pipeline.source("words", broken()))
    with pytest.raises(trommel.PipelineError, match=r"stage `words` \(memory\): LookupError: no more") as raised:
        pipeline.run()
    assert isinstance(raised.value.__cause__, LookupError)

    def refuse(rows):
        raise OSError(28, "the disk is full")

    pipeline = trommel.Pipeline()
    pipeline.for_each("end", pipeline.source("words", {"item": ["a"]}), refuse)
    running = pipeline.start()
    for _ in range(2):
        with pytest.raises(trommel.PipelineError, match=r"stage `end` \(for_each\)") as raised:
            running.join()
        assert isinstance(raised.value.__cause__, OSError)
    pipeline = trommel.Pipeline()
    pipeline.discard("end", pipeline.source("words", iter([{"item": [1]}, {"item": ["a"]}])))
    with pytest.raises(trommel.PipelineError, match="the memory source was declared with"):
        pipeline.run()
    with pytest.raises(ValueError, match="an iterator without data"):
        trommel.Pipeline().source("words", iter([]))


def test_a_failed_file_is_an_os_error(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    pipeline = trommel.Pipeline()
    items = pipeline.generate("items", items=100_000)
    pipeline.write("out", items, path=str(folder / "x.jsonl"), format="jsonl")
    running = pipeline.start()
    (folder / "x.jsonl").unlink(missing_ok=True)
    try:
        running.join()
    except trommel.PipelineError as error:
        assert isinstance(error.__cause__, OSError)
    with pytest.raises(ValueError, match="missing"):
        pipeline = trommel.Pipeline()
        pipeline.discard("end", pipeline.read("in", paths=[str(tmp_path / "missing")], format="lines"))
        pipeline.run()


def test_stop_abort_and_limits():
    running = endless().start()
    assert not running.join(timeout=0.05)
    running.abort()
    with pytest.raises(trommel.PipelineError, match="aborted before the stage had finished"):
        running.join()
    running = endless().start()
    running.stop(within=10.0)
    assert running.join(timeout=10.0)
    with pytest.raises(ValueError, match="invalid time -1"):
        running.join(timeout=-1)


def test_outputs_with_names_are_collected():
    pipeline = trommel.Pipeline()
    hot = pipeline.heavy_filter("hot", pipeline.generate("items", items=10_000, alphabet=100))
    pipeline.collect("rest", f"{hot}.rest")
    pipeline.collect("counts", f"{hot}.counts")
    running = pipeline.run()
    counted = sum(running.rows("counts")["count"])
    assert counted + len(running.rows("rest")) == 10_000
