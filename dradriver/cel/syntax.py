"""The tree of an expression: immutable nodes, each with the span of its text.

Macros are nodes of their own (`Has`, `Comprehension`, `Bind`), not expanded into loops, so that what people wrote can
be pointed at. A chain of && or || is one node with all its terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from dradriver.cel.errors import Span


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A value written out."""

    span: Span
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Identifier:
    """A name: `device`, a type, or the variable of a macro."""

    span: Span
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select:
    """`operand.field`, or `operand.?field` where optional."""

    span: Span
    operand: Node
    field: str
    field_span: Span
    optional: bool


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """`operand[index]`, or `operand[?index]` where optional."""

    span: Span
    operand: Node
    index: Node
    optional: bool


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """`function(arguments)`, or `target.function(arguments)`."""

    span: Span
    function: str
    function_span: Span
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ListLiteral:
    """`[a, ?b]`; the elements at `optional` positions are left out where they have no value."""

    span: Span
    elements: tuple[Node, ...]
    optional: frozenset[int]


@dataclass(frozen=True, slots=True, eq=False)
class MapLiteral:
    """`{k: v, ?k: v}`; the entries at `optional` positions are left out where they have no value."""

    span: Span
    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int]


@dataclass(frozen=True, slots=True, eq=False)
class Unary:
    """`!operand` or `-operand`."""

    span: Span
    operator: str
    operand: Node


@dataclass(frozen=True, slots=True, eq=False)
class Binary:
    """A relation, `in`, or arithmetic."""

    span: Span
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True, eq=False)
class Logical:
    """`a && b && c` or `a || b || c`: at least two terms."""

    span: Span
    operator: str
    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """`condition ? then : otherwise`."""

    span: Span
    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True, eq=False)
class Has:
    """`has(operand.field)`."""

    span: Span
    selection: Select


class Iteration(Enum):
    """What a comprehension makes of its elements."""

    ALL = "all"
    EXISTS = "exists"
    EXISTS_ONE = "exists_one"
    MAP = "map"
    FILTER = "filter"
    TRANSFORM_LIST = "transformList"
    TRANSFORM_MAP = "transformMap"
    TRANSFORM_MAP_ENTRY = "transformMapEntry"
    SORT_BY = "sortBy"


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension:
    """`range.all(x, condition)` and its kin, with one or two variables; `result` is what map and transform yield."""

    span: Span
    iteration: Iteration
    range: Node
    variables: tuple[str, ...]
    condition: Node | None
    result: Node | None


@dataclass(frozen=True, slots=True, eq=False)
class Bind:
    """`cel.bind(variable, value, body)`."""

    span: Span
    variable: str
    value: Node
    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class OptionalMap:
    """`value.optMap(variable, body)`; with `flat`, `optFlatMap`."""

    span: Span
    variable: str
    value: Node
    body: Node
    flat: bool


Node: TypeAlias = (
    Literal
    | Identifier
    | Select
    | Index
    | Call
    | ListLiteral
    | MapLiteral
    | Unary
    | Binary
    | Logical
    | Conditional
    | Has
    | Comprehension
    | Bind
    | OptionalMap
)
