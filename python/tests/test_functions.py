"""The functions against naive answers, and their errors."""

import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import oracle
import trommel

RNG = random.Random(18)


def random_sets(count, alphabet, most):
    return [RNG.sample(range(alphabet), RNG.randint(0, most)) for _ in range(count)]


def test_top_is_exact_with_enough_counters():
    items = [RNG.choice("abcdefgh") * RNG.randint(1, 3) for _ in range(5_000)] + [None]
    for n in (1, 3, 100):
        found = trommel.top(items, n=n).to_pylist()
        assert [(row["item"], row["count"]) for row in found] == oracle.top(items, n)
        assert [row["rank"] for row in found] == list(range(1, len(found) + 1))
        assert all(row["error"] == 0 for row in found)


def test_top_keeps_its_bounds_with_few_counters():
    items = [min(int(RNG.paretovariate(0.8)), 10**6) for _ in range(20_000)]
    true = dict(oracle.top(items, None))
    found = trommel.top(np.array(items, dtype="u4"), n=None, counters=50).to_pylist()
    for row in found:
        assert row["count"] - row["error"] <= true.get(row["item"], 0) <= row["count"]
        assert row["error"] <= len(items) / 50
    named = {row["item"] for row in found}
    assert all(item in named for item, count in true.items() if count > len(items) / 50)


def test_top_counts_weights():
    data = {"word": ["a", "b", "a", None], "times": [3, 10, 4, 99]}
    found = trommel.top(data, column="word", weight="times").to_pylist()
    assert [(row["item"], row["count"]) for row in found] == [("b", 10), ("a", 7)]


def test_top_by_a_share_that_is_met_exactly():
    items = ["a"] * 7 + ["b"] * 93
    for share in (0.07, "7/100", Fraction(7, 100), np.float64(0.07)):
        assert len(trommel.top(items, threshold=share)) == 2
    assert len(trommel.top(items, threshold="71/1000")) == 1


def test_top_in_windows_and_with_decay():
    found = trommel.top(["a", "a", "b", "b"], window={"items": 2}).to_pylist()
    assert [(row["window_start"], row["item"], row["count"]) for row in found] == [(0, "a", 2), (2, "b", 2)]
    faded = trommel.top(["a"] * 10, decay={"half_life_items": 5}).to_pylist()
    assert 0 < faded[0]["count"] < 10


@pytest.mark.parametrize("similarity", ["jaccard", "dice", "cosine"])
@pytest.mark.parametrize("threshold", [Fraction(1, 3), Fraction(1, 2), Fraction(4, 5), Fraction(1)])
def test_set_join_finds_exactly_the_similar_pairs(similarity, threshold):
    sets = random_sets(120, 12, 8)
    found = trommel.set_similarity_join(sets, threshold=threshold, similarity=similarity)
    assert oracle.pairs_of(found, "overlap") == oracle.set_pairs(sets, threshold, similarity)
    count = trommel.set_similarity_join(
        sets, threshold=str(threshold), similarity=similarity, output="count"
    )
    assert count["count"] == [len(found)]


def test_set_join_by_overlap_and_of_two_inputs():
    left, right = random_sets(60, 12, 8), random_sets(50, 12, 8)
    found = trommel.set_similarity_join(left, threshold=3, similarity="overlap")
    assert oracle.pairs_of(found, "overlap") == oracle.set_pairs(left, 3, "overlap")
    found = trommel.set_similarity_join(left, right, threshold="2/5")
    expected = oracle.set_pairs_between(left, right, Fraction(2, 5))
    assert oracle.pairs_of(found, "overlap") == expected
    texts = [[f"t{token}" for token in tokens] for tokens in left]
    other = [[f"t{token}" for token in tokens] for tokens in right]
    assert oracle.pairs_of(trommel.set_similarity_join(texts, other, threshold="2/5"), "overlap") == expected


