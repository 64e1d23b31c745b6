"""The arguments of C calls as ctypes hands them over: references, arrays, handles and buffers, read and filled.

Structs are filled by the names of their fields, which are those of nvml.h: the caller brings the struct.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

from dradriver.described.codes import Code, Refusal

_POINTER: Final = ctypes.sizeof(ctypes.c_void_p)


def number(argument: Any) -> int:
    """A number passed as int or as a ctypes integer."""
    return int(argument if isinstance(argument, int) else argument.value)


def text(argument: Any) -> str:
    """A text passed as `char *`. Raises Refusal(INVALID_ARGUMENT) for NULL and for what is no text."""
    value = argument if isinstance(argument, bytes) else argument.value
    if value is None:
        raise Refusal(Code.INVALID_ARGUMENT)
    try:
        return bytes(value).decode()
    except UnicodeDecodeError as error:
        raise Refusal(Code.INVALID_ARGUMENT) from error


def handle(argument: Any) -> int | None:
    """The number of a handle, None for NULL and for what is no handle."""
    if argument is None or isinstance(argument, int):
        return argument
    return ctypes.cast(argument, ctypes.c_void_p).value


def pointed(reference: Any) -> Any:
    """What `byref(x)` or an array refers to. Raises Refusal(INVALID_ARGUMENT) for NULL."""
    if reference is None:
        raise Refusal(Code.INVALID_ARGUMENT)
    return getattr(reference, "_obj", reference)


def put(reference: Any, value: int) -> None:
    """Answer a number."""
    pointed(reference).value = value


def put_handle(reference: Any, value: int) -> None:
    """Answer a handle."""
    ctypes.c_void_p.from_buffer(pointed(reference)).value = value


def put_text(buffer: Any, length: Any, value: str) -> None:
    """Answer a text in a buffer. Raises Refusal(INSUFFICIENT_SIZE) where it does not fit with its final NUL."""
    encoded = value.encode()
    if len(encoded) >= number(length):
        raise Refusal(Code.INSUFFICIENT_SIZE)
    pointed(buffer).value = encoded


def put_mask(array: Any, size: Any, members: Sequence[int]) -> None:
    """Answer a set of numbers as bits of an array of `size` unsigned longs. What lies beyond it is left out."""
    words = pointed(array)
    for word in range(number(size)):
        words[word] = sum(1 << (member % 64) for member in members if member // 64 == word)


def versioned(reference: Any, *versions: int) -> Any:
    """A struct whose `version` (its size and a number in the high byte) the caller set to one of `versions`.

    Raises:
        Refusal: ARGUMENT_VERSION_MISMATCH for another.
    """
    struct = pointed(reference)
    if struct.version not in {ctypes.sizeof(struct) | version << 24 for version in versions}:
        raise Refusal(Code.ARGUMENT_VERSION_MISMATCH)
    return struct


def fill(struct: Any, **values: int | bytes) -> None:
    """Set those fields that this version of the struct has."""
    for name, value in values.items():
        if hasattr(struct, name):
            setattr(struct, name, value)


def fill_bytes(struct: Any, name: str, value: bytes) -> None:
    """Set an array of bytes, zeros included, which `char` arrays would end at."""
    room = getattr(type(struct), name).size
    offset = getattr(type(struct), name).offset
    ctypes.memmove(ctypes.addressof(struct) + offset, value[:room].ljust(room, b"\0"), room)


def fill_handle(struct: Any, name: str, value: int) -> None:
    """Set a field that is a handle."""
    ctypes.c_void_p.from_buffer(struct, getattr(type(struct), name).offset).value = value


def put_list(array: Any, count: Any, items: Sequence[Any]) -> None:
    """Answer a list the way of NVML: the length where there is no array, else the items if they fit.

    An item is a handle (a number) or the fields of a struct (a dict).

    Raises:
        Refusal: INSUFFICIENT_SIZE where they do not fit; the length is answered all the same.
    """
    length = pointed(count)
    room, length.value = length.value, len(items)
    if array is None:
        return
    if room < len(items):
        raise Refusal(Code.INSUFFICIENT_SIZE)
    memory = pointed(array)
    for i, item in enumerate(items):
        if isinstance(item, int):
            ctypes.c_void_p.from_buffer(memory, i * _POINTER).value = item
        else:
            fill(memory[i], **item)
