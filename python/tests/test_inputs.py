"""Data of every form: Arrow types, chunks, slices, nulls, NumPy layouts, and their memory."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import oracle
import trommel

WORDS = ["to", "be", "or", None, "not", "to", "be", "to", ""]
TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint32(), pa.large_string()),
]
NUMBER_TYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"]


def counts(table):
    return [(row["item"], row["count"]) for row in table.to_pylist()]


@pytest.mark.parametrize("type", TEXT_TYPES, ids=str)
def test_texts_of_every_arrow_type(type):
    column = pa.array(WORDS).cast(type) if not pa.types.is_dictionary(type) else pa.array(WORDS).dictionary_encode().cast(type)
    expected = oracle.top(WORDS, None)
    assert counts(trommel.top(column, n=None)) == expected
    assert counts(trommel.top(pa.chunked_array([column.slice(0, 4), column.slice(4)]), n=None)) == expected
    assert counts(trommel.top(pa.table({"w": column}), n=None)) == expected
    assert counts(trommel.top(pa.record_batch({"w": column}), n=None)) == expected
    tokens = trommel.tokenize(column, "whitespace")["item"]
    assert tokens == [word for word in WORDS if word]


@pytest.mark.parametrize("kind", NUMBER_TYPES)
def test_whole_numbers_of_every_width(kind):
    numbers = np.array([3, 100, 3, 0, 100, 3], dtype=kind)
    expected = oracle.top(numbers.tolist(), None)
    assert counts(trommel.top(numbers)) == expected
    assert counts(trommel.top(numbers.astype(numbers.dtype.newbyteorder(">")))) == expected
    assert counts(trommel.top(pa.array(numbers))) == expected
    assert counts(trommel.top(pl.Series(numbers))) == expected
    assert counts(trommel.top(pd.Series(numbers))) == expected
    with_null = pa.array([3, None, 3], type=pa.from_numpy_dtype(numbers.dtype))
    assert counts(trommel.top(with_null)) == [(3, 2)]
    if kind.startswith("i"):
        with pytest.raises(ValueError, match="invalid item -1 in row 2"):
            trommel.top(np.array([1, 2, -1], dtype=kind))
        # The value under a null is no item.
        hidden = pa.Array.from_buffers(
            pa.from_numpy_dtype(numbers.dtype), 2,
            [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([7, -1], dtype=kind).tobytes())],
        )  # fmt: skip
        assert counts(trommel.top(hidden)) == [(7, 1)]


def test_the_largest_numbers():
    assert trommel.top([2**64 - 1, 2**63])["item"] == [2**63, 2**64 - 1]
    assert trommel.top(np.array([2**64 - 1], dtype="u8"))["item"] == [2**64 - 1]
    with pytest.raises(ValueError, match="18446744073709551616 is out of range"):
        trommel.top([2**64])


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "?", "M8[s]", "c8", "V4"])
def test_items_of_other_numpy_types_are_refused(kind):
    with pytest.raises((TypeError, ValueError), match="expected"):
        trommel.top(np.zeros(2, dtype=kind))


def test_numpy_arrays_of_every_layout():
    numbers = np.arange(24, dtype="u4")
    expected = sorted(oracle.top(numbers[::3].tolist(), None))
    assert sorted(counts(trommel.top(numbers[::3], n=None))) == expected
    assert sorted(counts(trommel.top(numbers[::-3][::-1], n=None))) == sorted(oracle.top(numbers[2::3].tolist(), None))
    unaligned = np.frombuffer(b"x" + numbers.tobytes(), dtype="u4", offset=1)
    assert not unaligned.flags.aligned
    assert len(trommel.top(unaligned, n=None)) == 24
    numbers.flags.writeable = False
    assert len(trommel.top(numbers, n=None)) == 24
    assert len(trommel.top(np.array(["a", "bb", "a"]))) == 2
    assert counts(trommel.top(np.array(["a", None, "a"], dtype=object))) == [("a", 2)]
    masked = np.ma.array([5, 6, 5], mask=[False, True, False], dtype="u4")
    assert counts(trommel.top(masked)) == [(5, 2)]
    with pytest.raises(ValueError, match="3 dimensions"):
        trommel.top(np.zeros((1, 1, 1), dtype="u4"))
    with pytest.raises(ValueError, match="FixedSizeList"):
        trommel.top(np.zeros((2, 2), dtype="u4"))
    with pytest.raises(TypeError, match="NumPy array of"):
        trommel.top(np.zeros(2, dtype=[("a", "u4")]))


def test_vectors_of_every_layout():
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(40, 3)).astype("f4")
    expected = oracle.pairs_of(trommel.epsilon_join(vectors, epsilon=1), "distance")
    assert expected == pytest.approx(oracle.near(vectors, 1))
    lists = vectors.astype("f8").tolist()
    layouts = [
        np.asfortranarray(vectors),
        np.repeat(vectors, 2, axis=0)[::2],
        vectors.astype(">f4"),
        vectors.astype("f8"),
        lists,
        pa.array(lists, pa.list_(pa.float32(), 3)),
        pa.array(lists, pa.list_(pa.float64())),
        pa.array(lists, pa.large_list(pa.float32())),
        pa.array([[9.0, 9.0, 9.0], *lists], pa.list_(pa.float32())).slice(1),
        pl.Series(lists, dtype=pl.List(pl.Float32)),
        pl.Series(lists, dtype=pl.Array(pl.Float32, 3)),
        pd.Series(lists),
    ]
    for layout in layouts:
        assert oracle.pairs_of(trommel.epsilon_join(layout, epsilon=1), "distance") == expected
    halves = np.array([[0.5, 1.0], [0.5, 1.5]], dtype="f2")
    assert trommel.epsilon_join(halves, epsilon=0.5)["distance"] == [0.5]
    for missing in (None, [None]):
        with_null = pa.array([[0.0], missing, [0.0]], pa.list_(pa.float32()))
        for output in ("pairs", "count", "partners", "first"):
            with pytest.raises(trommel.PipelineError, match="row 2 of the input: .* null"):
                trommel.epsilon_join(with_null, epsilon=1, output=output)
        found = trommel.epsilon_join(with_null, epsilon=1, on_error="skip").to_pylist()
        assert [(pair["left"], pair["right"]) for pair in found] == [(0, 2)]


SETS = [[5, 1], [], None, [1, 5, 9], [1, 5]]


@pytest.mark.parametrize(
    "type",
    [
        pa.list_(pa.uint32()), pa.list_(pa.int64()), pa.large_list(pa.uint8()),
        pa.list_(pa.string()), pa.large_list(pa.large_string()), pa.list_(pa.string_view()),
    ],
    ids=str,
)  # fmt: skip
def test_sets_of_every_type(type):
    is_text = not pa.types.is_integer(type.value_type)
    sets = [s if s is None else [f"t{t}" for t in s] if is_text else s for s in SETS]
    expected = oracle.set_pairs(sets, 2 / 3)
    column = pa.array(sets, type)
    longer = pa.array([["x"] if is_text else [7], *sets, ["y"] if is_text else [8]], type)
    for data in (
        column,
        longer.slice(1, len(sets)),
        pa.chunked_array([column.slice(0, 2), column.slice(2, 0), column.slice(2)]),
        pl.from_arrow(column),
    ):
        found = trommel.set_similarity_join(data, threshold="2/3")
        assert oracle.pairs_of(found, "overlap") == expected
    pairs = trommel.frequent_pairs(column, 3).to_pylist()
    assert {frozenset((p["left"], p["right"])): p["support"] for p in pairs} == oracle.item_pairs(
        [s or [] for s in sets], 3
    )


def test_sets_as_dictionaries_and_of_fixed_size():
    words = pa.array(["a", "b", "b", "a", "c", "a"]).dictionary_encode()
    sets = pa.ListArray.from_arrays([0, 2, 4, 6], words)
    assert oracle.pairs_of(trommel.set_similarity_join(sets, threshold=1), "overlap") == {(0, 1): 2}
    (pair,) = trommel.frequent_pairs(sets, 2).to_pylist()
    assert {pair["left"], pair["right"]} == {"a", "b"}
    fixed = pa.array([[1, 2], [2, 1]], pa.list_(pa.uint16(), 2))
    assert len(trommel.set_similarity_join(fixed, threshold=1)) == 1
    view = pa.array([[1, 2], [2, 1]], pa.list_view(pa.int32()))
    assert len(trommel.set_similarity_join(view, threshold=1)) == 1


def test_python_sets_tuples_generators_and_numpy_rows():
    assert len(trommel.set_similarity_join([{1, 2}, (2, 1), frozenset([1, 2])], threshold=1)) == 3
    assert counts(trommel.top(word for word in ["a", "b", "a"])) == [("a", 2), ("b", 1)]
    assert len(trommel.set_similarity_join([np.array([1, 2]), np.array([2, 1])], threshold=1)) == 1
    assert counts(trommel.top(range(3), n=1)) == [(0, 1)]
    assert counts(trommel.top([np.int64(3), 3])) == [(3, 2)]


def test_frames_with_an_index_and_relations():
    frame = pd.DataFrame({"w": ["a", "b", "a"]}, index=[7, 8, 9])
    assert counts(trommel.top(frame)) == [("a", 2), ("b", 1)]
    assert counts(trommel.top(frame["w"])) == [("a", 2), ("b", 1)]
    assert counts(trommel.top(pd.Series(["a", "b", "a"], dtype="category"))) == [("a", 2), ("b", 1)]
    assert counts(trommel.top(pl.DataFrame({"w": ["a", "b", "a"]}))) == [("a", 2), ("b", 1)]
    assert counts(trommel.top(pl.Series(["a", "b", "a"], dtype=pl.Categorical))) == [("a", 2), ("b", 1)]
    assert counts(trommel.top(duckdb.sql("select 'a' as w from range(3)"))) == [("a", 3)]
    reader = pa.RecordBatchReader.from_batches(
        pa.schema([("w", pa.string())]),
        (pa.record_batch({"w": [word]}) for word in ["a", "b", "a"]),
    )
    assert counts(trommel.top(reader)) == [("a", 2), ("b", 1)]
    batches = [pa.record_batch({"w": ["a"]}), pa.record_batch({"w": ["a"]})]
    assert counts(trommel.top(batches)) == [("a", 2)]


def test_results_go_into_every_library():
    result = trommel.top(["a", "b", "a"])
    expected = [("a", 2), ("b", 1)]
    table = pa.table(result)
    assert list(zip(table["item"].to_pylist(), table["count"].to_pylist())) == expected
    frame = pl.DataFrame(result)
    assert list(zip(frame["item"], frame["count"])) == expected
    assert pl.from_arrow(result).struct.unnest().equals(frame)
    for frame in (pd.DataFrame.from_arrow(result), pd.DataFrame(result)):
        assert list(zip(frame["item"], frame["count"])) == expected
    assert [row["item"] for row in result] == ["a", "b"] and list(result) == result.to_pylist()
    many = trommel.table(list(range(5_000)))
    assert [row["item"] for row in many] == list(range(5_000))
    assert duckdb.sql("select item, count from result order by rank").fetchall() == expected
    assert pa.schema(result.schema) == table.schema
    # A table is read as often as one likes, and by the functions, too.
    assert pa.table(result).equals(table)
    assert trommel.top(result, column="item").num_rows == 2


def test_a_stream_that_fails_and_objects_that_lie():
    def rows():
        yield pa.record_batch({"w": ["a"]})
        raise OSError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("w", pa.string())]), rows())
    with pytest.raises(ValueError, match="the disk is gone"):
        trommel.top(reader)

    class Liar:
        def __arrow_c_array__(self, requested_schema=None):
            return 1, 2

    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise KeyError("no data")

    with pytest.raises(TypeError, match="expected a capsule of an arrow schema, found int"):
        trommel.top(Liar())
    with pytest.raises(KeyError, match="no data"):
        trommel.top(Broken())
    # Invalid UTF-8 is found where an array comes in.
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], dtype="i4")), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(ValueError, match="column `item` cannot be read: .*UTF8"):
        trommel.top(bad)


def lying(format, length, buffers, **fields):
    """An array whose structures are not what they say."""
    from trommel import _capsules

    schema, kept_schema = _capsules._type(format, b"x")
    array, kept_array = _capsules._data(length, buffers)
    for name, value in fields.items():
        setattr(array, name, value)
    keep = (kept_schema, kept_array)
    _capsules._keep(array, keep)
    return _capsules.ArrowColumn(_capsules.ArrowType(schema, _capsules._Owner(schema, keep)), array, keep)


@pytest.mark.parametrize(
    ("format", "length", "fields"),
    [
        (b"I", -1, {}), (b"I", 1, {"offset": -1}), (b"I", 2**62, {}), (b"u", 2**62, {}),
        (b"I", 1, {"n_buffers": -1}), (b"u", 1, {"n_buffers": 1}), (b"+l", 1, {}), (b"+w:-3", 1, {}),
        (b"d:99,99", 1, {}), (b"", 1, {}), (b"\xe9", 1, {}), (b"+ud:", 1, {}), (b"+m", 1, {}), (b"+r", 1, {}),
    ],
)  # fmt: skip
def test_structures_that_contradict_themselves_are_refused(format, length, fields):
    buffer = np.zeros(16, dtype="u1").ctypes.data
    calls = [
        trommel.table, trommel.top, trommel.tokenize, lambda data: trommel.frequent_pairs(data, 1),
        lambda data: trommel.epsilon_join(data, epsilon=1), lambda data: trommel.set_similarity_join(data, threshold=1),
        trommel.FrequentItems().observe, trommel.ConjunctiveIndex().add,
        trommel.SetJoinStream(1, window={"sets": 1}).add, lambda data: trommel.Pipeline().source("in", data),
    ]  # fmt: skip
    for call in calls:
        # Neither a panic nor an exception that `except Exception` misses.
        with pytest.raises(ValueError, match="cannot be read|; expected|rows from row"):
            call(lying(format, length, [None, buffer, buffer], **fields))


def test_other_columns_may_be_of_any_type():
    frame = pl.DataFrame(
        {"w": ["a", "b", "a"], "none": [None] * 3, "many": pl.Series([1, 2, 3], dtype=pl.Int128), "o": [{"x": None}] * 3}
    )
    assert counts(trommel.top(frame, column="w")) == [("a", 2), ("b", 1)]
    assert counts(trommel.top(frame.slice(1), column="w")) == [("a", 1), ("b", 1)]
    assert counts(trommel.top(frame, column="none")) == []
    items = trommel.FrequentItems()
    items.observe(frame, column="w")
    assert items.observed == 3
    with trommel.ConjunctiveIndex(column="t", name="w") as index:
        index.add(frame.with_columns(t=pl.Series([["x"], [], ["x"]])))
        assert index.query(["x"]) == ["a", "a"]
    with pytest.raises(ValueError, match='column `many` cannot be read: .*_pli128'):
        trommel.top(frame, column="many")


def test_a_column_is_used_and_carried():
    columns = {"text": ["a river of gravel", "heavy pieces", "the river of gravel"], "n": [1, None, 3]}
    table = pa.table(columns)
    rows = pa.array([dict(zip(columns, row)) for row in zip(*columns.values())])
    batch = table.to_batches()[0]
    for data in (columns, table, batch, table.slice(0, 3), pl.DataFrame(columns), pd.DataFrame(columns), rows):
        pairs = trommel.near_duplicates(data, "3/5", column="text", carry=["text", "n"]).to_pylist()
        assert [(pair["left_text"], pair["right_text"], pair["right_n"]) for pair in pairs] == [
            ("a river of gravel", "the river of gravel", 3)
        ]


def test_data_without_a_type_takes_that_of_the_rest():
    assert len(trommel.set_similarity_join([], [["a"]], threshold=1)) == 0
    assert len(trommel.set_similarity_join([["a"]], [[]], threshold=1)) == 0
    assert len(trommel.epsilon_join([], [[1.0, 2.0]], epsilon=1)) == 0
    untyped = pa.array([[], None], pa.list_(pa.null()))
    rows = [pa.array([["a", "b"]]), untyped, pa.array([["b", "a"]], pa.large_list(pa.string_view()))]
    assert oracle.pairs_of(trommel.set_similarity_join([untyped, *rows], threshold=1), "overlap") == {(2, 5): 2}
    assert trommel.frequent_pairs([untyped, *rows], 2)["support"] == [2]
    with trommel.SetJoinStream(1, window={"sets": 9}) as stream:
        stream.add([[]])
        stream.add([None])
        found = stream.add([["a"], ["a"]]).to_pylist() + stream.finish().to_pylist()
        assert [(row["left"], row["right"]) for row in found] == [(2, 3)]
    with trommel.EpsilonStream(1, window={"vectors": 9}) as stream:
        assert len(stream.add([])) == 0
        stream.add([[1.0, 2.0], [1.0, 2.0]])
        assert stream.finish()["distance"] == [0.0]
    with trommel.ConjunctiveIndex() as index:
        index.add([[], None])
        assert index.query([]) == [] and index.query(["a"]) == [] and len(index) == 2
        index.add([["a"]])
        assert index.query(["a"]) == [2] and len(index) == 3
    items = trommel.FrequentItems()
    for part in ([], [None], [1], np.array([1], dtype="u4"), pa.array([2], pa.int8())):
        items.observe(part)
    assert counts(items.top()) == [(1, 2), (2, 1)]


def test_later_data_of_another_type_becomes_that_of_the_first():
    data = {"t": [["a"]], "n": ["x"]}
    later = [
        pl.DataFrame(data), pd.DataFrame(data), {"t": [["a"]], "n": pa.array(["x"]).dictionary_encode()},
        pa.table({"t": pa.array([["a"]], pa.large_list(pa.large_string())), "n": pa.array(["x"], pa.large_string())}),
        {"t": [["a"]], "n": pa.RunEndEncodedArray.from_arrays([1], ["x"])},
    ]  # fmt: skip
    for first in (data, *later):
        with trommel.ConjunctiveIndex(column="t", name="n") as index:
            index.add(first)
            for more in later:
                index.add(more)
            assert index.query(["a"]) == ["x"] * 6
    with trommel.SetJoinStream(1, window={"sets": 9}, column="s", carry=["c"]) as stream:
        # A pair comes with the data after its sets, or at the end.
        found = [stream.add({"s": [[1]], "c": pa.array([7], pa.int64())})]
        found.append(stream.add({"s": [[1]], "c": pa.array([8], pa.int8())}))
        with pytest.raises(ValueError, match="the data has texts, and the first data had whole numbers"):
            stream.add({"s": [[1]], "c": ["nine"]})
        found.append(stream.finish())
        (pair,) = (pair for pairs in found for pair in pairs.to_pylist())
        assert (pair["left_c"], pair["right_c"]) == (7, 8)
    items = trommel.FrequentItems()
    items.observe(np.array([1], dtype="u4"))
    items.observe([1])
    with pytest.raises(ValueError, match="invalid item 4294967296 in row 1: .* 32 bits"):
        items.observe([1, 2**32])
    assert counts(items.top()) == [(1, 2)]


def test_errors_count_rows_from_the_first_of_the_call():
    with trommel.ConjunctiveIndex() as index:
        index.add([[1], [2]])
        with pytest.raises(ValueError, match="invalid document in row 1: -1 is out of range; terms are 0 to"):
            index.add([[1], [-1]])
    with trommel.SetJoinStream(1, window={"sets": 9}) as stream:
        stream.add([[1]] * 5)
        with pytest.raises(ValueError, match="invalid set in row 1: a token is null"):
            stream.add([[1], [None, 1]])


def address(table, name="item"):
    column = pa.table(table)[name].chunk(0)
    while isinstance(column, (pa.FixedSizeListArray, pa.ListArray)):
        column = column.values
    return column.buffers()[1].address


def test_nothing_is_copied():
    for kind in ("u1", "u4", "u8", "i8", "f4", "f8"):
        array = np.arange(1000).astype(kind)
        assert address(trommel.table(array)) == array.ctypes.data
    vectors = np.zeros((100, 8), dtype="f4")
    assert address(trommel.table(vectors)) == vectors.ctypes.data
    array = pa.array(range(1000), pa.uint32())
    assert address(trommel.table(array)) == array.buffers()[1].address
    assert address(trommel.table(pa.table({"item": array}))) == array.buffers()[1].address
    series = pl.Series("item", range(1000), dtype=pl.UInt32)
    assert address(trommel.table(series)) == series.to_numpy(allow_copy=False).ctypes.data
    texts = pa.array(["a", "bc"])
    table = pa.table(trommel.table(texts))["item"].chunk(0)
    assert [b and b.address for b in table.buffers()] == [b and b.address for b in texts.buffers()]


def test_what_a_function_passes_on_is_not_copied():
    # The carried column of a single batch goes through the whole pipeline as it came.
    seen = []
    pipeline = trommel.Pipeline()
    array = np.arange(1000, dtype="u8")
    pipeline.for_each("out", pipeline.source("in", array), lambda rows: seen.append(address(rows)))
    pipeline.run()
    assert seen == [array.ctypes.data]


def test_a_table_keeps_the_memory_of_its_array():
    table = trommel.table(np.arange(100_000, dtype="u4"))
    np.zeros(100_000, dtype="u4")
    assert table["item"][99_999] == 99_999


def test_columns_of_a_dict_with_different_chunks():
    data = {
        "item": pa.chunked_array([pa.array(["a"]), pa.array(["b", "a"])]),
        "weight": pa.chunked_array([pa.array([1, 2]), pa.array([3])]),
    }
    assert counts(trommel.top(data, weight="weight", column="item")) == [("a", 4), ("b", 2)]
    with pytest.raises(ValueError, match="`b` has 1 rows, and `a` has 2"):
        trommel.table({"a": [1, 2], "b": [1]})


@pytest.mark.slow
def test_more_rows_than_32_bits_count():
    batch = pa.record_batch({"item": pa.array(np.zeros(1 << 24, dtype="u4"))})
    schema = batch.schema
    reader = pa.RecordBatchReader.from_batches(schema, (batch for _ in range(129)))
    (row,) = trommel.top(reader).to_pylist()
    assert (row["item"], row["count"]) == (0, 129 << 24)
    assert row["count"] > 2**31


def test_columns_of_more_than_2_31_bytes_or_elements():
    size = (1 << 31) + 16
    # Zeros that the system has not given memory for.
    zeros = pa.py_buffer(np.zeros(size, dtype="u1"))
    ends = np.array([0, size - 16, size - 15, size], dtype="i8")
    texts = pa.Array.from_buffers(pa.large_string(), 3, [None, pa.py_buffer(ends), zeros])
    # A short text far behind in a long column is like any other.
    assert counts(trommel.top(texts.slice(1))) == [("\0", 1), ("\0" * 15, 1)]
    with pytest.raises(ValueError, match="texts of 2147483664 bytes .* at most 2147483647"):
        trommel.tokenize(texts)
    values = pa.Array.from_buffers(pa.uint8(), size, [None, zeros])
    lists = pa.LargeListArray.from_arrays(pa.array(ends), values)
    assert trommel.set_similarity_join(lists.slice(1), threshold=1)["overlap"] == [1]
    with pytest.raises(ValueError, match="lists of 2147483664 elements .* at most 2147483647"):
        trommel.set_similarity_join(lists, threshold=1)
    (pair,) = trommel.epsilon_join(
        pa.LargeListArray.from_arrays(pa.array(ends[1:2].repeat(2) + np.arange(2)), values), epsilon=0, output="count"
    ).to_pylist()
    assert pair == {"count": 0}


def test_a_table_shows_itself():
    rows = trommel.table({"word": ["<a>", "b"] * 10, "n": list(range(20))})
    shown = repr(rows)
    assert shown.startswith("trommel.Table of 20 rows\nword  n\n<a>   0\n") and shown.endswith("…")
    assert "<td>&lt;a&gt;</td>" in rows._repr_html_() and "20 rows" in rows._repr_html_()
    assert repr(rows.schema) == "trommel.Schema(word: Utf8, n: Int64)"
    assert rows.head(3)["n"] == [0, 1, 2] and rows.select(["n"]).column_names == ["n"]
    with pytest.raises(KeyError, match="there is no column `x`; columns: word, n"):
        rows["x"]


def test_values_of_every_type_become_python_objects():
    columns = {
        "bool": pa.array([True, None]),
        "bytes": pa.array([b"x", None]),
        "half": pa.array([np.float16(0.5), None], pa.float16()),
        "nested": pa.array([[[1], None], None]),
        "view": pa.array(["v", None], pa.string_view()),
        "words": pa.array(["d", None]).dictionary_encode(),
        "time": pa.array([5, None], pa.timestamp("ms")),
        "nothing": pa.nulls(2),
    }
    first, second = trommel.table(pa.table(columns)).to_pylist()
    assert first == {
        "bool": True, "bytes": b"x", "half": 0.5, "nested": [[1], None],
        "view": "v", "words": "d", "time": 5, "nothing": None,
    }  # fmt: skip
    assert set(second.values()) == {None}
    assert trommel.table(pa.table({"f": pa.array([[1, 2], None], pa.list_(pa.int8(), 2))})).to_pydict() == {
        "f": [[1, 2], None]
    }
