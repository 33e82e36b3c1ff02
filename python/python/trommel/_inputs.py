"""Any data as an object with an Arrow interface that the native half takes."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from . import _trommel
from ._trommel import Table


def source(data: Any) -> Any:
    """The data as the native half takes it: a table, or a reader of the columns that it wants.

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
    if hasattr(data, "__arrow_c_array__") or hasattr(data, "__arrow_c_stream__"):
        return _reader([data])
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(data, numpy.ndarray):
        return _of_numpy(numpy, data)
    if isinstance(data, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"expected a column of data, found one {type(data).__name__}; put it in a list")
    if isinstance(data, Mapping):
        return _trommel.combine([(str(name), table(column)) for name, column in data.items()])
    if isinstance(data, Iterable):
        rows = list(data)
        if rows and all(hasattr(row, "__arrow_c_array__") for row in rows):
            return _reader(rows)
        return _trommel.column(rows, "item")
    raise TypeError(
        "expected data with an Arrow interface (`__arrow_c_stream__` or `__arrow_c_array__`), a "
        f"NumPy array, a list or a dict of columns; found {type(data).__name__}"
    )


def _reader(parts: list[Any]) -> Any:
    from ._capsules import Reader

    return Reader(parts)


def _of_numpy(numpy: Any, data: Any) -> Any:
    if data.dtype.kind in "OUT" or isinstance(data, numpy.ma.MaskedArray):
        if data.ndim > 1:
            raise ValueError(f"a NumPy array of {data.dtype} with {data.ndim} dimensions: expected one")
        return _trommel.column(data.tolist(), "item")
    from ._capsules import numpy_column

    return _reader([numpy_column(data)])


def table(data: Any) -> Table:
    """Read data as a table.

    Data with an Arrow interface and NumPy arrays of numbers are not copied: the table refers to
    their memory, which must not be written while the table is in use.

    Parameters
    ----------
    data
        An object with ``__arrow_c_stream__`` or ``__arrow_c_array__`` (a pyarrow, polars, pandas or
        DuckDB table or column), a NumPy array of one or two dimensions, a list of texts, numbers or
        lists of these, or a dict of such columns. A single column is named ``item``. A column of
        structs is a table, and a null of it a null of each column.

    Raises
    ------
    TypeError
        If the data or one of its elements has another type.

    Examples
    --------
    >>> table({"basket": [["milk", "tea"], ["milk"]]}).column_names
    ['basket']
    """
    return _trommel.table(source(data))


def form(
    kind: str,
    column: str | None = None,
    *,
    weight: str | None = None,
    name: str | None = None,
    carry: Iterable[str] = (),
    into: str,
    is_strict: bool = True,
) -> dict[str, Any]:
    """The form of the data of a source."""
    return {
        "kind": kind,
        "column": _name("column", column),
        "weight": _name("weight", weight),
        "name": _name("name", name),
        "carry": [(found, f"carry {n}") for n, found in enumerate(names("carry", carry))],
        "into": into,
        "is_strict": is_strict,
    }


def carried(asked: dict[str, Any]) -> list[str] | None:
    """The names of the carried columns in the pipeline, none if there are none."""
    return [into for _, into in asked["carry"]] or None


def with_names(rows: Table, asked: dict[str, Any]) -> Table:
    """The rows with the names of the carried columns; a column of the same name gets a `_`."""
    if not asked["carry"]:
        return rows
    given = {into: found for found, into in asked["carry"]}
    named = [
        side + given[column.removeprefix(side)]
        for column in rows.column_names
        for side in ("left_", "right_", "")
        if column.startswith(side) and column.removeprefix(side) in given
    ]
    columns = []
    for column in rows.column_names:
        side = next((side for side in ("left_", "right_") if column.startswith(side)), "")
        if column.removeprefix(side) in given:
            columns.append(side + given[column.removeprefix(side)])
        else:
            while column in named:
                column += "_"
            columns.append(column)
    return rows.with_names(columns)


def _name(parameter: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{parameter}: expected the name of a column, found {type(value).__name__}")


def names(parameter: str, value: Iterable[str]) -> list[str]:
    """Names of columns; a single text is refused, which is a list of letters otherwise."""
    if isinstance(value, str):
        raise TypeError(f"{parameter}: expected a list of names, found the text {value!r}")
    found = list(value)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"{parameter}: expected a list of names, found {type(name).__name__} in it")
        if found.count(name) > 1:
            raise ValueError(f"{parameter}: `{name}` twice; name each column once")
    return found


def number(parameter: str, value: Any) -> Any:
    """A number or an exact fraction as JSON has it.

    A float stands for the simplest fraction that rounds to it; other fractions are texts.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    fractions = sys.modules.get("fractions")
    if fractions is not None and isinstance(value, fractions.Fraction):
        return f"{value.numerator}/{value.denominator}"
    decimal = sys.modules.get("decimal")
    if decimal is not None and isinstance(value, decimal.Decimal):
        text = f"{value:f}"
        # A text without a point is a whole number, such as a number of transactions.
        return text if "." in text else text + ".0"
    try:
        # Of a float of NumPy with fewer bits, the shortest text that it is read from.
        is_short = hasattr(value, "itemsize") and value.itemsize < 8 and hasattr(value, "is_integer")
        found = float(str(value)) if is_short else value.item() if hasattr(value, "item") else float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{parameter}: expected a number or a fraction such as \"4/5\", found {type(value).__name__}"
        ) from None
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError(f"{parameter}: expected a finite number, found {found}")
    return found


def real(parameter: str, value: Any) -> float | None:
    """A finite number as a float."""
    if value is None or type(value) is int:
        return value
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        found = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{parameter}: expected a number, found {type(value).__name__}") from None
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise ValueError(f"{parameter}: expected a finite number, found {found}")
    return found


def given(**parameters: Any) -> dict[str, Any]:
    """The parameters that are not None."""
    return {name: value for name, value in parameters.items() if value is not None}
