"""From a literal's text to its value: numbers, and strings with CEL's escapes."""

from __future__ import annotations

import math
import re

from dradriver.cel.errors import CompileError, Span
from dradriver.cel.tokens import Kind, Token
from dradriver.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_ESCAPE = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\"'\\?`])|(?P<octal>[0-3][0-7]{2})|[xX](?P<byte>[0-9a-fA-F]{2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<wrong>.?))",
    re.DOTALL,
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LAST_CODE_POINT = 0x10FFFF


def number(token: Token, *, negative: bool) -> int | UInt | float:
    """The value of an INT, UINT or DOUBLE token. Raises CompileError where it does not fit 64 bits."""
    if token.kind is Kind.DOUBLE:
        return _double(token, negative=negative)
    digits = token.text.rstrip("uU")
    value = int(digits, 16) if digits.startswith("0x") else int(digits)
    if token.kind is Kind.UINT:
        if value > UINT_MAX:
            raise CompileError(token.span, f"{token.text} does not fit an unsigned 64-bit integer")
        return UInt(value)
    value = -value if negative else value
    if not INT_MIN <= value <= INT_MAX:
        raise CompileError(token.span, f"{token.text} does not fit a 64-bit integer")
    return value


def _double(token: Token, *, negative: bool) -> float:
    value = float(token.text)
    if math.isinf(value):
        raise CompileError(token.span, f"{token.text} does not fit a double")
    return -value if negative else value


def string(token: Token) -> str | bytes:
    """The value of a STRING or BYTES token. Raises CompileError for a wrong escape."""
    text, start = token.text, token.span.start
    if token.kind is Kind.BYTES:
        text, start = text[1:], start + 1
    raw = text[0] in "rR"
    if raw:
        text, start = text[1:], start + 1
    quotes = 3 if text[:3] in ('"""', "'''") else 1
    body, start = text[quotes:-quotes], start + quotes
    if token.kind is Kind.BYTES:
        return body.encode() if raw else _bytes(body, start)
    return body if raw else _text(body, start)


def _text(body: str, start: int) -> str:
    def replace(escape: re.Match[str]) -> str:
        return chr(_code_point(escape, start)) if escape["simple"] is None else _simple(escape)

    return _ESCAPE.sub(replace, body) if "\\" in body else body


def _bytes(body: str, start: int) -> bytes:
    r"""In bytes `\x` and octal escapes are octets, all else is UTF-8."""
    parts: list[bytes] = []
    position = 0
    for escape in _ESCAPE.finditer(body):
        parts.append(body[position : escape.start()].encode())
        position = escape.end()
        if escape["simple"] is not None:
            parts.append(_simple(escape).encode())
        elif escape["short"] or escape["long"]:
            raise CompileError(_span(escape, start), f"{escape.group()} cannot stand in bytes: use \\x escapes")
        else:
            parts.append(bytes([_code_point(escape, start)]))
    parts.append(body[position:].encode())
    return b"".join(parts)


def _simple(escape: re.Match[str]) -> str:
    return _SIMPLE.get(escape["simple"], escape["simple"])


def _code_point(escape: re.Match[str], start: int) -> int:
    if escape["octal"]:
        return int(escape["octal"], 8)
    digits = escape["byte"] or escape["short"] or escape["long"]
    if digits is None:
        message = f"{escape.group()} is no escape: write \\\\ for a backslash, or a raw string r'...'"
        raise CompileError(_span(escape, start), message)
    value = int(digits, 16)
    if value > _LAST_CODE_POINT or 0xD800 <= value <= 0xDFFF:  # noqa: PLR2004 - the surrogates of Unicode
        raise CompileError(_span(escape, start), f"{escape.group()} is no Unicode code point")
    return value


def _span(escape: re.Match[str], start: int) -> Span:
    return Span(start + escape.start(), start + escape.end())
