"""What commands answer, and how they end when they cannot."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_gpupool import explaining, main

FINETUNE = "explain claim story/six-hopper-80gb"


def test_inspect_gives_every_device_with_its_state_and_holders(run: Any, story: str) -> None:
    document = run(f"inspect --from {story} -o json").json
    assert (document["apiVersion"], document["kind"]) == ("gpupool.dev/v1alpha1", "PoolList")
    pools = {pool["name"]: pool for pool in document["pools"]}
    assert {k for pool in pools.values() for k in pool} == {
        "driver", "name", "node", "generation", "complete", "devices", "fits",
    }  # fmt: skip
    board = pools["hgx-h100"]
    assert [device["state"] for device in board["devices"]] == ["held"] * 4 + ["free"] * 4
    assert board["devices"][0]["holders"] == [
        {"claim": "story/train-gpus-4kq7d", "pod": "story/train", "request": "gpus", "share": None}
    ]
    assert board["devices"][0]["attributes"]["driverVersion"] == "580.95.5"
    assert board["fits"] == [{"what": "gpu", "count": 4}, {"what": "gpu in one NVLink domain", "count": 4}]
    assert pools["a100-mig"]["devices"][0]["type"] == "mig"


def test_yaml_holds_what_json_holds(run: Any, story: str) -> None:
    for command in (f"inspect --from {story}", f"{FINETUNE} --from {story}", "version --client"):
        assert yaml.safe_load(run(f"{command} -o yaml").out) == run(f"{command} -o json").json


def test_heads_can_be_left_out(run: Any, story: str) -> None:
    for view in ("", "--tree", "-o wide"):
        _, *rows = [line.split() for line in run(f"inspect --from {story} {view}").out.splitlines()]
        assert [line.split() for line in run(f"inspect --from {story} {view} --no-headers").out.splitlines()] == rows


def test_a_cluster_without_pools_says_so_on_stderr(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("{kind: List, apiVersion: v1, items: []}")
    answer = run(f"inspect --from {path}")
    assert (answer.status, answer.out) == (0, "")
    assert answer.err == "No pools found: no driver has published a ResourceSlice.\n"


@pytest.mark.parametrize(
    "words",
    [
        "explain claim story/six-hopper-80gb --from {}",
        "explain claim six-hopper-80gb -n story --from {}",
        "-n story explain claim --from {} six-hopper-80gb",
        "--namespace=story explain --from={} claim six-hopper-80gb",
        "explain claim -nstory six-hopper-80gb --from {}",
        "explain claim -A six-hopper-80gb --from {}",
    ],
)
def test_an_object_is_named_as_kubectl_names_it(run: Any, story: str, words: str) -> None:
    answer = run(words.format(story))
    assert answer.status == 0
    assert answer.out.startswith("pending: claim story/six-hopper-80gb ")


def test_a_namespace_may_have_the_name_of_a_command(run: Any, story: str) -> None:
    assert run(f"-n explain inspect --from {story}").status == 0


@pytest.mark.parametrize(
    ("name", "status"),
    [("encoder-and-model", 0), ("six-hopper-80gb", 3), ("eight-h100-nvl", 4), ("hopper-80gi", 4)],
)
def test_the_verdict_is_the_exit_status_when_asked_for(run: Any, story: str, name: str, status: int) -> None:
    assert run(f"explain claim story/{name} --from {story} --exit-status").status == status
    assert run(f"explain claim story/{name} --from {story}").status == 0


def test_each_verdict_has_an_exit_status() -> None:
    assert {str(verdict): status for verdict, status in explaining.STATUSES.items()} == {
        "allocated": 0,
        "fits": 0,
        "pending": 3,
        "impossible": 4,
        "unknown": 5,
        "blocked": 6,
    }


def test_a_manifest_is_explained_where_n_says(run: Any, story: str, tmp_path: Path) -> None:
    path = tmp_path / "manifest.yaml"
    path.write_text(
        textwrap.dedent("""
        apiVersion: resource.k8s.io/v1
        kind: DeviceClass
        metadata: {name: mine}
        spec: {}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          resourceClaims: [{name: a, resourceClaimName: c}, {name: b, resourceClaimTemplateName: four-hopper-80gb}]
        ---
        apiVersion: resource.k8s.io/v1beta1
        kind: ResourceClaim
        metadata: {name: c}
        spec: {devices: {requests: [{name: gpu, deviceClassName: mine, count: 9}]}}
        """)
    )
    answer = run(f"explain -f {path} -n story --from {story} -o json")
    assert (answer.status, answer.json["kind"]) == (0, "PodExplanation")
    made, templated = answer.json["claims"]
    assert made["metadata"] == {"namespace": "story", "name": "c"}
    assert templated["metadata"] == {"namespace": "story", "name": "four-hopper-80gb"}
    assert answer.json["metadata"] == {"namespace": "story", "name": "p"}


def test_several_explanations_are_a_list(run: Any, story: str) -> None:
    document = run(f"explain -f {Path(__file__).parent / 'troubles.yaml'} --from {story} -o json").json
    assert document["kind"] == "List"
    assert {item["kind"] for item in document["items"]} == {"ClaimExplanation", "PodExplanation"}


def test_the_rules_of_another_version_are_applied(run: Any, story: str, tmp_path: Path) -> None:
    path = tmp_path / "prioritized.yaml"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "c"},
                "spec": {
                    "devices": {
                        "requests": [
                            {"name": "g", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.gpupool.dev"}]}
                        ]
                    }
                },
            }
        )
    )
    command = f"explain -f {path} --from {story} -o json"
    assert run(command).json["verdict"] == "fits"
    assert run(f"{command} --kubernetes 1.33").json["verdict"] != "fits"
    assert run(f"{command} --kubernetes 1.33 --feature-gates DRAPrioritizedList=true").json["verdict"] == "fits"
    assert run(f"{command} --feature-gates DRAPrioritizedList=false").json["verdict"] != "fits"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("inspect --bogus", "unrecognized arguments: --bogus"),
        ("bogus", "invalid choice: 'bogus'"),
        ("explain", "say what to explain: claim NS/NAME, pod NS/NAME, or -f MANIFEST"),
        ("explain claim", "say what to explain"),
        ("explain claim a -f b --from {}", "say what to explain"),
        ("explain claim a/b/c --from {}", "'a/b/c' names no object; write NAMESPACE/NAME"),
        ("explain pod story/train -n other --from {}", "is in namespace story, but -n says other"),
        ("explain claim story/six-hopper-80g --from {}", "did you mean six-hopper-80gb or"),
        ("explain claim six-hopper-80gb --from {}", "it is in namespace story: -n story"),
        ("explain pod story/zzz --from {}", "not found in namespace story; there are: batch, finetune,"),
        ("explain pod nowhere/zzz --from {}", "not found in namespace nowhere; there are none"),
        ("inspect hgx-h10 --from {}", "did you mean hgx-h100"),
        ("inspect --from /nonexistent", "/nonexistent cannot be read: No such file or directory"),
        ("inspect --from /", "/ cannot be read: Is a directory"),
        ("inspect --kubernetes 1.20 --from {}", "Kubernetes version '1.20' is not known here: choose one of 1.32"),
        ("inspect --kubernetes 1.20", "Kubernetes version '1.20' is not known here"),
        ("inspect --feature-gates DRAx=true --from {}", "feature gate 'DRAx' is not known"),
        ("inspect --feature-gates DRAx --from {}", "write NAME=true or NAME=false"),
        ("inspect -o toml --from {}", "invalid choice: 'toml'"),
        ("inspect --tree -o json --from {}", "--tree and -o cannot go together"),
        ("--request-timeout never inspect --from {}", "'never' is no time; write seconds (30)"),
        ("inspect --kubeconfig /nonexistent", "kubeconfig /nonexistent does not exist"),
        ("inspect -s https://127.0.0.1:1 --request-timeout 2s", "cannot reach https://127.0.0.1:1"),
        ("explain -f - --from -", "cannot both read standard input"),
        ("explain -f /nonexistent --from {}", "/nonexistent cannot be read"),
        ("completion tcsh", "invalid choice: 'tcsh'"),
    ],
)
def test_what_cannot_be_answered_ends_with_one_line_and_status_1(
    run: Any, story: str, words: str, message: str
) -> None:
    answer = run(words.format(story))
    assert (answer.status, answer.out) == (1, "")
    assert message in answer.err
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": [', "is not JSON: "),
        ("a: [1", "is not YAML: "),
        ("", "is empty"),
        ("{kind: List, apiVersion: v1, items: [{apiVersion: v1, kind: Node, metadata: {name: n}, spec: []}]}",
         "Node n: spec is [], expected a mapping"),
        ("{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: {resourceClaims: 7}}",
         "Pod default/p: spec.resourceClaims is 7, expected a list"),
        ("{kind: Event, apiVersion: v1, metadata: {name: e}, reason: FailedScheduling, involvedObject: x}",
         "involvedObject is 'x', expected a mapping"),
    ],
)  # fmt: skip
def test_a_malformed_file_is_named_with_what_is_wrong(run: Any, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    answer = run(f"explain pod default/p --from {path}")
    assert (answer.status, answer.out) == (1, "")
    assert message in answer.err
    assert answer.err.count("\n") == 1


def test_a_malformed_kubeconfig_is_named(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("clusters: 7")
    answer = run(f"inspect --kubeconfig {path}")
    assert (answer.status, answer.out) == (1, "")
    assert f"kubeconfig {path}" in answer.err
    assert answer.err.count("\n") == 1


def test_a_fault_of_our_own_shows_no_traceback_either(run: Any, story: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("kubectl_gpupool.pools.view", broken)
    answer = run(f"inspect --from {story}")
    assert answer.status == 1
    assert answer.err.startswith("error: gpupool itself is at fault, please report it: KeyError at test_answers.py:")


def test_an_interruption_is_no_failure_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_run", interrupted)
    assert main.run([]) == 130


def test_help_names_the_command_as_people_type_it(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert "kubectl gpupool" in run("").out
    for command in ("inspect", "explain", "version", "completion"):
        with pytest.raises(SystemExit, match="0"):
            main.run([command, "-h"])
        assert f"usage: kubectl gpupool {command}" in capsys.readouterr().out


def test_version_shows_ours_and_warns_of_what_hides_a_command(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hiding = tmp_path / "kubectl-gpupool-explain"
    hiding.write_text("#!/bin/sh\n")
    hiding.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = run("version --client")
    assert answer.status == 0
    assert answer.out.startswith("gpupool   ")
    assert f"warning: {hiding} answers in place of a command" in answer.err


def test_a_taint_rule_in_the_snapshot_taints_the_devices_it_selects(run: Any, story: str, tmp_path: Path) -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "board-out"},
        "spec": {
            "deviceSelector": {"driver": "gpu.gpupool.dev", "pool": "hgx-h100"},
            "taint": {"key": "example.com/maintenance", "effect": "NoSchedule"},
        },
    }
    tainted = tmp_path / "tainted.yaml"
    tainted.write_text(f"{Path(story).read_text(encoding='utf-8')}\n---\n{yaml.safe_dump(rule)}", encoding="utf-8")
    document = run(f"{FINETUNE} --from {tainted} -o json").json
    buckets = {bucket["reason"]: bucket for bucket in document["devices"]["buckets"]}
    assert buckets["taint"]["count"] == 8
    assert "example.com/maintenance:NoSchedule" in buckets["taint"]["detail"]
