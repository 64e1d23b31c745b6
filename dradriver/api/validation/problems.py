"""Broken rules in the words of the server's field errors (apimachinery `util/validation/field`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dradriver.api import names

Item = TypeVar("Item")

DNS_LABEL: Final = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
_ENDS: Final = "and must start and end with an alphanumeric character"


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule. `path` is a JSON path in v1 shape, `message` names the value seen and the limit."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def required(path: str, detail: str = "") -> Problem:
    """Something must be there and is not."""
    return Problem(path, f"Required value: {detail}" if detail else "Required value")


def invalid(path: str, value: Any, detail: str) -> Problem:
    """A value breaks a rule."""
    return Problem(path, f"Invalid value: {_shown(value)}: {detail}")


def duplicate(path: str, value: Any) -> Problem:
    """A value appears twice where it may appear once."""
    return Problem(path, f"Duplicate value: {_shown(value)}")


def forbidden(path: str, detail: str) -> Problem:
    """A field may not be set here."""
    return Problem(path, f"Forbidden: {detail}")


def unsupported(path: str, value: str, choices: Iterable[str]) -> Problem:
    """A value is none of the choices."""
    return Problem(path, f"Unsupported value: {_shown(value)}: supported values: {', '.join(map(_shown, choices))}")


def too_long(path: str, text: str, limit: int) -> Iterator[Problem]:
    """A problem if a text has more bytes than the limit."""
    size = len(text.encode())
    if size > limit:
        yield Problem(path, f"Too long: {size} bytes: may not be more than {limit} bytes")


def too_many(path: str, count: int, limit: int | None) -> Iterator[Problem]:
    """A problem if there are more items than the limit, if there is one."""
    if limit is not None and count > limit:
        yield Problem(path, f"Too many: {count}: must have at most {limit} items")


def each(
    path: str,
    items: Sequence[Item],
    limit: int | None,
    check: Callable[[str, Item], Iterable[Problem]],
    key: Callable[[Item], Hashable] | None = None,
) -> Iterator[Problem]:
    """The problems of a list: its length alone if that is too much, else those of its items and repeated keys."""
    excess = tuple(too_many(path, len(items), limit))
    if excess:
        yield from excess
        return
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        place = f"{path}[{index}]"
        yield from check(place, item)
        if key is not None:
            if key(item) in seen:
                yield duplicate(place, key(item))
            seen.add(key(item))


def dns_label(path: str, text: str) -> Iterator[Problem]:
    """Problems of the name of a device, request, counter set or counter."""
    if not text:
        yield required(path)
    elif not names.is_dns_label(text):
        yield invalid(path, text, f"{DNS_LABEL}{_ENDS}, in at most {names.LABEL_LIMIT} characters")


def dns_subdomain(path: str, text: str, limit: int = names.SUBDOMAIN_LIMIT) -> Iterator[Problem]:
    """Problems of the name of a class or node."""
    if not text:
        yield required(path)
    elif not names.is_dns_subdomain(text, limit=limit):
        yield invalid(
            path,
            text,
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            f"{_ENDS}, in at most {limit} characters",
        )


def driver_name(path: str, text: str) -> Iterator[Problem]:
    """Problems of a driver's name; upper case is only warned of by servers, and taken."""
    yield from dns_subdomain(path, text.lower(), names.DRIVER_LIMIT)


def label_key(path: str, text: str) -> Iterator[Problem]:
    """Problems of a taint's key or the name of a condition."""
    if not text:
        yield required(path)
    elif not names.is_label_key(text):
        yield invalid(
            path,
            text,
            "a name must consist of alphanumeric characters, '-', '_' or '.', "
            f"{_ENDS}, in at most {names.LABEL_LIMIT} characters, with an optional DNS subdomain prefix and '/'",
        )


def label_value(path: str, text: str) -> Iterator[Problem]:
    """Problems of a taint's value."""
    if not names.is_label_value(text):
        yield invalid(
            path,
            text,
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            f"{_ENDS}, in at most {names.LABEL_LIMIT} characters",
        )


def qualified_name(path: str, text: str) -> Iterator[Problem]:
    """Problems of the name of an attribute or capacity."""
    if not names.is_qualified_name(text):
        yield invalid(
            path,
            text,
            f"must be a C identifier of at most {names.IDENTIFIER_LIMIT} characters, optionally prefixed with "
            f"a DNS subdomain of at most {names.DRIVER_LIMIT} characters and '/'",
        )


def fully_qualified_name(path: str, text: str) -> Iterator[Problem]:
    """Problems of an attribute's name where the domain must be said."""
    if "/" not in text:
        yield invalid(path, text, "a fully qualified name must be a domain and a name separated by a slash")
    else:
        yield from qualified_name(path, text)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool | int) else str(value)
