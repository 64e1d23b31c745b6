"""Calls that are not calls: `has`, the comprehensions, `cel.bind`, `optMap`.

A macro is known by its name and the number of its arguments; with another number it is an ordinary call, which the
checker refuses. Sources: cel-go `parser/macro.go`, `cel/library.go`, and `ext` (comprehensions, bindings, lists).
"""

from __future__ import annotations

from dradriver.cel import syntax
from dradriver.cel.errors import CompileError

TWO_VARIABLES_SINCE = 32
"""The minor version that introduced comprehensions over index and value."""

SORT_BY_SINCE = 34
"""The minor version that introduced `sortBy`, with cel-go's list library."""

_ONE_VARIABLE = {
    "all": syntax.Iteration.ALL,
    "exists": syntax.Iteration.EXISTS,
    "exists_one": syntax.Iteration.EXISTS_ONE,
    "filter": syntax.Iteration.FILTER,
}
_TWO_VARIABLES = {
    "all": syntax.Iteration.ALL,
    "exists": syntax.Iteration.EXISTS,
    "exists_one": syntax.Iteration.EXISTS_ONE,
    "existsOne": syntax.Iteration.EXISTS_ONE,
}
_TRANSFORMS = {
    "transformList": syntax.Iteration.TRANSFORM_LIST,
    "transformMap": syntax.Iteration.TRANSFORM_MAP,
    "transformMapEntry": syntax.Iteration.TRANSFORM_MAP_ENTRY,
}


def expand(call: syntax.Call, level: int) -> syntax.Node:
    """The node that a call stands for: itself where it is no macro. Raises CompileError for misused macros."""
    if call.target is None:
        return _has(call) if call.function == "has" and len(call.arguments) == 1 else call
    match len(call.arguments):
        case 2:
            return _of_two(call, call.target, level)
        case 3:
            return _of_three(call, call.target, level)
        case 4 if call.function in _TRANSFORMS and level >= TWO_VARIABLES_SINCE:
            _, _, condition, result = call.arguments
            return _comprehension(call, call.target, _TRANSFORMS[call.function], 2, condition=condition, result=result)
        case _:
            return call


def _has(call: syntax.Call) -> syntax.Node:
    selection = call.arguments[0]
    if not isinstance(selection, syntax.Select) or selection.optional:
        raise CompileError(
            selection.span,
            'has() takes a field, as in has(device.attributes["example.com"].name); for a key use "name" in m',
        )
    return syntax.Has(call.span, selection)


def _of_two(call: syntax.Call, target: syntax.Node, level: int) -> syntax.Node:
    _, second = call.arguments
    if call.function == "sortBy" and level >= SORT_BY_SINCE:
        if isinstance(target, syntax.Literal | syntax.MapLiteral):
            raise CompileError(target.span, "sortBy sorts a list")
        return _comprehension(call, target, syntax.Iteration.SORT_BY, 1, result=second)
    if call.function in _ONE_VARIABLE:
        return _comprehension(call, target, _ONE_VARIABLE[call.function], 1, condition=second)
    if call.function == "map":
        return _comprehension(call, target, syntax.Iteration.MAP, 1, result=second)
    if call.function in ("optMap", "optFlatMap"):
        return syntax.OptionalMap(call.span, _variable(call, 0), target, second, call.function == "optFlatMap")
    return call


def _of_three(call: syntax.Call, target: syntax.Node, level: int) -> syntax.Node:
    _, second, third = call.arguments
    if call.function == "map":
        return _comprehension(call, target, syntax.Iteration.MAP, 1, condition=second, result=third)
    if call.function == "bind" and isinstance(target, syntax.Identifier) and target.name == "cel":
        return syntax.Bind(call.span, _variable(call, 0), second, third)
    if level < TWO_VARIABLES_SINCE:
        return call
    if call.function in _TWO_VARIABLES:
        return _comprehension(call, target, _TWO_VARIABLES[call.function], 2, condition=third)
    if call.function in _TRANSFORMS:
        return _comprehension(call, target, _TRANSFORMS[call.function], 2, result=third)
    return call


def _comprehension(
    call: syntax.Call,
    target: syntax.Node,
    iteration: syntax.Iteration,
    variables: int,
    *,
    condition: syntax.Node | None = None,
    result: syntax.Node | None = None,
) -> syntax.Node:
    names = tuple(_variable(call, position) for position in range(variables))
    if len(set(names)) < len(names):
        raise CompileError(call.arguments[1].span, f"{call.function}() needs two different variable names")
    return syntax.Comprehension(call.span, iteration, target, names, condition, result)


def _variable(call: syntax.Call, position: int) -> str:
    argument = call.arguments[position]
    if not isinstance(argument, syntax.Identifier):
        raise CompileError(argument.span, f"{call.function}() takes a variable's name here, as in x")
    return argument.name
