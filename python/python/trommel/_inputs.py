"""Any data as an object with an Arrow interface that the native half takes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from . import _trommel
from ._trommel import Table


def arrow(data: Any) -> Any:
    """The data as a table, a stream of rows, or columns.

    Data with an Arrow interface and NumPy arrays of numbers are not copied.
    """
    if isinstance(data, Table):
        return data
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if isinstance(data, pandas.DataFrame):
            # An index that is not the row number would become a column.
            data = data.reset_index(drop=True)
        elif isinstance(data, pandas.Series) and not hasattr(data, "__arrow_c_stream__"):
            data = data.reset_index(drop=True).to_frame("item")
    if hasattr(data, "__arrow_c_array__"):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        from ._capsules import stream_or_columns

        return stream_or_columns(data.__arrow_c_stream__())
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(data, numpy.ndarray):
        return _of_numpy(numpy, data)
    if isinstance(data, (str, bytes, bytearray)):
        raise TypeError(f"expected a column of data, found one {type(data).__name__}; put it in a list")
    if isinstance(data, Mapping):
        return _trommel.combine([(str(name), table(column)) for name, column in data.items()])
    if isinstance(data, Iterable):
        return _of_iterable(data)
    raise TypeError(
        "expected data with an Arrow interface (`__arrow_c_stream__` or `__arrow_c_array__`), a "
        f"NumPy array, a list or a dict of columns; found {type(data).__name__}"
    )


def _of_numpy(numpy: Any, data: Any) -> Any:
    if data.dtype.kind in "OUT" or isinstance(data, numpy.ma.MaskedArray):
        if data.ndim > 1:
            raise ValueError(f"a NumPy array of {data.dtype} with {data.ndim} dimensions: expected one")
        return _trommel.column(data.tolist(), "item")
    from ._capsules import numpy_column

    return numpy_column(data)


def _of_iterable(data: Iterable[Any]) -> Any:
    rows = list(data)
    if rows and all(hasattr(row, "__arrow_c_array__") for row in rows):
        return rows
    return _trommel.column(rows, "item")


def table(data: Any) -> Table:
    """Read data as a table.

    Data with an Arrow interface and NumPy arrays of numbers are not copied: the table refers to
    their memory, which must not be written while the table is in use.

    Parameters
    ----------
    data
        An object with ``__arrow_c_stream__`` or ``__arrow_c_array__`` (a pyarrow, polars, pandas or
        DuckDB table or column), a NumPy array of one or two dimensions, a list of texts, numbers or
        lists of these, or a dict of such columns. A single column is named ``item``.

    Raises
    ------
    TypeError
        If the data or one of its elements has another type.

    Examples
    --------
    >>> table({"basket": [["milk", "tea"], ["milk"]]}).column_names
    ['basket']
    """
    return _trommel.table(arrow(data), "item")


def form(
    kind: str,
    column: str | None = None,
    *,
    weight: str | None = None,
    carry: Iterable[str] = (),
    into: str,
) -> dict[str, Any]:
    """The form of the data of a source."""
    carried = names("carry", carry)
    return {
        "kind": kind,
        "column": column,
        "weight": weight,
        "carry": carried,
        "id": _free("id", carried),
        "into": _free(into, carried),
    }


def _free(name: str, taken: list[str]) -> str:
    """A name that no carried column has."""
    while name in taken:
        name += "_"
    return name


def names(parameter: str, value: Iterable[str]) -> list[str]:
    """Names of columns; a single text is refused, which is a list of letters otherwise."""
    if isinstance(value, str):
        raise TypeError(f"{parameter}: expected a list of names, found the text {value!r}")
    return list(value)


def number(parameter: str, value: Any) -> Any:
    """A number or an exact fraction as JSON has it: a text, or the shortest decimal of a float."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    fractions = sys.modules.get("fractions")
    if fractions is not None and isinstance(value, fractions.Fraction):
        return f"{value.numerator}/{value.denominator}"
    decimal = sys.modules.get("decimal")
    if decimal is not None and isinstance(value, decimal.Decimal):
        return f"{value:f}"
    try:
        value = value.item() if hasattr(value, "item") else float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{parameter}: expected a number or a fraction such as \"4/5\", found {type(value).__name__}"
        ) from None
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{parameter}: {value} is not a number")
    return value


def given(**parameters: Any) -> dict[str, Any]:
    """The parameters that are not None."""
    return {name: value for name, value in parameters.items() if value is not None}
