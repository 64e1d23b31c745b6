"""The types of CEL as the checker sees them, and which of them fit each other (cel-go `checker/types.go`)."""

from __future__ import annotations

from dataclasses import dataclass

from dradriver.cel import values


@dataclass(frozen=True, slots=True)
class Type:
    """A type; `name` begins with # where it stands for any one type (a type parameter)."""

    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def is_parameter(self) -> bool:
        """Standing for any one type."""
        return self.name.startswith("#")

    @property
    def is_dynamic(self) -> bool:
        """Known only when evaluated."""
        return self.name in ("dyn", "any")


DYN, ANY = Type("dyn"), Type("any")
BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL = (
    Type(name) for name in ("bool", "int", "uint", "double", "string", "bytes", "null_type")
)
QUANTITY, SEMVER = Type("kubernetes.Quantity"), Type("kubernetes.Semver")
DURATION, TIMESTAMP = Type("google.protobuf.Duration"), Type("google.protobuf.Timestamp")
DEVICE = Type("kubernetes.DRADevice")
A, B = Type("#A"), Type("#B")


def list_of(element: Type) -> Type:
    """The type of lists of an element type."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """The type of maps."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """The type of values that may be absent."""
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    """The type of types."""
    return Type("type", (value,))


def of_literal(value: object) -> Type:
    """The type of a literal's value."""
    return Type(values.name_of_type(value))


class Substitutions:
    """What the type parameters of one expression have been found to stand for."""

    def __init__(self) -> None:
        self._known: dict[str, Type] = {}
        self._count = 0

    def fresh(self) -> Type:
        """A parameter of which nothing is known yet."""
        self._count += 1
        return Type(f"#{self._count}")

    def instantiate(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """The same types with fresh parameters in place of declared ones."""
        fresh: dict[str, Type] = {}

        def renew(kind: Type) -> Type:
            if kind.is_parameter:
                return fresh.setdefault(kind.name, self.fresh()) if kind.name not in fresh else fresh[kind.name]
            return Type(kind.name, tuple(map(renew, kind.parameters))) if kind.parameters else kind

        return tuple(map(renew, types))

    def resolve(self, kind: Type) -> Type:
        """A type with what is known put in; parameters that nothing decided stay."""
        while kind.is_parameter and kind.name in self._known:
            kind = self._known[kind.name]
        return Type(kind.name, tuple(map(self.resolve, kind.parameters))) if kind.parameters else kind

    def fits(self, given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
        """Whether types can be used where others are wanted; what that decides is remembered, only if all fit."""
        if len(given) != len(wanted):
            return False
        before = dict(self._known)
        if all(self._fits(mine, theirs) for mine, theirs in zip(given, wanted, strict=True)):
            return True
        self._known = before
        return False

    def _fits(self, given: Type, wanted: Type) -> bool:
        if self.resolve(given) == self.resolve(wanted):
            return True
        if wanted.is_parameter:
            return self._substitute(wanted, self.resolve(given))
        if given.is_parameter:
            return self._substitute(given, self.resolve(wanted))
        if given.is_dynamic or wanted.is_dynamic:
            return True
        if NULL in (given, wanted):
            other = wanted if given == NULL else given
            return other.name in _NULLABLE
        if given.name != wanted.name:
            return False
        if given.name == "type":
            return True
        return len(given.parameters) == len(wanted.parameters) and all(
            self._fits(mine, theirs) for mine, theirs in zip(given.parameters, wanted.parameters, strict=True)
        )

    def _substitute(self, parameter: Type, kind: Type) -> bool:
        """Let a parameter stand for a type, or for the more general of it and what it stood for."""
        while (known := self._known.get(parameter.name)) is not None and known.is_parameter:
            parameter = known
        if known is None:
            return self._bind(parameter, kind)
        if not self._fits(kind, known):
            return False
        general = kind if _is_less_specific(kind, self.resolve(known)) else known
        if not _occurs(parameter, general):
            self._known[parameter.name] = general
        return True

    def _bind(self, parameter: Type, kind: Type) -> bool:
        if _occurs(parameter, kind):
            return False
        self._known[parameter.name] = kind
        return True


_NULLABLE = frozenset({QUANTITY.name, SEMVER.name, DEVICE.name, DURATION.name, TIMESTAMP.name, "optional_type"})
"""Types that null may stand for: those that are neither primitive, nor lists, nor maps."""


def _is_less_specific(left: Type, right: Type) -> bool:
    """Whether a type is equal to another or says less."""
    if left.is_dynamic or left.is_parameter:
        return True
    if right.is_dynamic or right.is_parameter or left.name != right.name:
        return False
    return all(map(_is_less_specific, left.parameters, right.parameters))


def _occurs(parameter: Type, kind: Type) -> bool:
    return kind == parameter or any(_occurs(parameter, inner) for inner in kind.parameters)