def test_a_threshold_is_taken_exactly():
    # Four of five tokens: 4/5 and the float 0.8 are met, which floating point may miss.
    sets = [[1, 2, 3, 4, 5], [1, 2, 3, 4]]
    for threshold in (0.8, "0.8", "4/5", Fraction(4, 5), np.float64(0.8)):
        assert len(trommel.set_similarity_join(sets, threshold=threshold)) == 1
    assert len(trommel.set_similarity_join(sets, threshold="80000001/100000000")) == 0


def test_columns_are_carried():
    data = {"set": [[1, 2], [2, 1], [3]], "id": [10, 11, 12], "name": ["x", "y", "z"]}
    found = trommel.set_similarity_join(data, threshold=1, carry=["name", "id"]).to_pylist()
    assert found == [
        {"left": 0, "right": 1, "overlap": 2, "similarity": 1.0,
         "left_name": "x", "left_id": 10, "right_name": "y", "right_id": 11}
    ]  # fmt: skip
    kept = trommel.set_similarity_join(data, threshold=1, carry=["name"], mode="deduplicate")
    assert kept["name"] == ["x", "z"]


def test_near_duplicates_of_texts():
    words = "the river runs through gravel and heavy pieces stay behind".split()
    texts = [" ".join(RNG.sample(words, RNG.randint(2, 8))) for _ in range(80)]
    found = trommel.near_duplicates(texts, "2/3")
    expected = oracle.set_pairs([text.split() for text in texts], Fraction(2, 3))
    assert oracle.pairs_of(found, "overlap") == expected
    grams = [{text[i : i + 3] for i in range(len(text) - 2)} for text in texts]
    found = trommel.near_duplicates(texts, "2/3", by="qgrams")
    assert oracle.pairs_of(found, "overlap") == oracle.set_pairs(grams, Fraction(2, 3))
    data = {"text": ["to be", "to be", "no"], "path": ["a", "b", "c"]}
    (pair,) = trommel.near_duplicates(data, 1, carry=["path"]).to_pylist()
    assert (pair["left_path"], pair["right_path"]) == ("a", "b")
    assert trommel.near_duplicates(data, 1, carry=["path"], mode="deduplicate")["path"] == ["a", "c"]


def components(pairs, ids):
    """The ids that are connected with each id, by marking neighbours."""
    near = {id: {id} for id in ids}
    for left, right in pairs:
        near.setdefault(left, {left}).add(right)
        near.setdefault(right, {right}).add(left)
    found = {}
    for id in near:
        reached, open = set(), [id]
        while open:
            id = open.pop()
            if id not in reached:
                reached.add(id)
                open.extend(near[id])
        for id in reached:
            found[id] = reached
    return found


def test_clusters_of_pairs_and_of_rows():
    ids = [f"row {n}" for n in range(60)]
    pairs = [(RNG.choice(ids), RNG.choice(ids)) for _ in range(45)]
    table = {"left": [left for left, _ in pairs], "right": [right for _, right in pairs]}
    joined = components(pairs, [])
    found = trommel.clusters(table, keep="last").to_pylist()
    assert {row["id"]: row["cluster"] for row in found} == {id: min(joined[id]) for id in joined}
    assert all(row["size"] == len(joined[row["id"]]) for row in found)
    assert all(row["kept"] == (row["id"] == max(joined[row["id"]])) for row in found)
    values = RNG.sample(range(1000), 60)
    rows = {"value": values, "name": ids}
    joined = components(pairs, ids)
    found = trommel.clusters(table, rows, id_="name", keep="largest", by="value + 1").to_pylist()
    assert [(row["value"], row["name"]) for row in found] == list(zip(values, ids))
    assert [row["cluster"] for row in found] == [min(joined[id]) for id in ids]
    value = dict(zip(ids, values))
    assert [row["kept"] for row in found] == [value[id] == max(value[n] for n in joined[id]) for id in ids]


