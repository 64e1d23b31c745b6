"""From a checked tree to closures, compiled once; the semantics are those of cel-go's interpreter.

A closure takes the frame of one evaluation and gives a value, or raises EvaluationError. && and || absorb errors on
either side; `cel.bind` evaluates its value only where it is used. Loops are in `iterating`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dradriver import api
from dradriver.cel import indexing, iterating, operators, syntax, values
from dradriver.cel.checking import Checked
from dradriver.cel.declarations import Overload
from dradriver.cel.errors import AbortedError, EvaluationError, Span
from dradriver.cel.frames import Closure, Frame, lookup, read
from dradriver.cel.libraries import standard
from dradriver.cel.reading import Entry, Reference, alias, asked_entry, refer
from dradriver.cel.values import ABSENT, NONE, Failure, Optional, TypeValue


@dataclass(frozen=True, slots=True)
class Scope:
    """Local names at one place: the slot of each, the part of the device it stands for, and how to compute it late."""

    slots: Mapping[str, int] = field(default_factory=dict)
    aliases: Mapping[str, Reference | None] = field(default_factory=dict)
    late: Mapping[str, Closure] = field(default_factory=dict)

    def with_name(self, name: str, slot: int, alias: Reference | None = None, late: Closure | None = None) -> Scope:
        """The same names and one more."""
        rest = {other: closure for other, closure in self.late.items() if other != name}
        return Scope(
            {**self.slots, name: slot},
            {**self.aliases, name: alias},
            rest if late is None else {**rest, name: late},
        )


class Compiler:
    """Compiles the nodes of one checked tree; gives every local name a slot of its own."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._next_slot = 0

    def compile(self, node: syntax.Node, scope: Scope) -> Closure:
        """The closure of a node."""
        entry = asked_entry(node, scope.aliases)
        if entry is not None:
            found = lookup(entry)
            return lambda frame: found(frame) is not ABSENT
        reference = refer(node, scope.aliases)
        if reference is not None:
            return read(node, reference)
        return self._COMPILERS[type(node)](self, node, scope)

    def slot(self) -> int:
        """A slot that no other name has."""
        self._next_slot += 1
        return self._next_slot

    def bound(self, node: syntax.Bind, scope: Scope) -> tuple[int, Scope]:
        """The slot of a `cel.bind`, to be emptied before its body runs, and the scope of that body."""
        slot = self.slot()
        late = self.compile(node.value, scope)
        return slot, scope.with_name(node.variable, slot, alias(node, scope.aliases), late)

    def _literal(self, node: syntax.Literal, _: Scope) -> Closure:
        value = node.value
        return lambda _: value

    def _identifier(self, node: syntax.Identifier, scope: Scope) -> Closure:
        if node.name not in scope.slots:
            kind = TypeValue(standard.TYPES[node.name].name)
            return lambda _: kind
        slot = scope.slots[node.name]
        late = scope.late.get(node.name)
        if late is None:
            return lambda frame: frame.slots[slot]

        def compute(frame: Frame) -> Any:
            value = frame.slots.get(slot, ABSENT)
            if value is ABSENT:
                value = frame.slots[slot] = late(frame)
            return value

        return compute

    def _select(self, node: syntax.Select, scope: Scope) -> Closure:
        return _member(self.compile(node.operand, scope), lambda _: node.field, node.field_span, optional=node.optional)

    def _index(self, node: syntax.Index, scope: Scope) -> Closure:
        operand, index = self.compile(node.operand, scope), self.compile(node.index, scope)
        return _member(operand, index, node.span, optional=node.optional)

    def _has(self, node: syntax.Has, scope: Scope) -> Closure:
        reference = refer(node.selection, scope.aliases)
        if isinstance(reference, Entry):
            found = lookup(reference)
            return lambda frame: found(frame) is not ABSENT
        if reference is not None:
            return lambda _: True
        operand, name, span = self.compile(node.selection.operand, scope), node.selection.field, node.span

        def run(frame: Frame) -> bool:
            try:
                return indexing.is_present(operand(frame), name)
            except Failure as failure:
                raise _error(span, failure) from None

        return run

    def _unary(self, node: syntax.Unary, scope: Scope) -> Closure:
        operand = self.compile(node.operand, scope)
        apply: Callable[[Any], Any] = _invert if node.operator == "!" else operators.negate
        return _guarded(node.span, lambda frame: apply(operand(frame)))

    def _binary(self, node: syntax.Binary, scope: Scope) -> Closure:
        if node.operator == "in" and isinstance(node.right, syntax.ListLiteral) and not node.right.elements:
            return lambda _: False  # cel-go does not even look at what would be searched for
        left, right = self.compile(node.left, scope), self.compile(node.right, scope)
        if node.operator == "==" and isinstance(node.right, syntax.Literal):
            return _equals(left, node.right.value, node.span)
        if node.operator in ("==", "!="):
            return _guarded(node.span, _equality(left, right, wanted=node.operator == "=="))
        apply = operators.is_in_literals if _in_literals(node) else operators.BINARY[node.operator]
        return _guarded(node.span, _charged(apply, left, right))

    def _logical(self, node: syntax.Logical, scope: Scope) -> Closure:
        terms = tuple((self.compile(term, scope), term.span) for term in node.terms)
        return _fold(terms, decided=node.operator == "||")

    def _conditional(self, node: syntax.Conditional, scope: Scope) -> Closure:
        condition, then, otherwise = (self.compile(each, scope) for each in (node.condition, node.then, node.otherwise))
        span = node.condition.span

        def run(frame: Frame) -> Any:
            value = condition(frame)
            if value is True:
                return then(frame)
            if value is False:
                return otherwise(frame)
            raise _error(span, values.no_overload())

        return run

    def _list(self, node: syntax.ListLiteral, scope: Scope) -> Closure:
        elements = tuple(
            (self.compile(each, scope), position in node.optional) for position, each in enumerate(node.elements)
        )
        if not node.optional:
            plain = tuple(closure for closure, _ in elements)
            return lambda frame: tuple([closure(frame) for closure in plain])

        def run(frame: Frame) -> tuple[Any, ...]:
            built: list[Any] = []
            for closure, optional in elements:
                value = closure(frame)
                built.extend(_given(value) if optional else (value,))
            return tuple(built)

        return _guarded(node.span, run)

    def _map(self, node: syntax.MapLiteral, scope: Scope) -> Closure:
        entries = tuple(
            (self.compile(key, scope), self.compile(value, scope), position in node.optional)
            for position, (key, value) in enumerate(node.entries)
        )

        def run(frame: Frame) -> dict[Any, Any]:
            built: dict[Any, Any] = {}
            for key_closure, value_closure, optional in entries:
                key, value = values.key_of(key_closure(frame)), value_closure(frame)
                for each in _given(value) if optional else (value,):
                    built[key] = each
            return built

        return _guarded(node.span, run)

    def _bind(self, node: syntax.Bind, scope: Scope) -> Closure:
        slot, inner = self.bound(node, scope)
        body = self.compile(node.body, inner)

        def run(frame: Frame) -> Any:
            frame.slots.pop(slot, None)
            return body(frame)

        return run

    def _optional_map(self, node: syntax.OptionalMap, scope: Scope) -> Closure:
        slot = self.slot()
        value = self.compile(node.value, scope)
        body = self.compile(node.body, scope.with_name(node.variable, slot))
        flat = node.flat

        def run(frame: Frame) -> Any:
            outer = value(frame)
            if type(outer) is not Optional:
                raise values.no_overload()
            if not outer.present:
                return NONE
            frame.slots[slot] = outer.value
            return body(frame) if flat else Optional(body(frame))

        return _guarded(node.value.span, run)

    def _comprehension(self, node: syntax.Comprehension, scope: Scope) -> Closure:
        slots = tuple(self.slot() for _ in node.variables)
        inner = scope
        for name, slot in zip(node.variables, slots, strict=True):
            inner = inner.with_name(name, slot)
        loop = iterating.Loop(
            self.compile(node.range, scope),
            slots,
            self.compile(node.condition, inner) if node.condition is not None else None,
            self.compile(node.result, inner) if node.result is not None else None,
        )
        return _guarded(node.span, iterating.FOLDS[node.iteration](loop))

    def _call(self, node: syntax.Call, scope: Scope) -> Closure:
        overloads, arguments = self._checked.calls[id(node)]
        closures = tuple(self.compile(argument, scope) for argument in arguments)
        if node.function in ("or", "orValue") and node.target is not None:
            strict = self._checked.strict_alternatives
            return _alternative(closures, node.span, unwrap=node.function == "orValue", strict=strict)
        closure = _guarded(node.span, _dispatch(overloads, closures))
        if all(isinstance(argument, syntax.Literal) for argument in arguments):
            return _constant(closure)
        return closure

    _COMPILERS: ClassVar[dict[type, Callable[[Any, Any, Scope], Closure]]] = {
        syntax.Literal: _literal,
        syntax.Identifier: _identifier,
        syntax.Select: _select,
        syntax.Index: _index,
        syntax.Call: _call,
        syntax.ListLiteral: _list,
        syntax.MapLiteral: _map,
        syntax.Unary: _unary,
        syntax.Binary: _binary,
        syntax.Logical: _logical,
        syntax.Conditional: _conditional,
        syntax.Has: _has,
        syntax.Comprehension: _comprehension,
        syntax.Bind: _bind,
        syntax.OptionalMap: _optional_map,
    }


