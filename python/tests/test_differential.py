"""Random data of every accepted form against brute force: operators, types, nulls, chunks, parameters.

`TROMMEL_CASES` sets the number of cases, `TROMMEL_SEED` the first of their seeds. A case that fails
is repeated by ``TROMMEL_CASES=1 TROMMEL_SEED=<its number>``.
"""

import os
import random
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import oracle
import trommel

CASES = int(os.environ.get("TROMMEL_CASES", "500"))
FIRST = int(os.environ.get("TROMMEL_SEED", "0"))

WHOLE = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
FLOATS = [pa.float32(), pa.float64()]


def encoded(rng, values, plain):
    """A column of values, sometimes as a dictionary or run-end encoded."""
    column = pa.array(values, plain)
    way = rng.choice(["plain", "plain", "dictionary", "run_end"])
    if plain in FLOATS or way == "plain" or (plain == pa.string_view()):
        return column
    if way == "dictionary":
        return column.dictionary_encode()
    return pc.run_end_encode(column) if len(column) else column


def unencoded(rng, values, plain):
    return pa.array(values, plain)


def lists(rng, rows, plain, encode=encoded):
    """A column of lists of any kind; a null row may have elements."""
    kind = rng.choice(["list", "large_list", "list_view", "large_list_view"])
    hidden = [row if row is not None else rng.choice([[], rng.choice([r for r in rows if r is not None] or [[]])]) for row in rows]
    ends = np.cumsum([0, *map(len, hidden)])
    values = encode(rng, [cell for row in hidden for cell in row], plain)
    mask = pa.array([row is None for row in rows], pa.bool_())
    if kind in ("list", "large_list"):
        make, width = (pa.ListArray, pa.int32()) if kind == "list" else (pa.LargeListArray, pa.int64())
        return make.from_arrays(pa.array(ends, width), values, mask=mask)
    make, width = (pa.ListViewArray, pa.int32()) if kind == "list_view" else (pa.LargeListViewArray, pa.int64())
    return make.from_arrays(pa.array(ends[:-1], width), pa.array(np.diff(ends), width), values, mask=mask)


def fixed(rng, rows, size, plain):
    flat = [cell for row in rows for cell in (row if row is not None else [7] * size)]
    mask = pa.array([row is None for row in rows], pa.bool_())
    return pa.FixedSizeListArray.from_arrays(pa.array(flat, plain), size, mask=mask)


def shaped(rng, make, values):
    """The data and the name of its column: sliced, cut into chunks, in a table, or of another library."""
    before, after = ([values[0]] * rng.randint(0, 3) if values else [] for _ in range(2))
    column = make([*before, *values, *after]).slice(len(before), len(values))
    way = rng.choice(["array", "chunks", "table", "struct", "stream", "dict", "polars", "pandas", "list"])
    cut = sorted(rng.randint(0, len(values)) for _ in range(rng.randint(0, 3)))
    cuts = list(zip([0, *cut], [*cut, len(values)]))
    chunks = [column.slice(begin, end - begin) for begin, end in cuts]
    if way == "chunks":
        return pa.chunked_array(chunks, column.type), None
    if way == "table":
        other = pa.nulls(len(values))
        return pa.table({"o": other, "x": pa.chunked_array(chunks, column.type)}), "x"
    if way == "struct":
        # The values under a null of the struct are no nulls themselves.
        mask = pa.array([value is None for value in values], pa.bool_())
        full = [next((v for v in values if v is not None), None) if value is None else value for value in values]
        rows = pa.StructArray.from_arrays([make(full)], ["x"], mask=mask)
        return rng.choice([rows, pa.chunked_array([rows.slice(b, e - b) for b, e in cuts], rows.type)]), "x"
    if way == "stream":
        batches = [pa.record_batch({"x": chunk}) for chunk in chunks]
        return pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches)), None
    if way == "dict":
        return {"x": column, "o": list(range(len(values)))}, "x"
    plain = column.type in WHOLE or column.type in TEXTS
    if way == "polars" and (plain or pa.types.is_list(column.type) and column.type.value_type in (*WHOLE, *TEXTS)):
        return pl.DataFrame({"n": pl.Series([None] * len(values), dtype=pl.Null), "x": pl.from_arrow(column)}), "x"
    if way == "pandas" and column.type in TEXTS and any(values):
        # Without a text, pandas has a column of floats.
        return pd.DataFrame({"x": values, "n": None}, index=range(5, 5 + len(values))), "x"
    if way == "list":
        return values, None
    return column, None