@pytest.mark.parametrize("mode", ["left", "inner", "anti", "semi"])
@pytest.mark.parametrize("duplicates", ["first", "last", "all"])
def test_lookup_finds_the_rows_of_a_dict(mode, duplicates):
    hosts = [RNG.choice([None, *"abcdefgh"]) for _ in range(500)]
    names = [RNG.choice([None, *"abcdxyz"]) for _ in range(12)]
    rows = {}
    for place, name in enumerate(names):
        if name is not None:
            rows.setdefault(name, []).append(place)
    chosen = {"first": lambda found: found[:1], "last": lambda found: found[-1:], "all": list}[duplicates]
    expected = []
    for n, host in enumerate(hosts):
        places = chosen(rows.get(host, []))
        if mode in ("left", "inner"):
            places = places or ([None] if mode == "left" else [])
            expected.extend({"host": host, "n": n, "place": place} for place in places)
        elif (mode == "anti") == (not places):
            expected.append({"host": host, "n": n})
    stream = {"host": hosts, "n": list(range(500))}
    table = {"name": names, "at": list(range(12))}
    columns = ["at as place"] if mode in ("left", "inner") else None
    found = trommel.lookup(
        stream, table, ["host"], table_key="name", mode=mode, columns=columns, duplicates=duplicates
    )
    assert found.to_pylist() == expected


def test_near_duplicates_keep_the_longest_text():
    texts = ["a b c d", "a b c d e", "x y", "b c d e a f", "x y z", "alone"]
    data = {"id": [7, 7, 8, 9, 9, 1], "text": texts}
    found = trommel.near_duplicates(data, "3/5", keep="largest", keep_by="length(text)").to_pylist()
    assert [row["id"] for row in found] == data["id"]
    assert [row["cluster"] for row in found] == [0, 0, 2, 0, 2, 5]
    assert [row["size"] for row in found] == [3, 3, 2, 3, 2, 1]
    assert [row["kept"] for row in found] == [False, False, False, True, True, True]
    found = trommel.near_duplicates(texts, "3/5", keep="first")
    assert found.column_names == ["item", "cluster", "size", "kept"]
    assert found["kept"] == [True, False, True, False, False, True]


@pytest.mark.parametrize("support", [1, 3, "1/20", 0.05])
def test_frequent_pairs(support):
    baskets = [list(set(random_set)) for random_set in random_sets(100, 15, 6)]
    least = support if isinstance(support, int) else 5
    found = trommel.frequent_pairs(baskets, support).to_pylist()
    pairs = {frozenset((row["left"], row["right"])): row["support"] for row in found}
    assert len(pairs) == len(found)
    assert pairs == oracle.item_pairs(baskets, least)
    texts = [[f"i{item}" for item in basket] for basket in baskets]
    found = trommel.frequent_pairs(texts, support).to_pylist()
    pairs = {frozenset((row["left"], row["right"])): row["support"] for row in found}
    assert pairs == oracle.item_pairs(texts, least)


def test_frequent_triples_and_measures():
    baskets = [["a", "b", "c"], ["a", "b", "c"], ["a", "b"], ["a"]]
    (triple,) = trommel.frequent_pairs(baskets, 2, itemset=3).to_pylist()
    assert {triple["left"], triple["right"], triple["third"]} == {"a", "b", "c"}
    assert triple["support"] == 2
    rows = trommel.frequent_pairs(baskets, 3, measures=["confidence", "lift"]).to_pylist()
    (row,) = [row for row in rows if {row["left"], row["right"]} == {"a", "b"}]
    confidence = {row["left"]: row["left_confidence"], row["right"]: row["right_confidence"]}
    assert confidence == {"a": 0.75, "b": 1.0}
    assert row["lift"] == pytest.approx(3 * 4 / (4 * 3))


