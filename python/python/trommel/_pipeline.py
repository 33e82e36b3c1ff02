"""Pipelines: graphs of operators that run beside the program and answer queries."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, cast

from . import _trommel
from ._inputs import form, number, source, table
from ._stages import Stages
from ._trommel import Table

_Sink = Callable[[Table], object]


class _Source:
    """Data of a stage, or an iterator of data, with the columns of the first."""

    def __init__(self, data: Any) -> None:
        is_one = (
            isinstance(data, (Table, Mapping))
            or hasattr(data, "__arrow_c_array__")
            or hasattr(data, "__arrow_c_stream__")
            or type(data).__module__.partition(".")[0] == "numpy"
        )
        self._again = is_one
        self._first: Any = None
        if is_one:
            self._data: Any = table(data)
        else:
            self._data = iter(cast("Iterable[Any]", data))
            self._first = next(self._data, None)
            if self._first is None:
                raise ValueError(
                    "an iterator without data does not tell its columns: give an empty table instead"
                )
            self._first = table(self._first)
        self._used = False

    @property
    def sample(self) -> Table:
        """Rows that show the columns."""
        return self._data if self._again else self._first  # type: ignore[no-any-return]

    def open(self) -> Iterator[Any]:
        """The data, for one run."""
        if self._again:
            return iter([self._data])
        if self._used:
            raise ValueError("an iterator gives its data to one run; make a new pipeline for another")
        self._used = True
        return self._rest()

    def _rest(self) -> Iterator[Any]:
        yield self._first
        for data in self._data:
            yield source(data)


class Pipeline(Stages):
    """A graph of operators, as the JSON of a configuration describes it.

    The methods add a stage each and mirror the JSON one to one: ``p.read("text", paths=["*.md"],
    format="lines")`` is ``{"id": "text", "operator": "read", "with": {"paths": ["*.md"], "format":
    "lines"}}``. They return the id of the stage, for the `inputs` of others.

    Parameters
    ----------
    name
        Names the pipeline in reports.
    placement
        ``"auto"`` or ``"fused"`` (all stages that name no core on one thread).
    pin
        Pin every thread to a core of its own.
    memory_max
        Bytes for the state of all stages.
    queue
        ``{"batches": 8, "bytes": 67108864}``, the bounds of every queue.

    Examples
    --------
    >>> p = Pipeline()
    >>> items = p.generate("items", items=1000, alphabet=10)
    >>> top = p.frequent_items("top", items, n=3)
    >>> p.collect("rows", top)
    'rows'
    >>> len(p.run().rows("rows"))
    3
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        placement: str | None = None,
        pin: bool | None = None,
        memory_max: int | None = None,
        queue: Mapping[str, int] | None = None,
    ) -> None:
        self._document: dict[str, Any] = {}
        for key, value in (
            ("name", name),
            ("placement", placement),
            ("pin", pin),
            ("memory_max", memory_max),
            ("queue", dict(queue) if queue is not None else None),
        ):
            if value is not None:
                self._document[key] = value
        self._document["stages"] = []
        self._text: str | None = None
        self._file = "pipeline"
        self._sources: dict[str, _Source] = {}
        self._sinks: dict[str, _Sink | None] = {}

    @classmethod
    def from_json(
        cls,
        source: str | os.PathLike[str] | Mapping[str, Any],
        *,
        sources: Mapping[str, Any] | None = None,
        sinks: Mapping[str, _Sink | None] | None = None,
    ) -> Pipeline:
        """Read a pipeline from a file or a dict.

        Parameters
        ----------
        source
            The path of a JSON file, or its content as a dict.
        sources
            Data of stages with the operator ``memory``, by their ids: anything that `table` takes,
            or an iterator of such.
        sinks
            Functions of stages with the operator ``for_each``, by their ids, each called with a
            `Table`; None for a stage with the operator ``collect``.

        Raises
        ------
        OSError
            If the file cannot be read.
        ValueError
            When the pipeline is checked or started: all mistakes of the file, with line, column and
            the allowed values, as the command line shows them.
        """
        pipeline = cls()
        if isinstance(source, Mapping):
            pipeline._document = json.loads(json.dumps(dict(source)))
        else:
            pipeline._file = os.fspath(source)
            with open(pipeline._file, encoding="utf-8") as file:
                pipeline._text = file.read()
        for id, data in (sources or {}).items():
            pipeline._sources[id] = _Source(data)
        pipeline._sinks.update(sinks or {})
        return pipeline

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the pipeline as a dict."""
        document = json.loads(self._text) if self._text is not None else self._document
        return json.loads(json.dumps(document))  # type: ignore[no-any-return]

    def stage(
        self,
        id: str,
        operator: str,
        inputs: str | Iterable[str] = (),
        *,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> str:
        """Add a stage, and return its id.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        operator
            Its operator.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        parameters
            The parameters of the operator (``"with"`` in JSON); one that is None is not given.
        """
        if self._text is not None:
            self._document, self._text = json.loads(self._text), None
        stage: dict[str, Any] = {"id": id, "operator": operator}
        read = [inputs] if isinstance(inputs, str) else list(inputs)
        if read:
            stage["inputs"] = read
        if cores is not None:
            stage["cores"] = list(cores)
        if workers is not None:
            stage["workers"] = int(workers)
        given = {name: _plain(name, value) for name, value in (parameters or {}).items() if value is not None}
        if given:
            stage["with"] = given
        self._document["stages"].append(stage)
        return id

    def source(self, id: str, data: Any) -> str:
        """Add a stage that sends data of the program.

        `data` is anything that `table` takes, or an iterator of such. The thread of the stage calls
        the iterator; an exception of it fails the run and is the ``__cause__`` of its error. Texts
        of any Arrow type become utf8; other columns stay as they are.
        """
        self._sources[id] = _Source(data)
        return self.stage(id, "memory")

    def discard(self, id: str, inputs: str | Iterable[str]) -> str:
        """Add a stage that drops its rows."""
        return self.stage(id, "discard", inputs)

    def collect(self, id: str, inputs: str | Iterable[str]) -> str:
        """Add a stage that keeps its rows in memory, for `Running.rows`."""
        self._sinks[id] = None
        return self.stage(id, "collect", inputs)

    def for_each(self, id: str, inputs: str | Iterable[str], function: _Sink) -> str:
        """Add a stage that calls `function` with a `Table` for every batch.

        The thread of the stage calls it. An exception fails the run and is the ``__cause__`` of its
        error.
        """
        self._sinks[id] = function
        return self.stage(id, "for_each", inputs)

    def _arguments(self, overrides: Mapping[str, Any] | None, *, opened: bool) -> tuple[Any, ...]:
        text = self._text
        if text is None:
            text = json.dumps(self._document, indent=1, allow_nan=False)
        changes = [f"{path}={json.dumps(value)}" for path, value in (overrides or {}).items()]
        rows = form("rows", into="item")
        sources = [
            (id, rows, source.sample, source.open() if opened else iter(()))
            for id, source in self._sources.items()
        ]
        return text, self._file, changes, ([], sources, list(self._sinks.items()))

    def plan(self, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Check the pipeline, and return how it would run.

        Returns a dict with ``name``, ``stages`` (``id``, ``operator``, ``inputs``, the columns of
        each of ``outputs``, and ``parts``), ``threads`` (``parts``, ``core``), ``devices`` and
        ``queue``. Raises `ValueError` with all mistakes of the pipeline.
        """
        return json.loads(_trommel.plan(*self._arguments(overrides, opened=False)))  # type: ignore[no-any-return]

    def start(self, overrides: Mapping[str, Any] | None = None) -> Running:
        """Start the pipeline; it runs on while the program does other things.

        Parameters
        ----------
        overrides
            Values that replace the pipeline's, by their paths:
            ``{"stages.top.with.n": 5}``.

        Raises
        ------
        ValueError
            All mistakes of the pipeline.
        PipelineError
            If the operating system refuses a thread.
        """
        return Running(_trommel.start(*self._arguments(overrides, opened=True)))

    def run(self, overrides: Mapping[str, Any] | None = None, *, progress: bool | None = None) -> Running:
        """Start the pipeline and wait for its end.

        `progress` says whether a line shows the progress, in a terminal or a notebook; by default
        if there is one. Ctrl-C stops the run within 100 ms. Raises `PipelineError` if it fails.
        """
        running = self.start(overrides)
        running.join(progress=progress is None or progress)
        return running

    def __repr__(self) -> str:
        stages = self.to_dict().get("stages", [])
        return f"trommel.Pipeline of {len(stages)} stages: {', '.join(s['id'] for s in stages)}"

    def _repr_html_(self) -> str:
        from ._display import plan_html

        return plan_html(self.plan())


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, Mapping):
        return {key: _plain(key, inner) for key, inner in value.items()}
    if isinstance(value, Collection) and not isinstance(value, (str, bytes)):
        return [_plain(name, inner) for inner in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return number(name, value)


class Running:
    """A started pipeline.

    As a context manager it aborts the run on the way out, unless it has ended or was joined.
    """

    def __init__(self, run: _trommel.Run) -> None:
        self._run = run

    @property
    def phase(self) -> str:
        """``"running"``, ``"draining"``, ``"aborted"`` or ``"ended"``."""
        return self._run.phase

    def query(self, stage: str, query: str, *, timeout: float | None = None, **parameters: Any) -> Table:
        """Ask a stage, and wait for its answer: its state at a batch boundary after the call.

        Parameters
        ----------
        stage
            The id of the stage.
        query
            The name of the query, such as ``"top"``; the operators' documentation lists them.
        timeout
            Seconds to wait at most.
        parameters
            The parameters of the query.

        Raises
        ------
        ValueError
            If there is no such stage, or it does not know the query or its parameters.
        TimeoutError
            If the stage did not answer in time.
        PipelineError
            If the stage has finished, or too many queries wait.

        Examples
        --------
        >>> p = Pipeline()
        >>> _ = p.discard("end", p.frequent_items("top", p.generate("items")))
        >>> with p.start() as running:
        ...     rows = running.query("top", "top", n=2)
        >>> rows.column_names
        ['rank', 'item', 'count', 'error']
        """
        plain = {name: _plain(name, value) for name, value in parameters.items()}
        return self._run.query(stage, query, json.dumps(plain), timeout)

    def watch(self, stage: str, query: str, *, interval: float = 0.1, **parameters: Any) -> Watch:
        """Ask a stage over and over; iterate over the answers with ``for`` or ``async for``.

        `interval` is the time between two answers in seconds. Raises `ValueError` if there is no
        such stage; iterating raises it for a query that the stage does not know.
        """
        plain = {name: _plain(name, value) for name, value in parameters.items()}
        return Watch(self._run.watch(stage, query, json.dumps(plain)), interval)

    def metrics(self) -> dict[str, Any]:
        """The numbers of all stages so far, as the command line reports them.

        Returns a dict with ``pipeline``, ``wall_seconds``, ``device``, ``edges`` and ``stages``, each
        with ``id``, ``operator``, ``items_in``, ``items_out``, ``workers``, ``busy_seconds``,
        ``serial_seconds``, ``items_per_second``, ``latency_ms`` and the operator's own counters.
        """
        return json.loads(self._run.report())  # type: ignore[no-any-return]

    def metrics_table(self) -> Table:
        """The numbers that all stages have, a row for each."""
        stages = self.metrics()["stages"]
        numbers = (
            "items_in",
            "items_out",
            "busy_seconds",
            "blocked_seconds",
            "idle_seconds",
            "items_per_second",
        )
        columns: dict[str, list[Any]] = {"id": [s["id"] for s in stages]}
        columns["operator"] = [s["operator"] for s in stages]
        for name in numbers:
            columns[name] = [s[name] for s in stages]
        for share in ("p50", "p99", "max"):
            columns[f"latency_ms_{share}"] = [float(s["latency_ms"][share]) for s in stages]
        return table(columns)

    def rows(self, sink: str) -> Table:
        """The rows that a `collect` stage has kept so far; all of them once the run has ended.

        Raises `RuntimeError` if there is no such stage.
        """
        return self._run.rows(sink)

    def take(self, sink: str) -> Table:
        """As `rows`, and removes them, so that each row is taken once."""
        return self._run.take(sink)

    def stop(self, within: float | None = None) -> None:
        """Drain the run: sources take no more, and all that they took is processed.

        A run that has not drained `within` this time, in seconds, is aborted. Does not wait.
        """
        self._run.stop(within)

    def abort(self) -> None:
        """End the run at the next batch boundary of every stage. Does not wait."""
        self._run.abort()

    def join(self, timeout: float | None = None, *, progress: bool | None = None) -> bool:
        """Wait for the end.

        Parameters
        ----------
        timeout
            Seconds to wait at most.
        progress
            Whether to show the progress meanwhile, in a terminal or a notebook; by default not.

        Returns
        -------
        bool
            Whether the run has ended.

        Raises
        ------
        PipelineError
            The first cause of a failure, or that the run was aborted.
        KeyboardInterrupt
            After Ctrl-C, which aborts the run, within 100 ms.
        """
        try:
            if progress is None or not progress:
                return self._run.join(timeout)
            return self._join_shown(timeout)
        except KeyboardInterrupt:
            self._run.interrupt()
            raise

    def _join_shown(self, timeout: float | None) -> bool:
        from ._display import Progress

        end = None if timeout is None else time.monotonic() + timeout
        with Progress(self._run) as shown:
            while not self._run.join(0.1):
                shown.draw()
                if end is not None and time.monotonic() >= end:
                    return False
        return True

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *error: object) -> None:
        if self._run.phase != "ended":
            self._run.interrupt()

    def __repr__(self) -> str:
        return f"trommel.Running {self._run.name!r}, {self.phase}"

    def _repr_html_(self) -> str:
        from ._display import metrics_html

        return metrics_html(self.metrics(), self.phase)