def some(rng, most, share, make):
    """Values of which this share is null."""
    return [None if rng.random() < share else make() for _ in range(rng.randint(0, most))]


def fraction(rng, most):
    """An exact fraction, and how it is given."""
    exact = Fraction(rng.randint(1, most), most)
    ways = [exact, f"{exact.numerator}/{exact.denominator}", exact.numerator / exact.denominator]
    if Fraction(str(round(float(exact), 3))) == exact:
        ways += [str(float(exact)), np.float64(float(exact)), f"{float(100 * exact):.1f}%"]
    return exact, rng.choice(ways)


def alphabet(rng):
    """Whole numbers or texts, and a type of them."""
    size = rng.choice([3, 12, 100])
    if rng.random() < 0.5:
        return list(range(size)), rng.choice(WHOLE)
    return [rng.choice(["", "a", "bc", "x" * 20]) + str(n) for n in range(size)], rng.choice(TEXTS)


def check_items(rng):
    known, plain = alphabet(rng)
    items = some(rng, 300, rng.choice([0, 0.2]), lambda: rng.choice(known))
    data, column = shaped(rng, lambda values: encoded(rng, values, plain), items)
    exact, given = fraction(rng, rng.choice([7, 10, 100]))
    counted = oracle.top(items, None)
    total = sum(count for _, count in counted)
    n = rng.choice([None, 1, 5])
    found = trommel.top(data, n=n, column=column, threshold=given, counters=rng.choice([100, 1000])).to_pylist()
    expected = [(item, count) for item, count in counted if count >= exact * total]
    pairs = [(row["item"], row["count"]) for row in found]
    assert [count for _, count in pairs] == [count for _, count in expected][:n]
    assert set(pairs) <= set(expected) and all(row["error"] == 0 for row in found)


def check_weights(rng):
    known, plain = alphabet(rng)
    rows = rng.randint(0, 200)
    items = [rng.choice([None, *known]) for _ in range(rows)]
    weights = [None if rng.random() < 0.1 else rng.randint(0, 100) for _ in range(rows)]
    expected = {}
    for item, weight in zip(items, weights):
        if item is not None and weight is not None:
            expected[item] = expected.get(item, 0) + weight
    data = {"i": encoded(rng, items, plain), "w": encoded(rng, weights, rng.choice(WHOLE[:1] + WHOLE[2:]))}
    found = trommel.top(data, n=None, column="i", weight="w", counters=1000).to_pylist()
    assert {row["item"]: row["count"] for row in found if row["count"]} == {i: c for i, c in expected.items() if c}
    counted = trommel.FrequentItems(1000)
    for begin in range(0, rows, 70):
        counted.observe(data["i"][begin : begin + 70], data["w"][begin : begin + 70])
    assert counted.observed == sum(expected.values())


def random_sets(rng, known, most):
    size = rng.choice([3, 8])
    return some(rng, most, rng.choice([0, 0.1]), lambda: [rng.choice(known) for _ in range(rng.randint(0, size))])


