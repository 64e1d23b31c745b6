"""CEL over one device: parse with spans, check, evaluate, and tell which sub-expression decided.

Pure. What Kubernetes evaluates (`dynamic-resource-allocation/cel` on cel-go) is evaluated here, with the libraries
and limits of the given minor version; every node of the tree carries its span (code points, 0-based, half-open).
"""

from dradriver.cel.programs import CompileError, EvaluationError, Observation, Program, Span, Trace, compile_expression

__all__ = ["CompileError", "EvaluationError", "Observation", "Program", "Span", "Trace", "compile_expression"]
