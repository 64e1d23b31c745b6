"""How values and JSON correspond, said once per field and used for reading, writing and writing over.

A shape lists its fields; everything else follows: reading takes the known ones and names the path of what is wrong,
writing leaves out what is empty, writing over older JSON keeps the keys no shape knows and drops known ones that are
gone. `null` counts as absent, as it does for the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from dradriver.api.errors import ApiError, QuantityError
from dradriver.api.quantity import Quantity

UNKNOWN: Final = object()
"""What a codec reads from a kind of value that this version does not know; maps leave it out, and keep its JSON."""

_INT64: Final = range(-(2**63), 2**63)


class ShapeError(ApiError):
    """JSON of the wrong shape, before its place is known: `steps` lead to it, innermost first."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.steps: list[str] = []

    @property
    def path(self) -> str:
        """The JSON path from the object's root."""
        return "".join(reversed(self.steps)).removeprefix(".")


class Codec(Protocol):
    """One correspondence between a value and its JSON."""

    def read(self, data: Any) -> Any:
        """The value of some JSON. Raises ShapeError."""

    def write(self, value: Any, over: Any) -> Any:
        """The JSON of a value; `over` is the JSON it replaces, or None."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A JSON scalar that is its own value."""

    kind: type
    noun: str

    def read(self, data: Any) -> Any:
        """The data itself, once its type is right."""
        if type(data) is not self.kind:
            raise expected(self.noun, data)
        if self.kind is int and data not in _INT64:
            raise ShapeError(f"{data} does not fit in 64 bits")
        return data

    def write(self, value: Any, over: Any) -> Any:  # noqa: ARG002 - a scalar replaces what was there
        """The value itself."""
        return value


STRING: Final = Scalar(str, "a string")
INTEGER: Final = Scalar(int, "an integer")
BOOLEAN: Final = Scalar(bool, "true or false")


@dataclass(frozen=True, slots=True)
class Converted:
    """A JSON string read into something of ours; the string that was there stays when it means the same."""

    from_text: Callable[[str], Any]

    def read(self, data: Any) -> Any:
        """What the text stands for."""
        return self.from_text(STRING.read(data))

    def write(self, value: Any, over: Any) -> Any:
        """The text that was there when it means the same, else the value's own."""
        return over if isinstance(over, str) and self.from_text(over) == value else str(value)


class _QuantityCodec:
    """A quantity; JSON numbers and spaces around it are taken as the server takes them, and its text is kept."""

    def read(self, data: Any) -> Quantity:
        """The value of the class."""
        if type(data) is not str:
            if type(data) not in (int, float):
                raise expected("a quantity", data)
            data = str(data)
        try:
            return Quantity.parse(data.strip())
        except QuantityError as error:
            raise ShapeError(str(error)) from error

    def write(self, value: Quantity, over: Any) -> str:  # noqa: ARG002 - its own text is what was there
        """The JSON of a value, over its older JSON."""
        return value.text


class _ObjectCodec:
    """Any JSON object, kept as it is."""

    def read(self, data: Any) -> Any:
        return as_object(data)

    def write(self, value: Any, over: Any) -> Any:  # noqa: ARG002 - opaque: replaced as a whole
        return dict(value)


QUANTITY: Final = _QuantityCodec()
OBJECT: Final = _ObjectCodec()


@dataclass(frozen=True, slots=True)
class ListOf:
    """A JSON list read into a tuple.

    Items written over older ones are matched by the keys in `identity`, or by position where there are none.
    """

    items: Codec
    identity: tuple[str, ...] = ()

    def read(self, data: Any) -> tuple[Any, ...]:
        """The items in order."""
        if not isinstance(data, list | tuple):
            raise expected("a list", data)
        read = self.items.read
        values: list[Any] = []
        try:
            for item in data:
                values.append(read(item))  # noqa: PERF401 - the length so far is the index of what fails
        except ShapeError as error:
            error.steps.append(f"[{len(values)}]")
            raise
        return tuple(value for value in values if value is not UNKNOWN)

    def write(self, value: tuple[Any, ...], over: Any) -> list[Any]:
        """The items, each over its own older JSON."""
        if not isinstance(over, list | tuple):
            return [self.items.write(item, None) for item in value]
        if not self.identity:
            older = over if len(over) == len(value) else [None] * len(value)
            return [self.items.write(item, old) for item, old in zip(value, older, strict=True)]
        known: dict[tuple[str, ...], list[Any]] = {}
        for old in over:
            if isinstance(old, Mapping):
                known.setdefault(self._identity(old), []).append(old)
        return [self._write_over_its_own(item, known) for item in value]

    def _write_over_its_own(self, item: Any, known: Mapping[tuple[str, ...], list[Any]]) -> Any:
        fresh = self.items.write(item, None)
        candidates = known.get(self._identity(fresh), ())
        if not candidates:
            return fresh
        same = (old for old in candidates if len(candidates) > 1 and self.items.read(old) == item)
        return self.items.write(item, next(same, candidates[0]))

    def _identity(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(data.get(key, "")) for key in self.identity)


