"""Flags: kubectl's own global ones, those of every reading command, and a parser that fails as kubectl does.

kubectl passes a plugin nothing but the words after its name, so its global flags are declared here. They may stand
before or after the command's name. Absent flags leave no attribute behind; `Flags` gives each its default.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from kubectl_gpupool.errors import UsageError

PROGRAM = "kubectl gpupool"


@dataclass(slots=True)
class Flags:
    """The global flags of a run, as given."""

    namespace: str | None = None
    all_namespaces: bool = False
    kubeconfig: str | None = None
    context: str | None = None
    cluster: str | None = None
    user: str | None = None
    server: str | None = None
    token: str | None = None
    certificate_authority: str | None = None
    insecure_skip_tls_verify: bool = False
    as_user: str | None = None
    as_group: tuple[str, ...] = ()
    request_timeout: float = 30.0
    color: str = "auto"
    ascii: bool = False

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> Flags:
        """The global flags out of parsed arguments."""
        return cls(**{f.name: getattr(parsed, f.name) for f in fields(cls) if hasattr(parsed, f.name)})


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError where argparse would exit with status 2, and shortens nothing."""

    def __init__(self, **settings: Any) -> None:
        self._intermixed = False
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)

    def parse_known_args(  # type: ignore[override]  # the overloads of argparse say the same
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse with flags between the other words, as kubectl allows it; argparse by itself does not."""
        if self._intermixed or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._intermixed = True  # the next call calls this one again
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixed = False

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is."""
        raise UsageError(f"{message} (see '{self.prog} -h')")


def global_flags() -> Parser:
    """The parent parser of kubectl's global flags."""
    parent = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = parent.add_argument_group("global flags, as kubectl's own")
    group.add_argument("-n", "--namespace", metavar="NS", help="namespace of the object")
    group.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")
    group.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig to use")
    group.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
    group.add_argument("--cluster", metavar="NAME", help="cluster of the kubeconfig")
    group.add_argument("--user", metavar="NAME", help="user of the kubeconfig")
    group.add_argument("-s", "--server", metavar="URL", help="address of the API server")
    group.add_argument("--token", metavar="TOKEN", help="bearer token")
    group.add_argument("--certificate-authority", metavar="FILE", help="certificate of the server's authority")
    group.add_argument("--insecure-skip-tls-verify", action="store_true", help="do not check the server's certificate")
    group.add_argument("--as", dest="as_user", metavar="USER", help="act as this user")
    group.add_argument("--as-group", action="append", metavar="GROUP", help="act in this group; may be repeated")
    group.add_argument("--request-timeout", type=seconds, metavar="TIME", help="bound of one request: 30, 30s, 2m")
    group.add_argument("--color", choices=("auto", "always", "never"), help="colour: auto is on a terminal only")
    group.add_argument("--ascii", action="store_true", help="no sign beyond ASCII")
    return parent


def seconds(text: str) -> float:
    """A time as kubectl takes it: plain seconds, or a number with ms, s, m or h; 0 means the default."""
    for suffix, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)):
        if text.endswith(suffix):
            try:
                value = float(text[: len(text) - len(suffix)]) * factor
            except ValueError:
                break
            if value >= 0:
                return value or 30.0
            break
    raise argparse.ArgumentTypeError(f"{text!r} is no time; write seconds (30), or a number with ms, s, m or h (2m)")


def object_name(word: str, flags: Flags, default_namespace: str) -> tuple[str, str]:
    """Namespace and name from `NS/NAME`, or from NAME with `-n` or the context's namespace."""
    namespace, slash, name = word.rpartition("/")
    if not slash:
        return flags.namespace or default_namespace, word
    if not namespace or not name or "/" in namespace:
        raise UsageError(f"{word!r} names no object; write NAMESPACE/NAME, or NAME with -n NAMESPACE")
    if flags.namespace not in (None, namespace):
        raise UsageError(f"{word!r} is in namespace {namespace}, but -n says {flags.namespace}; leave one of them away")
    return namespace, name
