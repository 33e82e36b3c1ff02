"""Naive answers, which call nothing of the package."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations


def top(items, n):
    """(item, count), by descending count and ascending item."""
    counts = Counter(item for item in items if item is not None)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:n]


def reaches(similarity, threshold, a, b):
    """Whether two sets are similar, in exact arithmetic."""
    overlap = len(a & b)
    if not overlap:
        return False
    if similarity == "jaccard":
        return Fraction(overlap, len(a | b)) >= threshold
    if similarity == "dice":
        return Fraction(2 * overlap, len(a) + len(b)) >= threshold
    if similarity == "cosine":
        return Fraction(overlap) ** 2 >= Fraction(threshold) ** 2 * len(a) * len(b)
    return overlap >= threshold


def set_pairs(sets, threshold, similarity="jaccard"):
    """{(left, right): overlap} of a self-join."""
    sets = [set() if s is None else set(s) for s in sets]
    return {
        (i, j): len(sets[i] & sets[j])
        for i, j in combinations(range(len(sets)), 2)
        if reaches(similarity, threshold, sets[i], sets[j])
    }


def set_pairs_between(left, right, threshold, similarity="jaccard"):
    """{(left, right): overlap} of a join of two inputs."""
    return {
        (i, j): len(set(a) & set(b))
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if reaches(similarity, threshold, set(a), set(b))
    }


def item_pairs(transactions, support):
    """{frozenset of two items: support}."""
    return item_sets(transactions, support, 2)


def item_sets(transactions, support, size):
    """{frozenset of `size` items: support}."""
    counts = Counter()
    for transaction in transactions:
        counts.update(map(frozenset, combinations(set(transaction), size)))
    return {items: count for items, count in counts.items() if count >= support}


def documents_with(documents, terms):
    """The positions of the documents with all terms; a null has none."""
    return [n for n, document in enumerate(documents) if terms and set(terms) <= set(document or [])]


def distance(left, right):
    """The distance of two vectors; the sum in float64, in the order of the coordinates."""
    square = 0.0
    for a, b in zip(left, right):
        difference = float(a) - float(b)
        square += difference * difference
    return math.sqrt(square)


def near(vectors, epsilon):
    """{(left, right): distance} of a self-join; sums in float64, in the order of the coordinates."""
    found = {}
    for i, j in combinations(range(len(vectors)), 2):
        apart = distance(vectors[i], vectors[j])
        if apart <= epsilon:
            found[i, j] = apart
    return found


def pairs_of(table, value):
    """The pairs of a result as {(left, right): value}, each once."""
    rows = table.to_pylist()
    found = {(row["left"], row["right"]): row[value] for row in rows}
    assert len(found) == len(rows), "a pair came twice"
    return found
