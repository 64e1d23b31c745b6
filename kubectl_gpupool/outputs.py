"""Structured output: `-o json` and `-o yaml` of a versioned object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

API_VERSION = "gpupool.dev/v1alpha1"


def dump(document: Mapping[str, Any], form: str) -> str:
    """A document as JSON or YAML, keys in the order they were given."""
    if form == "json":
        return json.dumps(document, indent=2, ensure_ascii=False)
    import yaml  # noqa: PLC0415 - 20 ms that only this form costs

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(dict(document), Dumper=dumper, sort_keys=False, allow_unicode=True, width=10_000)).rstrip()
