"""What to write instead: advice for the mistakes that people make in selectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from dradriver.cel import libraries
from dradriver.cel.environments import Environment
from dradriver.cel.kinds import ANY, QUANTITY, SEMVER, STRING, Type

_ORDERS = {"<": "isLessThan", ">": "isGreaterThan"}
_CASED = {
    "True": "true",
    "False": "false",
    "None": "null",
    "nil": "null",
    "NULL": "null",
    "TRUE": "true",
    "FALSE": "false",
}


def _like(name: str, known: Iterable[str]) -> str | None:
    folded = {each.casefold(): each for each in known}
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=0.75)
    return folded[close[0]] if close else None


def on_name(name: str, known: Iterable[str], fields: Mapping[str, Type]) -> str:
    """Advice on an unknown name."""
    if name in _CASED:
        return f": write {_CASED[name]}"
    if name in fields:
        return f": write device.{name}"
    similar = _like(name, known)
    return f": did you mean {similar}?" if similar else ': a selector sees only device; put text in quotes, as "text"'


def on_field(name: str, fields: tuple[str, ...]) -> str:
    """Advice on an unknown field of `device`."""
    similar = _like(name, fields)
    return f"did you mean device.{similar}?" if similar else f"it has {', '.join(fields)}"


def on_field_of(operand: Type, name: str, environment: Environment) -> str:
    """Advice on a field of something that has none."""
    return f": call it, as in .{name}()" if environment.overloads(name, member=True) else on_operands(".", (operand,))


def on_function(name: str, environment: Environment) -> str:
    """Advice on an unknown function."""
    known = {overload.function for overload in libraries.OVERLOADS}
    if name in libraries.NOT_MODELLED:
        return ": Kubernetes has it, but gpupool does not model it"
    if name in known:
        since = min(each.since for each in libraries.OVERLOADS if each.function == name)
        return (
            f": new expressions may use it from Kubernetes 1.{since + 1} on, this is checked as 1.{environment.level}"
        )
    similar = _like(name, known)
    return f": did you mean {similar}?" if similar else ""


def on_call(written: str, name: str, forms: list[bool], *, member: bool) -> str:
    """What is wrong with a call of a known function, and how it is called."""
    if member not in forms:
        return f"{written} does not exist: write {f'{name}(x)' if member else f'x.{name}()'}"
    return f"{written} does not exist: {name} takes other types or another number of arguments"


def on_operands(operator: str, kinds: tuple[Type, ...]) -> str:
    """Advice on operands that do not go together."""
    if operator == "[]":
        return ": an index is a string for the maps of a device, a number for lists"
    for kind, make in ((QUANTITY, "quantity"), (SEMVER, "semver")):
        if kind in kinds and operator in ("<", "<=", ">", ">="):
            how = (
                f".{_ORDERS[operator]}({make}(...))" if operator in _ORDERS else f".compareTo({make}(...)) {operator} 0"
            )
            return f": compare with {how}"
        if kind in kinds and operator in ("==", "!="):
            return f": write {operator} {make}(...)"
        if kind in kinds and operator in ("+", "-"):
            return f": use .{'add' if operator == '+' else 'sub'}({make}(...))"
    if operator in ("==", "!=", "<", "<=", ">", ">=", "in") and any(kind.name == "map" for kind in kinds):
        return ': attributes are found under their domain, as in device.attributes["example.com"].name'
    if len(kinds) > 1 and STRING in kinds and kinds[0] != kinds[1]:
        return ": both sides must have one type; numbers and booleans stand without quotes"
    return ""


def on_range(kind: Type) -> str:
    """Advice on a comprehension over something that is no list."""
    return ": lists as attributes need the gate DRAListTypeAttributes (Kubernetes 1.36)" if kind == ANY else ""


def on_result(kind: Type) -> str:
    """Advice on an expression that is no condition."""
    if kind == STRING:
        return 'compare it, as in ... == "value"'
    return "a selector is a condition on one device, as in ... == ..."
