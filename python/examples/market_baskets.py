"""Items that are bought together, with confidence and lift, exactly.

    python market_baskets.py

`support` is a number of baskets, or a share of them: "1%", "1/100" or 0.01.
"""

import trommel

BASKETS = [
    ["bread", "butter", "jam"],
    ["bread", "butter"],
    ["bread", "butter", "tea"],
    ["tea", "milk"],
    ["tea", "milk", "bread"],
    ["jam", "tea"],
]


def bought_together(baskets: list[list[str]], support: int | str) -> list[dict]:
    pairs = trommel.frequent_pairs(baskets, support, measures=["confidence", "lift"])
    return sorted(pairs.to_pylist(), key=lambda pair: -pair["lift"])


if __name__ == "__main__":
    for pair in bought_together(BASKETS, 2):
        confidence = f"{pair['left_confidence']:.0%} of those with {pair['left']}"
        print(f"{pair['left']} and {pair['right']}: {pair['support']} baskets, {confidence}, lift {pair['lift']:.2f}")
