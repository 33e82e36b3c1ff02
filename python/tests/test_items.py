"""`FrequentItems`: bounds, merging, bytes, pickle, threads."""

import multiprocessing
import pickle
import random
import threading
import zlib

import numpy as np
import pytest

import oracle
import trommel

RNG = random.Random(5)


def skewed(count):
    return np.array([min(int(RNG.paretovariate(0.9)), 10**5) for _ in range(count)], dtype="u4")


def check_bounds(items, true, total, counters):
    rows = items.top(10**6).to_pylist()
    for row in rows:
        assert row["count"] - row["error"] <= true.get(row["item"], 0) <= row["count"]
        assert row["error"] <= total / counters
    named = {row["item"] for row in rows}
    assert all(item in named for item, count in true.items() if count > total / counters)


@pytest.mark.parametrize("algorithm", ["auto", "sieve", "space_saving", "filter"])
def test_bounds_hold_after_every_batch_and_merge(algorithm):
    items = trommel.FrequentItems(64, algorithm=algorithm)
    all_items = []
    for _ in range(4):
        batch = skewed(3_000)
        all_items += batch.tolist()
        items.observe(batch)
        check_bounds(items, dict(oracle.top(all_items, None)), len(all_items), 64)
    other = trommel.FrequentItems(64, algorithm=algorithm)
    batch = skewed(5_000)
    other.observe(batch)
    items.merge(other)
    all_items += batch.tolist()
    assert items.observed == len(all_items)
    check_bounds(items, dict(oracle.top(all_items, None)), len(all_items), 64)


def test_questions():
    items = trommel.FrequentItems(100)
    assert (len(items), items.observed, items.top(3).num_rows) == (0, 0, 0)
    assert items.estimate("x") == ("x", 0, 0)
    items.observe(["a"] * 7 + ["b"] * 93)
    items.observe([None])
    assert (len(items), items.observed, items.counters) == (2, 100, 100)
    assert items.at_least(0.07)["item"] == ["b", "a"]
    assert items.at_least("71/1000")["item"] == ["b"]
    assert items.estimate("a") == trommel.Counted("a", 7, 0)
    assert items.estimate("zzz").count == 0
    assert repr(items) == "FrequentItems(counters=100), 100 observed"
    with items as same:
        assert same is items


def test_weights():
    items = trommel.FrequentItems()
    items.observe([7, 8, 7], weights=np.array([1, 10, 2]))
    assert items.estimate(7).count == 3 and items.observed == 13
    with pytest.raises(ValueError, match="weights: the first data had some"):
        items.observe([7])
    with pytest.raises(ValueError, match="`weight` has 1 rows, and `item` has 2"):
        items.observe([7, 8], weights=[1])
    with pytest.raises(ValueError, match="invalid weight -1 in row 0"):
        items.observe([7], weights=[-1])


@pytest.mark.parametrize("data", [["a", "b", "a"], np.array([3, 4, 3], "u4"), np.array([3, 2**40], "i8")])
@pytest.mark.parametrize("weights", [None, [1, 2, 3]])
def test_bytes_and_pickle_give_the_same_object(data, weights):
    items = trommel.FrequentItems(10, seed=1)
    items.observe(data, weights=weights[: len(data)] if weights else None)
    for again in (trommel.FrequentItems.from_bytes(items.to_bytes()), pickle.loads(pickle.dumps(items))):
        assert again.top(10).to_pylist() == items.top(10).to_pylist()
        again.observe(data, weights=weights[: len(data)] if weights else None)
        assert again.observed == 2 * items.observed
    empty = pickle.loads(pickle.dumps(trommel.FrequentItems(10)))
    empty.merge(items)
    assert empty.top(10).to_pylist() == items.top(10).to_pylist()


