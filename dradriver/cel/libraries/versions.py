"""Semantic versions in CEL (apiserver `pkg/cel/library/semverlib.go`); `normalize` came with version 1.33."""

from __future__ import annotations

from dradriver import api
from dradriver.cel.declarations import Overload, function, member
from dradriver.cel.kinds import BOOL, INT, SEMVER, STRING
from dradriver.cel.values import Failure

_PARTS = 3


def _parse(text: str) -> api.Version:
    try:
        return api.Version.parse(text)
    except api.VersionError as error:
        raise Failure(str(error)) from None


def _normalized(text: str) -> str:
    """Without a leading v, with three numbers, without leading zeros."""
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", _PARTS - 1)]
    if len(parts) < _PARTS and ("+" in parts[-1] or "-" in parts[-1]):
        raise Failure("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, *["0"] * (_PARTS - len(parts))])


def _without_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in tuple("123456789") else f"0{stripped}"


def _semver(text: str, normalize: bool = False) -> api.Version:  # noqa: FBT001, FBT002 - CEL passes it by position
    return _parse(_normalized(text) if normalize else text)


def _is_semver(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002 - CEL passes it by position
    try:
        _semver(text, normalize)
    except Failure:
        return False
    return True


def _compare(left: api.Version, right: api.Version) -> int:
    return (left > right) - (left < right)


_NORMALIZE_SINCE = 33
_PAIR = (SEMVER, SEMVER)

OVERLOADS: tuple[Overload, ...] = (
    function("semver", (STRING,), SEMVER, _semver),
    function("semver", (STRING, BOOL), SEMVER, _semver, since=_NORMALIZE_SINCE),
    function("isSemver", (STRING,), BOOL, _is_semver),
    function("isSemver", (STRING, BOOL), BOOL, _is_semver, since=_NORMALIZE_SINCE),
    member("isGreaterThan", _PAIR, BOOL, lambda left, right: left > right),
    member("isLessThan", _PAIR, BOOL, lambda left, right: left < right),
    member("compareTo", _PAIR, INT, _compare),
    member("major", (SEMVER,), INT, lambda version: version.precedence[0]),
    member("minor", (SEMVER,), INT, lambda version: version.precedence[1]),
    member("patch", (SEMVER,), INT, lambda version: version.precedence[2]),
)
