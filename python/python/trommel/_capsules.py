"""NumPy arrays, and streams of single arrays, as objects with an Arrow interface, without a copy.

The structures are those of Arrow's C data interface. A Python object owns a structure until a
consumer moves it, which then calls its ``release``.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from typing import Any


class _Schema(ctypes.Structure):
    """The type of an array."""


class _Array(ctypes.Structure):
    """The data of an array."""


class _Stream(ctypes.Structure):
    """A source of arrays of one type."""


_ReleaseSchema = CFUNCTYPE(None, POINTER(_Schema))
_ReleaseArray = CFUNCTYPE(None, POINTER(_Array))
_Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_char_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(_Schema))),
    ("dictionary", POINTER(_Schema)),
    ("release", _ReleaseSchema),
    ("private_data", c_void_p),
]
_Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(_Array))),
    ("dictionary", POINTER(_Array)),
    ("release", _ReleaseArray),
    ("private_data", c_void_p),
]
_Stream._fields_ = [
    ("get_schema", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Schema))),
    ("get_next", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Array))),
    ("get_last_error", CFUNCTYPE(c_char_p, POINTER(_Stream))),
    ("release", CFUNCTYPE(None, POINTER(_Stream))),
    ("private_data", c_void_p),
]

_NULLABLE = 2

_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype = ctypes.py_object
_capsule_new.argtypes = [c_void_p, c_char_p, c_void_p]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, c_char_p]

# The objects that an array refers to, until its release; their address is in its `private_data`.
_kept: dict[int, tuple[Any, ...]] = {}


def _keep(array: _Array, objects: tuple[Any, ...]) -> None:
    array.private_data = id(objects)
    _kept[id(objects)] = objects


def _end_schema(schema: Any) -> None:
    schema.contents.release = _ReleaseSchema()


def _end_array(array: Any) -> None:
    contents = array.contents
    for child in range(contents.n_children):
        contents.children[child].contents.release = _ReleaseArray()
    contents.release = _ReleaseArray()
    _kept.pop(contents.private_data, None)


# They live as long as the module, as arrays may be released at any time.
_release_schema = _ReleaseSchema(_end_schema)
_release_array = _ReleaseArray(_end_array)


class ArrowColumn:
    """An array that is given to a consumer once."""

    def __init__(self, schema: _Schema, array: _Array, keep: tuple[Any, ...]) -> None:
        self._schema = schema
        self._array = array
        # The memory that the structures themselves point to.
        self._keep = keep

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        schema = _capsule_new(ctypes.addressof(self._schema), b"arrow_schema", None)
        array = _capsule_new(ctypes.addressof(self._array), b"arrow_array", None)
        return schema, array

    def __del__(self) -> None:
        # A consumer that moved the array has cleared `release`.
        if self._array.release:
            self._array.release(ctypes.byref(self._array))
        if self._schema.release:
            self._schema.release(ctypes.byref(self._schema))


def _type(format: bytes, name: bytes, *children: _Schema) -> tuple[_Schema, tuple[Any, ...]]:
    pointers = (POINTER(_Schema) * len(children))(*map(ctypes.pointer, children))
    schema = _Schema(
        format=format,
        name=name,
        flags=_NULLABLE,
        n_children=len(children),
        children=pointers,
        release=_release_schema,
    )
    return schema, (format, name, pointers, children)


def _data(length: int, buffers: list[int | None], *children: _Array) -> tuple[_Array, tuple[Any, ...]]:
    addresses = (c_void_p * len(buffers))(*buffers)
    pointers = (POINTER(_Array) * len(children))(*map(ctypes.pointer, children))
    array = _Array(
        length=length,
        n_buffers=len(buffers),
        buffers=addresses,
        n_children=len(children),
        children=pointers,
        release=_release_array,
    )
    return array, (addresses, pointers, children)


_FORMATS = {
    "i1": b"c", "i2": b"s", "i4": b"i", "i8": b"l",
    "u1": b"C", "u2": b"S", "u4": b"I", "u8": b"L",
    "f2": b"e", "f4": b"f", "f8": b"g",
}  # fmt: skip


def numpy_column(array: Any) -> ArrowColumn:
    """An array of numbers with one or two dimensions; rows of two become lists of a fixed size."""
    import numpy

    format = _FORMATS.get(array.dtype.kind + str(array.dtype.itemsize))
    if format is None or array.dtype.names is not None:
        raise TypeError(
            f"a NumPy array of {array.dtype}: expected whole numbers, floats of up to 64 bits or texts"
        )
    if array.ndim not in (1, 2):
        raise ValueError(f"a NumPy array of {array.ndim} dimensions: expected one or two")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    array = numpy.require(array, requirements=["C", "A"])
    values, kept_values = _data(array.size, [None, array.ctypes.data if array.size else None])
    item, kept_item = _type(format, b"item")
    keep: tuple[Any, ...] = (array, values, kept_values, item, kept_item)
    if array.ndim == 1:
        column, schema = values, item
    else:
        column, kept_column = _data(array.shape[0], [None], values)
        schema, kept_schema = _type(b"+w:%d" % array.shape[1], b"item", item)
        keep += (column, kept_column, schema, kept_schema)
    _keep(column, keep)
    return ArrowColumn(schema, column, keep)


class ArrowStream:
    """A stream of rows that was looked at and not read."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._capsule


