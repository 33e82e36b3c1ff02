"""The table of what is accepted, cell by cell: Arrow types by what a column is for."""

import datetime
import decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import oracle
import trommel

WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
TEXTS = ["string", "large_string", "string_view"]
OTHERS = {
    "bool": (pa.bool_(), [True, False, None, True]),
    "float16": (pa.float16(), [np.float16(1), np.float16(2), None, np.float16(1)]),
    "float32": (pa.float32(), [1.5, 2.5, None, 1.5]),
    "float64": (pa.float64(), [1.5, 2.5, None, 1.5]),
    "decimal128": (pa.decimal128(9, 2), [decimal.Decimal("1.50"), decimal.Decimal("2.50"), None, decimal.Decimal("1.50")]),
    "binary": (pa.binary(), [b"a", b"b", None, b"a"]),
    "date32": (pa.date32(), [datetime.date(2000, 1, 1), datetime.date(2000, 1, 2), None, datetime.date(2000, 1, 1)]),
    "timestamp": (pa.timestamp("us"), [datetime.datetime(2000, 1, 1), None, None, datetime.datetime(2001, 1, 1)]),
    "duration": (pa.duration("s"), [datetime.timedelta(seconds=1), None, None, datetime.timedelta(seconds=2)]),
    "struct": (pa.struct([("y", pa.int64())]), [{"y": 1}, None, {"y": None}, {"y": 1}]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [], None, [("a", 1)]]),
}
LISTS = {
    "list": pa.list_,
    "large_list": pa.large_list,
    "list_view": pa.list_view,
    "large_list_view": pa.large_list_view,
    "fixed_size_list": lambda item: pa.list_(item, 2),
}
NUMBER_LISTS = [[1, 2], [2, 1], None, [3, 4], [1, 2]]
TEXT_LISTS = [["a", "b"], ["b", "a"], None, ["c", "d"], ["a", "b"]]


def encoded(kind, plain, values):
    """Values as a dictionary or run-end encoded."""
    column = pa.array(values, plain)
    return column.dictionary_encode() if kind == "dictionary" else pc.run_end_encode(column)


def of(kind, values):
    """A column of values as the type of this name."""
    if kind in OTHERS:
        return pa.array(values, OTHERS[kind][0])
    if kind == "null":
        return pa.nulls(len(values))
    outer, _, inner = kind.partition(" of ")
    if outer in ("dictionary", "run_end"):
        return encoded(outer, getattr(pa, inner)(), values)
    if outer in LISTS:
        flat = [cell for row in values for cell in (row or ([None, None] if outer == "fixed_size_list" else []))]
        item = of(inner, flat)
        if outer == "fixed_size_list":
            # A null has elements, too.
            mask = pa.array([row is None for row in values], pa.bool_())
            return pa.FixedSizeListArray.from_arrays(item, 2, mask=mask) if len(values) else pa.array([], pa.list_(item.type, 2))
        ends = np.cumsum([0, *(len(row or []) for row in values)])
        mask = pa.array([row is None for row in values], pa.bool_())
        if outer in ("list", "large_list"):
            make = pa.ListArray if outer == "list" else pa.LargeListArray
            return make.from_arrays(pa.array(ends, pa.int32() if outer == "list" else pa.int64()), item, mask=mask)
        make, width = (pa.ListViewArray, pa.int32()) if outer == "list_view" else (pa.LargeListViewArray, pa.int64())
        return make.from_arrays(pa.array(ends[:-1], width), pa.array(np.diff(ends), width), item, mask=mask)
    return pa.array(values, getattr(pa, kind)())


