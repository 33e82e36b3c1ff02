"""NumPy arrays, and the columns of objects with an Arrow interface, one by one and without a copy.

The structures are those of Arrow's C data interface. A Python object owns a structure until a
consumer moves it, which then calls its ``release``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
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


class _Owner:
    """A structure that is released once nothing refers to it, unless a consumer has moved it."""

    def __init__(self, structure: Any, keep: Any = None) -> None:
        self.structure = structure
        # The memory that the structure points to.
        self.keep = keep

    def __del__(self) -> None:
        if self.structure.release:
            self.structure.release(ctypes.byref(self.structure))


class ArrowType:
    """The type of a column."""

    def __init__(self, schema: _Schema, owner: _Owner) -> None:
        self._schema = schema
        self._owner = owner

    def __arrow_c_schema__(self) -> object:
        return _capsule_new(ctypes.addressof(self._schema), b"arrow_schema", None)


class ArrowColumn:
    """An array that is given to a consumer once."""

    def __init__(self, type: ArrowType, array: _Array, keep: Any = None) -> None:
        self._type = type
        self._array = _Owner(array, keep)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        address = ctypes.addressof(self._array.structure)
        return self._type.__arrow_c_schema__(), _capsule_new(address, b"arrow_array", None)


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
    return ArrowColumn(ArrowType(schema, _Owner(schema, keep)), column, keep)


def _structure(capsule: object, name: bytes, kind: Any) -> Any:
    try:
        return ctypes.cast(_capsule_pointer(capsule, name), POINTER(kind)).contents
    except (TypeError, ValueError):
        what = name.decode().replace("_", " ")
        raise TypeError(f"expected a capsule of an {what}, found {type(capsule).__name__}") from None


def _moved(structure: Any) -> Any:
    """The structure, which its owner no longer releases."""
    if not structure.release:
        raise ValueError("the Arrow data was read before")
    moved = type(structure)()
    ctypes.memmove(ctypes.byref(moved), ctypes.byref(structure), ctypes.sizeof(moved))
    ctypes.memset(ctypes.addressof(structure) + type(structure).release.offset, 0, ctypes.sizeof(c_void_p))
    return moved


def _arrays(data: Any) -> tuple[_Schema, Iterator[_Array]]:
    """The type and the arrays of an object with an Arrow interface."""
    if hasattr(data, "__arrow_c_array__"):
        pair = data.__arrow_c_array__()
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"expected a tuple of (schema, array) capsules, found {type(pair).__name__}")
        schema = _moved(_structure(pair[0], b"arrow_schema", _Schema))
        return schema, iter([_moved(_structure(pair[1], b"arrow_array", _Array))])
    capsule = data.__arrow_c_stream__()
    stream = _structure(capsule, b"arrow_array_stream", _Stream)
    if not stream.release:
        raise ValueError("the Arrow stream was read before")
    schema = _Schema()
    _check(stream, stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)))
    return schema, _read(capsule, stream)


def _read(capsule: object, stream: Any) -> Iterator[_Array]:
    """The arrays of a stream, which the capsule keeps alive."""
    while True:
        array = _Array()
        _check(stream, stream.get_next(ctypes.byref(stream), ctypes.byref(array)))
        if not array.release:
            return
        yield array


def _check(stream: Any, code: int) -> None:
    if code == 0:
        return
    said = (stream.get_last_error(ctypes.byref(stream)) or b"without a reason").decode(errors="replace")
    # Python code in the stream was interrupted; only the text of its exception comes through.
    if "KeyboardInterrupt" in said:
        raise KeyboardInterrupt
    raise ValueError(f"the Arrow stream failed: {said} (error {code})")


def _mend(schema: Any, array: Any) -> None:
    """Leave out the buffer that older versions of the format gave to arrays of nulls."""
    if schema.format == b"n":
        array.n_buffers = 0
    for child in range(min(schema.n_children, array.n_children)):
        _mend(schema.children[child].contents, array.children[child].contents)


class _Part:
    """An object with an Arrow interface: its columns by name, and its arrays."""

    def __init__(self, data: Any) -> None:
        schema, self._arrays = _arrays(data)
        # An array of NumPy owns what its type points to.
        self._data = data
        self._owner = _Owner(schema)
        self.is_table = schema.format == b"+s"
        if self.is_table:
            schemas = [schema.children[child].contents for child in range(schema.n_children)]
            self.names = [(child.name or b"").decode(errors="replace") for child in schemas]
        else:
            schemas, self.names = [schema], ["item"]
        self.types = [ArrowType(child, self._owner) for child in schemas]

    def read(self, columns: list[int]) -> tuple[int, int, bytes | None, list[ArrowColumn]] | None:
        array = next(self._arrays, None)
        if array is None:
            return None
        if array.length < 0 or array.offset < 0:
            raise ValueError(f"an Arrow array of {array.length} rows from row {array.offset} on")
        if not self.is_table:
            _mend(self._owner.structure, array)
            return 0, array.length, None, [ArrowColumn(self.types[0], array)]
        owner = _Owner(array)
        if array.n_children != len(self.types):
            raise ValueError(f"an array of {array.n_children} columns in a stream of {len(self.types)}")
        validity = None
        if array.null_count != 0 and array.n_buffers and array.buffers[0]:
            # The children do not have the nulls of their struct.
            validity = ctypes.string_at(array.buffers[0], (array.offset + array.length + 7) // 8)
        for column in columns:
            _mend(self._owner.structure.children[column].contents, array.children[column].contents)
        wanted = {
            column: ArrowColumn(self.types[column], _moved(array.children[column].contents))
            for column in dict.fromkeys(columns)
        }
        offset, length = array.offset, array.length
        # The struct has to go once a child was moved; columns that nobody asked for go with it.
        del owner
        return offset, length, validity, [wanted[column] for column in columns]


class Reader:
    """The rows of objects with an Arrow interface, of which only the wanted columns are read.

    The structures of other columns are not looked at, so their types may be unknown.
    """

    def __init__(self, parts: list[Any]) -> None:
        self._parts = [_Part(part) for part in parts]
        self.names = self._parts[0].names

    def column_type(self, column: int) -> ArrowType:
        """The type of a column."""
        return self._parts[0].types[column]

    def read(self, columns: list[int]) -> tuple[int, int, bytes | None, list[ArrowColumn]] | None:
        """The next rows, none at the end.

        An offset and a number of rows, the bitmap of the rows that are not null if there are
        others, and the columns.
        """
        while self._parts:
            part = self._parts[0]
            if part.names != self.names:
                raise ValueError(f"some data has the columns {self.names}, and other {part.names}")
            rows = part.read(columns)
            if rows is not None:
                return rows
            if len(self._parts) == 1:
                return None
            self._parts.pop(0)
        return None