def test_damaged_bytes_are_refused():
    items = trommel.FrequentItems(10)
    items.observe(["a", "b"])
    state = items.to_bytes()
    for damaged in (b"", b"x" * 50, state[:-1], state[:30], state + b"x"):
        with pytest.raises(ValueError):
            trommel.FrequentItems.from_bytes(damaged)
    for at in range(len(state)):
        changed = bytearray(state)
        changed[at] ^= 0x55
        with pytest.raises(ValueError):
            trommel.FrequentItems.from_bytes(bytes(changed))


def test_bytes_with_a_right_checksum_are_not_trusted():
    def sealed(written):
        return written + zlib.crc32(written).to_bytes(4, "little")

    # The shortest state: each of its bytes is changed.
    items = trommel.FrequentItems(10, algorithm="space_saving")
    items.observe(["a", "b"])
    state = items.to_bytes()[:-4]
    magic, head, rest = state.split(b"\n", 2)
    assert trommel.FrequentItems.from_bytes(sealed(state)).observed == 2
    heads = [
        b"", b"3", b"[]", b"{}", b'{"parameters": 3}', b'{"parameters": {"counter": 3}}', b"[" * 100_000,
        b'{"parameters": {"counters": -1}}', b'{"parameters": {"counters": "x"}}', b"\xff",
        head.replace(b'"Utf8"', b'"Float64"'), head.replace(b'"Utf8"', b"7"), head.replace(b'"Utf8"', b'"UInt64"'),
        head.replace(b'"counters": 10', b'"counters": 11'), head.replace(b'"counters": 10', b'"counters": 1e400'),
    ]  # fmt: skip
    for head_changed in heads:
        assert head_changed != head
        with pytest.raises(ValueError):
            trommel.FrequentItems.from_bytes(sealed(b"\n".join([magic, head_changed, rest])))
    # The state of the operator: refused, or an object that works.
    begin = len(magic) + len(head) + 2
    for at in range(begin, len(state)):
        for changed in (0, 1, 0x7F, 0xFF):
            written = bytearray(state)
            written[at] = changed
            try:
                again = trommel.FrequentItems.from_bytes(sealed(bytes(written)))
            except ValueError:
                continue
            again.observe(["a"])
            again.top(3)
    for end in range(begin, len(state)):
        with pytest.raises(ValueError):
            trommel.FrequentItems.from_bytes(sealed(state[:end]))


def test_merges_that_make_no_sense_are_refused():
    words, numbers = trommel.FrequentItems(10), trommel.FrequentItems(10)
    words.observe(["a"])
    numbers.observe([1])
    with pytest.raises(ValueError, match="the other one counts items of UInt64, and this one of Utf8"):
        words.merge(numbers)
    with pytest.raises(ValueError, match="with 10 counters and one with 20: the numbers must be equal"):
        words.merge(trommel.FrequentItems(20))
    with pytest.raises(TypeError, match="expected FrequentItems, found int"):
        words.merge(3)
    faded = trommel.FrequentItems(10, decay={"half_life_items": 10})
    faded.observe(["a"])
    with pytest.raises(ValueError, match="fade"):
        faded.to_bytes()
    with pytest.raises(ValueError, match=r"the data has whole numbers, and the first data had texts"):
        words.observe([1])
    assert words.top(1)["item"] == ["a"]


def test_several_threads_use_one_object():
    items = trommel.FrequentItems(1000)
    data = np.arange(200_000, dtype="u4") % 500
    threads = [threading.Thread(target=items.observe, args=(data,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        items.top(3)
    for thread in threads:
        thread.join()
    assert items.observed == 800_000
    assert items.top(500)["count"] == [1600] * 500


def count_part(part):
    items = trommel.FrequentItems(100)
    items.observe(part)
    return items


def test_parts_are_counted_in_processes_and_merged():
    parts = [["a"] * 5 + ["b"], ["b"] * 7, ["c"]]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        partial = pool.map(count_part, parts)
    whole = trommel.FrequentItems(100)
    for items in partial:
        whole.merge(items)
    assert whole.top(3)["item"] == ["b", "a", "c"] and whole.top(3)["count"] == [8, 5, 1]