class Watch:
    """The answers of a standing query; an iterator and an async iterator that end with the run."""

    def __init__(self, query: _trommel.StandingQuery, interval: float) -> None:
        if not interval >= 0:
            raise ValueError(f"interval: {interval} is out of range; expected seconds from 0 on")
        self._query = query
        self._interval = interval
        self._is_over = False

    def latest(self) -> Table | None:
        """The last answer, without waiting; None until the first one is there."""
        found = self._query.latest()
        return None if found is None else found[0]

    def age(self) -> float | None:
        """Seconds since the last answer was made."""
        found = self._query.latest()
        return None if found is None else found[1]

    def _next(self) -> Table | None:
        """The next answer, if there is one."""
        if self._is_over:
            raise StopIteration
        # Looked at before the answer, so that the last one is not missed.
        self._is_over = self._query.has_ended
        found = self._query.latest()
        if found is None and self._is_over:
            raise StopIteration
        return None if found is None else found[0]

    def __iter__(self) -> Iterator[Table]:
        while True:
            try:
                rows = self._next()
            except StopIteration:
                return
            if rows is not None:
                yield rows
            time.sleep(self._interval if rows is not None else min(self._interval, 0.01))

    async def __aiter__(self) -> AsyncIterator[Table]:
        import asyncio

        while True:
            try:
                rows = self._next()
            except StopIteration:
                return
            if rows is not None:
                yield rows
            await asyncio.sleep(self._interval if rows is not None else min(self._interval, 0.01))
