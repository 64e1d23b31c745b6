"""Names are judged as the server judges them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dradriver.api import names

LABEL_OF_63 = "a" * 63
SUBDOMAIN_OF_253 = ".".join(["a" * 63] * 3 + ["a" * 61])


@pytest.mark.parametrize(
    ("judge", "good", "bad"),
    [
        (
            names.is_dns_label,
            ["a", "0", "gpu-0-mig-1g10gb-0", LABEL_OF_63],
            ["", "-a", "a-", "A", "a.b", "a_b", "a" * 64, "a\n", "ä"],
        ),
        (
            names.is_dns_subdomain,
            ["a", "gpu.gpupool.dev", SUBDOMAIN_OF_253],
            ["", ".a", "a.", "a..b", "A.b", "a/b", SUBDOMAIN_OF_253 + "a"],
        ),
        (names.is_driver_name, ["gpu.gpupool.dev", "GPU.example.com", "a" * 63], ["", "a" * 64, "a_b", "gpu/x"]),
        (names.is_c_identifier, ["a", "_", "migCapable", "A1_", "a" * 32], ["", "1a", "a-b", "a" * 33, "é", "a\n"]),
        (
            names.is_pool_name,
            ["node-1", "a/b.c/d", SUBDOMAIN_OF_253],
            ["", "/", "a/", "/a", "a//b", "A", "a/" * 126 + "ab"],
        ),
        (
            names.is_qualified_name,
            ["memory", "gpu.gpupool.dev/type", "GPU.dev/x"],
            ["", "/a", "a/", "a/b/c", "a.b/1x", "a" * 64 + "/x"],
        ),
        (
            names.is_label_key,
            ["a", "gpu.gpupool.dev/xid", "A_b.c", "x/" + "a" * 63],
            ["", "/a", "a/", "-a", "a b", "a" * 64, "A.b/c"],
        ),
        (names.is_label_value, ["", "a", "A_b-c.d", "a" * 63], ["-", "a-", "a b", "a" * 64, "a/b"]),
    ],
)
def test_names_are_taken_and_refused(judge: Callable[[str], bool], good: list[str], bad: list[str]) -> None:
    assert [name for name in good if not judge(name)] == []
    assert [name for name in bad if judge(name)] == []


def test_a_subdomain_may_be_limited_further() -> None:
    assert names.is_dns_subdomain("a" * 63, limit=63)
    assert not names.is_dns_subdomain("a" * 63 + ".b", limit=63)
