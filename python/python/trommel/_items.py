"""Frequent items of data that comes bit by bit."""

from __future__ import annotations

import json
import threading
import zlib
from typing import Any, NamedTuple

from . import _trommel
from ._inputs import form, given, number, source, table
from ._stages import Algorithm, Decay
from ._trommel import Table

_MAGIC = b"trommel frequent items 1\n"


class Counted(NamedTuple):
    """An item with bounds on its number: ``count - error <= true count <= count``."""

    item: Any
    count: int  # type: ignore[assignment]
    error: int


class FrequentItems:
    """The most frequent items of a stream, in bounded memory.

    For N items (or their weight) and k counters, ``count - error <= true count <= count`` and
    ``error <= N / k``; every item that occurs more than N / k times has a counter. The same holds
    after `merge`, for the N of all streams together. The type of the items is that of the first
    data: uint32, uint64 or texts.

    Objects of this class have no threads. Several threads may use one; it can be pickled, and used
    after a fork.

    Parameters
    ----------
    counters
        The number of items that are counted at a time, 1 to 2^26.
    algorithm
        ``"auto"``, ``"sieve"``, ``"space_saving"`` or ``"filter"``.
    seed
        Makes the counts of the sieve repeatable.
    item_bytes_max
        Bytes of the longest text that is kept as it is; 4096 if left out. A longer one is counted,
        and returned, as its beginning and a hash of the whole.
    state_bytes_max
        Bytes that the sieve may take, texts left out.
    decay
        Let counts fade: ``{"half_life_items": 1000000}``. Such a summary cannot be saved or merged.

    Raises
    ------
    ValueError
        If a parameter is out of its range; at the first data at the latest.

    Examples
    --------
    >>> words = FrequentItems(counters=100)
    >>> words.observe(["to", "be", "or", "not", "to", "be", "to"])
    >>> words.top(1).to_pylist()
    [{'rank': 1, 'item': 'to', 'count': 3, 'error': 0}]
    """

    def __init__(
        self,
        counters: int = 1000,
        *,
        algorithm: Algorithm | None = None,
        seed: int | None = None,
        item_bytes_max: int | None = None,
        state_bytes_max: int | None = None,
        decay: Decay | None = None,
    ) -> None:
        self._parameters = given(
            counters=counters,
            algorithm=algorithm,
            seed=seed,
            item_bytes_max=item_bytes_max,
            state_bytes_max=state_bytes_max,
            decay=dict(decay) if decay is not None else None,
        )
        self._is_weighted = False
        self._summary: _trommel.Summary | None = None
        # Held while the summary is made, which the first data does.
        self._lock = threading.Lock()
        # Finds mistakes in the parameters.
        self._make("Utf8")

    def _make(self, item: str) -> _trommel.Summary:
        """An empty summary of items of this type."""
        weight = "weight" if self._is_weighted else None
        parameters = {**self._parameters, "parallel": "off", **given(weight=weight)}
        columns = [("item", item)] + ([("weight", "UInt64")] if weight else [])
        asked = form("items", "item", weight=weight, into="item")
        sample = _trommel.empty(columns)
        return _trommel.Summary("frequent_items", json.dumps(parameters), asked, sample)

    def observe(self, items: Any, weights: Any = None, *, column: str | None = None) -> None:
        """Count items.

        Parameters
        ----------
        items
            Whole numbers from 0 to 2^64 - 1 or texts: a column, or a table with one. NumPy arrays
            and Arrow data are not copied, and must not be written meanwhile. Nulls are not counted.
        weights
            A column of whole numbers from 0, as long as `items`; the first call says whether there
            are weights in all calls. All weights add up to less than 2^64.
        column
            The column of a table with several.

        Raises
        ------
        ValueError
            If an item is negative or of another type than those before, or the weights add up to
            too much.
        """
        rows = _trommel.chosen(source(items), form("items", column, into="item"))
        column, weight = rows.column_names[0], None
        if weights is not None:
            rows = _trommel.combine([("item", rows), ("weight", table(weights))])
            column, weight = "item", "weight"
        asked = form("items", column, weight=weight, into="item")
        with self._lock:
            if self._summary is None:
                kind = _trommel.formed_type(rows, asked)
                if kind is None:
                    # There are only nulls, which are not counted.
                    return
                self._is_weighted = weight is not None
                self._summary = self._make(kind)
        if self._is_weighted != (weight is not None):
            raise ValueError("weights: the first data had " + ("some" if self._is_weighted else "none"))
        self._summary.observe(rows, asked)

    def _ask(self, name: str, **parameters: Any) -> Table:
        summary = self._summary if self._summary is not None else self._make("Utf8")
        return summary.query(name, json.dumps(parameters))

    def top(self, n: int = 10) -> Table:
        """The `n` items with the largest counts.

        Returns a table with ``rank`` (uint32, from 1), ``item``, ``count`` and ``error`` (uint64).

        >>> FrequentItems().top(3).to_pylist()
        []
        """
        return self._ask("top", n=n)

    def at_least(self, share: Any) -> Table:
        """The items whose count is at least this share of all, 0 to 1, taken exactly.

        `share` is a number such as 0.07 or 5 / 6, a text such as "1/3" or "7%" or a
        `fractions.Fraction`; a float stands for the simplest fraction that rounds to it. Returns a
        table as `top`. Raises `ValueError` for another share.
        """
        return self._ask("at_least", share=number("share", share))

    def estimate(self, item: Any) -> Counted:
        """Bounds on the number of times that `item` was observed.

        For an item without a counter, the most that it can have occurred. Raises `ValueError` if
        the item is of another type than those observed.

        >>> items = FrequentItems()
        >>> items.observe([7, 7, 3])
        >>> items.estimate(7)
        Counted(item=7, count=2, error=0)
        """
        if self._summary is None:
            return Counted(item, 0, 0)
        found = self._ask("estimate", item=item if isinstance(item, str) else number("item", item))
        row = found.to_pylist()[0]
        return Counted(row["item"], row["count"], row["error"])

    @property
    def observed(self) -> int:
        """The number of items so far, or the sum of their weights."""
        return 0 if self._summary is None else dict(self._summary.counters())["observed"]

    @property
    def counters(self) -> int:
        """The number of items that are counted at a time."""
        return int(self._parameters["counters"])

    def __len__(self) -> int:
        """The number of items that have a counter."""
        return 0 if self._summary is None else len(self._ask("top", n=2**62))

    def merge(self, other: FrequentItems) -> None:
        """Add the counts of another object with the same parameters and type of items.

        The bounds hold for both streams together. Raises `ValueError` if the parameters differ, and
        `TypeError` for another object.
        """
        if not isinstance(other, FrequentItems):
            raise TypeError(f"expected FrequentItems, found {type(other).__name__}")
        if other.counters != self.counters:
            raise ValueError(
                f"invalid merge of a summary with {self.counters} counters and one with "
                f"{other.counters}: the numbers must be equal"
            )
        if other._summary is None:
            return
        state, kind = other._state(), other._summary.item_type
        with self._lock:
            if self._summary is None:
                self._is_weighted = other._is_weighted
                self._summary = self._make(kind)
        if self._summary.item_type != kind:
            raise ValueError(
                f"invalid merge: the other one counts items of {kind}, and this one of "
                f"{self._summary.item_type}"
            )
        self._summary.merge(state)

    def _state(self) -> bytes:
        state = None if self._summary is None else self._summary.snapshot()
        if state is None:
            raise ValueError("counts that fade (`decay`) cannot be saved or merged")
        return state

    def to_bytes(self) -> bytes:
        """The counts as bytes, from which `from_bytes` makes an equal object.

        Raises `ValueError` for counts that fade.
        """
        head: dict[str, Any] = {"parameters": self._parameters}
        if self._summary is not None:
            head["item"] = self._summary.item_type
            head["is_weighted"] = self._is_weighted
        state = self._state() if self._summary is not None else b""
        written = _MAGIC + json.dumps(head).encode() + b"\n" + state
        return written + zlib.crc32(written).to_bytes(4, "little")

    @classmethod
    def from_bytes(cls, state: bytes) -> FrequentItems:
        """The object that `to_bytes` wrote down: it answers and goes on in the same way.

        Raises `ValueError` if the bytes are damaged or are something else.

        >>> items = FrequentItems()
        >>> items.observe(["a", "b", "a"])
        >>> FrequentItems.from_bytes(items.to_bytes()).top(1)["count"]
        [2]
        """
        if not state.startswith(_MAGIC):
            raise ValueError("invalid state: it does not begin as the states of FrequentItems do")
        written, checksum = state[:-4], state[-4:]
        if zlib.crc32(written).to_bytes(4, "little") != checksum:
            raise ValueError("invalid state: it is damaged, by its checksum")
        text, _, rest = written[len(_MAGIC) :].partition(b"\n")
        try:
            head = json.loads(text)
            made = cls(**head["parameters"])
            item, made._is_weighted = head.get("item"), bool(head.get("is_weighted"))
            made._summary = None if item is None else made._make(item)
        except (AttributeError, KeyError, RecursionError, TypeError, UnicodeDecodeError, json.JSONDecodeError):
            raise ValueError("invalid state: its header is none of FrequentItems") from None
        if made._summary is not None:
            made._summary.restore(rest)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrequentItems.from_bytes, (self.to_bytes(),))

    def __enter__(self) -> FrequentItems:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __repr__(self) -> str:
        return f"FrequentItems(counters={self.counters}), {self.observed} observed"