@pytest.mark.parametrize("dims", [1, 2, 7, 33])
def test_epsilon_join(dims):
    rng = np.random.default_rng(dims)
    vectors = rng.normal(size=(150, dims)).astype("f4")
    epsilon = float(np.sqrt(dims)) / 2
    expected = oracle.near(vectors, epsilon)
    found = oracle.pairs_of(trommel.epsilon_join(vectors, epsilon=epsilon), "distance")
    assert found == pytest.approx(expected)
    assert trommel.epsilon_join(vectors, epsilon=epsilon, output="count")["count"] == [len(expected)]
    rights = {right for _, right in expected}
    firsts = trommel.epsilon_join(vectors, epsilon=epsilon, output="first")
    assert firsts["id"] == [row for row in range(150) if row not in rights]
    half = vectors[:75]
    found = oracle.pairs_of(trommel.epsilon_join(half, vectors, epsilon=epsilon), "distance")
    assert {pair for pair in found if pair[0] < pair[1]} == {p for p in expected if p[0] < 75}


def test_epsilon_join_is_exact_on_the_border():
    assert len(trommel.epsilon_join([[0.0, 0.0], [3.0, 4.0]], epsilon=5)) == 1
    assert len(trommel.epsilon_join([[0.0, 0.0], [3.0, 4.0]], epsilon=np.nextafter(5.0, 0.0))) == 0


def test_tokenize():
    assert trommel.tokenize(["Don't panic,", None, "3.14!"])["item"] == ["don't", "panic", "3.14"]
    assert trommel.tokenize(["abcd"], "qgrams", q=2)["item"] == ["ab", "bc", "cd"]
    sets = trommel.tokenize({"t": ["b a", "a a"], "n": [1, 2]}, column="t", into="sets", carry=["n"])
    assert sets.to_pylist() == [{"id": 0, "set": [0, 1], "n": 1}, {"id": 1, "set": [1], "n": 2}]
    assert trommel.tokenize(["b a b"], into="text_sets")["set"] == [["b", "a"]]