SCALARS_IN = {"whole": {"items", "weights", "carried"}, "text": {"items", "texts", "names", "carried"}}
SETS = {"sets", "transactions", "terms", "carried"}
# The rows of the table: a name, the types, their values, and what they are accepted as.
ROWS = [
    ("whole numbers of 8 to 64 bits", WHOLE, [3, 5, None, 3], SCALARS_IN["whole"]),
    (
        "whole numbers as a dictionary or run-end encoded",
        ["dictionary of int64", "dictionary of uint8", "run_end of int64", "run_end of uint16"],
        [3, 5, None, 3],
        SCALARS_IN["whole"],
    ),
    ("texts (string, large, view)", TEXTS, ["c", "e", None, "c"], SCALARS_IN["text"]),
    (
        "texts as a dictionary or run-end encoded",
        ["dictionary of string", "dictionary of large_string", "run_end of string"],
        ["c", "e", None, "c"],
        SCALARS_IN["text"],
    ),
    *((f"other values ({kind})", [kind], values, {"carried"}) for kind, (_, values) in OTHERS.items()),
    (
        "lists of whole numbers",
        [f"{outer} of {inner}" for outer in LISTS for inner in ("int64", "uint32", "uint8")],
        NUMBER_LISTS,
        {*SETS, "vectors"},
    ),
    (
        "lists of whole numbers as a dictionary or run-end encoded",
        ["list of dictionary of int64", "large_list of dictionary of uint8", "list of run_end of int64"],
        NUMBER_LISTS,
        SETS,
    ),
    (
        "lists of texts, in any encoding",
        [
            *(f"{outer} of {inner}" for outer in LISTS for inner in TEXTS),
            *(f"{outer} of dictionary of string" for outer in LISTS),
            "list of run_end of string",
        ],
        TEXT_LISTS,
        SETS,
    ),
    (
        "lists of floats",
        [f"{outer} of {inner}" for outer in LISTS for inner in ("float64", "float32")] + ["list of float16"],
        [[np.float16(x) for x in row] if row else row for row in NUMBER_LISTS],
        {"vectors", "carried"},
    ),
    (
        "lists of decimals",
        ["list of decimal128", "fixed_size_list of decimal128"],
        [[decimal.Decimal(x) for x in row] if row else row for row in NUMBER_LISTS],
        {"vectors", "carried"},
    ),
    ("lists of booleans", ["list of bool"], [[True, False], [False], None, []], {"carried"}),
    ("lists of lists", ["list of list of int64"], [[[1]], [], None, [[2], [3]]], {"carried"}),
]
ENTRIES = ["items", "weights", "texts", "names", "sets", "transactions", "terms", "vectors", "carried"]
CELLS = [(name, kind, values, entry, entry in accepted) for name, kinds, values, accepted in ROWS for kind in kinds for entry in ENTRIES]


def variants(kind, values, has_nulls=True):
    """The column in the ways in which data comes: (name, data, the name of its column, values)."""
    if not has_nulls:
        values = [value for value in values if value is not None]
    column = of(kind, values)
    longer = of(kind, [values[0], *values, values[-1]])
    # A column of structs is a table.
    if kind != "struct":
        yield "array", column, None, values
        yield "slice", longer.slice(1, len(values)), None, values
        yield "chunks", pa.chunked_array([column.slice(0, 1), column.slice(1, 0), column.slice(1)]), None, values
        yield "empty", column.slice(0, 0), None, []
    yield "slice of a table", pa.table({"x": longer}).slice(1, len(values)), None, values
    yield "table", pa.table({"x": column}), None, values
    yield "one of several", pa.table({"other": pa.nulls(len(values)), "x": column}), "x", values
    yield "empty table", pa.table({"x": column.slice(0, 0)}), None, []
    if has_nulls:
        mask = [row == 0 for row in range(len(values))]
        masked = [None if is_null else value for is_null, value in zip(mask, values)]
        rows = pa.StructArray.from_arrays([column, column], ["x", "z"], mask=pa.array(mask))
        yield "struct with nulls", rows, "x", masked
        yield "struct with nulls in chunks", pa.chunked_array([rows.slice(0, 2), rows.slice(2)]), "x", masked


def plain(cell):
    """A value of an item as Python compares it."""
    return int(cell) if isinstance(cell, (np.integer, int)) and not isinstance(cell, bool) else cell


def items(data, column, values):
    found = trommel.top(data, n=None, column=column).to_pylist()
    assert sorted((row["item"], row["count"]) for row in found) == sorted(oracle.top(values, None))
    counted = trommel.FrequentItems()
    counted.observe(data, column=column)
    assert counted.observed == sum(value is not None for value in values)


def weights(data, column, values):
    table = trommel.table(data)
    rows = {"i": list(range(len(values))), "w": table.select([column or table.column_names[0]])}
    found = trommel.top(rows, n=None, column="i", weight="w").to_pylist()
    assert {row["item"]: row["count"] for row in found} == {n: w for n, w in enumerate(values) if w is not None}
    counted = trommel.FrequentItems()
    counted.observe(list(range(len(values))), rows["w"])
    assert counted.observed == sum(w for w in values if w is not None)


