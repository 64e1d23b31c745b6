"""Words that complete, and a table of flags that says what the parsers take."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_gpupool import completing, options
from kubectl_gpupool.commands import COMMANDS

COMPLETE = Path(sys.executable).with_name("kubectl_complete-gpupool")


def _complete(*words: str) -> list[str]:
    return [line.partition("\t")[0] for line in completing.candidates(words)]


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
        else:
            yield action


def _declared(name: str) -> list[argparse.Action]:
    parser = options.Parser(add_help=False)
    importlib.import_module(COMMANDS[name].module).declare(parser)
    return [action for action in _actions(parser) if "--help" not in action.option_strings]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_has_the_flags_of_the_parser(name: str) -> None:
    actions = _declared(name)
    assert {flag for action in actions for flag in action.option_strings} == set(COMMANDS[name].flags)
    outputs = {choice for a in actions if "--output" in a.option_strings for choice in a.choices or ()}
    assert outputs == set(COMMANDS[name].outputs)


@pytest.mark.parametrize("name", ["explain", "completion"])
def test_the_table_has_the_words_of_the_parser(name: str) -> None:
    first = next(action for action in _declared(name) if not action.option_strings)
    assert tuple(first.choices or ()) == COMMANDS[name].words


def test_the_global_flags_are_those_of_the_parser() -> None:
    actions = options.global_flags()._actions
    assert {flag for a in actions for flag in a.option_strings} | {"-h", "--help"} == set(completing.GLOBAL_FLAGS)


def test_flags_that_take_a_word_are_known_to_do_so() -> None:
    actions = [*options.global_flags()._actions, *(action for name in COMMANDS for action in _declared(name))]
    takes = {flag for action in actions if action.nargs != 0 for flag in action.option_strings}
    assert takes == completing.VALUE_FLAGS


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([""], [*COMMANDS, ":4"]),
        (["ins"], ["inspect", ":4"]),
        (["-n", "explain", "ins"], ["inspect", ":4"]),
        (["explain", ""], ["claim", "pod", ":4"]),
        (["explain", "--exit"], ["--exit-status", ":4"]),
        (["inspect", "-o", ""], ["json", "yaml", "wide", "name", ":4"]),
        (["inspect", "--from", ""], [":0"]),
        (["inspect", "--color", "a"], ["auto", "always", ":4"]),
        (["inspect", "--context", ""], [":4"]),
        (["completion", "z"], ["zsh", ":4"]),
        ([], [*COMMANDS, ":4"]),
    ],
)
def test_words_complete(words: list[str], expected: list[str]) -> None:
    assert _complete(*words) == expected


def test_names_come_from_where_the_command_would_read(story: str) -> None:
    assert _complete("inspect", "--from", story, "h") == ["hgx-h100", "h100-nvl-4", ":4"] or _complete(
        "inspect", "--from", story, "h"
    ) == ["h100-nvl-4", "hgx-h100", ":4"]
    assert _complete("explain", "pod", "-n", "story", "--from", story, "t") == ["train", ":4"]
    assert _complete("explain", "claim", "-n", "story", "--from", story, "si") == ["six-hopper-80gb", ":4"]


def test_names_are_left_out_where_nothing_answers() -> None:
    assert _complete("explain", "pod", "--from", "/nonexistent", "") == [":4"]
    assert _complete("explain", "pod", "-s", "https://127.0.0.1:1", "") == [":4"]


def test_static_words_need_nothing_heavy_and_come_at_once() -> None:
    script = (
        "import sys; sys.argv = ['x', 'ins']; from kubectl_gpupool import completing; completing.main();"
        "print(sorted({'rich', 'kubernetes', 'yaml', 'argparse', 'dradriver'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    if COMPLETE.exists():
        times = []
        for _ in range(3):
            started = time.perf_counter()
            subprocess.run([COMPLETE, "ins"], check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - started)
        assert min(times) < 0.5  # about 30 ms on an idle machine