def test_empty_data_gives_empty_tables_with_columns():
    assert trommel.top([]).column_names == ["rank", "item", "count", "error"]
    assert len(trommel.top(np.empty(0, dtype="u8"))) == 0
    assert trommel.set_similarity_join([], threshold=1).column_names == [
        "left", "right", "overlap", "similarity"
    ]  # fmt: skip
    assert len(trommel.set_similarity_join([[], []], threshold="1/2")) == 0
    assert len(trommel.near_duplicates([], "1/2")) == 0
    assert len(trommel.frequent_pairs([[]], 1)) == 0
    assert len(trommel.epsilon_join(np.empty((0, 3), dtype="f4"), epsilon=1)) == 0
    assert len(trommel.epsilon_join(pa.array([], pa.list_(pa.float32(), 3)), epsilon=1)) == 0
    assert len(trommel.tokenize([])) == 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: trommel.top(["a"], counters=0), "counters: 0 is out of range; allowed: 1 to 67108864"),
        (lambda: trommel.top(["a"], n=-1), "n: -1 is out of range; allowed: 0 to 18446744073709551615"),
        (lambda: trommel.top(["a"], threshold=1.5), "threshold: 1.5 is out of range; allowed: 0 to 1"),
        (lambda: trommel.top(["a"], threshold=float("nan")), "threshold: expected a finite number, found nan"),
        (lambda: trommel.top(["a"], algorithm="siev"), "did you mean `sieve`?"),
        (lambda: trommel.top([-3]), "invalid item -3 in row 0: whole numbers are 0 to 2^64 - 1"),
        (lambda: trommel.top([1.5]), "the data is Float64; expected whole numbers of up to 64 bits or texts"),
        (lambda: trommel.top({"a": [1], "b": [2]}), "several columns: `a`, `b`; name one with `column`"),
        (lambda: trommel.top({"a": [1]}, column="b"), "the data has no column `b`; it has `a`"),
        (lambda: trommel.set_similarity_join([[1]], threshold=-0.5), "threshold: -0.5 is out of range"),
        (lambda: trommel.set_similarity_join([[1]], threshold="4/0"), "threshold: invalid threshold 4/0"),
        (lambda: trommel.set_similarity_join([[1]], threshold="x"), "threshold: invalid threshold"),
        (lambda: trommel.set_similarity_join([[-1]], threshold=1), "-1 is out of range; tokens are 0 to"),
        (lambda: trommel.set_similarity_join([[2**32]], threshold=1), "4294967296 is out of range"),
        (lambda: trommel.set_similarity_join([[None, 1]], threshold=1), "a token is null"),
        (lambda: trommel.set_similarity_join([[1]], [["a"]], threshold=1), "tokens of one kind"),
        (lambda: trommel.set_similarity_join(["a"], threshold=1), "expected lists of whole numbers or of"),
        (lambda: trommel.set_similarity_join([[1]], threshold=1, device="gpu"), "device: "),
        (lambda: trommel.near_duplicates([1], 1), "the data is Int64; expected texts"),
        (lambda: trommel.near_duplicates(["a"], 1, by="letters"), "by: \"letters\" is not allowed here"),
        (lambda: trommel.near_duplicates(["a"], 1, keep="first", carry=["x"]), "keep: all rows are returned"),
        (lambda: trommel.clusters({"left": [1], "right": [1]}, keep="largest"), "name in `by` the column"),
        (lambda: trommel.clusters({"left": [1], "right": [1]}, {"n": [5]}), "positions of rows beside pairs of Int64"),
        (lambda: trommel.lookup({"a": [1]}, {"a": ["x"], "b": [2]}, "a"), "`a` of Utf8 for `a` of Int64"),
        (lambda: trommel.lookup({"a": [1], "b": [1]}, {"a": [1], "b": [2]}, "a"), "`b as table_b` gives"),
        (lambda: trommel.frequent_pairs([[1]], 0), "support: "),
        (lambda: trommel.frequent_pairs([[1]], 1, itemset=4), "itemset: 4 is out of range; allowed: 2 to 3"),
        (lambda: trommel.epsilon_join([[1.0]], epsilon=-1), "epsilon: -1 is out of range; allowed: at least 0"),
        (lambda: trommel.epsilon_join([[1.0], [1.0, 2.0]], epsilon=1), "invalid vector in row 1"),
        (lambda: trommel.epsilon_join(["a"], epsilon=1), "the data is Utf8; expected lists of numbers, one a row"),
        (lambda: trommel.tokenize(["a"], "qgrams"), "q"),
        (lambda: trommel.epsilon_join([[]], epsilon=1), "row 0: it has no coordinates; expected 1 to 4,096"),
        (lambda: trommel.epsilon_join([[1.0], [1e39]], epsilon=1), "row 1: coordinate 0 is 1e39, and vectors are"),
        (lambda: trommel.epsilon_join([[1.0]], epsilon=float("inf")), "epsilon: expected a finite number, found inf"),
        (lambda: trommel.frequent_pairs([["a", None]], 1), "invalid transaction in row 0: an item is null"),
        (lambda: trommel.frequent_pairs({"b": [1, 1], "i": ["x", "y"]}, 1, column="i"), "column `i` is Utf8; expected lists"),
        (lambda: trommel.frequent_pairs({"b": [1, 1], "i": ["x", "y"]}, 1, column="i"), 'frame.group_by("set").agg("element")'),
        (lambda: trommel.set_similarity_join([[1]], threshold=1, carry=["item", "item"]), "carry: `item` twice"),
    ],
)
def test_bad_values_are_refused_with_what_is_allowed(call, said):
    with pytest.raises(ValueError) as raised:
        call()
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: trommel.top("abc"), "expected a column of data, found one str"),
        (lambda: trommel.top(5), "found int"),
        (lambda: trommel.top([True]), "row 0: expected a text or a number, found bool"),
        (lambda: trommel.top(["a", 1]), "row 1: expected a text, found int"),
        (lambda: trommel.top([1, "a"]), "row 1: expected a number, found str"),
        (lambda: trommel.top([object()]), "row 0: expected a text or a number, found object"),
        (lambda: trommel.set_similarity_join([[1], 2], threshold=1), "row 1: expected a list, found int"),
        (lambda: trommel.set_similarity_join([[1]], threshold=1, carry="x"), "expected a list of names"),
        (lambda: trommel.set_similarity_join([[1]], threshold=[1]), "threshold: expected a number"),
        (lambda: trommel.set_similarity_join([b"abc"], threshold=1), "row 0: expected a text or a number (`.decode()`"),
        (lambda: trommel.set_similarity_join([{"a": 1}], threshold=1), "row 0: expected a text or a number, found dict"),
        (lambda: trommel.top([1], column=5), "column: expected the name of a column, found int"),
        (lambda: trommel.set_similarity_join([[1]], threshold=1, carry=[5]), "carry: expected a list of names, found int"),
    ],
)
def test_wrong_types_are_refused(call, said):
    with pytest.raises(TypeError) as raised:
        call()
    assert said in str(raised.value)


