"""Compiled expressions: what the rest of gpupool sees of CEL."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from dradriver import api
from dradriver.cel import checking, parsing, reading
from dradriver.cel.environments import environment
from dradriver.cel.errors import CompileError, EvaluationError, Span
from dradriver.cel.evaluating import Compiler, Scope
from dradriver.cel.frames import Frame
from dradriver.cel.tracing import Conjunct, Trace
from dradriver.cel.values import name_of_type

MAX_LENGTH = 10 * 1024
"""Bytes of an expression: resource.k8s.io `CELSelectorExpressionMaxLength`."""

LISTS_MINOR = 36
"""The minor in which list attributes came; dynamic-resource-allocation `cel/compile.go`, getAttributeValue."""

EntryRead = tuple[str, str, Literal["attributes", "capacity"]]
"""Domain, id, and which of the two maps of a device."""


class Program:
    """One compiled expression; safe to share between threads.

    `reads` are the attributes and capacities that decide the answer together with the driver's name and whether the
    device allows multiple allocations: devices that agree on these get the same answer. It is None where only
    evaluation tells what is read.
    """

    def __init__(self, text: str, checked: checking.Checked, *, knows_lists: bool = True) -> None:
        self.text = text
        self._knows_lists = knows_lists
        self.reads = _entries(checked)
        self._checked = checked
        self._span = checked.root.span
        self._evaluate = Compiler(checked).compile(checked.root, Scope())

    def evaluate(self, driver: str, device: api.Device) -> bool:
        """Test one device. Raises EvaluationError."""
        if not self._knows_lists:
            self._refuse_lists(device)
        try:
            value = self._evaluate(Frame(driver, device))
        except RecursionError:
            raise EvaluationError(self._span, "nested too deeply to be evaluated") from None
        if value is True or value is False:
            return value
        message = f"the result is a {name_of_type(value)}, not a bool: compare it, as in ... == ..."
        raise EvaluationError(self._span, message)

    def trace(self, driver: str, device: api.Device) -> Trace:
        """Test one device and tell what decided."""
        outcome: bool | EvaluationError
        try:
            outcome = self.evaluate(driver, device)
        except EvaluationError as error:
            outcome = error
        frame = Frame(driver, device)
        if outcome is True:
            return Trace(outcome, None, self._conjunct.observe(frame))
        _, deciding = self._conjunct.decide(frame)
        return Trace(outcome, deciding.span, deciding.observe(frame))

    def _refuse_lists(self, device: api.Device) -> None:
        """A scheduler that does not know lists errs on every device that has one, whatever the expression reads."""
        name = min((n for n, value in device.attributes.items() if isinstance(value, tuple)), default=None)
        if name is not None:
            raise EvaluationError(self._span, f"attribute {name}: unsupported attribute value")

    @cached_property
    def _conjunct(self) -> Conjunct:
        return Conjunct(self.text, self._checked.root, Compiler(self._checked), Scope())


def compile_expression(text: str, kubernetes: api.Kubernetes, *, stored: bool = False) -> Program:
    """Compile an expression as the API server of this version would for a new object.

    Args:
        text: The expression, as in a selector of a claim or class.
        kubernetes: The version and gates.
        stored: Whether the object is in the cluster already, so that the scheduler evaluates it with everything this
            version has; new expressions may use only what the version before had.

    Returns:
        The program.

    Raises:
        CompileError: The API server would refuse it.
    """
    length = len(text.encode(errors="replace"))
    if length > MAX_LENGTH:
        message = f"the expression is {length} bytes long, more than {MAX_LENGTH}: split it into several selectors"
        raise CompileError(Span(0, len(text)), message)
    available = environment(kubernetes, stored=stored)
    try:
        tree = parsing.parse(text, available.level, quoted_names=available.quoted_names)
        return Program(text, checking.check(tree, available), knows_lists=_knows_lists(kubernetes))
    except RecursionError:
        raise CompileError(Span(0, len(text)), "the expression is nested too deeply: split it") from None


def _knows_lists(kubernetes: api.Kubernetes) -> bool:
    """Whether list attributes can be read: in 1.36 with their gate, later always; before there are none."""
    return kubernetes.minor != LISTS_MINOR or kubernetes.enabled("DRAListTypeAttributes")


def _entries(checked: checking.Checked) -> frozenset[EntryRead] | None:
    entries: set[EntryRead] = set()
    for read in reading.reads(checked.root, {}):
        match read.reference:
            case reading.Entry(source, domain, id_):
                entries.add((domain, id_, source.value))
            case reading.Domains() | reading.Domain() | reading.Field.DEVICE:
                return None
    return frozenset(entries)
