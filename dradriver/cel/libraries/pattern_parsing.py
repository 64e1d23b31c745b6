"""From the text of a pattern to its program: RE2's syntax as Go's `regexp/syntax` reads it (flags of Perl).

Fragments of programs have relative jumps, so that joining them is joining tuples.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dradriver.cel.libraries.charsets import CATEGORIES, PERL, POSIX, CharSet
from dradriver.cel.libraries.patterns import Instruction, Operation, PatternError, Position

MAX_REPEAT = 1000
MAX_PROGRAM = 10_000
MAX_DEPTH = 100
_LONGEST_CATEGORY = 2

_REPEAT = re.compile(r"\{([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\}")
_GROUP = re.compile(r"\(\?(?:P?<([A-Za-z0-9_]+)>|([imsU]*)(?:-([imsU]+))?([:)]))")
_ESCAPES = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_OCTAL = re.compile(r"[1-7][0-7]{1,2}|0[0-7]{0,2}")
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,8})\})")
_PROPERTY = re.compile(r"[pP](?:\{(\^?)(\w+)\}|(\w))")
_ANY_BUT_NEWLINE = CharSet((("\n", "\n"),), negated=True)
_ANY = CharSet(negated=True)
_LAST_CODE_POINT = 0x10FFFF

Fragment = tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    lazy: bool = False


def parse(pattern: str) -> Fragment:
    """The program of a pattern. Raises PatternError."""
    parser = _Parser(pattern)
    fragment = parser.alternatives(0)
    if parser.at < len(pattern):
        raise PatternError("unexpected )", pattern)
    return fragment


class _Parser:
    """A cursor over a pattern, and the flags that hold at it."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self._flags = _Flags()
        self._names: set[str] = set()

    def alternatives(self, depth: int) -> Fragment:
        if depth > MAX_DEPTH:
            raise PatternError("expression nests too deeply", self.pattern)
        flags = self._flags
        branches = [self._sequence(depth)]
        while self._rest().startswith("|"):
            self.at += 1
            branches.append(self._sequence(depth))
        self._flags = flags
        return self._either(branches)

    def _rest(self) -> str:
        return self.pattern[self.at : self.at + 64]

    def _either(self, branches: list[Fragment]) -> Fragment:
        result = branches.pop()
        while branches:
            first = branches.pop()
            split = (Operation.SPLIT, None, 1, len(first) + 2)
            result = self._limited((split, *first, (Operation.JUMP, None, len(result) + 1, 0), *result))
        return result

    def _limited(self, fragment: Fragment) -> Fragment:
        if len(fragment) > MAX_PROGRAM:
            raise PatternError("expression too large", self.pattern)
        return fragment

    def _sequence(self, depth: int) -> Fragment:
        parts: list[Fragment] = []
        while (rest := self._rest()) and rest[0] not in "|)":
            if rest.startswith("\\Q"):
                parts.extend(self._quoted())
            elif _GROUP.match(rest) or rest[0] == "(":
                parts.extend(self._group(depth))
            else:
                parts.append(self._atom(rest))
            if parts:
                parts[-1] = self._repeated(parts[-1])
            elif self._repetition() is not None:
                raise PatternError("missing argument to repetition operator", rest[:1])
        return self._limited(tuple(instruction for part in parts for instruction in part))

    def _quoted(self) -> list[Fragment]:
        body, _, _ = self.pattern[self.at + 2 :].partition("\\E")
        self.at = min(len(self.pattern), self.at + len(body) + 4)
        return [self._take(CharSet(((character, character),))) for character in body]

    def _group(self, depth: int) -> list[Fragment]:
        """A group's fragment; none where it only sets flags."""
        opening = self.pattern[self.at :]
        head = _GROUP.match(opening)
        before = self._flags
        if head is None:
            if opening.startswith("(?"):
                raise PatternError("invalid or unsupported Perl syntax", opening[:3])
            self.at += 1
        else:
            self.at += head.end()
            self._named(head[1])
            self._flags = _changed(self._flags, head[2] or "", head[3] or "")
            if head[4] == ")":
                return []
        fragment = self.alternatives(depth + 1)
        if self.at >= len(self.pattern):
            raise PatternError("missing closing )", self.pattern)
        self.at += 1
        self._flags = before
        return [fragment]

    def _named(self, name: str | None) -> None:
        if name is not None and name in self._names:
            raise PatternError("duplicate capture group name", name)
        if name is not None:
            self._names.add(name)

    def _atom(self, rest: str) -> Fragment:
        match rest[0]:
            case "[":
                return self._take(self._class())
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise PatternError("missing argument to repetition operator", rest[0])
        self.at += 1
        match rest[0]:
            case ".":
                return self._take(_ANY if self._flags.dot_all else _ANY_BUT_NEWLINE)
            case "^":
                return _assert(Position.LINE_START if self._flags.lines else Position.TEXT_START)
            case "$":
                return _assert(Position.LINE_END if self._flags.lines else Position.TEXT_END)
        return self._take(CharSet(((rest[0], rest[0]),)))

    def _take(self, characters: CharSet) -> Fragment:
        return ((Operation.TAKE, replace(characters, folded=self._flags.fold), 1, 0),)

    def _escape(self) -> Fragment:
        letter = self.pattern[self.at + 1 : self.at + 2]
        position = {
            "A": Position.TEXT_START,
            "z": Position.TEXT_END,
            "b": Position.BOUNDARY,
            "B": Position.NO_BOUNDARY,
        }.get(letter)
        if position is None:
            return self._take(self._escaped())
        self.at += 2
        return _assert(position)

    def _escaped(self) -> CharSet:
        """The characters that an escape stands for, in a class or outside."""
        rest = self.pattern[self.at + 1 : self.at + 64]
        if not rest:
            raise PatternError("trailing backslash at end of expression", "")
        if rest[0].lower() in PERL:
            self.at += 2
            return CharSet(PERL[rest[0].lower()], negated=rest[0].isupper())
        if rest[0] in "pP":
            return self._property(rest)
        character, length = _escaped_character(rest)
        self.at += 1 + length
        return CharSet(((character, character),))

    def _property(self, rest: str) -> CharSet:
        named = _PROPERTY.match(rest)
        name = (named[2] or named[3]) if named else ""
        if named is not None and len(name) > _LONGEST_CATEGORY and name != "Any":
            raise PatternError("scripts are not modelled by gpupool", named[0])
        if named is None or (name not in CATEGORIES and name != "Any"):
            raise PatternError("invalid character class range", "\\" + rest[:12])
        self.at += 1 + named.end()
        negated = (rest[0] == "P") is not bool(named[1])
        return CharSet(negated=not negated) if name == "Any" else CharSet(categories=(name,), negated=negated)

    def _class(self) -> CharSet:
        opening = self.pattern[self.at :]
        self.at += 1
        negated = self._rest().startswith("^")
        self.at += negated
        parts: list[CharSet] = []
        while not parts or not self._rest().startswith("]"):
            if not self._rest():
                raise PatternError("missing closing ]", opening)
            parts.append(self._class_part(opening))
        self.at += 1
        fold = self._flags.fold
        return CharSet(inner=tuple(replace(part, folded=fold) for part in parts), negated=negated)

    def _class_part(self, opening: str) -> CharSet:
        rest = self._rest()
        named = re.match(r"\[:(\^?)(\w+):\]", rest)
        if named is not None:
            if named[2] not in POSIX:
                raise PatternError("invalid character class range", named[0])
            self.at += named.end()
            return CharSet(POSIX[named[2]], negated=bool(named[1]))
        begin = self.at
        low = self._class_character()
        if low.negated or low.categories or len(low.ranges) != 1 or low.ranges[0][0] != low.ranges[0][1]:
            return low
        rest = self._rest()
        if not rest.startswith("-") or rest.startswith("-]"):
            return low
        self.at += 1
        if not self._rest():
            raise PatternError("missing closing ]", opening)
        high = self._class_character()
        first, last = low.ranges[0][0], high.ranges[0][1] if high.ranges else ""
        if high.negated or len(high.ranges) != 1 or last < first:
            raise PatternError("invalid character class range", self.pattern[begin : self.at])
        return CharSet(((first, last),))

    def _class_character(self) -> CharSet:
        character = self.pattern[self.at]
        if character == "\\":
            return self._escaped()
        self.at += 1
        return CharSet(((character, character),))

    def _repetition(self) -> tuple[int, int | None] | None:
        rest = self._rest()
        if not rest:
            return None
        if rest[0] in "*+?":
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[rest[0]]
        counted = _REPEAT.match(rest)
        if counted is None:
            return None
        low = int(counted[1])
        high = None if counted[2] and not counted[3] else int(counted[3] or low)
        if low > MAX_REPEAT or (high is not None and (high > MAX_REPEAT or high < low)):
            raise PatternError("invalid repeat count", counted[0])
        self.at += counted.end()
        return low, high

    def _repeated(self, fragment: Fragment) -> Fragment:
        begin = self.at
        count = self._repetition()
        if count is None:
            return fragment
        lazy = self._flags.lazy
        if self._rest().startswith("?"):
            self.at += 1
            lazy = not lazy
        end = self.at
        if self._repetition() is not None:
            raise PatternError("invalid nested repetition operator", self.pattern[begin : self.at])
        self.at = end
        low, high = count
        if len(fragment) * max(low, high or 0) > MAX_PROGRAM:
            raise PatternError("invalid repeat count", self.pattern[begin:end])
        tail = _star(fragment, lazy=lazy) if high is None else _up_to(fragment, high - low, lazy=lazy)
        return fragment * low + tail


