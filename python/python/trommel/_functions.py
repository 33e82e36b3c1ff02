"""Functions over data as a whole: Arrow in, a table out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._inputs import carried, form, names, number, real, source, table, with_names
from ._run import Input, Stage, run, with_parameters
from ._stages import (
    Algorithm,
    Decay,
    Device,
    EpsilonAlgorithm,
    EpsilonOutput,
    Exact,
    JoinAlgorithm,
    JoinMode,
    JoinOutput,
    JoinWindow,
    Keep,
    Layout,
    Measure,
    OnError,
    PairWindow,
    Similarity,
    TokenizeBy,
    TokenizeInto,
    VectorWindow,
    VerifyMode,
    Window,
)
from ._trommel import Table


def _join(operator: str, left: Any, right: Any, asked: dict[str, Any], /, **parameters: Any) -> Table:
    """A join of `left` with itself, or with `right` if it is given."""
    inputs: list[Input] = [("left", source(left), asked)]
    if right is not None:
        inputs.append(("right", source(right), asked))
    stage = with_parameters("join", operator, [id for id, _, _ in inputs], **parameters)
    return with_names(run([stage], inputs), asked)


def top(
    items: Any,
    n: int | None = 10,
    *,
    column: str | None = None,
    weight: str | None = None,
    counters: int = 1000,
    threshold: Exact | None = None,
    algorithm: Algorithm | None = None,
    seed: int | None = None,
    item_bytes_max: int | None = None,
    window: Window | None = None,
    decay: Decay | None = None,
) -> Table:
    """Find the most frequent items in one pass and bounded memory.

    For N items (or their weight) and k counters, ``count - error <= true count <= count`` and
    ``error <= N / k``; every item that occurs more than N / k times is found. With at most
    `counters` distinct items all counts are exact. Nulls are not counted.

    Parameters
    ----------
    items
        Whole numbers from 0 to 2^64 - 1 or texts: a column, or a table with one. NumPy arrays and
        Arrow data are not copied.
    n
        The number of items; ``None`` for all that have a counter.
    column
        The column of a table with several.
    weight
        A column of weights, whole numbers from 0 that add up to less than 2^64; without it every
        item counts once.
    counters
        The number of items that are counted at a time, 1 to 2^26.
    threshold
        Only items with at least this share of all, 0 to 1, taken exactly: 0.07, "1/3", "7%" or a
        `fractions.Fraction`. A float stands for the simplest fraction that rounds to it, so that
        5 / 6 is the share of five of six.
    algorithm
        ``"auto"``, ``"sieve"``, ``"space_saving"``, ``"filter"`` or ``"parallel_filter"``.
    seed
        Makes the counts of the sieve repeatable.
    item_bytes_max
        Bytes of the longest text that is kept as it is; 4096 if left out. A longer one is counted,
        and returned, as its beginning and a hash of the whole.
    window
        Count in windows: ``{"items": 1000000}``, with ``"slide"`` for the distance of two.
    decay
        Let counts fade: ``{"half_life_items": 1000000}``.

    Returns
    -------
    Table
        ``rank`` (uint32, from 1), ``item`` (uint32, uint64 or utf8), ``count`` and ``error``
        (uint64), by descending count; with `window`, after ``window_start``, ``window_end`` and
        ``complete``.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or an item is negative or of another type.
    PipelineError
        If the count fails, such as for weights that add up to more than 2^64 - 1.

    Examples
    --------
    >>> top(["to", "be", "or", "not", "to", "be", "to"], n=2).to_pydict()["count"]
    [3, 2]
    """
    stage = with_parameters(
        "top",
        "frequent_items",
        ["items"],
        n=n,
        counters=counters,
        threshold=number("threshold", threshold),
        algorithm=algorithm,
        seed=seed,
        item_bytes_max=item_bytes_max,
        window=window,
        decay=decay,
        weight="weight" if weight is not None else None,
    )
    asked = form("items", column, weight=weight, into="item")
    return run([stage], [("items", source(items), asked)])


def tokenize(
    texts: Any,
    by: TokenizeBy = "words",
    *,
    q: int | None = None,
    into: TokenizeInto = "items",
    column: str | None = None,
    carry: Iterable[str] = (),
) -> Table:
    """Cut texts into words, fields or q-grams.

    Parameters
    ----------
    texts
        A column of texts, or a table with one. A null has no tokens.
    by
        ``"words"`` (Unicode words in lower case), ``"whitespace"`` or ``"qgrams"``.
    q
        Characters of a q-gram, 1 to 255.
    into
        ``"items"``: a row for each token; ``"sets"``: a set of numbers for each text, as
        `set_similarity_join` takes it; ``"text_sets"``: a set of texts for each text. Numbers are
        those of one call: sets of two calls are not joined, but sets of texts are.
    column
        The column of a table with several.
    carry
        Columns that go along with the sets.

    Returns
    -------
    Table
        ``item`` (utf8); or ``id`` (uint32, the row of the text from 0), ``set`` (a list of uint32,
        ascending, or of texts) and the columns of `carry`.

    Raises
    ------
    ValueError
        If a parameter is not allowed, or the column has no texts.

    Examples
    --------
    >>> tokenize(["Don't panic,", "3.14!"])["item"]
    ["don't", 'panic', '3.14']
    """
    asked = form("texts", column, carry=carry, into="text")
    stage = with_parameters(
        "tokens",
        "tokenize",
        ["texts"],
        column=asked["into"],
        by=by,
        q=q,
        into=into,
        carry=carried(asked),
    )
    return with_names(run([stage], [("texts", source(texts), asked)]), asked)


def set_similarity_join(
    left: Any,
    right: Any = None,
    *,
    threshold: Exact,
    similarity: Similarity = "jaccard",
    column: str | None = None,
    carry: Iterable[str] = (),
    mode: JoinMode = "join",
    output: JoinOutput = "pairs",
    window: JoinWindow | None = None,
    size_min: int | None = None,
    algorithm: JoinAlgorithm | None = None,
    device: Device = "auto",
    verify: VerifyMode | None = None,
    memory_max: int | None = None,
) -> Table:
    """Find all pairs of similar sets, exactly.

    Sets are lists of whole numbers from 0 to 2^32 - 1 or lists of texts, in any order; an element
    that occurs twice counts once. Lists of uint32 that ascend strictly are not copied. An empty
    set and a null are similar to no set; windows do not count nulls. Texts of more than 1,024 bytes
    are compared by their beginning and a hash of 128 bits.

    Parameters
    ----------
    left
        A column of lists, or a table with one.
    right
        The sets to join `left` with. Without it, `left` is joined to itself: each pair comes once,
        with ``left < right``.
    threshold
        The least similarity of a pair, taken exactly: 0.8, "4/5", "80%" or a `fractions.Fraction`.
        A float stands for the simplest fraction that rounds to it: 1 / 3 is "1/3". For
        ``"overlap"``, a number of tokens.
    similarity
        ``"jaccard"``, ``"cosine"``, ``"dice"`` or ``"overlap"``.
    column
        The column of sets of a table with several; in both tables.
    carry
        Columns that go along: ``x`` becomes ``left_x`` and ``right_x``. With ``"deduplicate"`` they
        keep their names, and a column of the result of the same name gets a ``_``.
    mode
        ``"join"``, or ``"deduplicate"``: the rows whose set is similar to no earlier set.
    output
        ``"pairs"``, or ``"count"`` for their number.
    window
        Join each set to those before it in a window: ``{"sets": 100000}``.
    size_min
        The least number of tokens of a set; smaller ones are similar to no set.
    algorithm, device, verify
        The way to the pairs, which are the same for all: see the guide of Trommel. `device` is
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    memory_max
        Bytes that the sets and their index may take, 4 GiB if left out.

    Returns
    -------
    Table
        ``left`` and ``right`` (uint32, the rows of the sets from 0), ``overlap`` (uint32),
        ``similarity`` (float64) and carried columns, in no particular order; or ``count`` (uint64).
        With ``"deduplicate"``: ``id``, ``set`` and carried columns.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or a token is negative, null or of another type.
    PipelineError
        If the join fails, such as for want of memory.

    Examples
    --------
    >>> baskets = [["milk", "tea", "rye"], ["tea", "milk", "rye", "jam"], ["salt"]]
    >>> set_similarity_join(baskets, threshold="3/4").to_pylist()[0]["overlap"]
    3
    """
    asked = form("sets", column, carry=carry, into="set")
    return _join(
        "set_similarity_join",
        left,
        right,
        asked,
        threshold=number("threshold", threshold),
        similarity=similarity,
        mode=mode,
        output=output,
        window=window,
        size_min=size_min,
        algorithm=algorithm,
        device=device,
        verify=verify,
        memory_max=memory_max,
        carry=carried(asked) if mode != "deduplicate" else None,
    )


def near_duplicates(
    texts: Any,
    threshold: Exact = "4/5",
    by: TokenizeBy = "words",
    *,
    right: Any = None,
    q: int | None = None,
    similarity: Similarity = "jaccard",
    column: str | None = None,
    carry: Iterable[str] = (),
    mode: JoinMode = "join",
    keep: Keep | None = None,
    keep_by: str | None = None,
    size_min: int | None = None,
    device: Device = "auto",
    memory_max: int | None = None,
) -> Table:
    """Find all pairs of texts that share most of their words or q-grams, exactly.

    Parameters
    ----------
    texts
        A column of texts, or a table with one. A null is similar to no text.
    threshold
        The least similarity of the sets of tokens, taken exactly: 0.8, "4/5", "80%" or a
        `fractions.Fraction`. A float stands for the simplest fraction that rounds to it.
    by
        ``"words"``, ``"whitespace"`` or ``"qgrams"``.
    right
        The texts to compare `texts` with. Without it, `texts` are compared with each other.
    q
        Characters of a q-gram; 3 if left out.
    similarity
        ``"jaccard"``, ``"cosine"``, ``"dice"`` or ``"overlap"``.
    column
        The column of a table with several.
    carry
        Columns that go along: ``x`` becomes ``left_x`` and ``right_x``. With ``"deduplicate"`` they
        keep their names, and a column of the result of the same name gets a ``_``.
    mode
        ``"join"``, or ``"deduplicate"``: the rows whose text is similar to no earlier one.
    keep
        Return all rows of the texts, each with its cluster, and with whether the row is to stay: as
        for `clusters`, with rows in the place of ids. Not with `right`, `carry` or ``"deduplicate"``.
    keep_by
        The column or expression that decides for ``"largest"`` and ``"smallest"``, such as
        ``"length(text)"``.
    size_min
        The least number of distinct tokens of a text; shorter ones are similar to no text.
    device, memory_max
        As for `set_similarity_join`.

    Returns
    -------
    Table
        ``left`` and ``right`` (uint32, the rows of the texts from 0, ``left < right`` without
        `right`), ``overlap`` (uint32), ``similarity`` (float64) and carried columns. With ``"deduplicate"``: ``id`` (the
        row), ``set`` (the numbers of its tokens) and carried columns. With `keep`: the columns of the
        texts, ``cluster`` (uint32, the first row of the cluster), ``size`` (uint32) and ``kept`` (bool).

    Raises
    ------
    ValueError
        If a parameter is out of its range, or the column has no texts.
    PipelineError
        If the join fails, such as for want of memory.

    Examples
    --------
    >>> texts = ["a river of gravel", "the river of gravel", "heavy pieces"]
    >>> [(p["left"], p["right"]) for p in near_duplicates(texts, "3/5").to_pylist()]
    [(0, 1)]
    >>> near_duplicates({"text": texts}, "3/5", keep="largest", keep_by="length(text)")["kept"]
    [False, True, True]
    """
    asked = form("texts", column, carry=carry, into="text")
    if by == "qgrams" and q is None:
        q = 3
    if keep is not None and (right is not None or asked["carry"] or mode != "join"):
        raise ValueError("keep: all rows are returned; leave `right`, `carry` and `mode` out")
    is_one = right is None
    tokens = with_parameters(
        "tokens",
        "tokenize",
        ["texts"],
        column=asked["into"],
        by=by,
        q=q,
        into="sets" if is_one else "text_sets",
        carry=carried(asked),
    )
    similar = {
        "threshold": number("threshold", threshold),
        "similarity": similarity,
        "mode": mode,
        "size_min": size_min,
        "device": device,
        "memory_max": memory_max,
        "carry": carried(asked) if mode != "deduplicate" else None,
    }
    if is_one and keep is not None:
        return _clustered(texts, asked, tokens, similar, keep=keep, by=keep_by, memory_max=memory_max)
    if is_one:
        stages = [tokens, with_parameters("similar", "set_similarity_join", ["tokens"], **similar)]
        return with_names(run(stages, [("texts", source(texts), asked)]), asked)
    # Each table has a dictionary of its own, so that tokens of both are compared as texts.
    left, other = (run([tokens], [("texts", source(data), asked)]) for data in (texts, right))
    sets = form("sets", "set", into="set")
    sets["carry"] = [(into, into) for _, into in asked["carry"]]
    stage = with_parameters("similar", "set_similarity_join", ["left", "right"], **similar)
    return with_names(run([stage], [("left", left, sets), ("right", other, sets)]), asked)


def _clustered(
    texts: Any,
    asked: dict[str, Any],
    tokens: Stage,
    similar: dict[str, Any],
    /,
    **parameters: Any,
) -> Table:
    """The rows of the texts with their clusters. Both inputs of the clusters number the rows."""
    rows = table(texts)
    named = rows.column_names
    # A column of ids would stand for the numbers of the rows.
    free = "id_"
    while free in named:
        free += "_"
    hidden = rows.with_names([free if name == "id" else name for name in named])
    stages = [
        tokens,
        with_parameters("similar", "set_similarity_join", ["tokens"], **similar),
        with_parameters("clusters", "clusters", ["similar", "table"], **parameters),
    ]
    found = run(stages, [("texts", rows, asked), ("table", hidden, form("rows", into="rows"))])
    return found.with_names([*named, *found.column_names[len(named) :]])


def frequent_pairs(
    transactions: Any,
    support: Exact,
    *,
    itemset: int = 2,
    measures: Iterable[Measure] = (),
    column: str | None = None,
    window: PairWindow | None = None,
    layout: Layout | None = None,
    device: Device = "auto",
    memory_max: int | None = None,
) -> Table:
    """Find all pairs or triples of items that occur together often, exactly.

    Parameters
    ----------
    transactions
        A column of lists of whole numbers from 0 to 2^32 - 1 or of texts, or a table with one. An
        item that occurs twice in a transaction counts once. A null is no transaction, and an empty
        list is one. Texts of more than 1,024 bytes are kept, and returned, as their beginning and a
        hash of the whole.
    support
        The least number of transactions that hold all items, or a share of all transactions. An
        `int` is a number, such as 10; everything else is a share, taken exactly: 0.01, "1/300",
        "1%", a `fractions.Fraction`, and 1.0 for all. A float stands for the simplest fraction that
        rounds to it, so that ``c / n`` is the share of c of n.
    itemset
        2 for pairs, 3 for triples.
    measures
        More columns: ``"confidence"``, ``"lift"``.
    column
        The column of a table with several.
    window
        Count in windows: ``{"transactions": 100000}``, with ``"slide"``.
    layout, device
        The way to the pairs, which are the same for all: see the guide of Trommel.
    memory_max
        Bytes that the transactions may take, 4 GiB if left out.

    Returns
    -------
    Table
        ``left``, ``right`` (and ``third``), the items as they came in, ``support`` (uint32) and the
        columns of `measures`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or an item is negative, null or of another type.
    PipelineError
        If the count fails, such as for want of memory.

    Examples
    --------
    >>> baskets = [["milk", "tea"], ["tea", "rye", "milk"], ["rye"]]
    >>> frequent_pairs(baskets, 2).to_pylist()
    [{'left': 'milk', 'right': 'tea', 'support': 2}]
    """
    asked = form("transactions", column, into="set")
    stage = with_parameters(
        "pairs",
        "frequent_pairs",
        ["transactions"],
        support=number("support", support),
        itemset=itemset,
        measures=names("measures", measures) or None,
        window=window,
        layout=layout,
        device=device,
        memory_max=memory_max,
    )
    return run([stage], [("transactions", source(transactions), asked)])


def epsilon_join(
    left: Any,
    right: Any = None,
    *,
    epsilon: float,
    output: EpsilonOutput = "pairs",
    column: str | None = None,
    carry: Iterable[str] = (),
    window: VectorWindow | None = None,
    on_error: OnError = "fail",
    algorithm: EpsilonAlgorithm | None = None,
    device: Device = "auto",
    memory_max: int | None = None,
) -> Table:
    """Find all pairs of vectors within a Euclidean distance, exact to the border.

    Coordinates are float32; other numbers are rounded to it, so that a pair whose distance is within
    that rounding of `epsilon` may be decided differently than in float64. A pair joins if its
    ``distance`` is at most `epsilon`: the root of the sum of the squares of the differences, in
    float64 and in the order of the coordinates. A null vector or coordinate is like a coordinate
    that is not a number: `on_error` decides.

    Parameters
    ----------
    left
        A NumPy array of shape (vectors, coordinates), a column of lists of equal length, or a table
        with one. A C-contiguous array of float32 is not copied on its way in.
    right
        The vectors to join `left` with. Without it, `left` is joined to itself: each pair comes
        once, with ``left < right``.
    epsilon
        The largest distance, at least 0.
    output
        ``"pairs"``; ``"count"``: their number; ``"partners"``: each vector with the number of its
        partners; ``"first"``: the vectors without a partner before them.
    column
        The column of a table with several.
    carry
        Columns that go along: ``x`` becomes ``left_x`` and ``right_x`` of a pair. With ``"partners"``
        and ``"first"`` they keep their names, and a column of the result of the same name gets a
        ``_``.
    window
        Join each vector to those before it in a window: ``{"vectors": 100000}``.
    on_error
        ``"fail"`` names the row of a coordinate that is null, infinite or not a number; ``"skip"``
        leaves the vector out, in each `output`.
    algorithm, device
        The way to the pairs, which are the same for all: see the guide of Trommel.
    memory_max
        Bytes of the vectors and their directory, 16 GiB if left out.

    Returns
    -------
    Table
        ``left`` and ``right`` (uint32, the rows of the vectors from 0), ``distance`` (float64) and
        carried columns, in no particular order; or the columns of another `output`.

    Raises
    ------
    ValueError
        If a parameter is out of its range, the vectors differ in their lengths, or a number is
        beyond float32.
    PipelineError
        If the join fails, such as for a coordinate that is not a number.

    Examples
    --------
    >>> epsilon_join([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]], epsilon=5).to_pylist()
    [{'left': 0, 'right': 1, 'distance': 5.0}]
    """
    asked = form("vectors", column, carry=carry, into="vector", is_strict=on_error != "skip")
    return _join(
        "epsilon_join",
        left,
        right,
        asked,
        epsilon=real("epsilon", epsilon),
        output=output,
        window=window,
        on_error=on_error,
        algorithm=algorithm,
        device=device,
        memory_max=memory_max,
        carry=carried(asked),
    )
