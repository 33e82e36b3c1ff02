"""Joins of data that comes bit by bit."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from typing import Any, TypeVar

from . import _trommel
from ._inputs import carried, form, given, number, real, source, with_names
from ._stages import (
    Device,
    EpsilonOutput,
    Exact,
    JoinWindow,
    OnError,
    Similarity,
    VectorWindow,
)
from ._trommel import Table

_S = TypeVar("_S", bound="_Stream")


class _Stream:
    """A pipeline of one operator: fed by `add`, its rows taken when they are there."""

    _operator: str

    def __init__(
        self,
        kind: str,
        column: str | None,
        carry: Iterable[str],
        parameters: dict[str, Any],
    ) -> None:
        into = "set" if kind == "sets" else "vector"
        is_strict = parameters.get("on_error") != "skip"
        self._form = form(kind, column, carry=carry, into=into, is_strict=is_strict)
        self._parameters = given(**parameters, carry=carried(self._form))
        self._run: _trommel.Run | None = None
        # Held while the run is started, which the first data does.
        self._lock = threading.Lock()
        self._is_finished = False
        self._rows = 0
        # Data that came before the first that has a type.
        self._waiting: list[Table] = []

    def _start(self, rows: Table) -> _trommel.Run:
        stages = [
            {"id": "in", "operator": "feed"},
            {"id": "join", "operator": self._operator, "inputs": ["in"], "with": self._parameters},
            {"id": "out", "operator": "collect", "inputs": ["join"]},
        ]
        config = json.dumps({"name": type(self).__name__, "stages": stages}, allow_nan=False)
        feeds = [("in", self._form, rows)]
        return _trommel.start(config, "arguments", [], (feeds, [], [("out", None)]))

    def _add(self, data: Any) -> Table:
        if self._is_finished:
            raise ValueError(f"this {type(self).__name__} is finished and takes no more data")
        rows = _trommel.chosen(source(data), self._form)
        with self._lock:
            if self._run is None:
                if _trommel.formed_type(rows, self._form) is None:
                    self._waiting.append(rows)
                    self._rows += len(rows)
                    return _trommel.empty([])
                run = self._start(rows)
                for earlier in self._waiting:
                    run.feed("in", earlier)
                self._run = run
        if not self._run.feed("in", rows):
            # The run has failed; this raises the reason.
            self._run.join(None)
        self._rows += len(rows)
        return self._take(self._run)

    def _take(self, run: _trommel.Run) -> Table:
        return with_names(run.take("out"), self._form)

    def __len__(self) -> int:
        """The number of rows so far."""
        return self._rows

    def take(self) -> Table:
        """The rows that were found since the last call of `add` or `take`, without waiting."""
        if self._run is None:
            raise ValueError("there is no data yet, so that the columns are not known")
        return self._take(self._run)

    def finish(self) -> Table:
        """End the stream, wait for the rows of all data, and return those not taken before.

        Raises `PipelineError` if the join has failed. Further calls return no rows.
        """
        self._is_finished = True
        if self._run is None:
            raise ValueError("there is no data yet, so that the columns are not known")
        self._run.finish("in")
        try:
            self._run.join(None)
        except KeyboardInterrupt:
            self._run.interrupt()
            raise
        return self._take(self._run)

    def close(self) -> None:
        """End the stream; rows that are not there yet are lost. A closed stream stays closed."""
        self._is_finished = True
        if self._run is not None:
            self._run.interrupt()

    def __enter__(self: _S) -> _S:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class SetJoinStream(_Stream):
    """Joins each set on arrival to the sets of a window before it.

    A stream runs beside the program: `add` hands sets over and returns the pairs that were found
    meanwhile, which may be pairs of earlier sets. `finish` waits for all.

    Parameters
    ----------
    threshold
        The least similarity of a pair, as for `set_similarity_join`.
    window
        ``{"sets": 100000}`` or ``{"seconds": 60}``.
    similarity
        ``"jaccard"``, ``"cosine"``, ``"dice"`` or ``"overlap"``.
    column, carry, size_min, device, memory_max
        As for `set_similarity_join`.

    Raises
    ------
    ValueError
        If a parameter is out of its range; at the first data.

    Examples
    --------
    >>> with SetJoinStream("1/2", window={"sets": 1000}) as stream:
    ...     found = stream.add([["milk", "tea"], ["rye"]]).to_pylist()
    ...     found += stream.add([["tea", "milk", "jam"]]).to_pylist()
    ...     found += stream.finish().to_pylist()
    >>> [(pair["left"], pair["right"]) for pair in found]
    [(0, 2)]
    """

    _operator = "set_similarity_join"

    def __init__(
        self,
        threshold: Exact,
        *,
        window: JoinWindow,
        similarity: Similarity = "jaccard",
        column: str | None = None,
        carry: Iterable[str] = (),
        size_min: int | None = None,
        device: Device | None = None,
        memory_max: int | None = None,
    ) -> None:
        super().__init__(
            "sets",
            column,
            carry,
            {
                "threshold": number("threshold", threshold),
                "window": dict(window),
                "similarity": similarity,
                "size_min": size_min,
                "device": device,
                "memory_max": memory_max,
            },
        )

    def add(self, sets: Any) -> Table:
        """Hand sets over, and take the pairs found so far.

        Parameters
        ----------
        sets
            As for `set_similarity_join`; with the same columns in all calls. Nulls do not count in
            the window.

        Returns
        -------
        Table
            ``left`` and ``right`` (uint32, positions in the stream from 0, ``left < right``),
            ``overlap``, ``similarity`` and carried columns.
        """
        return self._add(sets)


class EpsilonStream(_Stream):
    """Joins each vector on arrival to the vectors of a window before it.

    A stream runs beside the program: `add` hands vectors over and returns the pairs that were found
    meanwhile, which may be pairs of earlier vectors. `finish` waits for all.

    Parameters
    ----------
    epsilon
        The largest Euclidean distance of a pair, at least 0.
    window
        ``{"vectors": 100000}`` or ``{"seconds": 60}``.
    output
        ``"pairs"``, or ``"first"``: the vectors without a partner before them.
    column, carry, on_error, memory_max
        As for `epsilon_join`.

    Raises
    ------
    ValueError
        If a parameter is out of its range; at the first data.

    Examples
    --------
    >>> with EpsilonStream(5, window={"vectors": 1000}) as stream:
    ...     found = stream.add([[0.0, 0.0], [9.0, 9.0]]).to_pylist()
    ...     found += stream.add([[3.0, 4.0]]).to_pylist()
    ...     found += stream.finish().to_pylist()
    >>> found
    [{'left': 0, 'right': 2, 'distance': 5.0}]
    """

    _operator = "epsilon_join"

    def __init__(
        self,
        epsilon: float,
        *,
        window: VectorWindow,
        output: EpsilonOutput | None = None,
        column: str | None = None,
        carry: Iterable[str] = (),
        on_error: OnError | None = None,
        memory_max: int | None = None,
    ) -> None:
        super().__init__(
            "vectors",
            column,
            carry,
            {
                "epsilon": real("epsilon", epsilon),
                "window": dict(window),
                "output": output,
                "on_error": on_error,
                "memory_max": memory_max,
            },
        )

    def add(self, vectors: Any) -> Table:
        """Hand vectors over, and take the pairs found so far.

        Parameters
        ----------
        vectors
            As for `epsilon_join`; with the same columns and lengths in all calls. Vectors that are
            left out do not count in the window.

        Returns
        -------
        Table
            ``left`` and ``right`` (uint32, positions in the stream from 0, ``left < right``),
            ``distance`` (float64) and carried columns.
        """
        return self._add(vectors)
