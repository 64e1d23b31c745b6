"""The state is a fold over records, and a compacted journal gives the same state."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import given
from hypothesis import strategies as st

from dradriver import api
from dradriver.node import claims
from dradriver.node.claims import Holdings, Kind, Phase, PreparedClaim, PreparedDevice, Record

devices = st.builds(
    PreparedDevice,
    name=st.text("ab-1"),
    pool=st.just("node-a"),
    requests=st.lists(st.text("rs"), max_size=2).map(tuple),
    uuid=st.text(),
    gpu_uuid=st.text(),
    nodes=st.lists(st.text("/dev0"), max_size=2).map(tuple),
    admin_access=st.booleans(),
    shareable=st.booleans(),
    share_id=st.none() | st.text(),
)
prepared = st.builds(
    PreparedClaim,
    uid=st.sampled_from("uvw").map(api.UID),
    namespace=st.text(),
    name=st.text(),
    devices=st.lists(devices, max_size=2).map(tuple),
    boot=st.text(max_size=3),
)
records = st.one_of(
    prepared.map(lambda claim: {"kind": Kind.PREPARING, "claim": claims.write_claim(claim)}),
    st.builds(dict, kind=st.sampled_from([Kind.PREPARED, Kind.RELEASING, Kind.RELEASED]), uid=st.sampled_from("uvw")),
    st.just({"kind": "of a newer version", "uid": "u"}),
)


def _fold(history: Iterable[Record]) -> Holdings:
    holdings: Holdings = {}
    for record in history:
        holdings = claims.apply(holdings, record)
    return holdings


@given(st.lists(records))
def test_the_shortest_journal_gives_the_same_state(history: list[Record]) -> None:
    holdings = _fold(history)
    assert _fold(claims.records_of(holdings)) == holdings


@given(prepared)
def test_a_claim_reads_as_it_was_written(claim: PreparedClaim) -> None:
    assert claims.read_claim(claims.write_claim(claim)) == claim


def test_a_prepared_claim_stays_prepared_while_it_is_arranged_anew(make_prepared: Callable[..., PreparedClaim]) -> None:
    old, new = make_prepared("train", "gpu-0"), make_prepared("train", "gpu-0", boot="boot-2")
    holdings = _fold(
        [
            {"kind": Kind.PREPARING, "claim": claims.write_claim(old)},
            {"kind": Kind.PREPARED, "uid": old.uid},
            {"kind": Kind.PREPARING, "claim": claims.write_claim(new)},
        ]
    )
    assert holdings[old.uid] == claims.Holding(new, Phase.PREPARED)
