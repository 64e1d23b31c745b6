"""The checks an API server makes before it stores an expression: names, fields, functions, types, result.

The rules are cel-go's (`checker`), with Kubernetes' stricter ones: elements of a list or map literal have one type, and
patterns that are written out must compile. Every refusal says what to write instead where that can be known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dradriver.cel import advising, signatures, syntax
from dradriver.cel.declarations import Overload
from dradriver.cel.environments import Environment
from dradriver.cel.errors import CompileError, Span
from dradriver.cel.kinds import (
    BOOL,
    DEVICE,
    DYN,
    INT,
    NULL,
    Substitutions,
    Type,
    list_of,
    map_of,
    of_literal,
    optional_of,
    type_of,
)
from dradriver.cel.libraries import formatting, lists, standard
from dradriver.cel.libraries.patterns import PatternError, compile_pattern
from dradriver.cel.syntax import Iteration
from dradriver.cel.values import ABSENT, Failure, no_overload

Scope = Mapping[str, Type]

_PATTERN_FUNCTIONS = frozenset({"matches", "find", "findAll"})


@dataclass(slots=True)
class Checked:
    """A checked tree: for each call (by the identity of its node) the overloads that fit and all arguments.

    With `strict_alternatives` what is no optional has no `or` and `orValue`; otherwise it is its own alternative.
    """

    root: syntax.Node
    calls: dict[int, tuple[tuple[Overload, ...], tuple[syntax.Node, ...]]] = field(default_factory=dict)
    strict_alternatives: bool = True


def check(root: syntax.Node, environment: Environment) -> Checked:
    """Check an expression as a selector. Raises CompileError."""
    checker = _Checker(root, environment)
    kind = checker.final(checker.check(root, {}))
    if kind not in (BOOL, environment.attribute):
        raise CompileError(root.span, f"must evaluate to bool, not {kind}: {advising.on_result(kind)}")
    return checker.checked


class _Checker:
    """What is known of the types of one expression."""

    def __init__(self, root: syntax.Node, environment: Environment) -> None:
        self.checked = Checked(root, strict_alternatives=environment.strict_alternatives)
        self._environment = environment
        self._substitutions = Substitutions()
        self._mixed_literals = False
        self._kinds: dict[int, Type] = {}

    def check(self, node: syntax.Node, scope: Scope) -> Type:
        """The type of a node; remembers the overloads of calls."""
        kind = self._kinds[id(node)] = self._substitutions.resolve(_CHECKS[type(node)](self, node, scope))
        return kind

    def final(self, kind: Type) -> Type:
        """A type in which what nothing decided is dyn."""
        kind = self._substitutions.resolve(kind)
        if kind.is_parameter:
            return DYN
        return Type(kind.name, tuple(map(self.final, kind.parameters))) if kind.parameters else kind

    def _fits(self, given: Type, wanted: Type) -> bool:
        return self._substitutions.fits((given,), (wanted,))

    def _apply(self, forms: tuple[signatures.Form, ...], given: tuple[Type, ...]) -> tuple[Type | None, list[int]]:
        """The result of the forms that take these types, dyn where they disagree, and which forms those are."""
        result: Type | None = None
        fitting = []
        for position, (parameters, outcome) in enumerate(forms):
            *wanted, own = self._substitutions.instantiate((*parameters, outcome))
            if not self._substitutions.fits(given, tuple(wanted)):
                continue
            fitting.append(position)
            own = self._substitutions.resolve(own)
            result = own if result is None or result == own else DYN
        return result, fitting

    def _operate(self, operator: str, forms: tuple[signatures.Form, ...], given: tuple[Type, ...], span: Span) -> Type:
        result, _ = self._apply(forms, given)
        if result is None:
            raise self._no_overload(operator, given, span)
        return result

    def _no_overload(self, function: str, given: tuple[Type, ...], span: Span) -> CompileError:
        kinds = tuple(map(self.final, given))
        remedy = advising.on_operands(function, kinds)
        return CompileError(span, f"{function!r} does not take ({', '.join(map(str, kinds))}){remedy}")

    def literal(self, node: syntax.Literal, _: Scope) -> Type:
        return of_literal(node.value)

    def identifier(self, node: syntax.Identifier, scope: Scope) -> Type:
        if node.name in scope:
            return scope[node.name]
        if node.name == "device":
            return DEVICE
        if node.name in standard.TYPES:
            return type_of(standard.TYPES[node.name])
        advice = advising.on_name(node.name, ("device", *scope), self._environment.fields())
        raise CompileError(node.span, f"{node.name!r} is not declared{advice}")

    def select(self, node: syntax.Select, scope: Scope) -> Type:
        operand = self.check(node.operand, scope)
        was_optional = operand.name == "optional_type"
        result = self._field(operand.parameters[0] if was_optional and operand.parameters else operand, node)
        return optional_of(result) if was_optional or node.optional else result

    def _field(self, operand: Type, node: syntax.Select) -> Type:
        operand = self._substitutions.resolve(operand)
        if operand == DEVICE:
            fields = self._environment.fields()
            if node.field not in fields:
                advice = advising.on_field(node.field, tuple(fields))
                raise CompileError(node.field_span, f"device has no field {node.field!r}: {advice}")
            return fields[node.field]
        if operand.name == "map":
            return operand.parameters[1]
        if operand.is_dynamic or operand.is_parameter:
            return DYN
        raise CompileError(
            node.field_span,
            f"a {operand} has no field {node.field!r}{advising.on_field_of(operand, node.field, self._environment)}",
        )

    def index(self, node: syntax.Index, scope: Scope) -> Type:
        given = (self.check(node.operand, scope), self.check(node.index, scope))
        constant = _constant(node.index, self.checked)
        if constant is None or isinstance(constant, tuple | bytes):
            raise CompileError(node.index.span, f"a {of_literal(constant)} cannot be an index")
        return self._operate("[]", signatures.OPTIONAL_INDEX if node.optional else signatures.INDEX, given, node.span)

    def unary(self, node: syntax.Unary, scope: Scope) -> Type:
        return self._operate(
            node.operator, signatures.SIGNS[node.operator], (self.check(node.operand, scope),), node.span
        )

    def binary(self, node: syntax.Binary, scope: Scope) -> Type:
        given = (self.check(node.left, scope), self.check(node.right, scope))
        return self._operate(node.operator, signatures.OPERATORS[node.operator], given, node.span)

    def logical(self, node: syntax.Logical, scope: Scope) -> Type:
        for term in node.terms:
            self._condition(node.operator, term, scope)
        return BOOL

    def _condition(self, where: str, node: syntax.Node, scope: Scope) -> None:
        kind = self.check(node, scope)
        if not self._fits(kind, BOOL):
            raise CompileError(node.span, f"{where!r} needs a bool here, not {self.final(kind)}")

    def conditional(self, node: syntax.Conditional, scope: Scope) -> Type:
        given = tuple(self.check(each, scope) for each in (node.condition, node.then, node.otherwise))
        return self._operate("?:", signatures.CONDITIONAL, given, node.span)

    def list_literal(self, node: syntax.ListLiteral, scope: Scope) -> Type:
        kinds = [
            self._element(each, scope, optional=position in node.optional)
            for position, each in enumerate(node.elements)
        ]
        return list_of(self._common(kinds, node.elements))

    def map_literal(self, node: syntax.MapLiteral, scope: Scope) -> Type:
        keys, values = [], []
        for position, (key, value) in enumerate(node.entries):
            keys.append(self.check(key, scope))
            values.append(self._element(value, scope, optional=position in node.optional))
        return map_of(
            self._common(keys, tuple(key for key, _ in node.entries)),
            self._common(values, tuple(value for _, value in node.entries)),
        )

    def _element(self, node: syntax.Node, scope: Scope, *, optional: bool) -> Type:
        kind = self.check(node, scope)
        if not optional:
            return kind
        inner = self._substitutions.fresh()
        if self.final(kind) == NULL or not self._fits(kind, optional_of(inner)):
            raise CompileError(node.span, f"an element behind ? must be optional, not {self.final(kind)}")
        return self._substitutions.resolve(inner)

    def _common(self, kinds: list[Type], nodes: tuple[syntax.Node, ...]) -> Type:
        if not kinds:
            return self._substitutions.fresh()
        first = kinds[0]
        for kind, node in zip(kinds[1:], nodes[1:], strict=True):
            mine, theirs = self._substitutions.resolve(first), self._substitutions.resolve(kind)
            if mine == theirs:
                continue
            if self._mixed_literals:
                first = DYN
            elif not (self._fits(theirs, mine) and self.final(mine) == self.final(theirs)):
                message = f"expected type {self.final(mine)} but found {self.final(theirs)}: wrap mixed values in dyn()"
                raise CompileError(node.span, message)
        return first

    def has(self, node: syntax.Has, scope: Scope) -> Type:
        self.select(node.selection, scope)
        return BOOL

    def bind(self, node: syntax.Bind, scope: Scope) -> Type:
        return self.check(node.body, {**scope, node.variable: self.check(node.value, scope)})

    def optional_map(self, node: syntax.OptionalMap, scope: Scope) -> Type:
        inner = self._substitutions.fresh()
        kind = self.check(node.value, scope)
        name = "optFlatMap" if node.flat else "optMap"
        if not self._fits(kind, optional_of(inner)):
            raise CompileError(node.value.span, f"{name} needs an optional value, not {self.final(kind)}")
        result = self.check(node.body, {**scope, node.variable: self._substitutions.resolve(inner)})
        if not node.flat:
            return optional_of(result)
        if not self._fits(result, optional_of(self._substitutions.fresh())):
            raise CompileError(node.body.span, f"optFlatMap must give an optional value, not {self.final(result)}")
        return result

    def comprehension(self, node: syntax.Comprehension, scope: Scope) -> Type:
        inner = {**scope, **self._variables(node, self.check(node.range, scope))}
        if node.condition is not None:
            self._condition(node.iteration.value, node.condition, inner)
        result = self.check(node.result, inner) if node.result is not None else None
        match node.iteration:
            case Iteration.ALL | Iteration.EXISTS | Iteration.EXISTS_ONE:
                return BOOL
            case Iteration.FILTER:
                return list_of(inner[node.variables[0]])
            case Iteration.SORT_BY:
                return self._sorted(node, inner[node.variables[0]], result or DYN)
            case Iteration.TRANSFORM_MAP:
                return map_of(inner[node.variables[0]], result or DYN)
            case Iteration.TRANSFORM_MAP_ENTRY:
                return self._entry(node, result or DYN)
            case _:
                return list_of(result or DYN)

    def _sorted(self, node: syntax.Comprehension, element: Type, key: Type) -> Type:
        if not any(self._fits(key, kind) for kind in lists.COMPARABLE):
            raise CompileError(node.span, f"sortBy needs keys that have an order, not {self.final(key)}")
        return list_of(self._substitutions.fresh() if element == DYN else element)

    def _entry(self, node: syntax.Comprehension, result: Type) -> Type:
        key, value = self._substitutions.fresh(), self._substitutions.fresh()
        if not self._fits(result, map_of(key, value)):
            raise CompileError(node.span, f"transformMapEntry must give a map, not {self.final(result)}")
        return map_of(key, value)

    def _variables(self, node: syntax.Comprehension, kind: Type) -> dict[str, Type]:
        """The types of a comprehension's variables: elements or keys; index and element, or key and value."""
        if kind.name == "map" and node.iteration is Iteration.SORT_BY:
            raise CompileError(node.range.span, f"sortBy sorts a list, not a {kind}")
        if kind.name == "list":
            kinds = (INT, kind.parameters[0])
        elif kind.name == "map":
            kinds = (kind.parameters[0], kind.parameters[1])
        elif kind == DYN or kind.is_parameter:
            kinds = (DYN, DYN)
        else:
            message = f"{node.iteration.value} needs a list or a map, not {kind}{advising.on_range(kind)}"
            raise CompileError(node.range.span, message)
        if len(node.variables) == 1:
            return {node.variables[0]: kinds[1] if kind.name == "list" else kinds[0]}
        return dict(zip(node.variables, kinds, strict=True))

    def call(self, node: syntax.Call, scope: Scope) -> Type:
        name, arguments, member = self._called(node)
        mixed, self._mixed_literals = self._mixed_literals, self._mixed_literals or name == "format"
        given = tuple(self.check(argument, scope) for argument in arguments)
        self._mixed_literals = mixed
        overloads = self._environment.overloads(name, member=member)
        result, fitting = self._apply(tuple((each.parameters, each.result) for each in overloads), given)
        if result is None:
            raise self._no_function(node, name, given, member=member)
        self._check_pattern(name, arguments)
        self._check_format(name, arguments)
        overloads = tuple(overloads[position] for position in fitting)
        self._check_conversion(name, arguments, overloads)
        self.checked.calls[id(node)] = (overloads, arguments)
        return result

    def _called(self, node: syntax.Call) -> tuple[str, tuple[syntax.Node, ...], bool]:
        """A call's function: `sets.contains(a, b)` is a function of that name, not a member of `sets`."""
        if node.target is None:
            return node.function, node.arguments, False
        if isinstance(node.target, syntax.Identifier):
            qualified = f"{node.target.name}.{node.function}"
            if self._environment.knows(qualified):
                return qualified, node.arguments, False
        return node.function, (node.target, *node.arguments), True

    def _no_function(self, node: syntax.Call, name: str, given: tuple[Type, ...], *, member: bool) -> CompileError:
        if not self._environment.knows(name):
            advice = advising.on_function(name, self._environment)
            return CompileError(node.function_span, f"{name!r} is no function here{advice}")
        kinds = [str(self.final(kind)) for kind in given]
        written = f"{kinds[0]}.{name}({', '.join(kinds[1:])})" if member else f"{name}({', '.join(kinds)})"
        forms = [each for each in (True, False) if self._environment.overloads(name, member=each)]
        return CompileError(node.function_span, advising.on_call(written, name, forms, member=member))

    def _check_pattern(self, name: str, arguments: tuple[syntax.Node, ...]) -> None:
        if name not in _PATTERN_FUNCTIONS:
            return
        pattern = arguments[1]
        if isinstance(pattern, syntax.Literal) and isinstance(pattern.value, str):
            try:
                compile_pattern(pattern.value)
            except PatternError as error:
                raise CompileError(pattern.span, f"{error} (patterns are RE2)") from None

    def _check_format(self, name: str, arguments: tuple[syntax.Node, ...]) -> None:
        if name != "format":
            return
        pattern, given = arguments
        if isinstance(pattern, syntax.Literal) and isinstance(given, syntax.ListLiteral) and not given.optional:
            kinds = tuple(self.final(self._kinds[id(element)]) for element in given.elements)
            refusal = formatting.refusal(pattern.value, kinds)
            if refusal is not None:
                raise CompileError(pattern.span, refusal)

    def _check_conversion(self, name: str, arguments: tuple[syntax.Node, ...], overloads: tuple[Overload, ...]) -> None:
        """cel-go converts constants when it compiles, and refuses what cannot be converted."""
        if name in standard.CONVERSIONS and (value := _constant(arguments[0], self.checked)) is not ABSENT:
            try:
                _convert(overloads, value)
            except Failure as failure:
                raise CompileError(arguments[0].span, str(failure)) from None


