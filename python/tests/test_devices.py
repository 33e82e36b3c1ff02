"""The functions on a GPU, where one is, beside the same functions on the processor."""

import os
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import trommel


@pytest.fixture(autouse=True, scope="module")
def gpu() -> None:
    try:
        trommel.frequent_pairs([[1, 2]], 1, device="cuda")
    except trommel.PipelineError as error:
        if os.environ.get("TROMMEL_REQUIRE_CUDA"):
            raise
        pytest.skip(str(error))


def rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def assert_same(ask: Callable[[str], Any]) -> None:
    expected = rows(ask("cpu"))
    assert expected and rows(ask("cuda")) == expected


def sets(count: int) -> list[list[int]]:
    random.seed(7)
    some = [random.sample(range(2000), 14) for _ in range(count)]
    return some + [each[:-1] + [5000 + i] for i, each in enumerate(some[: count // 5])]


def lines(of: Iterable[list[int]]) -> list[str]:
    return [" ".join(map(str, each)) for each in of]


def test_similar_sets() -> None:
    some = sets(4000)
    assert_same(lambda device: trommel.set_similarity_join(some, threshold="3/5", device=device))
    assert_same(lambda device: trommel.near_duplicates(lines(some), "4/5", device=device))


@pytest.mark.parametrize("layout", [None, "tensor", "batmap", "sparse"])
def test_pairs(layout: str | None) -> None:
    random.seed(8)
    baskets = [random.sample(range(300), 20) for _ in range(5000)]
    of = {"cpu": None, "cuda": layout}
    assert_same(lambda device: trommel.frequent_pairs(baskets, 20, layout=of[device], device=device))


def test_near_vectors() -> None:
    random.seed(9)
    vectors = [[random.random() for _ in range(8)] for _ in range(5000)]
    assert_same(lambda device: trommel.epsilon_join(vectors, epsilon=0.3, device=device))


def test_queries() -> None:
    some = sets(4000)
    answers: list[Any] = []
    for device in ("cpu", "cuda"):
        index = trommel.ConjunctiveIndex(device=device)
        index.add(some)
        answers.append(index.query_batch([each[:2] for each in some[:500]]).to_pylist())
    assert answers[0] == answers[1] and any(answers[0])
