"""Functions over the rows of tables: Arrow in, a table out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._inputs import form, names, source
from ._run import Input, run, with_parameters
from ._stages import Duplicates, Keep, LookupMode
from ._trommel import Table


def filter(data: Any, where: str) -> Table:
    """Keep the rows for which an expression is true.

    Parameters
    ----------
    data
        A table, or a column, which is named ``item``.
    where
        The expression, in the words of SQL, such as ``"status >= 500 and host like 'www.%'"``.

    Returns
    -------
    Table
        The rows with all their columns. A row for which the expression is null is left out.

    Raises
    ------
    ValueError
        If the expression names a column or function that there is not, or its types do not fit.
    PipelineError
        If the expression has no value for a row, such as a cast of a text to a number.

    Examples
    --------
    >>> filter({"n": [1, 2, 3, 4]}, "n % 2 = 0 and n > 2")["n"]
    [4]
    """
    asked = form("rows", into="rows")
    return run([with_parameters("kept", "filter", ["data"], where=where)], [("data", source(data), asked)])


def select(data: Any, columns: Iterable[str]) -> Table:
    """Compute columns by expressions.

    Parameters
    ----------
    data
        A table, or a column, which is named ``item``.
    columns
        Expressions such as ``"host"``, ``"bytes / 1024 as kib"``, ``"*"``, ``"* except (a, b)"`` and
        once ``"unnest(list) as value"``, which makes a row of each value.

    Returns
    -------
    Table
        The columns in their order.

    Raises
    ------
    ValueError
        If an expression names a column or function that there is not, or its types do not fit.
    PipelineError
        If an expression has no value for a row, such as a cast of a text to a number.

    Examples
    --------
    >>> select({"n": [1, 2]}, ["n", "n * n as square"])["square"]
    [1, 4]
    """
    asked = form("rows", into="rows")
    stage = with_parameters("columns", "select", ["data"], columns=names("columns", columns))
    return run([stage], [("data", source(data), asked)])


def aggregate(
    data: Any,
    compute: str | Iterable[str],
    by: str | Iterable[str] = (),
    *,
    memory_max: int | None = None,
) -> Table:
    """Compute counts, sums, means, quantiles and other values for each group of rows.

    Parameters
    ----------
    data
        A table, or a column, which is named ``item``.
    compute
        Calls with names, such as ``"count(*) as n"``, ``"avg(ms) as mean"`` and
        ``"quantile(ms, 0.99) as p99"``; the page of the operator `aggregate` lists the functions.
    by
        The columns or expressions whose values are the group of a row. Without them, all rows are one
        group.
    memory_max
        Most bytes of the groups and their values.

    Returns
    -------
    Table
        The columns of `by` and of `compute`, a row for each group, ascending by `by`. Nulls form a
        group.

    Raises
    ------
    ValueError
        If an expression names a column or function that there is not, or its types do not fit.
    PipelineError
        If a sum does not fit its type, or the memory does not suffice.

    Examples
    --------
    >>> aggregate({"host": ["a", "b", "a"], "ms": [1, 5, 4]}, ["count(*) as n", "sum(ms) as ms"], "host").to_pylist()
    [{'host': 'a', 'n': 2, 'ms': 5}, {'host': 'b', 'n': 1, 'ms': 5}]
    """
    asked = form("rows", into="rows")
    stage = with_parameters(
        "groups",
        "aggregate",
        ["data"],
        compute=compute if isinstance(compute, str) else names("compute", compute),
        by=by if isinstance(by, str) else names("by", by),
        memory_max=memory_max,
    )
    return run([stage], [("data", source(data), asked)])


def lookup(
    stream: Any,
    table: Any,
    key: str | Iterable[str],
    *,
    table_key: str | Iterable[str] | None = None,
    mode: LookupMode = "left",
    columns: str | Iterable[str] | None = None,
    duplicates: Duplicates = "fail",
    memory_max: int | None = None,
) -> Table:
    """Join rows to a table by a key: the name that belongs to an id, or the rows whose key is in a list.

    Parameters
    ----------
    stream
        The rows that are looked up. They are returned in their order.
    table
        The table in which they are looked up.
    key
        The key of a row of `stream`: a column, an expression such as ``"lower(host)"``, or a list of
        them. A null matches nothing.
    table_key
        The key of a row of `table`; without it, as `key`.
    mode
        ``"left"``: all rows, with nulls where `table` has no row with the key; ``"inner"``: the rows
        whose key `table` has; ``"anti"``: the rows whose key `table` does not have; ``"semi"``: as
        ``"inner"``, without the columns of `table`.
    columns
        Columns of `table` that are added: ``"x"``, ``"x as y"``, or a list of them; without it, all
        columns but the key.
    duplicates
        The row of `table` that counts, of several rows with one key: ``"fail"`` (an error),
        ``"first"``, ``"last"`` or ``"all"`` (a row for each).
    memory_max
        Most bytes of the table.

    Returns
    -------
    Table
        The columns of `stream`, and with ``"left"`` and ``"inner"`` `columns` of `table`.

    Raises
    ------
    ValueError
        If a column is missing, two columns have one name, or the types of the keys differ.
    PipelineError
        If two rows of `table` have one key, or the memory does not suffice.

    Examples
    --------
    >>> lookup({"host": [2, 1, 7]}, {"id": [1, 2], "name": ["db", "web"]}, "host", table_key="id")["name"]
    ['web', 'db', None]
    """

    def texts(parameter: str, value: str | Iterable[str] | None) -> str | list[str] | None:
        return value if value is None or isinstance(value, str) else names(parameter, value)

    stage = with_parameters(
        "lookup",
        "lookup",
        ["stream", "table"],
        key=texts("key", key),
        table_key=texts("table_key", table_key),
        mode=mode,
        columns=texts("columns", columns),
        duplicates=duplicates,
        memory_max=memory_max,
    )
    asked = form("rows", into="rows")
    return run([stage], [("stream", source(stream), asked), ("table", source(table), asked)])


def clusters(
    pairs: Any,
    rows: Any = None,
    *,
    left: str = "left",
    right: str = "right",
    id_: str | None = None,
    keep: Keep = "first",
    by: str | None = None,
    memory_max: int | None = None,
) -> Table:
    """Make clusters of pairs: ids are in one cluster if a chain of pairs leads from one to the other.

    Parameters
    ----------
    pairs
        A table of pairs, such as `set_similarity_join`, `near_duplicates` and `epsilon_join` return.
    rows
        The rows of which the pairs tell. They are returned with their clusters.
    left, right
        The columns or expressions of the ids of a pair: integers or texts.
    id_
        The column or expression of the ids of `rows`. Without it, the column ``id`` if there is one,
        or else the number of the row, from 0.
    keep
        The row of each cluster that is to stay: ``"first"`` (the smallest id), ``"last"``,
        ``"unmatched"`` (each one that is `right` in no pair), or with `rows` ``"largest"`` or
        ``"smallest"`` by the value of `by`.
    by
        The column or expression that decides, such as ``"length(text)"``.
    memory_max
        Most bytes of the ids and the rows.

    Returns
    -------
    Table
        ``id``, ``cluster`` (the smallest id of the cluster), ``size`` (uint32) and ``kept`` (bool) for
        each id of a pair; with `rows`, their columns and ``cluster``, ``size`` and ``kept``.

    Raises
    ------
    ValueError
        If a column is missing or has another type, or `keep` and `by` do not fit.
    PipelineError
        If an id is null, two rows have one id, or the memory does not suffice.

    Examples
    --------
    >>> clusters({"left": [1, 2, 8], "right": [2, 3, 9]})["cluster"]
    [1, 1, 1, 8, 8]
    """
    inputs: list[Input] = [("pairs", source(pairs), form("rows", into="rows"))]
    if rows is not None:
        inputs.append(("table", source(rows), form("rows", into="rows")))
    stage = with_parameters(
        "clusters",
        "clusters",
        [id for id, _, _ in inputs],
        left=left,
        right=right,
        id=id_,
        keep=keep,
        by=by,
        memory_max=memory_max,
    )
    return run([stage], inputs)