@dataclass(frozen=True, slots=True)
class MapOf:
    """A JSON object with free keys."""

    values: Codec

    def read(self, data: Any) -> dict[str, Any]:
        """The entries of kinds that are known."""
        read = self.values.read
        out: dict[str, Any] = {}
        for key, item in as_object(data).items():
            try:
                value = read(item)
            except ShapeError as error:
                error.steps.append(f"[{key}]")
                raise
            if value is not UNKNOWN:
                out[key] = value
        return out

    def write(self, value: Mapping[str, Any], over: Any) -> dict[str, Any]:
        """The entries, and those older ones that could not be read."""
        older = over if isinstance(over, Mapping) else {}
        out = {key: item for key, item in older.items() if key not in value and self.values.read(item) is UNKNOWN}
        out |= {key: self.values.write(item, older.get(key)) for key, item in value.items()}
        return out


_REQUIRED: Final = object()
_BY_DEFAULT: Final = object()


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute of a value and its JSON key.

    `missing` is the value of an absent key (the dataclass' own default where none is given), `always` writes even what
    is empty, `optional` marks an attribute of which None alone means absent.
    """

    attribute: str
    key: str
    codec: Codec
    missing: Any = _BY_DEFAULT
    always: bool = False
    optional: bool = False

    def read_into(self, values: dict[str, Any], data: Any) -> None:
        """Take this field's value from its JSON."""
        values[self.attribute] = self.codec.read(data)

    def write_into(self, out: dict[str, Any], value: Any, over: Mapping[str, Any]) -> None:
        """Put this field's JSON, unless it is empty."""
        item = getattr(value, self.attribute)
        if item or self.always or (self.optional and item is not None):
            out[self.key] = self.codec.write(item, over.get(self.key))


def required(attribute: str, key: str, codec: Codec) -> Field:
    """A field without which the object cannot be read."""
    return Field(attribute, key, codec, missing=_REQUIRED, always=True)


@dataclass(frozen=True, slots=True)
class Group:
    """A JSON object whose fields belong to the value around it, such as `spec`."""

    key: str
    fields: Fields
    always: bool = False

    @property
    def missing(self) -> Any:
        """A group that is always written is always there; what other groups hold has values of its own."""
        return _REQUIRED if self.always else _BY_DEFAULT

    def read_into(self, values: dict[str, Any], data: Any) -> None:
        """Take the values of all fields inside."""
        values |= self.fields.read(data)

    def write_into(self, out: dict[str, Any], value: Any, over: Mapping[str, Any]) -> None:
        """Put the object, unless it is empty."""
        older = over.get(self.key)
        written = self.fields.write(value, older if isinstance(older, Mapping) else None)
        if written or self.always:
            out[self.key] = written


class Fields:
    """The known keys of one JSON object."""

    def __init__(self, *fields: Field | Group) -> None:
        self.by_key: Final = {field.key: field for field in fields}
        self._missing: Final = self._values_of_absent_keys(fields)
        self._required: Final = [field.key for field in fields if field.missing is _REQUIRED]

    @staticmethod
    def _values_of_absent_keys(fields: Iterable[Field | Group]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for field in fields:
            if isinstance(field, Group):
                values |= field.fields._missing  # noqa: SLF001 - its own class
            elif field.missing is not _BY_DEFAULT and field.missing is not _REQUIRED:
                values[field.attribute] = field.missing
        return values

    def read(self, data: Any) -> dict[str, Any]:
        """The values of the known keys, by attribute."""
        values = self._missing.copy()
        by_key = self.by_key
        for key, item in as_object(data).items():
            field = by_key.get(key)
            if field is None or item is None:
                continue
            try:
                field.read_into(values, item)
            except ShapeError as error:
                error.steps.append(f".{key}")
                raise
        for key in self._required:
            if data.get(key) is None:
                raise at(f".{key}", ShapeError("is missing"))
        return values

    def write(self, value: Any, over: Mapping[str, Any] | None) -> dict[str, Any]:
        """The JSON of a value: older keys in their order, what is known replaced or dropped, new keys at the end."""
        older = over or {}
        known: dict[str, Any] = {}
        for field in self.by_key.values():
            field.write_into(known, value, older)
        if not older:
            return known
        kept = {k: known.get(k, item) for k, item in older.items() if k in known or k not in self.by_key}
        return kept | known


class Shape:
    """A JSON object that is one value of a class."""

    def __init__(
        self,
        make: Callable[..., Any],
        *fields: Field | Group,
        complete: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.fields: Final = Fields(*fields)
        self._make: Final = make
        self._complete: Final = complete

    def read(self, data: Any) -> Any:
        """The value of the class."""
        values = self.fields.read(data)
        if self._complete is not None:
            self._complete(values)
        return self._make(**values)

    def write(self, value: Any, over: Any) -> dict[str, Any]:
        """The JSON of a value, over its older JSON."""
        return self.fields.write(value, over if isinstance(over, Mapping) else None)


def as_object(data: Any) -> Mapping[str, Any]:
    """The data as a JSON object. Raises ShapeError."""
    if not isinstance(data, Mapping):
        raise expected("an object", data)
    return data


def at(step: str, error: ShapeError) -> ShapeError:
    """The error, one step further out."""
    error.steps.append(step)
    return error


def expected(noun: str, data: Any) -> ShapeError:
    """The error of finding something else."""
    seen = repr(data)
    return ShapeError(f"expected {noun}, got {seen if len(seen) <= 80 else seen[:77] + '...'}")  # noqa: PLR2004 - a line


def member_or_text(kind: type[StrEnum], text: str) -> str:
    """The member of that name, or the text itself where this version knows no such member."""
    try:
        return kind(text)
    except ValueError:
        return text
