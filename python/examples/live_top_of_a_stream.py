"""The most frequent items of a stream, asked while it runs.

    python live_top_of_a_stream.py

The stream is an iterator of NumPy arrays; a socket, a queue or a database cursor is one, too.
"""

from collections.abc import Iterator

import numpy as np

import trommel

BATCHES = 200


def stream() -> Iterator[np.ndarray]:
    random = np.random.default_rng(7)
    for _ in range(BATCHES):
        yield random.zipf(1.5, 10_000).astype("u4", casting="unsafe")


def live_top(n: int) -> tuple[list[list[dict]], list[dict]]:
    """The answers while the stream runs, and the rows at its end."""
    pipeline = trommel.Pipeline("live top")
    items = pipeline.source("items", stream())
    pipeline.collect("rows", pipeline.frequent_items("top", items, counters=1_000, n=n))
    answers = []
    with pipeline.start() as running:
        for rows in running.watch("top", "top", n=n):
            answers.append(rows.to_pylist())
        running.join()
    return answers, running.rows("rows").to_pylist()


if __name__ == "__main__":
    answers, rows = live_top(3)
    print(f"{len(answers)} answers while the stream ran")
    for row in rows:
        print(f"{row['item']}: at most {row['count']}, at most {row['error']} too many")