def _convert(overloads: tuple[Overload, ...], value: Any) -> Any:
    for overload in overloads:
        if overload.takes((value,)):
            return overload.implementation(value)
    raise no_overload()


def _constant(node: syntax.Node, checked: Checked) -> Any:
    """The value of a literal, or of conversions of one; ABSENT for all else."""
    match node:
        case syntax.Literal(value=value):
            return value
        case syntax.ListLiteral(elements=elements) if not node.optional:
            inner = tuple(_constant(element, checked) for element in elements)
            return ABSENT if ABSENT in inner else inner
        case syntax.Call(function=function, target=None) if function in standard.CONVERSIONS or function == "dyn":
            overloads, arguments = checked.calls[id(node)]
            value = _constant(arguments[0], checked)
            return value if value is ABSENT else _convert(overloads, value)
        case _:
            return ABSENT


_CHECKS: dict[type, Callable[[_Checker, Any, Scope], Type]] = {
    syntax.Literal: _Checker.literal,
    syntax.Identifier: _Checker.identifier,
    syntax.Select: _Checker.select,
    syntax.Index: _Checker.index,
    syntax.Call: _Checker.call,
    syntax.ListLiteral: _Checker.list_literal,
    syntax.MapLiteral: _Checker.map_literal,
    syntax.Unary: _Checker.unary,
    syntax.Binary: _Checker.binary,
    syntax.Logical: _Checker.logical,
    syntax.Conditional: _Checker.conditional,
    syntax.Has: _Checker.has,
    syntax.Comprehension: _Checker.comprehension,
    syntax.Bind: _Checker.bind,
    syntax.OptionalMap: _Checker.optional_map,
}