def check_sets(rng):
    known, plain = alphabet(rng)
    similarity = rng.choice(["jaccard", "cosine", "dice"])
    exact, given = fraction(rng, rng.choice([3, 5, 10]))
    make = lambda values: lists(rng, values, plain)
    left = random_sets(rng, known, 60)
    data, column = shaped(rng, make, left)
    ask = {"threshold": given, "similarity": similarity, "column": column}
    way = rng.choice(["join", "count", "two", "deduplicate", "stream"])
    expected = oracle.set_pairs(left, exact, similarity)
    if way == "join":
        assert oracle.pairs_of(trommel.set_similarity_join(data, **ask), "overlap") == expected
    elif way == "count":
        assert trommel.set_similarity_join(data, output="count", **ask)["count"] == [len(expected)]
    elif way == "two":
        right = random_sets(rng, known, 40)
        data, other = {"x": make(left)}, {"x": lists(rng, right, plain)}
        found = trommel.set_similarity_join(data, other, **{**ask, "column": "x"})
        assert oracle.pairs_of(found, "overlap") == oracle.set_pairs_between(
            [s or [] for s in left], [s or [] for s in right], exact, similarity
        )
    elif way == "deduplicate":
        duplicates = {right for _, right in expected}
        found = trommel.set_similarity_join(data, mode="deduplicate", **ask)
        assert found["id"] == [row for row in range(len(left)) if row not in duplicates]
    else:
        window = rng.randint(2, 30)
        with trommel.SetJoinStream(given, window={"sets": window}, similarity=similarity) as stream:
            rows = []
            for begin in range(0, len(left), 17):
                part = left[begin : begin + 17]
                rows += stream.add(rng.choice([part, lists(rng, part, plain)])).to_pylist()
            rows += stream.finish().to_pylist() if left else []
        # A null is no set of a window, and a set without tokens is one.
        places = [row for row, tokens in enumerate(left) if tokens is not None]
        order = {row: n for n, row in enumerate(places)}
        within = {p: o for p, o in expected.items() if order[p[1]] - order[p[0]] < window}
        assert {(row["left"], row["right"]): row["overlap"] for row in rows} == within