def test_a_float_is_the_fraction_that_a_program_means():
    for n in range(1, 60):
        for c in range(1, n + 1):
            baskets = [[1, 2]] * c + [[1]] * (n - c)
            assert len(trommel.frequent_pairs(baskets, c / n)) == 1, (c, n)
    assert trommel.top(["a"] * 5 + ["b"], threshold=5 / 6)["item"] == ["a"]
    assert len(trommel.set_similarity_join([[1, 2], [2, 3]], threshold=1 / 3)) == 1
    assert len(trommel.set_similarity_join([[1, 2], [2, 3]], threshold="33.4%")) == 0
    items = trommel.FrequentItems()
    items.observe(["a"] * 5 + ["b"])
    assert items.at_least(5 / 6)["item"] == ["a"] and items.at_least(np.float32(0.5))["item"] == ["a"]


def test_an_int_is_a_support_and_everything_else_a_share():
    baskets = [[1, 2], [1, 2], [1]]
    for one in (1, "1", np.int64(1)):
        assert len(trommel.frequent_pairs(baskets, one)) == 1
    for all_ in (1.0, "1.0", "1/1", "100%", Fraction(1), Decimal(1), np.float32(1)):
        assert len(trommel.frequent_pairs(baskets, all_)) == 0
        assert len(trommel.frequent_pairs(baskets[:2], all_)) == 1
    for more in (2.0, "2.0", Fraction(2), Decimal(2)):
        with pytest.raises(ValueError, match="support: .*1.0 for all"):
            trommel.frequent_pairs(baskets, more)


def test_a_reported_distance_joins_its_own_pair():
    vectors = np.random.default_rng(4).random((40, 3), dtype="f4")
    for pair in trommel.epsilon_join(vectors, epsilon=1).to_pylist():
        two = vectors[[pair["left"], pair["right"]]]
        assert trommel.epsilon_join(two, epsilon=pair["distance"])["distance"] == [pair["distance"]]
        assert len(trommel.epsilon_join(two, epsilon=np.nextafter(pair["distance"], 0))) == 0


