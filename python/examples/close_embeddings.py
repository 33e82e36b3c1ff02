"""Pairs of close embeddings, and the embeddings without a near-duplicate before them.

    python close_embeddings.py

The vectors are those of the terms of a glossary, of length one: a distance d is a cosine of
1 - d * d / 2. An array of NumPy is read without a copy.
"""

from pathlib import Path

import numpy as np

import trommel

DATA = Path(__file__).parents[2] / "configs" / "data"


def close_pairs(vectors: np.ndarray, names: list[str], epsilon: float) -> list[tuple[float, str, str]]:
    pairs = trommel.epsilon_join(vectors, epsilon=epsilon).to_pylist()
    return sorted((pair["distance"], names[pair["left"]], names[pair["right"]]) for pair in pairs)


def without_duplicates(vectors: np.ndarray, epsilon: float) -> list[int]:
    return trommel.epsilon_join(vectors, epsilon=epsilon, output="first")["id"]


if __name__ == "__main__":
    vectors = np.load(DATA / "terms.npy")
    names = (DATA / "terms.txt").read_text().splitlines()
    for distance, left, right in close_pairs(vectors, names, 0.85):
        print(f"{1 - distance**2 / 2:.2f} {left}, {right}")
    kept = list(without_duplicates(vectors, 0.85))
    print(f"{len(kept)} of {len(names)} terms have no close one before them")
