"""Whatever is wrong in a snapshot, the answer is an answer or one line that names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KEPT = {"a100-mig", "h100-nvl-4"}
JUNK = st.sampled_from([None, 7, -1, "", "x", [], {}, True, [None], {"x": 7}, [[]], 1.5])


@pytest.fixture(scope="module")
def snapshot(story: str) -> list[dict[str, Any]]:
    """The story without the larger pools, so that it is read quickly."""
    items = yaml.safe_load(Path(story).read_text())["items"]
    return [
        item
        for item in items
        if item["kind"] not in ("ResourceSlice", "Node")
        or KEPT & {item["metadata"]["name"], item.get("spec", {}).get("nodeName")}
    ]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_snapshot_with_something_wrong_never_ends_in_a_fault_of_ours(
    run: Any, tmp_path: Path, snapshot: list[dict[str, Any]], data: st.DataObject
) -> None:
    items = json.loads(json.dumps(snapshot))
    place = data.draw(st.sampled_from([p for p in _places(items) if p]))
    parent = items
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = data.draw(JUNK)
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    for command in ("inspect", "inspect --tree", "explain pod story/train", "explain pod story/batch -o json"):
        answer = run(command, f"--from {path}")
        assert answer.status in (0, 1)
        assert "itself is at fault" not in answer.err
        assert answer.status == 0 or (answer.err.startswith("error: ") and answer.err.count("\n") == 1)
