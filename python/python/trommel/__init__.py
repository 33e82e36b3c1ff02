"""Frequent items, similar sets, frequent pairs and close vectors.

Functions take data as a whole: `top`, `set_similarity_join`, `near_duplicates`, `clusters`,
`frequent_pairs`, `epsilon_join`, `aggregate`, `lookup` and `tokenize`. Objects take it as it
comes: `FrequentItems`, `SetJoinStream`, `EpsilonStream` and `ConjunctiveIndex`. A `Pipeline` runs any
graph of operators, and answers queries while it runs. All take anything with an Arrow interface,
NumPy arrays, and lists, and give tables that any Arrow library reads.
"""

import atexit

from . import _trommel
from ._functions import (
    epsilon_join,
    frequent_pairs,
    near_duplicates,
    set_similarity_join,
    tokenize,
    top,
)
from ._index import ConjunctiveIndex
from ._inputs import table
from ._items import Counted, FrequentItems
from ._pipeline import Pipeline, Running, Watch
from ._streams import EpsilonStream, SetJoinStream
from ._tables import aggregate, clusters, filter, lookup, select
from ._trommel import PipelineError, Schema, Table, __version__

__all__ = [
    "ConjunctiveIndex",
    "Counted",
    "EpsilonStream",
    "FrequentItems",
    "Pipeline",
    "PipelineError",
    "Running",
    "Schema",
    "SetJoinStream",
    "Table",
    "Watch",
    "__version__",
    "aggregate",
    "clusters",
    "epsilon_join",
    "filter",
    "frequent_pairs",
    "lookup",
    "near_duplicates",
    "select",
    "set_similarity_join",
    "table",
    "tokenize",
    "top",
]

# No thread of a run outlives the interpreter.
atexit.register(_trommel.shutdown)
