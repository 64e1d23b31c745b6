"""Class and request selectors: which devices pass, which decided, and what the scheduler says where one errs.

Programs are compiled once per text and kept here; a cluster and all its variants share one `Selectors`. Evaluation is
lazy and in the scheduler's order: class selectors, then the request's, stopping at the first that is false.
Source: dynamic-resource-allocation `allocator_*.go`, isSelectable and selectorsMatch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from dradriver import api, cel
from dradriver.allocator.pools import Candidate
from dradriver.allocator.variants import Rules, rules_of

Compile: TypeAlias = Callable[[str, api.Kubernetes], cel.Program]

ADVICE = (
    ". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)


def compile_stored(text: str, kubernetes: api.Kubernetes) -> cel.Program:
    """Compile as the scheduler does: objects in the cluster may use all that the version has. Raises CompileError."""
    return cel.compile_expression(text, kubernetes, stored=True)


@dataclass(frozen=True, slots=True)
class Judgement:
    """How the selectors judged a device: the first that did not hold, counted within the class or the request.

    `error` is set where it erred instead of being false; `selector` is None if all hold.
    """

    selector: int | None = None
    in_class: bool = False
    error: cel.EvaluationError | cel.CompileError | None = None

    @property
    def passed(self) -> bool:
        """Whether all selectors hold."""
        return self.selector is None


PASSED = Judgement()


class Selectors:
    """Compiled selectors, by their text."""

    def __init__(self, kubernetes: api.Kubernetes, compile_expression: Compile = compile_stored) -> None:
        self._kubernetes = kubernetes
        self._compile = compile_expression
        self._tells_sharing = rules_of(kubernetes).tells_sharing
        self._programs: dict[str, cel.Program | cel.CompileError] = {}

    def program(self, text: str) -> cel.Program | cel.CompileError:
        """The program of an expression, or why it does not compile."""
        known = self._programs.get(text)
        if known is None:
            try:
                known = self._compile(text, self._kubernetes)
            except cel.CompileError as error:
                known = error
            self._programs[text] = known
        return known

    def judge(
        self, candidate: Candidate, device_class: api.DeviceClass | None, selectors: Sequence[api.Selector]
    ) -> Judgement:
        """Judge one device: class selectors, then the request's."""
        verdict = self._judge(candidate, device_class.selectors, in_class=True) if device_class else PASSED
        return self._judge(candidate, selectors, in_class=False) if verdict.passed else verdict

    def trace(self, candidate: Candidate, selector: api.Selector) -> cel.Trace | None:
        """How one selector decides a device; None for one that does not compile or is no CEL."""
        program = self.program(selector.expression) if selector.expression is not None else None
        if program is None or isinstance(program, cel.CompileError):
            return None
        return program.trace(candidate.id.driver, self._seen(candidate.device))

    def _seen(self, device: api.Device) -> api.Device:
        """A device as selectors see it."""
        if device.allow_multiple_allocations and not self._tells_sharing:
            return replace(device, allow_multiple_allocations=False)
        return device

    def _judge(self, candidate: Candidate, selectors: Sequence[api.Selector], *, in_class: bool) -> Judgement:
        for index, selector in enumerate(selectors):
            program = self.program(selector.expression or "")
            if isinstance(program, cel.CompileError):
                return Judgement(index, in_class, program)
            try:
                if not program.evaluate(candidate.id.driver, self._seen(candidate.device)):
                    return Judgement(index, in_class)
            except cel.EvaluationError as error:
                return Judgement(index, in_class, error)
        return PASSED


def describe_error(judgement: Judgement, candidate: Candidate, *, claim: str, class_name: str, rules: Rules) -> str:
    """The scheduler's message for a selector that errs; `claim` is `namespace/name`."""
    owner = f"class {class_name}" if judgement.in_class else f"claim {claim}"
    if isinstance(judgement.error, cel.CompileError):
        return f"{owner}: selector #{judgement.selector}: CEL compile error: {judgement.error}"
    if not rules.device_named:
        return f"{owner}: selector #{judgement.selector}: CEL runtime error: {judgement.error}"
    missing = isinstance(judgement.error, cel.EvaluationError) and judgement.error.missing_key is not None
    where = f"selector #{judgement.selector} on device {candidate.id}"
    return f"{owner}: {where}: CEL runtime error: {judgement.error}{ADVICE if missing else ''}"