def test_tokens_of_two_calls_are_not_joined():
    one, other = (trommel.tokenize(texts, into="sets") for texts in (["a b", "c"], ["c"]))
    calls = [
        lambda: trommel.set_similarity_join(one, other, threshold=1, column="set"),
        lambda: trommel.set_similarity_join(pa.table(one), pa.table(other), threshold=1, column="set"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="several calls of `tokenize`.*text_sets"):
            call()
    with trommel.SetJoinStream(1, window={"sets": 9}, column="set") as stream:
        stream.add(one)
        with pytest.raises(ValueError, match="several calls of `tokenize`"):
            stream.add(other)
        stream.add(one)
        assert len(stream) == 4
    pipeline = trommel.Pipeline()
    inputs = [pipeline.source("one", one), pipeline.source("other", other)]
    pipeline.discard("end", pipeline.set_similarity_join("join", inputs, threshold=1))
    with pytest.raises(ValueError, match="two stages `tokenize`"):
        pipeline.plan()
    one, other = (trommel.tokenize(texts, into="text_sets") for texts in (["a b", "c"], ["c"]))
    assert oracle.pairs_of(trommel.set_similarity_join(one, other, threshold=1, column="set"), "overlap") == {(1, 0): 1}


def test_near_duplicates_of_two_tables_with_columns_of_any_name():
    left = {"id": ["x", "y"], "set": ["a b c d e", "q"]}
    right = {"id": ["r", "s"], "set": ["other", "e d c b a"]}
    (pair,) = trommel.near_duplicates(left, right=right, column="set", carry=["id", "set"]).to_pylist()
    assert pair == {
        "left": 0, "right": 1, "overlap": 5, "similarity": 1.0,
        "left_id": "x", "left_set": "a b c d e", "right_id": "s", "right_set": "e d c b a",
    }  # fmt: skip
    kept = trommel.near_duplicates(left, column="set", carry=["id"], mode="deduplicate")
    assert kept.column_names == ["id_", "set", "id"] and kept["id"] == ["x", "y"] and kept["id_"] == [0, 1]
    first = trommel.epsilon_join({"id": ["x"], "v": [[1.0]]}, epsilon=1, column="v", carry=["id"], output="first")
    assert first.to_pylist() == [{"id_": 0, "id": "x"}]
    sets = {"id": ["x", "y"], "set": [["a"], ["a"]]}
    (pair,) = trommel.set_similarity_join(sets, threshold=1, column="set", carry=["id"]).to_pylist()
    assert (pair["left_id"], pair["right_id"]) == ("x", "y")


def test_weights_that_add_up_to_too_much_are_refused():
    data = {"i": [1, 2], "w": [2**63, 2**63]}
    with pytest.raises(trommel.PipelineError, match="the weights add up to more than 2\\^64 - 1"):
        trommel.top(data, column="i", weight="w")
    one, other = trommel.FrequentItems(), trommel.FrequentItems()
    one.observe([1], [2**63])
    other.observe([1], [2**63])
    with pytest.raises(ValueError, match="the weights add up"):
        one.merge(other)
    with pytest.raises(ValueError, match="the weights add up"):
        one.observe([1], [2**63])
    assert one.observed == 2**63


def test_a_run_that_fails_says_why():
    with pytest.raises(trommel.PipelineError, match="row 2 of the input: coordinate 0 of the vector is NaN"):
        trommel.epsilon_join([[1.0], [float("nan")]], epsilon=1)
    assert len(trommel.epsilon_join([[1.0], [float("nan")], [1.0]], epsilon=1, on_error="skip")) == 1
    with pytest.raises(trommel.PipelineError, match="memory_max"):
        trommel.set_similarity_join([list(range(1000))], threshold=1, memory_max=10)


@pytest.mark.parametrize(
    "call",
    [
        lambda device: trommel.set_similarity_join([[1]], threshold=1, device=device),
        lambda device: trommel.near_duplicates(["a"], 1, device=device),
        lambda device: trommel.frequent_pairs([[1, 2]], 1, device=device),
        lambda device: trommel.epsilon_join([[1.0]], epsilon=1, device=device),
    ],
    ids=["set_similarity_join", "near_duplicates", "frequent_pairs", "epsilon_join"],
)
def test_a_device_is_chosen_and_one_that_is_missing_is_named(call):
    with pytest.raises(trommel.PipelineError, match='`device` is "cuda:15", but '):
        call("cuda:15")
    with pytest.raises(ValueError, match='device: .*"tpu"'):
        call("tpu")
    call("cpu")
    call("auto")