def _fail(stream: Any, pointer: Any, code: int) -> None:
    if code != 0:
        said = stream.get_last_error(pointer) or b"without a reason"
        raise ValueError(f"the Arrow stream failed: {said.decode(errors='replace')} (error {code})")


def stream_or_columns(capsule: object) -> ArrowStream | list[ArrowColumn]:
    """The stream itself if it has rows, and the chunks of one that has a single array."""
    pointer = ctypes.cast(_capsule_pointer(capsule, b"arrow_array_stream"), POINTER(_Stream))
    stream = pointer.contents
    schema = _stream_type(stream, pointer)
    if schema.format == b"+s":
        schema.release(ctypes.byref(schema))
        return ArrowStream(capsule)
    columns = []
    while True:
        array = _Array()
        _fail(stream, pointer, stream.get_next(pointer, ctypes.byref(array)))
        if not array.release:
            break
        columns.append(ArrowColumn(_stream_type(stream, pointer), array, ()))
    if not columns:
        columns.append(_empty_column(schema))
    else:
        schema.release(ctypes.byref(schema))
    return columns


def _stream_type(stream: Any, pointer: Any) -> _Schema:
    schema = _Schema()
    _fail(stream, pointer, stream.get_schema(pointer, ctypes.byref(schema)))
    return schema


_TEXTS = {b"u": 3, b"U": 3, b"z": 3, b"Z": 3, b"vu": 2, b"vz": 2}


def _empty_column(schema: _Schema) -> ArrowColumn:
    """A column of this type without elements."""
    keep: list[Any] = []

    def empty(of: Any) -> _Array:
        format = of.format
        children = [empty(of.children[child].contents) for child in range(of.n_children)]
        if format in _TEXTS or format in (b"+l", b"+L"):
            # The one offset of an array without elements.
            zeros = (ctypes.c_char * 64)()
            keep.append(zeros)
            offsets = ctypes.addressof(zeros)
            count = _TEXTS.get(format, 2)
            buffers: list[int | None] = [None, offsets, offsets][:count]
        elif format.startswith((b"+w", b"+s")):
            buffers = [None]
        elif format == b"n":
            buffers = []
        else:
            buffers = [None, None]
        array, kept = _data(0, buffers, *children)
        keep.extend((array, kept))
        if of.dictionary:
            values = empty(of.dictionary.contents)
            array.dictionary = ctypes.pointer(values)
        return array

    array, kept = empty(schema), tuple(keep)
    _keep(array, kept)
    return ArrowColumn(schema, array, kept)
