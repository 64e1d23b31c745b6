"""Entries of maps and elements of lists: found, perhaps found, or asked for."""

from __future__ import annotations

from typing import Any

from dradriver.cel import values
from dradriver.cel.values import ABSENT, NONE, Failure, Optional


def entry_of(container: Any, key: Any) -> Any:
    """The entry under a key or at a position. Raises Failure where there is none."""
    if isinstance(container, dict):
        found = _found(container, key)
        if found is ABSENT:
            raise Failure(f"no such key: {key}", str(key))
        return found
    if type(container) is not tuple:
        raise values.no_overload()
    if type(key) is float and key.is_integer():
        key = int(key)
    if type(key) not in (int, values.UInt):
        raise Failure(f"unsupported index type '{values.name_of_type(key)}' in list")
    if not 0 <= key < len(container):
        raise Failure(f"index out of bounds: {key}")
    return container[key]


def _found(container: dict[Any, Any], key: Any) -> Any:
    if type(key) not in _KEYS:
        raise Failure(f"invalid qualifier type: {values.name_of_type(key)}")
    return values.find(container, key)


_KEYS = frozenset({str, int, values.UInt, float, bool})
"""Types that may index a map."""


def optional_member(container: Any, key: Any) -> Optional:
    """The same as an optional: none where there is no entry, and in what is neither map nor list."""
    if type(container) is tuple:
        if type(key) in (int, values.UInt) and not 0 <= key < len(container):
            return NONE
    elif not isinstance(container, dict) or _found(container, key) is ABSENT:
        return NONE
    return Optional(entry_of(container, key))


def is_present(container: Any, name: str) -> bool:
    """Whether `has` finds a field."""
    if type(container) is Optional:
        return container.present and is_present(container.value, name)
    if type(container) is tuple:
        raise Failure("unsupported index type 'string' in list")
    return isinstance(container, dict) and values.find(container, name) is not ABSENT
