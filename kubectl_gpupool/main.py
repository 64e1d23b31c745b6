"""The entry point of `kubectl gpupool`: finds the command, runs it, turns what stops it into one line and status 1."""

from __future__ import annotations

import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence

from kubectl_gpupool import options
from kubectl_gpupool.commands import COMMANDS
from kubectl_gpupool.errors import CommandError

INTERRUPTED = 130
BROKEN_PIPE = 141


def main() -> None:
    """Run the command line of this process."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What a locale cannot show must not stop the rest.
        sys.stdout.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """Run one command line and give its exit status; what stops it is told in one line."""
    try:
        status = _run(words)
        sys.stdout.flush()
    except CommandError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has gone; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        return _fail(f"cannot write the answer: {error.strerror}")
    except Exception as error:  # noqa: BLE001 - a person never sees a traceback, whatever is wrong with gpupool
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(frame.filename)}:{frame.lineno}"  # noqa: PTH119 - a name in a message
        return _fail(f"gpupool itself is at fault, please report it: {type(error).__name__} at {where}: {error}")
    return status


def _fail(message: str) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return 1


def _run(words: Sequence[str]) -> int:
    parser = options.Parser(
        prog=options.PROGRAM,
        description="See the pool of GPUs, and know why a claim got what it got, or did not.",
        epilog="Start with:  kubectl gpupool inspect",
        parents=[options.global_flags()],
    )
    subparsers = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", parser_class=options.Parser)
    for name, command in COMMANDS.items():
        subparser = subparsers.add_parser(
            name, help=command.summary, description=command.summary, parents=[options.global_flags()]
        )
        # The word may be the value of a flag too (`-n lab`): declaring one command more does no harm.
        if name in words:
            importlib.import_module(command.module).declare(subparser)
    parsed = parser.parse_args(list(words))
    if parsed.command is None:
        parser.print_help()
        return 0
    return int(parsed.run(parsed, options.Flags.of(parsed)))
