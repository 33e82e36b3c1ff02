"""An index of documents: which documents have all terms of a query."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _trommel
from ._inputs import form, given, source, table
from ._stages import Device
from ._trommel import Table

# Time between two looks at a run that is to take what it was given.
_LOOK_SECONDS = 0.0005


class ConjunctiveIndex:
    """An index that finds the documents that contain all terms of a query.

    Documents are lists of terms: whole numbers from 0 to 2^32 - 1 or texts. A null is a document
    without terms. Texts of more than 1,024 bytes are compared by their beginning and a hash of 128
    bits. An index runs beside the program until it is closed. Several threads may use one; their calls come one after the
    other.

    Parameters
    ----------
    column
        The column of terms, where documents are tables with several.
    name
        A column of texts that names documents; without it, answers have positions alone.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    memory_max
        Bytes of the index and of queries that wait, 4 GiB if left out.

    Raises
    ------
    ValueError
        If a parameter is out of its range; at the first data.

    Examples
    --------
    >>> with ConjunctiveIndex() as index:
    ...     index.add([["to", "be"], ["not", "to", "be"], ["or"]])
    ...     index.query(["be", "to"])
    [0, 1]
    """

    def __init__(
        self,
        *,
        column: str | None = None,
        name: str | None = None,
        device: Device | None = None,
        memory_max: int | None = None,
    ) -> None:
        self._documents = form("terms", column, name=name, into="set")
        self._queries_form = form("terms", into="set")
        self._parameters = given(
            name=None if name is None else "name", device=device, memory_max=memory_max
        )
        self._folder: str | None = None
        self._run: _trommel.Run | None = None
        self._sample: Table | None = None
        # Documents that came before the first ones that have a type.
        self._waiting: list[Table] = []
        self._opened: str | None = None
        self._taken = 0
        self._queries = 0
        self._count = 0
        self._is_closed = False
        self._lock = threading.Lock()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        device: Device | None = None,
        memory_max: int | None = None,
    ) -> ConjunctiveIndex:
        """Open an index that `save` or a pipeline (`index_path`) wrote, for queries.

        The file is read into memory as a whole, and may be replaced or overwritten afterwards.

        Raises
        ------
        OSError
            If the file cannot be read.
        ValueError
            If it is no index, or is damaged.
        """
        path = os.fspath(path)
        with open(path, "rb"):
            pass
        index = cls(device=device, memory_max=memory_max)
        index._opened = path
        index._parameters["index_path"] = path
        try:
            index._start_queries(_trommel.column([["a term"]], "set"))
        except ValueError as error:
            try:
                index._start_queries(_trommel.column([[0]], "set"))
            except ValueError:
                raise error from None
        return index

    def _stages(self, inputs: list[str], restore: str | None = None) -> str:
        parameters = {**self._parameters, "over": "arrived", **given(restore=restore)}
        if self._opened is None:
            if self._folder is None:
                self._folder = tempfile.mkdtemp(prefix="trommel-")
            parameters["snapshot"] = os.path.join(self._folder, "index")
        else:
            del parameters["over"]
        stages: list[dict[str, Any]] = [{"id": id, "operator": "feed"} for id in inputs]
        stages.append(
            {"id": "search", "operator": "conjunctive_query", "inputs": inputs, "with": parameters}
        )
        stages.append({"id": "answers", "operator": "collect", "inputs": ["search"]})
        return json.dumps({"name": "ConjunctiveIndex", "stages": stages}, allow_nan=False)

    def _start(self, sample: Table, restore: str | None = None) -> None:
        """Start a pipeline for documents with the columns and types of `sample`."""
        kind = _trommel.formed_type(sample, self._documents) or ""
        term = _trommel.column([["" if "Utf8" in kind else 0]], "set")
        queries = ("queries", self._queries_form, term)
        feeds = [("documents", self._documents, sample), queries]
        config = self._stages(["documents", "queries"], restore)
        self._run = _trommel.start(config, "arguments", [], (feeds, [], [("answers", None)]))
        self._sample, self._taken, self._queries = sample, 0, 0

    def _start_queries(self, terms: Table) -> None:
        feeds = [("queries", self._queries_form, terms)]
        config = self._stages(["queries"])
        self._run = _trommel.start(config, "arguments", [], (feeds, [], [("answers", None)]))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One call at a time, because a call counts what the run was given. Ctrl-C closes the index."""
        with self._lock:
            try:
                yield
            except KeyboardInterrupt:
                self.close()
                raise

    def _running(self) -> _trommel.Run:
        if self._is_closed:
            raise ValueError("this index is closed")
        if self._run is None:
            raise ValueError("the index has no documents yet, so that the type of terms is not known")
        return self._run

    def add(self, documents: Any) -> None:
        """Add documents. Queries after this call are answered over them.

        Parameters
        ----------
        documents
            A column of lists of terms, or a table with one; with the same columns in all calls.

        Raises
        ------
        ValueError
            If a term is negative, null or of another type, a name is null, or the index was opened
            from a file. The index is as before then.
        """
        if self._opened is not None:
            raise ValueError(f"the index {self._opened} was opened for queries alone")
        if self._is_closed:
            raise ValueError("this index is closed")
        rows = _trommel.chosen(source(documents), self._documents)
        with self._alone():
            if self._run is None and _trommel.formed_type(rows, self._documents) is None:
                # Documents without terms have no type of terms.
                self._waiting.append(rows)
                self._count += len(rows)
                return
            if self._run is None:
                self._start(rows)
                for earlier in self._waiting:
                    self._feed(earlier)
            self._feed(rows)
            self._count += len(rows)

    def _feed(self, rows: Table) -> None:
        run = self._running()
        if not run.feed("documents", rows):
            run.join(None)
        self._taken += len(rows)

    def _settle(self) -> _trommel.Run:
        """Wait until the index has taken all that it was given."""
        run = self._running()
        while run.items_in("search") < self._taken:
            if run.phase == "ended":
                run.join(None)
            time.sleep(_LOOK_SECONDS)
        return run

    def query(self, terms: Iterable[Any]) -> list[Any]:
        """The documents that have all `terms`.

        Returns their positions from 0, ascending, or their names where documents have names. Raises
        `ValueError` if the type of the terms is not the documents'.
        """
        if isinstance(terms, (str, bytes)):
            raise TypeError(f"terms: expected a list of terms, found {terms!r}")
        found: list[Any] = self.query_batch([list(terms)])["documents"][0]
        return found

    def count(self, terms: Iterable[Any]) -> int:
        """The number of documents that have all `terms`."""
        return len(self.query(terms))

    def query_batch(self, queries: Any) -> Table:
        """The documents for each of many queries, which is faster than one by one.

        Parameters
        ----------
        queries
            A column of lists of terms. A query without terms has no documents.

        Returns
        -------
        Table
            ``query`` (uint32, the row of the query from 0, ascending) and ``documents``, a list of
            positions, or of names where documents have them.
        """
        asked = _trommel.chosen(source(queries), self._queries_form)
        with self._alone():
            if self._run is None and self._waiting and not self._is_closed:
                # No document has a term so far.
                _trommel.formed_type(asked, self._queries_form)
                return table({"query": range(len(asked)), "documents": [[]] * len(asked)})
            run = self._settle()
            if len(asked) and not run.feed("queries", asked):
                run.join(None)
            first = self._queries
            self._queries += len(asked)
            self._taken += len(asked)
            while run.count("answers") < len(asked):
                if run.phase == "ended":
                    run.join(None)
                    break
                time.sleep(_LOOK_SECONDS)
            return _trommel.in_order(run.take("answers"), first)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file, which `open` reads. The index goes on.

        Raises `OSError` if the file cannot be written, and `ValueError` for an index without
        documents.
        """
        path = os.fspath(path)
        if self._opened is not None:
            shutil.copyfile(self._opened, path)
            return
        with self._alone():
            run = self._settle()
            run.finish("documents")
            run.finish("queries")
            run.join(None)
            assert self._folder is not None and self._sample is not None
            written = os.path.join(self._folder, "index")
            part = f"{path}.{os.getpid()}.part"
            try:
                shutil.copyfile(written, part)
                os.replace(part, path)
            finally:
                if os.path.exists(part):
                    os.remove(part)
                self._start(self._sample, restore=written)

    def __len__(self) -> int:
        """The number of documents that were added."""
        return self._count

    def close(self) -> None:
        """End the index. Further calls change nothing."""
        self._is_closed = True
        if self._run is not None:
            self._run.interrupt()
            self._run = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> ConjunctiveIndex:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True):
            self.close()