def texts(data, column, values):
    assert trommel.tokenize(data, "whitespace", column=column)["item"] == [v for v in values if v is not None]
    pairs = oracle.pairs_of(trommel.near_duplicates(data, 1, "whitespace", column=column), "overlap")
    assert pairs == oracle.set_pairs([[] if v is None else [v] for v in values], 1)


def names(data, column, values):
    table = trommel.table(data)
    rows = {"t": [["a"]] * len(values), "n": table.select([column or table.column_names[0]])}
    with trommel.ConjunctiveIndex(column="t", name="n") as index:
        index.add({"t": [["a"]], "n": ["before"]})
        index.add(rows)
        assert index.query(["a"]) == ["before", *values]


def sets(data, column, values):
    found = trommel.set_similarity_join(data, threshold="2/3", column=column)
    assert oracle.pairs_of(found, "overlap") == oracle.set_pairs(values, 2 / 3)
    with trommel.SetJoinStream("2/3", window={"sets": 100}, column=column) as stream:
        pairs = stream.add(data).to_pylist() + stream.finish().to_pylist()
    assert {(row["left"], row["right"]) for row in pairs} == set(oracle.set_pairs(values, 2 / 3))


def transactions(data, column, values):
    found = trommel.frequent_pairs(data, 1, column=column, measures=["lift"]).to_pylist()
    pairs = {frozenset((row["left"], row["right"])): row["support"] for row in found}
    baskets = [basket for basket in values if basket is not None]
    assert pairs == oracle.item_pairs(baskets, 1)
    for row in found:
        one, other = (sum(row[side] in basket for basket in baskets) for side in ("left", "right"))
        assert row["lift"] == pytest.approx(row["support"] * len(baskets) / (one * other))


def terms(data, column, values):
    with trommel.ConjunctiveIndex(column=column) as index:
        index.add(data)
        every = sorted({term for row in values for term in row or []})
        asked = [[term] for term in every] + [every[:2]] if every else [[]]
        expected = [[n for n, row in enumerate(values) if set(terms) <= set(row or []) and terms] for terms in asked]
        if every:
            assert index.query_batch(asked)["documents"] == expected
            assert index.query_batch(data if column is None else pa.table({"x": of_rows(data, column)}))["documents"] == [
                [n for n, other in enumerate(values) if row and set(row) <= set(other or [])] for row in values
            ]
        assert len(index) == len(values)


def of_rows(data, column):
    """One column of data of several."""
    return pa.table(trommel.table(data).select([column]))[column]


def vectors(data, column, values):
    found = trommel.epsilon_join(data, epsilon=1.5, column=column, on_error="skip")
    numbers = [row if row is None else [float(x) for x in row] for row in values]
    kept = [row for row in numbers if row is not None]
    places = [n for n, row in enumerate(numbers) if row is not None]
    expected = {(places[i], places[j]): d for (i, j), d in oracle.near(kept, 1.5).items()}
    assert oracle.pairs_of(found, "distance") == pytest.approx(expected)
    if len(kept) < len(values):
        with pytest.raises(trommel.PipelineError, match=f"row {numbers.index(None) + 1} of the input: .* null"):
            trommel.epsilon_join(data, epsilon=1.5, column=column)


def carried(data, column, values):
    table = trommel.table(data)
    name = column or table.column_names[0]
    rows = {"s": [[1]] * len(values), "x": table.select([name])}
    found = pa.table(trommel.set_similarity_join(rows, threshold=1, column="s", carry=["x"]))
    expected = pa.table(table)[name].to_pylist()
    for side in ("left", "right"):
        at = found[side].to_pylist()
        assert found[f"{side}_x"].to_pylist() == [expected[row] for row in at]
    assert found.num_rows == len(values) * (len(values) - 1) // 2


CALLS = {f.__name__: f for f in (items, weights, texts, names, sets, transactions, terms, vectors, carried)}
EXPECTED = {
    "items": "whole numbers of up to 64 bits or texts",
    "weights": "whole numbers of up to 64 bits",
    "texts": "texts",
    "names": "texts",
    "sets": "lists of whole numbers or of texts",
    "transactions": "lists of whole numbers or of texts",
    "terms": "lists of whole numbers or of texts",
    "vectors": "lists of numbers",
}