_NOWHERE = Frame("", api.Device(""))


def _error(span: Span, failure: Failure) -> EvaluationError:
    kind = AbortedError if isinstance(failure, values.Abort) else EvaluationError
    return kind(span, str(failure), failure.missing_key)


def _guarded(span: Span, operation: Closure) -> Closure:
    """The same operation, its failures placed in the text."""

    def run(frame: Frame) -> Any:
        try:
            return operation(frame)
        except Failure as failure:
            raise _error(span, failure) from None

    return run


def _in_literals(node: syntax.Binary) -> bool:
    """Whether cel-go sees a constant list on the right of `in`; dyn() on a literal is a literal to it."""
    return (
        node.operator == "in"
        and isinstance(node.right, syntax.ListLiteral)
        and not node.right.optional
        and all(_is_literal(element) for element in node.right.elements)
    )


def _is_literal(node: syntax.Node) -> bool:
    if isinstance(node, syntax.Call) and node.function == "dyn" and node.target is None:
        return all(isinstance(argument, syntax.Literal) for argument in node.arguments)
    return isinstance(node, syntax.Literal)


def _member(operand: Closure, key: Closure, span: Span, *, optional: bool) -> Closure:
    """`operand[key]`, for maps and lists, plain and optional."""

    def run(frame: Frame) -> Any:
        container = operand(frame)
        if type(container) is Optional:
            return indexing.optional_member(container.value, key(frame)) if container.present else NONE
        if optional:
            return indexing.optional_member(container, key(frame))
        return indexing.entry_of(container, key(frame))

    return _guarded(span, run)


