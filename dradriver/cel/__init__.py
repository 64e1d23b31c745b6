"""CEL over one device: parse with spans, check, evaluate, and tell which sub-expression decided.

Pure. What Kubernetes evaluates (`dynamic-resource-allocation/cel` on cel-go) is evaluated here, with the libraries
and limits of the given minor version; every node of the tree carries its span (code points, 0-based, half-open).

An expression goes `tokens` → `parsing` (`syntax`, `macros`) → `checking` (`kinds`, `environments`) → `evaluating`
(closures over `frames`), with the functions in `libraries`; `reading` knows what it reads, `tracing` what decided.

Not modelled: durations, timestamps, URLs, IP addresses and named formats (no device has them), and cel-go's
cost units: loops, comparisons, patterns and built texts are bounded in steps of our own.
"""

from dradriver.cel.errors import CompileError, EvaluationError, Span
from dradriver.cel.programs import Program, compile_expression
from dradriver.cel.tracing import Observation, Trace

__all__ = ["CompileError", "EvaluationError", "Observation", "Program", "Span", "Trace", "compile_expression"]
