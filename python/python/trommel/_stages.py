"""The methods of `Pipeline` that add a stage each, and the types of their parameters.

Written by python/stages.py from the JSON schema of pipelines.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, SupportsFloat, TypedDict, Union

from ._builder import Builder, operator

FilePath = Union[str, "os.PathLike[str]"]
Exact = Union[str, SupportsFloat]
Algorithm = Literal["auto", "space_saving", "filter", "parallel_filter", "sieve"]
AnswerOver = Literal["all", "arrived"]
Device = Union[Literal[
    "auto", "cpu", "cuda", "cuda:all", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5",
    "cuda:6", "cuda:7", "cuda:8", "cuda:9", "cuda:10", "cuda:11", "cuda:12", "cuda:13", "cuda:14",
    "cuda:15"
], list[str]]
DictionaryFull = Literal["forget", "fail"]
Duplicates = Literal["fail", "first", "last", "all"]
Emit = Literal["end", "every"]
EpsilonAlgorithm = Literal["auto", "nested_loop", "directory"]
EpsilonOutput = Literal["pairs", "count", "partners", "first"]
GenerateKind = Literal["zipf", "sets", "vectors"]
IndexSource = Literal["build", "reuse"]
Invalid = Literal["fail", "skip", "replace"]
JoinAlgorithm = Literal[
    "auto", "all_pairs", "pp_join", "pp_join_bitmap", "group_join", "gpu_signatures"
]
JoinMode = Literal["join", "deduplicate"]
JoinOutput = Literal["pairs", "count"]
Keep = Literal["first", "last", "unmatched", "largest", "smallest"]
Layout = Literal[
    "auto", "batmap", "bitmap", "lists", "sliced", "sparse", "tensor", "triangle"
]
LookupMode = Literal["left", "inner", "anti", "semi"]
Measure = Literal["confidence", "lift"]
MissingState = Literal["fail", "begin"]
OnError = Literal["fail", "skip", "reject"]
Parallel = Literal["auto", "off", "pipeline", "partition"]
QueryOutput = Literal["documents", "count"]
ReadFormat = Literal[
    "lines", "paragraphs", "files", "u32le", "u64le", "sets", "f32le", "npy", "csv", "jsonl", "log",
    "parquet", "arrow"
]
ReadFrom = Literal["beginning", "end"]
RotateCompression = Literal["gzip", "zstd"]
Similarity = Literal["jaccard", "cosine", "dice", "overlap"]
TokenizeBy = Union[Literal["words", "whitespace", "qgrams"], "TokenizeByField"]
TokenizeInto = Literal["items", "sets", "text_sets"]
VectorDistribution = Literal["uniform", "clusters", "correlated"]
VerifyMode = Literal["auto", "a", "b", "c", "warp", "cpu"]
WriteFormat = Literal["jsonl", "csv", "lines", "parquet", "arrow", "table"]


class Decay(TypedDict, total=False):
    """Lets counts fade: ``{"half_life_items": 1000000}`` or ``{"half_life_seconds": 60}``."""

    # Items after which a count is worth half.
    half_life_items: int

    # Seconds after which a count is worth half.
    half_life_seconds: float


class JoinWindow(TypedDict, total=False):
    """Length of the window of a streaming join: ``{"sets": 100000}`` or ``{"seconds": 60}``."""

    # Length of the window in seconds.
    seconds: float

    # Number of sets in the window.
    sets: int


class PairWindow(TypedDict, total=False):
    """Windows of transactions: ``{"transactions": 100000}`` or ``{"seconds": 60}``, one after the
    other, or overlapping with ``slide``.
    """

    # Seconds of a window.
    seconds: float

    # Distance between the beginnings of two windows, in transactions or seconds; the window must be
    # a multiple of it, up to 1,000 times. Its own length when left out.
    slide: float

    # Transactions of a window.
    transactions: int


class Rotate(TypedDict, total=False):
    """Size or time limit of a file: ``{"bytes": 100000000}``, ``{"seconds": 3600}``, or both."""

    # Maximum bytes of a file.
    bytes: int

    # Compress full files: to `NAME.gz`, or to `NAME.zst`. The plain file stays until the compressed
    # one is whole; of a run that was killed, the next one compresses it.
    compress: RotateCompression

    # Seconds after the end of a period for which its file takes rows, such as those of a window
    # that ends with the period; less than `seconds`.
    delay_seconds: float

    # Maximum number of full files, compressed or not: older ones are removed. Only files are
    # removed that have a name which this parameter gives; all are kept when left out.
    keep: int

    # Period of a file, in seconds.
    seconds: float


class TokenizeByField(TypedDict):
    """The field of this number, from 1, of a text that has it, unchanged: as ``cut -d, -f7`` with a
    ``delimiter``, and as ``awk '{print $7}'`` without one.
    """

    field: int


class VectorWindow(TypedDict, total=False):
    """Length of the window of a streaming join: ``{"vectors": 100000}`` or ``{"seconds": 60}``."""

    # Length of the window in seconds.
    seconds: float

    # Number of vectors in the window.
    vectors: int


class Window(TypedDict, total=False):
    """Counts in windows: ``{"items": 1000000}`` or ``{"seconds": 10}``, one after the other, or
    overlapping with ``slide``.
    """

    # Items of a window.
    items: int

    # Seconds of a window.
    seconds: float

    # Distance between the beginnings of two windows, in items or seconds; the window must be a
    # multiple of it, up to 1,000 times. Its own length when left out.
    slide: float


class Stages(Builder):
    """The methods of `Pipeline` that add a stage of an operator each."""

    @operator
    def aggregate(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        compute: str | Collection[str],
        by: str | Collection[str] | None = None,
        memory_max: int | None = None,
        on_error: OnError | None = None,
        window: Window | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to compute counts, sums and other values for each group of rows.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        compute
            The values to compute, each a call with a name: ``count(*) as n``, ``avg(ms) as mean``.
            The calls are ``count(*)``, ``count(x)``, ``sum(x)``, ``avg(x)``, ``min(x)``,
            ``max(x)``, ``first(x)``, ``last(x)``, ``count_distinct(x)``,
            ``approx_count_distinct(x)``, ``quantile(x, 0.99)`` and ``list(x)``, in which x is a
            column or an expression. Nulls are left out; a group without values has null, or the
            count 0.
        by
            The columns or expressions whose values in a row are the group of the row: ``host``,
            ``status // 100 as class``, or a list of them. Nulls are a group. When left out, all
            rows are one group, which has a row even if there are no rows.
        memory_max
            Maximum bytes of the groups and their values. They are reserved from the memory of the
            pipeline at the start, which must have them. When left out, as much as the stage comes
            to need and the other stages leave, at most 4 GiB for each worker. At least 1.
        on_error
            Action for a row for which an expression has no value, such as a text in a cast to a
            number. When left out, ``fail``. One of ``"fail"``, ``"skip"``, ``"reject"``.
        window
            Compute in windows: {"items": 1000000} or {"seconds": 10}, with "slide" for the distance
            between the beginnings of two windows. A window sends its rows when it closes, with the
            columns ``window_start``, ``window_end`` and ``complete``, which is false for a window
            that the stream did not fill. Windows of seconds begin at whole multiples of their slide
            since 1970.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "compute": compute,
            "by": by,
            "memory_max": memory_max,
            "on_error": on_error,
            "window": window,
        }
        return self.stage(id, "aggregate", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def clusters(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        by: str | None = None,
        id_: str | None = None,
        keep: Keep | None = None,
        left: str | None = None,
        memory_max: int | None = None,
        on_error: OnError | None = None,
        right: str | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to make clusters of pairs: ids that pairs connect.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        by
            Value of a row of the second input, for ``keep`` ``largest`` and ``smallest``: a column,
            or an expression, such as ``length(text)``.
        id_
            Ids of the rows of the second input, of the type of the ids of pairs: a column, or an
            expression. When left out, the column ``id``, or else the position of the row in its
            input, from 0.
        keep
            Rows of a cluster that are to stay. One of ``"first"``, ``"last"``, ``"unmatched"``,
            ``"largest"``, ``"smallest"``. Default: ``"first"``.
        left
            Ids of the first rows of pairs: a column, or an expression. Default: ``"left"``.
        memory_max
            Maximum bytes of the ids and their clusters. They are reserved from the memory of the
            pipeline at the start, which must have them. When left out, as much as the stage comes
            to need and the other stages leave, at most 4 GiB. At least 1.
        on_error
            Action for a pair that has a null, or for which an expression has no value. When left
            out, ``fail``. One of ``"fail"``, ``"skip"``, ``"reject"``.
        right
            Ids of the second rows of pairs, of the same type. Default: ``"right"``.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "by": by,
            "id": id_,
            "keep": keep,
            "left": left,
            "memory_max": memory_max,
            "on_error": on_error,
            "right": right,
        }
        return self.stage(id, "clusters", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def conjunctive_query(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        batch_queries: int | None = None,
        carry: str | Collection[str] | None = None,
        deadline_ms: float | None = None,
        device: Device | None = None,
        device_memory_max: int | None = None,
        index: IndexSource | None = None,
        index_path: FilePath | None = None,
        latency: bool | None = None,
        memory_max: int | None = None,
        missing: MissingState | None = None,
        name: str | None = None,
        on_error: OnError | None = None,
        output: QueryOutput | None = None,
        over: AnswerOver | None = None,
        restore: FilePath | None = None,
        set: str | None = None,
        snapshot: FilePath | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to find the documents that have all terms of a query.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        batch_queries
            Queries that are answered together, at most. Range: 1 to 65,536. Default: ``1024``.
        carry
            Columns of the queries that go along with their answers, or ``*`` for all.
        deadline_ms
            Milliseconds within which a query is answered, unless all kernels are busy. Range: 0 to
            60,000. Default: ``5.0``.
        device
            Device that answers queries: ``auto`` (the first GPU, if there is one and it pays, and
            further GPUs where these pay), ``cpu``, ``cuda`` or ``cuda:1`` (that GPU; an error if it
            is missing or fails), ``cuda:all`` (all GPUs), or several GPUs, such as ["cuda:0",
            "cuda:1"]. With several GPUs, the others take over the work of one that fails, and the
            failure of the last one is an error. Default: ``"auto"``.
        device_memory_max
            Maximum bytes of the index in the memory of a GPU; by default, all memory that is free.
            Lists of a larger index go there with the queries that name them. At least 1.
        index
            Whether to ``build`` the index of the documents, or to ``reuse`` the one in
            ``index_path`` if there is one; documents of the input are dropped then. One of
            ``"build"``, ``"reuse"``.
        index_path
            File of the index: written when the documents have ended, but not in a run that is
            stopped before; opened if queries are the only input, or if ``index`` says so.
        latency
            Add the column ``latency_us``: microseconds from the entry of the batch with the query
            to its answer. Default: ``False``.
        memory_max
            Maximum bytes of the index and of the queries that wait. They are reserved from the
            memory of the pipeline at the start, which must have them. When left out, as much as the
            stage comes to need and the other stages leave, at most 4 GiB. At least 1.
        missing
            When the file of ``restore`` is not there: ``fail``, or ``begin`` without a state, as on
            the first day of a pipeline that goes on with its own state. One of ``"fail"``,
            ``"begin"``.
        name
            Column or expression of the documents that names them, a text; without it, answers have
            their positions.
        on_error
            Action for a row that cannot be used: the set, an item of it or the name is null, or an
            expression has no value for the row. A document of such a row keeps its position, and a
            query has no answer. When left out, a null is a set without terms, null items are left
            out, and a null name or an expression without a value ends the run. One of ``"fail"``,
            ``"skip"``, ``"reject"``.
        output
            Kind of the answers: ``documents`` or ``count``. One of ``"documents"``, ``"count"``.
        over
            Documents that a query is answered over: ``all``, for which queries wait until the
            documents have ended, or the documents that have ``arrived`` before it. One of
            ``"all"``, ``"arrived"``.
        restore
            Begin with the documents that this file holds, written by ``snapshot`` or
            ``index_path``; also those of a run that was stopped.
        set
            Terms, of documents and of queries, lists of integers or of texts: a column, or an
            expression such as ``words(text)``. Default: ``"set"``.
        snapshot
            Write the documents to this file when they have ended or the run is stopped, as a whole
            or not at all: the file keeps its content until then, and says which of the two it was.
            When the documents cannot be written, the rows go on all the same, and the run fails at
            its end.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "batch_queries": batch_queries,
            "carry": carry,
            "deadline_ms": deadline_ms,
            "device": device,
            "device_memory_max": device_memory_max,
            "index": index,
            "index_path": index_path,
            "latency": latency,
            "memory_max": memory_max,
            "missing": missing,
            "name": name,
            "on_error": on_error,
            "output": output,
            "over": over,
            "restore": restore,
            "set": set,
            "snapshot": snapshot,
        }
        return self.stage(id, "conjunctive_query", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def epsilon_join(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        epsilon: float,
        algorithm: EpsilonAlgorithm | None = None,
        carry: str | Collection[str] | None = None,
        device: Device | None = None,
        device_memory_max: int | None = None,
        dims: int | None = None,
        id_: str | None = None,
        memory_max: int | None = None,
        missing: MissingState | None = None,
        on_error: OnError | None = None,
        output: EpsilonOutput | None = None,
        restore: FilePath | None = None,
        snapshot: FilePath | None = None,
        vector: str | Collection[str] | None = None,
        window: VectorWindow | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to find all pairs of vectors within a distance, exactly.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        epsilon
            Maximum distance of a pair, at least 0.
        algorithm
            Algorithm that finds the pairs. One of ``"auto"``, ``"nested_loop"``, ``"directory"``.
            Default: ``"auto"``.
        carry
            Columns of the input to carry into the rows, or ``*`` for all: column ``x`` becomes
            ``left_x`` and ``right_x`` of a pair.
        device
            Device that finds the pairs: ``auto`` (the first GPU, if there is one and it pays, and
            further GPUs where these pay), ``cpu``, ``cuda`` or ``cuda:1`` (that GPU; an error if it
            is missing or fails), ``cuda:all`` (all GPUs), or several GPUs, such as ["cuda:0",
            "cuda:1"]. With several GPUs, the others take over the work of one that fails, and the
            failure of the last one is an error. A streaming join runs on the CPU. Default:
            ``"auto"``.
        device_memory_max
            Maximum bytes of vectors in the memory of a GPU; by default, all memory that is free.
            More vectors are joined in blocks, one pair of blocks after the other. At least 1.
        dims
            Coordinates of each vector. When left out, the type or the first vector says so. Range:
            1 to 4,096.
        id_
            Ids of the rows, of any type: a column or an expression. When left out, the column
            ``id``, or else the position of the row in its input, from 0.
        memory_max
            Maximum bytes of the vectors, their carried columns and the directory. They are reserved
            from the memory of the pipeline at the start, which must have them. When left out, as
            much as the stage comes to need and the other stages leave, at most 16 GiB. At least 1.
        missing
            When the file of ``restore`` is not there: ``fail``, or ``begin`` without a state, as on
            the first day of a pipeline that goes on with its own state. One of ``"fail"``,
            ``"begin"``.
        on_error
            Action for a row that cannot be used: a null, a coordinate that is infinite or not a
            number, a vector of another length, or an expression without a value. When left out,
            ``fail``. One of ``"fail"``, ``"skip"``, ``"reject"``.
        output
            Output: pairs, their number, the number of partners of each vector, or the vectors
            without an earlier partner. One of ``"pairs"``, ``"count"``, ``"partners"``,
            ``"first"``. Default: ``"pairs"``.
        restore
            Begin with the vectors of the window that this file holds, written by ``snapshot``; the
            stage needs the same window and vectors of the same length.
        snapshot
            Write the vectors of the window to this file when the input has ended, as a whole or not
            at all: the file keeps its content until then. When they cannot be written, the rows go
            on all the same, and the run fails at its end. For a ``window`` without ``carry``.
        vector
            Vectors: a column or an expression that is a list of numbers, or a list of columns or
            expressions, one for each coordinate. Default: ``"vector"``.
        window
            Window of a streaming join, for one input: {"vectors": 100000} or {"seconds": 60}. A
            pair comes out when its newer vector arrives. Without a window, all vectors are joined
            when the inputs have ended.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "epsilon": epsilon,
            "algorithm": algorithm,
            "carry": carry,
            "device": device,
            "device_memory_max": device_memory_max,
            "dims": dims,
            "id": id_,
            "memory_max": memory_max,
            "missing": missing,
            "on_error": on_error,
            "output": output,
            "restore": restore,
            "snapshot": snapshot,
            "vector": vector,
            "window": window,
        }
        return self.stage(id, "epsilon_join", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def filter(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        where: str,
        on_error: OnError | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to let the rows pass for which an expression is true.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        where
            The expression, such as ``status >= 500 and path like '/api/%'``.
        on_error
            Action for a row for which the expression has no value, such as a text in a cast to a
            number. When left out, ``fail``. One of ``"fail"``, ``"skip"``, ``"reject"``.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "where": where,
            "on_error": on_error,
        }
        return self.stage(id, "filter", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def frequent_items(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        algorithm: Algorithm | None = None,
        counters: int | None = None,
        decay: Decay | None = None,
        emit: Emit | None = None,
        every: int | None = None,
        every_seconds: float | None = None,
        filter_bins: int | None = None,
        item: str | Collection[str] | None = None,
        item_bytes_max: int | None = None,
        merge: Collection[FilePath] | None = None,
        missing: MissingState | None = None,
        n: int | None = None,
        on_error: OnError | None = None,
        parallel: Parallel | None = None,
        restore: FilePath | None = None,
        seed: int | None = None,
        snapshot: FilePath | None = None,
        state_bytes_max: int | None = None,
        threshold: Exact | None = None,
        weight: str | None = None,
        window: Window | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to count the most frequent items, with a bound on each count.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        algorithm
            How they are counted. One of ``"auto"``, ``"space_saving"``, ``"filter"``,
            ``"parallel_filter"``, ``"sieve"``. Default: ``"auto"``.
        counters
            Number of monitored items, k: counts are at most N / k too high. Range: 1 to 67,108,864.
            Default: ``1000``.
        decay
            Let counts fade: {"half_life_items": 1000000} or {"half_life_seconds": 60}. An
            occurrence of a half-life ago counts half.
        emit
            When rows are emitted. One of ``"end"``, ``"every"``. Default: ``"end"``.
        every
            Items between two emissions, with ``emit`` = ``every``. At least 1.
        every_seconds
            Seconds between two emissions, with ``emit`` = ``every``, from the first item on; a time
            in which no item came emits nothing. With ``every`` too, rows are emitted after the
            items or the time, whatever is first. Range: 0.1 to 1,000,000,000.
        filter_bins
            Number of the counters that the filter searches by SIMD; fewer than ``counters``. Range:
            1 to 64. Default: ``16``.
        item
            The column that is counted, or an expression such as ``lower(host)``; or a list of them,
            whose values in a row are an item: ``["host", "lower(path) as path"]``. Default:
            ``"item"``.
        item_bytes_max
            The longest text item that is kept as it is, in bytes; of several columns, the longest
            text of each. For a longer one stands a name of at most this length: its beginning,
            ``…#``, and 32 hexadecimal digits of a hash over all of it. So the text of a summary
            takes at most ``counters`` times this, for each column. Range: 64 to 1,073,741,824.
            Default: ``4096``.
        merge
            Begin with the states that these files hold, added up: counts and bounds are sums. The
            states are as for ``restore``, beside which they may stand.
        missing
            When the file of ``restore`` is not there: ``fail``, or ``begin`` without a state, as on
            the first day of a pipeline that goes on with its own state. One of ``"fail"``,
            ``"begin"``.
        n
            Maximum number of items to emit; all monitored ones when left out.
        on_error
            Action for a row that cannot be counted: the item or the weight is null, the weight is
            below 0, or an expression has no value for the row. When left out, rows with a null are
            not counted, and another one ends the run. One of ``"fail"``, ``"skip"``, ``"reject"``.
        parallel
            How several cores share the work. One of ``"auto"``, ``"off"``, ``"pipeline"``,
            ``"partition"``. Default: ``"auto"``.
        restore
            Begin with the state that this file holds, written by ``snapshot``; the stage needs the
            same algorithm, counters and type of items. Not with ``window`` or ``decay``.
        seed
            Makes the counts of the sieve repeatable: for equal batches, equal seeds give equal
            counts. When left out, each run draws a seed, and the counts of the sieve differ within
            their bounds; the counts of the other algorithms never do. A state that is restored
            brings its own seed. A client that knows the seed can send items that make counting
            slow.
        snapshot
            Write the state to this file when the input has ended, as a whole or not at all: the
            file keeps its content until then. A link, a pipe or a device stays one. When the state
            cannot be written, the rows go on all the same, and the run fails at its end. Not with
            ``window`` or ``decay``.
        state_bytes_max
            Bytes that the sieve may take, strings left out; some 0.5 MB for 1,000 counters when
            left out. Less is slower and gives larger errors, within the same bounds. At least 1.
        threshold
            Emit only items with at least this share of the stream, 0 to 1: a decimal such as 0.07
            or a fraction such as "1/3", taken exactly. Range: 0 to 1.
        weight
            A column of weights, whole numbers from 0, or an expression; without it every item
            counts once.
        window
            Count in windows: {"items": 1000000} or {"seconds": 10}, with "slide" for the distance
            between the beginnings of two windows. A window emits its rows when it closes, with the
            columns ``window_start``, ``window_end`` and ``complete``, which is false for a window
            that the stream did not fill. Windows of seconds begin at whole multiples of their slide
            since 1970.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "algorithm": algorithm,
            "counters": counters,
            "decay": decay,
            "emit": emit,
            "every": every,
            "every_seconds": every_seconds,
            "filter_bins": filter_bins,
            "item": item,
            "item_bytes_max": item_bytes_max,
            "merge": merge,
            "missing": missing,
            "n": n,
            "on_error": on_error,
            "parallel": parallel,
            "restore": restore,
            "seed": seed,
            "snapshot": snapshot,
            "state_bytes_max": state_bytes_max,
            "threshold": threshold,
            "weight": weight,
            "window": window,
        }
        return self.stage(id, "frequent_items", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def frequent_pairs(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        support: Exact,
        device: Device | None = None,
        itemset: int | None = None,
        layout: Layout | None = None,
        measures: Collection[Measure] | None = None,
        memory_max: int | None = None,
        missing: MissingState | None = None,
        on_error: OnError | None = None,
        restore: FilePath | None = None,
        set: str | None = None,
        snapshot: FilePath | None = None,
        window: PairWindow | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to find all pairs of items that occur together often, exactly.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        support
            Transactions that hold both items, at least: a number such as 10, or a share of all
            transactions such as 0.01 or "1/300".
        device
            Device that counts pairs: ``auto`` (the first GPU, if there is one and it pays, and
            further GPUs where these pay), ``cpu``, ``cuda`` or ``cuda:1`` (that GPU; an error if it
            is missing or fails), ``cuda:all`` (all GPUs), or several GPUs, such as ["cuda:0",
            "cuda:1"]. With several GPUs, the others take over the work of one that fails, and the
            failure of the last one is an error. Layouts for a GPU are ``auto``, ``batmap``,
            ``bitmap``, ``sparse`` and ``tensor``. Default: ``"auto"``.
        itemset
            Items of a result: 2 for pairs, 3 for triples. Range: 2 to 3. Default: ``2``.
        layout
            Layout in which pairs are counted; all give the same pairs. One of ``"auto"``,
            ``"batmap"``, ``"bitmap"``, ``"lists"``, ``"sliced"``, ``"sparse"``, ``"tensor"``,
            ``"triangle"``.
        measures
            Measures of association, as more columns. One of ``"confidence"``, ``"lift"``.
        memory_max
            Maximum bytes of the transactions. They are reserved from the memory of the pipeline at
            the start, which must have them. When left out, as much as the stage comes to need and
            the other stages leave, at most 4 GiB. At least 1.
        missing
            When the file of ``restore`` is not there: ``fail``, or ``begin`` without a state, as on
            the first day of a pipeline that goes on with its own state. One of ``"fail"``,
            ``"begin"``.
        on_error
            Action for a row that cannot be used: the transaction or an item of it is null, or an
            expression has no value for the row. When left out, a null is no transaction, null items
            are left out, and an expression without a value ends the run. One of ``"fail"``,
            ``"skip"``, ``"reject"``.
        restore
            Begin with the transactions that this file holds, written by ``snapshot``; the stage
            needs the same windows and type of items.
        set
            Transactions, lists of integers or of texts: a column, or an expression such as
            ``words(line)``. Default: ``"set"``.
        snapshot
            Write the transactions of the stream, or of its last window, to this file when the input
            has ended, as a whole or not at all: the file keeps its content until then. When they
            cannot be written, the rows go on all the same, and the run fails at its end.
        window
            Count in windows: {"transactions": 100000} or {"seconds": 60}, with "slide" for the
            distance between the beginnings of two windows. The pairs of a window come out when it
            closes, with the columns ``window_start``, ``window_end`` and ``complete``.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "support": support,
            "device": device,
            "itemset": itemset,
            "layout": layout,
            "measures": measures,
            "memory_max": memory_max,
            "missing": missing,
            "on_error": on_error,
            "restore": restore,
            "set": set,
            "snapshot": snapshot,
            "window": window,
        }
        return self.stage(id, "frequent_pairs", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def generate(
        self,
        id: str,
        *,
        alphabet: int | None = None,
        batch: int | None = None,
        clusters: int | None = None,
        dims: int | None = None,
        distribution: VectorDistribution | None = None,
        duplicates: float | None = None,
        items: int | None = None,
        kind: GenerateKind | None = None,
        rate: float | None = None,
        seed: int | None = None,
        size_max: int | None = None,
        size_min: int | None = None,
        size_skew: float | None = None,
        skew: float | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to generate a synthetic stream of items, sets or vectors.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        alphabet
            Number of distinct items. Range: 1 to 268,435,456. Default: ``1000000``.
        batch
            Items, sets or vectors per batch. Range: 1 to 1,048,576. Default: ``16384``.
        clusters
            Number of clusters; 5 when left out. For ``clusters`` and ``correlated`` only. Range: 1
            to 65,536.
        dims
            Coordinates of a vector; 8 when left out. For ``vectors`` only, as are ``distribution``
            and ``clusters``. Range: 1 to 4,096.
        distribution
            Distribution of vectors; ``uniform`` when left out. One of ``"uniform"``,
            ``"clusters"``, ``"correlated"``.
        duplicates
            Share of near-duplicates: copies of one of the last 1,024 sets, with up to an eighth of
            their items redrawn; 0.1 when left out. Range: 0 to 1.
        items
            Number of items, sets or vectors; endless when left out.
        kind
            Kind of stream: items, sets or vectors. One of ``"zipf"``, ``"sets"``, ``"vectors"``.
            Default: ``"zipf"``.
        rate
            Items, sets or vectors per second; as fast as they are taken when left out. Range: 0.001
            to 10,000,000,000.
        seed
            Seed of the random numbers. Default: ``1``.
        size_max
            Maximum size of a set, in items; 20 when left out. Range: 1 to 65,536.
        size_min
            Minimum size of a set, in items; 1 when left out. For ``sets`` only, as are
            ``size_max``, ``size_skew`` and ``duplicates``. Range: 1 to 65,536.
        size_skew
            Exponent of the distribution of sizes: the r-th smallest size has a share proportional
            to 1 / r^size_skew. 0, uniform, when left out. Range: 0 to 10.
        skew
            Exponent of the distribution: 0 is uniform, about 1 are words of a text; above 2, a few
            items make up most of the stream. Range: 0 to 10. Default: ``1.0``.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "alphabet": alphabet,
            "batch": batch,
            "clusters": clusters,
            "dims": dims,
            "distribution": distribution,
            "duplicates": duplicates,
            "items": items,
            "kind": kind,
            "rate": rate,
            "seed": seed,
            "size_max": size_max,
            "size_min": size_min,
            "size_skew": size_skew,
            "skew": skew,
        }
        return self.stage(id, "generate", (), cores=cores, workers=workers, parameters=parameters)

    @operator
    def heavy_filter(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        item: str | None = None,
        on_error: OnError | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to take the hottest items out of a stream and count them. Its outputs are
        ```id.rest```` and ````id.counts```.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        item
            The column of the items, or an expression such as ``lower(host)``. Default: ``"item"``.
        on_error
            Action for a row for which the expression has no value. When left out, ``fail``. One of
            ``"fail"``, ``"skip"``, ``"reject"``.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "item": item,
            "on_error": on_error,
        }
        return self.stage(id, "heavy_filter", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def lookup(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        key: str | Collection[str],
        columns: str | Collection[str] | None = None,
        duplicates: Duplicates | None = None,
        memory_max: int | None = None,
        mode: LookupMode | None = None,
        on_error: OnError | None = None,
        table_key: str | Collection[str] | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to join rows to a table by a key.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        key
            The key of a row of the stream: a column, an expression such as ``lower(host)``, or a
            list of them.
        columns
            Columns of the table that rows leave with: ``column``, ``expression as name``, ``*`` for
            all columns but the key, or ``* except (a, b)``. When left out, ``*``.
        duplicates
            The row of the table that counts, of several rows with one key. One of ``"fail"``,
            ``"first"``, ``"last"``, ``"all"``. Default: ``"fail"``.
        memory_max
            Maximum bytes of the table and of the rows that wait for its end. They are reserved from
            the memory of the pipeline at the start, which must have them. When left out, as much as
            the stage comes to need and the other stages leave, at most 4 GiB. At least 1.
        mode
            Rows that leave, by whether the table has a row with their key. One of ``"left"``,
            ``"inner"``, ``"anti"``, ``"semi"``. Default: ``"left"``.
        on_error
            Action for a row of either input for which an expression has no value, such as a text in
            a cast to a number. When left out, ``fail``. One of ``"fail"``, ``"skip"``,
            ``"reject"``.
        table_key
            The key of a row of the table, with as many columns of the same types. Integers may have
            different types. When left out, as ``key``.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "key": key,
            "columns": columns,
            "duplicates": duplicates,
            "memory_max": memory_max,
            "mode": mode,
            "on_error": on_error,
            "table_key": table_key,
        }
        return self.stage(id, "lookup", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def read(
        self,
        id: str,
        *,
        paths: Collection[FilePath],
        batch: int | None = None,
        columns: Collection[str] | None = None,
        comment: str | None = None,
        delimiter: str | None = None,
        dims: int | None = None,
        encoding: str | None = None,
        follow: bool | None = None,
        format: ReadFormat | None = None,
        from_: ReadFrom | None = None,
        header: bool | None = None,
        invalid: Invalid | None = None,
        line_bytes_max: int | None = None,
        names: FilePath | None = None,
        null: Collection[str] | None = None,
        on_error: OnError | None = None,
        pattern: str | None = None,
        quiet_seconds: float | None = None,
        quote: str | None = None,
        schema: Mapping[str, Any] | None = None,
        start: str | None = None,
        vector: Collection[str] | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        r"""Add a stage to read files or standard input.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        paths
            Files, patterns such as ``logs/**/*.gz``, or ``-`` for standard input. A file is read
            once, even if several names or links lead to it; links to folders that form a circle are
            followed once. As in a shell, wildcards do not match hidden files. Files ending in .gz
            or .zst are decompressed; compressed text is also recognised by its first bytes. A zstd
            window may have up to 2 GiB (``--long=31``) and takes as much memory.
        batch
            Maximum rows per batch. A batch has fewer when its lines are long or the input has no
            more at present. Range: 1 to 1,048,576. Default: ``16384``.
        columns
            For ``csv`` without a ``schema``: names of the columns that become columns of text. For
            ``lines``: ``path`` and ``line_number`` (from 1), to be columns beside ``line``. For
            tables: the columns to read, in this order; all of them when left out.
        comment
            For ``csv``: the first character of lines that are passed over, such as ``#``; none when
            left out.
        delimiter
            For ``csv``: the character between two fields, such as ``;`` or ``\t``; a comma when
            left out.
        dims
            Coordinates of a vector: needed for ``f32le``, for ``npy`` from standard input, a pipe
            or a missing file, and for ``csv`` with a name that ends in ``*``. Range: 1 to 4,096.
        encoding
            Encoding of text, such as ``utf-8``, ``windows-1252``, ``utf-16le`` or ``shift_jis``: a
            label of the Encoding Standard, in which ``latin1`` is ``windows-1252``. A byte order
            mark of UTF-8 or UTF-16 counts more. When left out, UTF-8, and a file that looks like
            UTF-16 or UTF-32 without a mark is an error.
        follow
            Follow files that grow: wait for more at the end of a file, through rotation and
            truncation, and look for new files that match a pattern or have a path that was named,
            until the run is stopped. A replaced or rewritten file counts as a new file. Only for
            uncompressed regular files of format ``lines``, ``sets``, ``csv``, ``jsonl`` or ``log``,
            at most 4,096 at once; what else a pattern matches is left out with a warning. The lines
            of a copy that matches a pattern too are read twice, and a file that is there for less
            than 100 ms may be missed. Default: ``False``.
        format
            Format of the files. One of ``"lines"``, ``"paragraphs"``, ``"files"``, ``"u32le"``,
            ``"u64le"``, ``"sets"``, ``"f32le"``, ``"npy"``, ``"csv"``, ``"jsonl"``, ``"log"``,
            ``"parquet"``, ``"arrow"``. Default: ``"lines"``.
        from_
            With ``follow``: read the files that are there at the start from their beginning or
            their end. Files that come later are read from their beginning. One of ``"beginning"``,
            ``"end"``. Default: ``"beginning"``.
        header
            For ``csv``: whether the first record names the columns; otherwise they are ``c1``,
            ``c2`` and so on. When left out, true.
        invalid
            Action for a line with bytes that are no text in this encoding. When left out, that of
            ``on_error``. One of ``"fail"``, ``"skip"``, ``"replace"``.
        line_bytes_max
            Maximum length of a line, in bytes; for ``paragraphs`` and ``files``, of a text. Range:
            1 to 1,073,741,824. Default: ``1048576``.
        names
            For ``f32le`` and ``npy``: a text file with a line for each vector, which becomes the
            column ``name``.
        null
            For tables of ``csv``: the words that are nulls, such as ``["NA", ""]``; the empty one
            when left out. A word in quotes is a text in a column of texts.
        on_error
            Action for a line that is too long, is not a set or is not a row of the table, for a
            text that has such a line, and for a file that is missing, cannot be opened, is damaged,
            or is truncated while it is read. When left out, ``fail``; with ``follow``, ``skip``.
            ``reject`` is for ``lines``, ``sets``, ``csv``, ``jsonl`` and ``log``. One of
            ``"fail"``, ``"skip"``, ``"reject"``.
        pattern
            For ``log``: ``combined`` or ``common`` for access logs of web servers, ``syslog``,
            ``logfmt``, or a template such as ``{ip} [{time:%d/%b/%Y:%H:%M:%S %z}] "{path}"
            {status:u16}``. ``{name}`` is a text, ``{name:type}`` a value, ``{name:%Y-%m-%d}`` a
            time in the words of ``strptime``, and ``{_}`` a text that is passed over; ``{{`` and
            ``}}`` are braces. A field ends at the text that follows it.
        quiet_seconds
            With ``follow``: seconds without a new line after which a file is closed that no path or
            pattern leads to any more, such as a rotated one; 300 when left out. Range: 0 to
            1,000,000.
        quote
            For ``csv``: the character around a field that has delimiters or line ends; ``"`` when
            left out.
        schema
            For ``jsonl``, ``csv`` and the pattern ``logfmt``: the columns of the table and their
            types, such as ``{"status": "u16", "tags": ["text"], "user": {"id": "i64"}}``, in the
            order of their names. When left out, the columns of the first 1,000 rows of the first
            file that has some; standard input, pipes and followed files that are not there yet need
            it.
        start
            For ``lines`` and ``log``: a regular expression that fits the first line of a record,
            such as ``^\d{4}-``. The lines up to the next one belong to the record, as those of a
            stack trace. When left out, each line is a record.
        vector
            For ``csv``: names of the columns of numbers that become the column ``vector``, in this
            order. A name that ends in ``*`` stands for all columns that begin with the rest of it,
            in the order of the file.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "paths": paths,
            "batch": batch,
            "columns": columns,
            "comment": comment,
            "delimiter": delimiter,
            "dims": dims,
            "encoding": encoding,
            "follow": follow,
            "format": format,
            "from": from_,
            "header": header,
            "invalid": invalid,
            "line_bytes_max": line_bytes_max,
            "names": names,
            "null": null,
            "on_error": on_error,
            "pattern": pattern,
            "quiet_seconds": quiet_seconds,
            "quote": quote,
            "schema": schema,
            "start": start,
            "vector": vector,
        }
        return self.stage(id, "read", (), cores=cores, workers=workers, parameters=parameters)

    @operator
    def select(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        columns: Collection[str],
        on_error: OnError | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to compute columns by expressions.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        columns
            The columns: ``column``, ``expression as name``, ``*`` for all columns, ``* except (a,
            b)``, and once ``unnest(list) as name``, which makes a row of each value of a list.
        on_error
            Action for a row for which an expression has no value, such as a text in a cast to a
            number. When left out, ``fail``. One of ``"fail"``, ``"skip"``, ``"reject"``.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "columns": columns,
            "on_error": on_error,
        }
        return self.stage(id, "select", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def set_similarity_join(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        threshold: Exact,
        algorithm: JoinAlgorithm | None = None,
        carry: str | Collection[str] | None = None,
        chunk_bytes: int | None = None,
        device: Device | None = None,
        id_: str | None = None,
        memory_max: int | None = None,
        mode: JoinMode | None = None,
        on_error: OnError | None = None,
        output: JoinOutput | None = None,
        set: str | None = None,
        similarity: Similarity | None = None,
        size_min: int | None = None,
        verify: VerifyMode | None = None,
        window: JoinWindow | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to find all pairs of similar sets, exactly.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        threshold
            Minimum similarity of a pair: a decimal such as 0.8 or a fraction such as "4/5", taken
            exactly. For ``overlap``, a number of tokens.
        algorithm
            Algorithm that finds candidate pairs. Not for ``window`` and ``deduplicate``, which have
            only one. One of ``"auto"``, ``"all_pairs"``, ``"pp_join"``, ``"pp_join_bitmap"``,
            ``"group_join"``, ``"gpu_signatures"``. Default: ``"auto"``.
        carry
            Columns of the input to carry into the rows of pairs, or ``*`` for all: column ``x``
            becomes ``left_x`` and ``right_x``.
        chunk_bytes
            Bytes of a chunk of candidates. Default: 262144 on the CPU, 5242880 on a device. Range:
            1 to 1,073,741,824.
        device
            Device that verifies candidates: ``auto`` (the first GPU, if there is one and it pays,
            and further GPUs where these pay), ``cpu``, ``cuda`` or ``cuda:1`` (that GPU; an error
            if it is missing or fails), ``cuda:all`` (all GPUs), or several GPUs, such as ["cuda:0",
            "cuda:1"]. With several GPUs, the others take over the work of one that fails, and the
            failure of the last one is an error. Default: ``"auto"``.
        id_
            Ids of the rows, of any type: a column or an expression. When left out, the column
            ``id``, or else the position of the row in its input, from 0.
        memory_max
            Maximum bytes of the sets and their index. On a device, the sets may use as much again,
            and twice that if some of them are compared by signatures only. They are reserved from
            the memory of the pipeline at the start, which must have them. When left out, as much as
            the stage comes to need and the other stages leave, at most 4 GiB. At least 1.
        mode
            ``join`` finds pairs. ``deduplicate`` drops rows whose set is similar to an earlier one;
            it runs on the CPU and takes no ``algorithm``, no ``carry`` and no ``output`` ``count``.
            One of ``"join"``, ``"deduplicate"``. Default: ``"join"``.
        on_error
            Action for a row that cannot be used: the id or the set is null, an item of the set is
            null, or an expression has no value for the row. When left out, rows with a null id or
            set are not joined, null items are left out of their sets, and an expression without a
            value ends the run. One of ``"fail"``, ``"skip"``, ``"reject"``.
        output
            Output: pairs, or their number. One of ``"pairs"``, ``"count"``. Default: ``"pairs"``.
        set
            Sets, lists of integers or of texts in any order: a column, or an expression such as
            ``words(text)``. Default: ``"set"``.
        similarity
            Similarity of two sets. One of ``"jaccard"``, ``"cosine"``, ``"dice"``, ``"overlap"``.
            Default: ``"jaccard"``.
        size_min
            Minimum number of tokens of a set. Smaller sets are similar to no set. At least 1.
            Default: ``1``.
        verify
            Kernel that verifies candidates. With ``gpu_signatures`` only ``auto`` and ``cpu``. One
            of ``"auto"``, ``"a"``, ``"b"``, ``"c"``, ``"warp"``, ``"cpu"``. Default: ``"auto"``.
        window
            Window of a streaming join, for one input: {"sets": 100000} or {"seconds": 60}. A pair
            comes out when its newer set arrives. Without a window, all sets are joined when the
            input has ended, and ``deduplicate`` compares a set with all earlier ones.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "threshold": threshold,
            "algorithm": algorithm,
            "carry": carry,
            "chunk_bytes": chunk_bytes,
            "device": device,
            "id": id_,
            "memory_max": memory_max,
            "mode": mode,
            "on_error": on_error,
            "output": output,
            "set": set,
            "similarity": similarity,
            "size_min": size_min,
            "verify": verify,
            "window": window,
        }
        return self.stage(id, "set_similarity_join", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def tokenize(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        by: TokenizeBy,
        batch: int | None = None,
        carry: str | Collection[str] | None = None,
        column: str | None = None,
        delimiter: str | None = None,
        dictionary_bytes_max: int | None = None,
        dictionary_full: DictionaryFull | None = None,
        dictionary_max: int | None = None,
        into: TokenizeInto | None = None,
        on_error: OnError | None = None,
        q: int | None = None,
        quotes: bool | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        r"""Add a stage to cut texts into words, q-grams or fields.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        by
            Definition of a token. One of ``"words"``, ``"whitespace"``, ``"qgrams"``.
        batch
            Rows per output batch. Range: 1 to 1,048,576. Default: ``16384``.
        carry
            Input columns to copy to the output, such as the text itself, or ``*`` for all; for sets
            only.
        column
            Text column, or an expression such as ``lower(title)``; required if the input has
            several text columns.
        delimiter
            Character between two fields, such as ``,`` or ``\t``; white space when left out. For
            ``field`` only.
        dictionary_bytes_max
            Bytes of token text that the dictionary always keeps; for ``sets`` only. Range: 1,024 to
            1,099,511,627,776. Default: ``268435456``.
        dictionary_full
            Action when the dictionary is full; for ``sets`` only. One of ``"forget"``, ``"fail"``.
            Default: ``"forget"``.
        dictionary_max
            Distinct tokens that the dictionary always keeps; for ``sets`` only. Range: 1 to
            2,147,483,647. Default: ``16777216``.
        into
            Form of the output: a row per token, or a set per text. One of ``"items"``, ``"sets"``,
            ``"text_sets"``. Default: ``"items"``.
        on_error
            Action for a row for which the expression has no value. When left out, ``fail``. One of
            ``"fail"``, ``"skip"``, ``"reject"``.
        q
            Characters of a q-gram; for ``qgrams`` only. Range: 1 to 255.
        quotes
            Fields may stand in double quotes or, without a ``delimiter``, in brackets too, and have
            delimiters there: ``[1/Jan/2026 10:00] "GET / HTTP/1.1"`` has two fields, without their
            quotes. For ``field`` only. Default: ``False``.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "by": by,
            "batch": batch,
            "carry": carry,
            "column": column,
            "delimiter": delimiter,
            "dictionary_bytes_max": dictionary_bytes_max,
            "dictionary_full": dictionary_full,
            "dictionary_max": dictionary_max,
            "into": into,
            "on_error": on_error,
            "q": q,
            "quotes": quotes,
        }
        return self.stage(id, "tokenize", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def union(
        self,
        id: str,
        inputs: Iterable[str],
        *,
        fill: Mapping[str, float | str | bool | None] | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to join several inputs of one schema into one stream.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        fill
            Constant for each column that an input lacks, by name: {"count": 1}. A number, a text,
            true, false or null. A missing column without a constant is an error.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "fill": fill,
        }
        return self.stage(id, "union", inputs, cores=cores, workers=workers, parameters=parameters)

    @operator
    def write(
        self,
        id: str,
        inputs: str | Iterable[str],
        *,
        append: bool | None = None,
        by: str | None = None,
        cell_max: int | None = None,
        columns: Collection[str] | None = None,
        flush_seconds: float | None = None,
        format: WriteFormat | None = None,
        path: FilePath | None = None,
        rotate: Rotate | None = None,
        row_group_bytes: int | None = None,
        rows_max: int | None = None,
        sort: Collection[str] | None = None,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
    ) -> str:
        """Add a stage to write rows to a file or to standard output.

        Parameters
        ----------
        id
            Names the stage in inputs, queries, reports and errors.
        inputs
            Ids of the stages that it reads; ``"stage.port"`` for an output of a stage with several.
        append
            Append rows to the file while the stream runs. Existing content stays, and so do rows
            written before a failure. An incomplete last line, left by a failed machine, gets a line
            end first. Only for ``jsonl``, ``csv`` and ``lines``. Default: ``False``.
        by
            Column, or ``expression as name``, for each value of which a file is written. ``path``
            has the name of the column in braces, ``out/{host}.jsonl``; or it is a folder, ``out/``,
            for files ``out/host=VALUE/part-0.jsonl`` without that column, which readers know as
            Hive's. Values are percent-encoded, and null is ``__HIVE_DEFAULT_PARTITION__``. At most
            100,000 values.
        cell_max
            Maximum characters of a value in a table; longer values are cut and end with ``…``. All
            when left out. At least 1.
        columns
            Columns to write, in this order; all when left out.
        flush_seconds
            Maximum seconds before a row is written, with ``append`` or ``rotate``; 1 when left out.
            Rows are written earlier when 256 KiB of them wait. Range: 0 to 86,400.
        format
            Format of the rows. One of ``"jsonl"``, ``"csv"``, ``"lines"``, ``"parquet"``,
            ``"arrow"``, ``"table"``. Default: ``"jsonl"``.
        path
            Output file, or ``-`` for standard output. Default: ``"-"``.
        rotate
            Append as with ``append``, and start a new file when the file reaches a size, {"bytes":
            100000000}, or at fixed times, {"seconds": 3600}. The full file is synced to the disk
            and gets the current time (UTC) in its name: ``rows.jsonl`` becomes
            ``rows.20261122T053312.123Z.jsonl``. {"seconds": 3600, "delay_seconds": 2} lets a file
            take rows for two seconds after the hour, such as those of a window that ends with it.
            With {"compress": "gzip"} or "zstd" a full file is then compressed, and {"keep": 24}
            removes all but the newest 24 full files.
        row_group_bytes
            For ``parquet``: bytes of a row group, which a reader can pass over; 64 MiB when left
            out. The rows of one are in the memory of the pipeline until it is full, and it ends
            early when there is no more memory. Range: 65,536 to 1,073,741,824.
        rows_max
            Maximum rows of a table; further rows are only counted. The rows are kept until the end,
            in the memory of the pipeline. Range: 1 to 1,000,000. Default: ``1000``.
        sort
            Columns to sort the rows of a table by, such as ["-similarity", "left"]: a minus sign
            before a name lets the column descend. Nulls are last. The rows that are kept are
            sorted, the first ``rows_max`` of the stream.
        cores
            Cores for its parts: a thread of its own on each.
        workers
            Number of workers that do its work side by side, if the work can be divided; by default,
            one for each core where this pays.
        """
        parameters = {
            "append": append,
            "by": by,
            "cell_max": cell_max,
            "columns": columns,
            "flush_seconds": flush_seconds,
            "format": format,
            "path": path,
            "rotate": rotate,
            "row_group_bytes": row_group_bytes,
            "rows_max": rows_max,
            "sort": sort,
        }
        return self.stage(id, "write", inputs, cores=cores, workers=workers, parameters=parameters)