@pytest.mark.parametrize(("name", "kind", "values", "entry", "is_accepted"), CELLS, ids=lambda v: v if isinstance(v, str) else "")
def test_a_cell(name, kind, values, entry, is_accepted):
    for variant, data, column, expected in variants(kind, values, has_nulls=entry != "names"):
        if is_accepted:
            CALLS[entry](data, column, expected)
            continue
        with pytest.raises(ValueError) as raised:
            CALLS[entry](data, column, expected)
        assert f"; expected {EXPECTED[entry]}" in str(raised.value), (variant, raised.value)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", ["null", *(f"{outer} of null" for outer in LISTS)])
def test_data_without_a_type_is_nulls_or_empty_lists(kind, entry):
    is_list = kind != "null"
    accepted = entry == "carried" or (is_list == (entry in ("sets", "transactions", "terms", "vectors")) or not is_list)
    values = [None, None] if kind == "null" or entry == "vectors" or "fixed" in kind else [[], None]
    column = of(kind, values)
    for data in (column, pa.chunked_array([column, column.slice(0, 0)]), pa.table({"x": column}), column.slice(0, 0)):
        expected = values[: len(data)] if not isinstance(data, pa.Table) else values
        if entry == "names" and len(data):
            with pytest.raises(ValueError, match="invalid name in row 0: it is null" if not is_list else "expected texts"):
                CALLS[entry](data, None, expected)
        elif accepted:
            CALLS[entry](data, None, expected)
        else:
            with pytest.raises(ValueError, match="; expected "):
                CALLS[entry](data, None, expected)


@pytest.mark.parametrize("entry", ["sets", "transactions", "terms"])
@pytest.mark.parametrize("kind", ["list of int64", "list of string", "large_list of dictionary of string", "list of null"])
def test_a_null_in_a_list_is_refused_and_nothing_is_lost(kind, entry):
    good = {"string": [["a"], ["a"]], "null": [[], []]}.get(kind.rpartition(" ")[2], [[1], [1]])
    bad = [*good, [*(good[0] or [None]), None]]
    what = {"sets": "set in row 2: a token", "transactions": "transaction in row 2: an item", "terms": "document in row 2: a term"}
    with pytest.raises(ValueError, match=f"invalid {what[entry]} is null"):
        CALLS[entry](of(kind, bad), None, bad)
    # Data that is refused leaves a stream and an index as they were, also in the middle of much data.
    many = good * 10_000
    with trommel.SetJoinStream(1, window={"sets": 3}) as stream, trommel.ConjunctiveIndex() as index:
        stream.add(of(kind, good))
        index.add(of(kind, good))
        with pytest.raises(ValueError, match="row 20000: a token is null"):
            stream.add(of(kind, [*many, bad[-1]]))
        with pytest.raises(ValueError, match="row 20000: a term is null"):
            index.add(of(kind, [*many, bad[-1]]))
        with pytest.raises(ValueError, match="row 0: a term is null"):
            index.query_batch(of(kind, [bad[-1]]))
        assert len(stream) == len(index) == 2
        stream.add(of(kind, good))
        index.add(of(kind, good))
        assert index.query(good[0]) == ([0, 1, 2, 3] if good[0] else [])
        stream.finish()
        assert len(stream) == 4


def test_the_table_is_in_the_documentation():
    names = {"items": "items", "weights": "weights", "texts": "texts", "names": "names", "sets": "sets, transactions, terms"}
    entries = [*names, "vectors", "carried"]
    lines = ["| Arrow type | " + " | ".join(names.get(entry, entry) for entry in entries) + " |"]
    lines.append("|---|" + "---|" * len(entries))
    for name, _, _, accepted in ROWS:
        if name.startswith("other values") and "bool" not in name:
            continue
        name = "floats, decimals, booleans, bytes, dates, times, structs, maps" if name.startswith("other") else name
        lines.append(f"| {name} | " + " | ".join("yes" if entry in accepted else "" for entry in entries) + " |")
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
    assert "\n".join(lines) in page, "\n".join(lines)
