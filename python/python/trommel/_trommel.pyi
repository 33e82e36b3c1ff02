"""The native half of the package; `Table`, `Schema` and `PipelineError` are public."""

from collections.abc import Callable, Iterator
from typing import Any

__version__: str
OPERATORS: list[tuple[str, str]]

class PipelineError(RuntimeError):
    """A pipeline failed while it ran, or was aborted.

    The text names the stage, its operator and the cause. `__cause__` is the exception of a Python
    source or sink, or the `OSError` of a file, if one of them was the cause.
    """

class Schema:
    """Names and types of the columns of a table; any Arrow library reads it.

    >>> table({"item": ["a"]}).schema
    trommel.Schema(item: Utf8)
    """

    @property
    def names(self) -> list[str]:
        """The names of the columns."""

    @property
    def types(self) -> list[str]:
        """The types of the columns, in the words of Arrow for Rust, such as ``List(UInt32)``."""

    def __len__(self) -> int:
        """The number of columns."""

    def __arrow_c_schema__(self) -> object: ...
    def __eq__(self, other: object) -> bool: ...

class Table:
    """Rows with named columns, in Arrow's form, which any Arrow library reads without a copy.

    ``pyarrow.table(t)``, ``polars.DataFrame(t)``, ``pandas.DataFrame.from_arrow(t)`` and DuckDB's
    SQL take a table; `to_pylist` and `to_pydict` need no library. `len` is the number of rows, which
    are iterated over as dicts; so ``pandas.DataFrame(t)`` takes a table, too.

    >>> rows = table({"item": ["a", "b"], "count": [2, 1]})
    >>> rows["count"]
    [2, 1]
    """

    @property
    def num_rows(self) -> int:
        """The number of rows."""

    @property
    def num_columns(self) -> int:
        """The number of columns."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""

    @property
    def schema(self) -> Schema:
        """Names and types of the columns."""

    def __len__(self) -> int:
        """The number of rows."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts, as `to_pylist` has them; so ``pandas.DataFrame(t)`` works."""

    def __getitem__(self, name: str) -> list[Any]:
        """The values of a column. Raises `KeyError` if there is no such column."""

    def select(self, names: list[str]) -> Table:
        """The columns of these names, without a copy. Raises `ValueError` for other names."""

    def with_names(self, names: list[str]) -> Table:
        """The same rows with other names of the columns. Raises `ValueError` for another number of them."""

    def head(self, rows: int) -> Table:
        """The first rows, without a copy."""

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts. A null is None; a time is a whole number of its unit since 1970.

        >>> table({"item": ["a", None]}).to_pylist()
        [{'item': 'a'}, {'item': None}]
        """

    def to_pydict(self) -> dict[str, list[Any]]:
        """The columns as lists, by their names.

        >>> table({"item": [[1, 2], []]}).to_pydict()
        {'item': [[1, 2], []]}
        """

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def _repr_html_(self) -> str: ...

_Form = dict[str, Any]
_Feed = tuple[str, _Form, Table]
_Iterator = tuple[str, _Form, Table, Iterator[Any]]
_Sink = tuple[str, Callable[[Table], object] | None]
_Ends = tuple[list[_Feed], list[_Iterator], list[_Sink]]

class Run:
    """A started pipeline."""

    @property
    def name(self) -> str: ...
    @property
    def phase(self) -> str: ...
    @property
    def sources(self) -> list[str]: ...
    def query(self, stage: str, name: str, parameters: str, timeout: float | None) -> Table: ...
    def watch(self, stage: str, name: str, parameters: str) -> StandingQuery: ...
    def report(self) -> str: ...
    def progress(self) -> tuple[int, int, int | None]: ...
    def stop(self, within: float | None) -> None: ...
    def abort(self) -> None: ...
    def interrupt(self) -> None: ...
    def join(self, timeout: float | None) -> bool: ...
    def feed(self, source: str, data: Any) -> bool: ...
    def finish(self, source: str) -> None: ...
    def take(self, sink: str) -> Table: ...
    def rows(self, sink: str) -> Table: ...
    def count(self, sink: str) -> int: ...
    def items_in(self, stage: str) -> int: ...

class StandingQuery:
    """A standing query of a running pipeline."""

    def latest(self) -> tuple[Table, float] | None: ...
    @property
    def has_ended(self) -> bool: ...

class Summary:
    """An operator that is called directly."""

    def __new__(cls, name: str, parameters: str, form: _Form, sample: Table) -> Summary: ...
    @property
    def item_type(self) -> str: ...
    def observe(self, data: Any, form: _Form) -> Table: ...
    def query(self, name: str, parameters: str) -> Table: ...
    def snapshot(self) -> bytes | None: ...
    def restore(self, state: bytes) -> None: ...
    def merge(self, state: bytes) -> None: ...
    def counters(self) -> list[tuple[str, int]]: ...

def run(config: str, inputs: list[tuple[str, Any, _Form]], sink: str) -> Table: ...
def start(config: str, file: str, overrides: list[str], ends: _Ends) -> Run: ...
def plan(config: str, file: str, overrides: list[str], ends: _Ends) -> str: ...
def table(data: Any) -> Table: ...
def chosen(data: Any, form: _Form) -> Table: ...
def column(data: Any, name: str) -> Table: ...
def combine(columns: list[tuple[str, Table]]) -> Table: ...
def empty(columns: list[tuple[str, str]]) -> Table: ...
def in_order(table: Table, first: int) -> Table: ...
def formed_type(data: Any, form: _Form) -> str | None: ...
def shutdown() -> None: ...
