"""Which parts of a device an expression reads, known without evaluating it.

`device.attributes["d"].id`, `["d"]["id"]`, `.d.id`, their optional forms and the same through `cel.bind` are static
reads; `device.attributes[x]`, or the map of a domain passed on as a value, are not: what they read only evaluation
tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TypeAlias

from dradriver.cel import syntax


class Source(StrEnum):
    """The two maps of a device."""

    ATTRIBUTES = "attributes"
    CAPACITY = "capacity"


class Field(Enum):
    """`device`, and its plain fields."""

    DEVICE = "device"
    DRIVER = "device.driver"
    SHARED = "device.allowMultipleAllocations"


@dataclass(frozen=True, slots=True)
class Domains:
    """A whole map: `device.attributes`."""

    source: Source


@dataclass(frozen=True, slots=True)
class Domain:
    """The map of one domain: `device.attributes["d"]`."""

    source: Source
    domain: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One attribute or capacity."""

    source: Source
    domain: str
    id: str

    @property
    def path(self) -> str:
        """How it is commonly written."""
        return f'device.{self.source}["{self.domain}"].{self.id}'


Reference: TypeAlias = Field | Domains | Domain | Entry
Aliases: TypeAlias = Mapping[str, Reference | None]
"""What local names stand for; None for a variable that is no part of a device."""


@dataclass(frozen=True, slots=True)
class Read:
    """One place that reads a device: a value, or whether there is one."""

    node: syntax.Node
    reference: Reference


def refer(node: syntax.Node, aliases: Aliases) -> Reference | None:
    """What part of the device a node is, None where it is none or only evaluation can tell."""
    match node:
        case syntax.Identifier(name=name):
            return aliases.get(name, Field.DEVICE if name == "device" else None)
        case syntax.Select(operand=operand, field=field):
            return _inner(refer(operand, aliases), field)
        case syntax.Index(operand=operand, index=syntax.Literal(value=str(key))):
            outer = refer(operand, aliases)
            return None if outer is Field.DEVICE else _inner(outer, key)
        case _:
            return None


def _inner(outer: Reference | None, name: str) -> Reference | None:
    match outer:
        case Field.DEVICE:
            return _FIELDS.get(name)
        case Domains(source):
            return Domain(source, name)
        case Domain(source, domain):
            return Entry(source, domain, name)
        case _:
            return None


_FIELDS: dict[str, Reference] = {
    "driver": Field.DRIVER,
    "allowMultipleAllocations": Field.SHARED,
    "attributes": Domains(Source.ATTRIBUTES),
    "capacity": Domains(Source.CAPACITY),
}


def asked_entry(node: syntax.Node, aliases: Aliases) -> Entry | None:
    """The entry whose presence `"id" in device.attributes["d"]` asks for."""
    if isinstance(node, syntax.Binary) and node.operator == "in" and isinstance(node.left, syntax.Literal):
        outer = refer(node.right, aliases)
        if isinstance(outer, Domain) and isinstance(node.left.value, str):
            return Entry(outer.source, outer.domain, node.left.value)
    return None


def reads(node: syntax.Node, aliases: Aliases) -> Iterator[Read]:
    """All reads of a tree, in the order of the text; a reference that is no Entry and no plain field is dynamic."""
    entry = asked_entry(node, aliases)
    if entry is not None:
        yield Read(node, entry)
        return
    reference = refer(node, aliases)
    if reference is not None:
        yield Read(node, reference)
        return
    for child, inner in children(node, aliases):
        if isinstance(node, syntax.Bind) and child is node.value and _names_a_part(node, aliases):
            continue
        yield from reads(child, inner)


def _names_a_part(node: syntax.Bind, aliases: Aliases) -> bool:
    """Whether `cel.bind` only names a part of the device: what is read of it is seen where the name is used."""
    return isinstance(alias(node, aliases), Domain | Domains | Field)


def children(node: syntax.Node, aliases: Aliases) -> Iterator[tuple[syntax.Node, Aliases]]:
    """The nodes under a node, each with what names stand for there."""
    if isinstance(node, syntax.Bind | syntax.OptionalMap | syntax.Comprehension):
        yield from _scoped(node, aliases)
    else:
        for child in _inside(node):
            yield child, aliases


def _inside(node: syntax.Node) -> tuple[syntax.Node, ...]:
    match node:
        case syntax.Select(operand=operand) | syntax.Unary(operand=operand):
            return (operand,)
        case syntax.Has(selection=selection):
            return (selection,)
        case syntax.Index(operand=first, index=second) | syntax.Binary(left=first, right=second):
            return (first, second)
        case syntax.Call(target=target, arguments=arguments):
            return arguments if target is None else (target, *arguments)
        case syntax.ListLiteral(elements=inner) | syntax.Logical(terms=inner):
            return inner
        case syntax.MapLiteral(entries=entries):
            return tuple(each for pair in entries for each in pair)
        case syntax.Conditional(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case _:
            return ()


def _scoped(node: syntax.Node, aliases: Aliases) -> Iterator[tuple[syntax.Node, Aliases]]:
    match node:
        case syntax.Bind(variable=variable, value=value, body=body):
            yield value, aliases
            yield body, bound(node, aliases)
        case syntax.OptionalMap(variable=variable, value=value, body=body):
            yield value, aliases
            yield body, {**aliases, variable: None}
        case syntax.Comprehension(range=range_, variables=variables, condition=condition, result=result):
            yield range_, aliases
            inner = {**aliases, **dict.fromkeys(variables)}
            for each in (condition, result):
                if each is not None:
                    yield each, inner


def bound(node: syntax.Bind, aliases: Aliases) -> Aliases:
    """What names stand for in the body of a `cel.bind`."""
    return {**aliases, node.variable: alias(node, aliases)}


def alias(node: syntax.Bind, aliases: Aliases) -> Reference | None:
    """The part of the device that the variable of a `cel.bind` is another name for."""
    return None if is_optional(node.value) else refer(node.value, aliases)


def is_optional(node: syntax.Node) -> bool:
    """Whether a chain of fields and indices has an optional link, so that its value is optional."""
    while isinstance(node, syntax.Select | syntax.Index):
        if node.optional:
            return True
        node = node.operand
    return False