def _given(value: Any) -> tuple[Any, ...]:
    """The value of an optional element, if it has one."""
    if type(value) is not Optional:
        raise values.no_overload()
    return (value.value,) if value.present else ()


def _invert(value: Any) -> bool:
    if type(value) is not bool:
        raise values.no_overload()
    return not value


def _equals(left: Closure, constant: Any, span: Span) -> Closure:
    """`left == constant`, quick where the types agree."""
    kind = type(constant)

    def run(frame: Frame) -> bool:
        value = left(frame)
        if type(value) is kind:
            return bool(value == constant)
        try:
            return values.equal(value, constant)
        except Failure as failure:
            raise _error(span, failure) from None

    return run


def _equality(left: Closure, right: Closure, *, wanted: bool) -> Closure:
    """`==`, or `!=`, which is true also where `==` is an error."""

    def equal(frame: Frame) -> bool:
        return values.equal(left(frame), right(frame), frame)

    def unequal(frame: Frame) -> bool:
        mine, theirs = left(frame), right(frame)
        try:
            return not values.equal(mine, theirs, frame)
        except values.Abort:
            raise
        except Failure:
            return True

    return equal if wanted else unequal


def _charged(apply: Callable[[Any, Any], Any], left: Closure, right: Closure) -> Closure:
    """An operator whose right operand may be long; what it builds is charged when it becomes an operand itself."""

    def run(frame: Frame) -> Any:
        mine, theirs = left(frame), right(frame)
        frame.spend(values.size_in_steps(theirs))
        return apply(mine, theirs)

    return run


def _fold(terms: tuple[tuple[Closure, Span], ...], *, decided: bool) -> Closure:
    """&& (decided by false) or || (decided by true): a deciding term wins over errors on either side of it."""

    def run(frame: Frame) -> bool:
        error: EvaluationError | None = None
        for term, span in terms:
            try:
                value = term(frame)
            except AbortedError:
                raise
            except EvaluationError as failed:
                error = error or failed
                continue
            if value is decided:
                return bool(value)
            if type(value) is not bool:
                error = error or _error(span, values.no_overload())
        if error is not None:
            raise error
        return not decided

    return run


def _dispatch(overloads: tuple[Overload, ...], closures: tuple[Closure, ...]) -> Closure:
    """Call the first overload that takes the values; elements that only evaluation tells are checked here."""

    def run(frame: Frame) -> Any:
        arguments = tuple([closure(frame) for closure in closures])
        for overload in overloads:
            if overload.takes(arguments):
                frame.spend(overload.steps(arguments))
                result = overload.implementation(*arguments)
                frame.spend(values.size_in_steps(result))
                return result
        raise values.no_overload()

    return run


def _alternative(closures: tuple[Closure, ...], span: Span, *, unwrap: bool, strict: bool) -> Closure:
    """`a.or(b)` and `a.orValue(b)`: b is evaluated only if a has no value."""
    optional, other = closures

    def run(frame: Frame) -> Any:
        value = optional(frame)
        if type(value) is not Optional:
            if strict:
                raise _error(span, values.no_overload())
            return value
        if not value.present:
            return other(frame)
        return value.value if unwrap else value

    return run


def _constant(closure: Closure) -> Closure:
    """A call on literals alone, made once; where it fails it fails on each device."""
    try:
        value = closure(_NOWHERE)
    except EvaluationError:
        return closure
    return lambda _: value