def check_pairs(rng):
    known, plain = alphabet(rng)
    baskets = random_sets(rng, known, 120)
    data, column = shaped(rng, lambda values: lists(rng, values, plain), baskets)
    kept = [basket for basket in baskets if basket is not None]
    itemset = rng.choice([2, 2, 3])
    if rng.random() < 0.5:
        least = given = rng.randint(1, 5)
    else:
        exact, given = fraction(rng, rng.choice([10, max(len(kept), 1)]))
        given = rng.choice([given, exact])
        least = max(1, -(-exact * len(kept) // 1))
    found = trommel.frequent_pairs(data, given, column=column, itemset=itemset, measures=["confidence", "lift"] if itemset == 2 else []).to_pylist()
    names = ["left", "right", "third"][:itemset]
    supports = {frozenset(row[name] for name in names): row["support"] for row in found}
    assert supports == oracle.item_sets(kept, least, itemset) and len(supports) == len(found)
    for row in found if itemset == 2 else []:
        one, other = (sum(row[side] in basket for basket in kept) for side in ("left", "right"))
        assert row["left_confidence"] == pytest.approx(row["support"] / one)
        assert row["right_confidence"] == pytest.approx(row["support"] / other)
        assert row["lift"] == pytest.approx(row["support"] * len(kept) / (one * other))


def check_documents(rng):
    known, plain = alphabet(rng)
    documents = random_sets(rng, known, 80)
    queries = [[rng.choice(known) for _ in range(rng.randint(0, 3))] for _ in range(20)]
    taken = 0
    with trommel.ConjunctiveIndex() as index:
        for begin in range(0, len(documents), 31):
            part = documents[begin : begin + 31]
            index.add(rng.choice([part, lists(rng, part, plain)]))
            taken += len(part)
            expected = [oracle.documents_with(documents[:taken], query) for query in queries]
            asked = rng.choice([queries, lists(rng, queries, plain)])
            assert index.query_batch(asked)["documents"] == expected
        assert len(index) == len(documents)


def check_vectors(rng):
    dims = rng.choice([1, 2, 3, 17])
    plain = rng.choice(FLOATS + [pa.int16(), pa.int64()])
    cell = lambda: rng.randint(0, 6) if plain not in FLOATS else rng.choice([rng.randint(0, 12) / 4, rng.random()])
    rows = some(rng, 60, rng.choice([0, 0.1]), lambda: [cell() for _ in range(dims)])
    short = [row if row is None else [float(np.float32(x)) for x in row] for row in rows]
    make = lambda values: fixed(rng, values, dims, plain) if rng.random() < 0.5 else lists(rng, values, plain, unencoded)
    data, column = shaped(rng, make, rows)
    if isinstance(data, list) and not any(data):
        data = make(rows)
    places = [place for place, row in enumerate(short) if row is not None]
    epsilon = rng.choice([0, 0.25, 0.5, 1, 1.5, dims**0.5])
    if len(places) > 1 and rng.random() < 0.5:
        # The distance of a pair, which joins by it.
        epsilon = oracle.distance(short[places[0]], short[places[-1]])
    near = oracle.near([short[place] for place in places], epsilon)
    expected = {(places[i], places[j]): distance for (i, j), distance in near.items()}
    ask = {"epsilon": epsilon, "column": column, "on_error": "skip", "algorithm": rng.choice([None, "nested_loop", "directory"])}
    way = rng.choice(["pairs", "count", "partners", "first", "stream", "fail"])
    if way == "pairs":
        assert oracle.pairs_of(trommel.epsilon_join(data, **ask), "distance") == expected
    elif way == "count":
        assert trommel.epsilon_join(data, output="count", **ask)["count"] == [len(expected)]
    elif way == "partners":
        found = trommel.epsilon_join(data, output="partners", **ask).to_pylist()
        partners = {place: sum(place in pair for pair in expected) for place in places}
        assert [(row["id"], row["partners"]) for row in found] == list(partners.items())
    elif way == "first":
        later = {right for _, right in expected}
        found = trommel.epsilon_join(data, output="first", **ask)
        assert found["id"] == [place for place in places if place not in later]
    elif way == "fail" and len(places) < len(rows):
        with pytest.raises(trommel.PipelineError, match=f"row {short.index(None) + 1} of the input: "):
            trommel.epsilon_join(data, **{**ask, "on_error": "fail"})
    elif way == "stream" and places:
        window = rng.randint(1, 40)
        with trommel.EpsilonStream(epsilon, window={"vectors": window}, on_error="skip") as stream:
            found = []
            for begin in range(0, len(rows), 13):
                found += stream.add(make(rows[begin : begin + 13])).to_pylist()
            found += stream.finish().to_pylist()
        order = {place: n for n, place in enumerate(places)}
        within = {p: d for p, d in expected.items() if order[p[1]] - order[p[0]] < window}
        assert {(row["left"], row["right"]): row["distance"] for row in found} == within


def check_texts(rng):
    words = ["alpha", "beta", "gamma", "delta", "e", "ζ", "日本"]
    texts = some(rng, 60, rng.choice([0, 0.1]), lambda: " ".join(rng.choice(words) for _ in range(rng.randint(0, 5))))
    plain = rng.choice(TEXTS)
    data, column = shaped(rng, lambda values: encoded(rng, values, plain), texts)
    tokens = [(text or "").split() for text in texts]
    exact, given = fraction(rng, rng.choice([3, 5, 10]))
    way = rng.choice(["items", "text_sets", "near", "two"])
    if way == "items":
        assert trommel.tokenize(data, "whitespace", column=column)["item"] == [t for row in tokens for t in row]
    elif way == "text_sets":
        found = trommel.tokenize(data, "whitespace", into="text_sets", column=column)["set"]
        assert [set(row) for row in found] == [set(row) for row in tokens]
    elif way == "near":
        found = trommel.near_duplicates(data, given, "whitespace", column=column)
        assert oracle.pairs_of(found, "overlap") == oracle.set_pairs(tokens, exact)
    else:
        other = [" ".join(rng.choice(words) for _ in range(rng.randint(0, 5))) for _ in range(20)]
        found = trommel.near_duplicates({"x": texts}, given, "whitespace", right={"x": other}, column="x")
        between = oracle.set_pairs_between(tokens, [text.split() for text in other], exact)
        assert oracle.pairs_of(found, "overlap") == between


CHECKS = [check_items, check_weights, check_sets, check_sets, check_pairs, check_documents, check_vectors, check_vectors, check_texts]


@pytest.mark.parametrize("part", range(10))
def test_random_data_gives_the_answers_of_brute_force(part):
    for case in range(FIRST, FIRST + CASES):
        if case % 10 == part:
            rng = random.Random(case)
            check = rng.choice(CHECKS)
            try:
                check(rng)
            except BaseException as error:
                error.add_note(f"case {case}: {check.__name__}") if hasattr(error, "add_note") else None
                raise