def _changed(flags: _Flags, on: str, off: str) -> _Flags:
    names = {"i": "fold", "m": "lines", "s": "dot_all", "U": "lazy"}
    return replace(flags, **{names[flag]: True for flag in on}, **{names[flag]: False for flag in off})


def _assert(position: Position) -> Fragment:
    return ((Operation.ASSERT, position, 1, 0),)


def _split(length: int, *, lazy: bool) -> Instruction:
    return (Operation.SPLIT, None, length, 1) if lazy else (Operation.SPLIT, None, 1, length)


def _star(fragment: Fragment, *, lazy: bool) -> Fragment:
    length = len(fragment)
    return (_split(length + 2, lazy=lazy), *fragment, (Operation.JUMP, None, -(length + 1), 0))


def _up_to(fragment: Fragment, count: int, *, lazy: bool) -> Fragment:
    """`x{0,n}`: each further one is tried only after the one before."""
    result: Fragment = ()
    for _ in range(count):
        inner = (*fragment, *result)
        result = (_split(len(inner) + 1, lazy=lazy), *inner)
    return result


def _escaped_character(rest: str) -> tuple[str, int]:
    """The character that an escape stands for and the length of its text after the backslash."""
    if rest[0] in _ESCAPES:
        return _ESCAPES[rest[0]], 1
    octal = _OCTAL.match(rest)
    if octal is not None:
        return chr(int(octal[0], 8)), octal.end()
    code = _HEX.match(rest)
    if code is not None and int(code[1] or code[2], 16) <= _LAST_CODE_POINT:
        return chr(int(code[1] or code[2], 16)), code.end()
    if rest[0] < "\x80" and not rest[0].isalnum():
        return rest[0], 1
    raise PatternError("invalid escape sequence", "\\" + rest[0])
