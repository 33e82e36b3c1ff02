"""Measures Python packages that mine frequent pairs or triples, over a file in the FIMI format: a transaction
a line, items as numbers.

Creates an environment of its own with pinned packages, once, and runs itself again in it. Prints
the versions with `--prepare`, else JSON, with an object per peer, or for a peer that could not be
installed or would not end:

    [{"name": ..., "seconds": [...], "rows": ..., "sum": ...}, {"name": ..., "missing": why}, ...]

The clock covers the mining from transactions as the package wants them (lists of whole numbers, a
sparse matrix, a table of truth values) to pairs or triples with their supports in Python.
"""

import argparse
import importlib.metadata
import json
import pathlib

import environment

NUMPY, SCIPY, PANDAS = "numpy==2.4.6", "scipy==1.17.1", "pandas==3.1.1"
PYFIM, MLXTEND = "pyfim==6.28", "mlxtend==0.25.0"
PACKAGES = [NUMPY, SCIPY, PANDAS, PYFIM, MLXTEND]
CONSTRAINTS = [NUMPY, SCIPY, PANDAS]

# Cells of the table of truth values, and pairs of a matrix of supports, above which a peer is left
# out: it takes minutes or more memory than there is.
TABLE_CELLS_MAX = 50_000_000
PRODUCTS_MAX = 5_000_000_000


def pyfim(algorithm):
    """An algorithm of pyfim, the C implementations of Borgelt."""

    def prepare(baskets, support, itemset):
        import fim

        mine = getattr(fim, algorithm)

        def supports():
            # A negative support is a number of transactions.
            found = mine(baskets, target="s", supp=-support, zmin=itemset, zmax=itemset, report="a")
            return [count for _, count in found]

        return supports

    return prepare


def scipy_product(baskets, support, itemset):
    """The upper triangle of the product of the sparse matrix of transactions with its transpose."""
    import numpy
    import scipy.sparse

    if itemset != 2:
        raise ValueError("left out: a product has pairs only")
    products = sum(len(items) ** 2 for items in baskets)
    if products > PRODUCTS_MAX:
        raise ValueError(f"left out: {products} products")
    rows = numpy.repeat(numpy.arange(len(baskets)), [len(items) for items in baskets])
    columns = numpy.concatenate([numpy.asarray(items, dtype=numpy.int64) for items in baskets])
    _, columns = numpy.unique(columns, return_inverse=True)
    matrix = scipy.sparse.csr_matrix(
        (numpy.ones(len(columns), dtype=numpy.int32), (rows, columns))
    )

    def pairs():
        frequent = matrix[:, numpy.asarray(matrix.sum(axis=0)).ravel() >= support]
        product = scipy.sparse.triu(frequent.T @ frequent, k=1)
        return product.data[product.data >= support].tolist()

    return pairs


def mlxtend_apriori(baskets, support, itemset):
    """Apriori of mlxtend, over a table of truth values."""
    import pandas
    from mlxtend.frequent_patterns import apriori
    from mlxtend.preprocessing import TransactionEncoder

    cells = len(baskets) * len({item for items in baskets for item in items})
    if cells > TABLE_CELLS_MAX:
        raise ValueError(f"left out: a table of {cells} cells")
    encoder = TransactionEncoder()
    table = pandas.DataFrame(encoder.fit(baskets).transform(baskets), columns=encoder.columns_)

    def pairs():
        # The tolerance keeps pairs exactly on the border.
        found = apriori(table, min_support=(support - 0.5) / len(baskets), max_len=itemset)
        found = found[found["itemsets"].map(len) == itemset]
        return [round(share * len(baskets)) for share in found["support"]]

    return pairs


PEERS = [
    ("pyfim apriori", "pyfim", PYFIM, pyfim("apriori")),
    ("pyfim eclat", "pyfim", PYFIM, pyfim("eclat")),
    ("pyfim fpgrowth", "pyfim", PYFIM, pyfim("fpgrowth")),
    ("scipy, product of sparse matrices", "scipy", SCIPY, scipy_product),
    ("mlxtend apriori", "mlxtend", MLXTEND, mlxtend_apriori),
]


def measure(baskets, support, itemset, prepare):
    mine = prepare(baskets, support, itemset)
    seconds, supports = environment.repeated(3, mine)
    return {"seconds": seconds, "rows": len(supports), "sum": sum(supports)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--environment", type=pathlib.Path, required=True)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--baskets", type=pathlib.Path)
    parser.add_argument("--support", type=int)
    parser.add_argument("--itemset", type=int, default=2)
    options = parser.parse_args()
    failed = environment.enter(options.environment, PACKAGES, CONSTRAINTS, retry=options.prepare)
    if options.prepare:
        names = [package for _, package, wanted, _ in PEERS if wanted not in failed]
        print(", ".join(sorted({f"{name} {importlib.metadata.version(name)}" for name in names})))
        return
    lines = options.baskets.read_text().splitlines()
    baskets = [[int(item) for item in line.split()] for line in lines]
    results = []
    for name, _, wanted, prepare in PEERS:
        if wanted in failed:
            results.append({"name": name, "missing": failed[wanted]})
            continue
        try:
            results.append({"name": name, **measure(baskets, options.support, options.itemset, prepare)})
        except (ValueError, MemoryError) as why:
            results.append({"name": name, "missing": str(why) or "out of memory"})
    print(json.dumps(results))


main()
