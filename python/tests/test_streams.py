"""`SetJoinStream`, `EpsilonStream` and `ConjunctiveIndex` against naive answers."""

import random
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import oracle
import trommel

RNG = random.Random(7)


def test_a_stream_finds_the_pairs_of_its_window():
    sets = [RNG.sample(range(14), RNG.randint(1, 7)) for _ in range(300)]
    window = 40
    found = []
    with trommel.SetJoinStream("1/2", window={"sets": window}) as stream:
        for begin in range(0, 300, 30):
            found += stream.add(sets[begin : begin + 30]).to_pylist()
        found += stream.finish().to_pylist()
        assert len(stream) == 300
    pairs = {(row["left"], row["right"]): row["overlap"] for row in found}
    assert len(pairs) == len(found)
    expected = oracle.set_pairs(sets, Fraction(1, 2))
    # The window holds the set itself, too.
    assert pairs == {pair: overlap for pair, overlap in expected.items() if pair[1] - pair[0] < window}


def test_texts_have_the_same_numbers_in_all_calls():
    with trommel.SetJoinStream(1, window={"sets": 10}, carry=["name"]) as stream:
        found = stream.add({"set": [["a", "b"]], "name": ["x"]}).to_pylist()
        found += stream.add({"set": [["c"], ["b", "a"]], "name": ["y", "z"]}).to_pylist()
        found += stream.finish().to_pylist()
    (pair,) = found
    assert (pair["left"], pair["right"], pair["left_name"], pair["right_name"]) == (0, 2, "x", "z")


def test_an_epsilon_stream_finds_the_pairs_of_its_window():
    vectors = np.random.default_rng(3).normal(size=(300, 2)).astype("f4")
    window = 50
    found = []
    with trommel.EpsilonStream(0.3, window={"vectors": window}) as stream:
        for begin in range(0, 300, 25):
            found += stream.add(vectors[begin : begin + 25]).to_pylist()
        found += stream.finish().to_pylist()
    pairs = {(row["left"], row["right"]): row["distance"] for row in found}
    expected = oracle.near(vectors, 0.3)
    assert pairs == pytest.approx({p: d for p, d in expected.items() if p[1] - p[0] < window})


def test_streams_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="threshold: -1 is out of range"):
        trommel.SetJoinStream(-1, window={"sets": 10}).add([[1]])
    with pytest.raises(ValueError, match="window"):
        trommel.SetJoinStream(1, window={"rows": 10}).add([[1]])
    stream = trommel.SetJoinStream(1, window={"sets": 10})
    with pytest.raises(ValueError, match="there is no data yet"):
        stream.finish()
    stream = trommel.SetJoinStream(1, window={"sets": 10})
    stream.add([[1]])
    with pytest.raises(ValueError, match="tokens of one kind"):
        stream.add([["a"]])
    stream.finish()
    with pytest.raises(ValueError, match="finished"):
        stream.add([[1]])
    assert len(stream.finish()) == 0
    stream = trommel.EpsilonStream(1, window={"vectors": 10})
    stream.add([[1.0, 2.0]])
    with pytest.raises(ValueError, match="invalid vector in row 0: it has 1 coordinates, and the first one has 2"):
        stream.add([[1.0]])
    with pytest.raises(trommel.PipelineError, match="NaN"):
        stream.add([[float("nan"), 0.0]])
        stream.finish()


def documents_with(documents, terms):
    return [n for n, document in enumerate(documents) if terms and set(terms) <= set(document)]


@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_an_index_answers_over_what_was_added(kind, tmp_path):
    def term(number):
        return number if kind == "numbers" else f"t{number}"

    documents = [[term(t) for t in RNG.sample(range(30), RNG.randint(1, 9))] for _ in range(400)]
    queries = [[term(t) for t in RNG.sample(range(32), RNG.randint(0, 3))] for _ in range(60)]
    path = tmp_path / "terms.index"
    with trommel.ConjunctiveIndex() as index:
        index.add(documents[:150])
        found = index.query_batch(queries).to_pylist()
        assert [row["query"] for row in found] == list(range(len(queries)))
        for row, query in zip(found, queries):
            assert row["documents"] == documents_with(documents[:150], query)
        index.add(documents[150:300])
        assert index.query([term(3)]) == documents_with(documents[:300], [term(3)])
        index.save(path)
        index.add(documents[300:])
        assert len(index) == 400
        assert index.query([term(3), term(4)]) == documents_with(documents, [term(3), term(4)])
        assert index.count([term(5)]) == len(documents_with(documents, [term(5)]))
        assert index.query([]) == [] and index.query_batch([[], []])["documents"] == [[], []]
    with trommel.ConjunctiveIndex.open(path) as index:
        found = index.query_batch(queries).to_pylist()
        for row, query in zip(found, queries):
            assert row["documents"] == documents_with(documents[:300], query)
        with pytest.raises(ValueError, match="opened for queries alone"):
            index.add(documents)


def test_several_threads_use_one_index_and_one_stream():
    found = []
    with trommel.ConjunctiveIndex() as index, trommel.SetJoinStream(1, window={"sets": 1000}) as stream:

        def work(number):
            pairs = stream.add([[number]] * 5).to_pylist()
            index.add([[number, 100]] * 5)
            for _ in range(20):
                many = index.query_batch([[100], [number], [number, 100], [200]])["documents"]
                assert [len(many[1]), len(many[2]), len(many[3])] == [5, 5, 0] and len(many[0]) >= 5
            found.extend(pairs)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(8)))
        found += stream.finish().to_pylist()
        assert len(index) == 40 and len(stream) == 40
    # Ten pairs of each five equal sets.
    assert len({(pair["left"], pair["right"]) for pair in found}) == len(found) == 80


def test_ctrl_c_closes_an_index(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    index = trommel.ConjunctiveIndex()
    index.add([["a"]])
    monkeypatch.setattr(index, "_settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        index.query(["a"])
    monkeypatch.undo()
    with pytest.raises(ValueError, match="this index is closed"):
        index.query(["a"])


def test_documents_have_names():
    data = {"terms": [["a", "b"], ["b"], None], "title": ["one", "two", "three"]}
    with trommel.ConjunctiveIndex(column="terms", name="title") as index:
        index.add(data)
        assert index.query(["b"]) == ["one", "two"]
        dictionary = pa.array(["b", "a"]).dictionary_encode()
        asked = pa.ListArray.from_arrays([0, 1, 2], dictionary)
        assert index.query_batch(asked)["documents"] == [["one", "two"], ["one"]]


def test_an_index_refuses_what_does_not_fit(tmp_path):
    index = trommel.ConjunctiveIndex()
    with pytest.raises(ValueError, match="no documents yet"):
        index.query(["a"])
    index.add([["a"]])
    with pytest.raises(TypeError, match="expected a list of terms, found 'a'"):
        index.query("a")
    with pytest.raises(ValueError, match="the data has lists of whole numbers, and the first data had lists of texts"):
        index.query([1])
    with pytest.raises(OSError):
        index.save(tmp_path / "no folder" / "x")
    assert index.query(["a"]) == [0]
    index.close()
    index.close()
    with pytest.raises(ValueError, match="closed"):
        index.query(["a"])
    with pytest.raises(FileNotFoundError):
        trommel.ConjunctiveIndex.open(tmp_path / "missing")
    (tmp_path / "broken").write_bytes(b"nothing of the sort")
    with pytest.raises(ValueError):
        trommel.ConjunctiveIndex.open(tmp_path / "broken")
