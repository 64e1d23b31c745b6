"""What is prepared on this node: the only module that changes it.

Every change is: intent to the journal, act, outcome to the journal, all under the node's lock. A start finds one of:
nothing (the claim was never promised), an intent (undone: the kubelet asks again), a release under way (finished), or a
prepared claim (its CDI file is made good if it is not). What cannot be told from the disk alone is `doubtful`: held,
but to be compared with the claim on the API server before it is believed. That is a prepared claim whose CDI file is
gone under the same boot id (an Unprepare that a full disk kept from being recorded), one of another boot, and
whatever had to be read from CDI files because the journal was damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from dradriver import api
from dradriver.node import claims, logs
from dradriver.node.cdi import CdiDirectory, Mount
from dradriver.node.claims import Holding, Holdings, Kind, Phase, PreparedClaim, Record
from dradriver.node.errors import CdiError, JournalError
from dradriver.node.journal import Journal
from dradriver.node.locking import NodeLock

LOCK_SECONDS = 8.0
"""Longest wait for the lock; the kubelet gives the whole call 45 s."""
COMPACT_BYTES = 256 * 1024

log = logs.Logger("state")

Mounts = Callable[[], Sequence[Mount]]


def _no_mounts() -> Sequence[Mount]:
    return ()


class State:
    """The prepared claims of this node, on disk; safe for threads and for two instances of the plugin."""

    def __init__(
        self, journal: Journal, cdi: CdiDirectory, lock: NodeLock, *, boot: str, mounts: Mounts = _no_mounts
    ) -> None:
        self._journal = journal
        self._cdi = cdi
        self._lock = lock
        self._boot = boot
        self._mounts = mounts
        self._holdings: Holdings = {}
        self._doubtful: set[api.UID] = set()
        # Released, CDI file gone, but the disk was too full to say so; tried again at every occasion.
        self._unrecorded: set[api.UID] = set()

    def recover(self) -> None:
        """Bring disk and state together at start. Raises JournalError, LockError."""
        with self._lock.held(LOCK_SECONDS):
            self._holdings = _fold(self._journal.open())
            damaged = self._journal.set_aside is not None
            if damaged:
                log.problem("journal was damaged", file=str(self._journal.set_aside), kept=len(self._holdings))
                self._adopt_from_files()
            self._cdi.clear_temporaries()
            for holding in tuple(self._holdings.values()):
                self._recover_one(holding, damaged=damaged)
            for uid in self._cdi.present():
                if uid not in self._holdings:
                    self._cdi.remove(uid)
                    log.info("removed CDI file without a claim", uid=uid)

    def _adopt_from_files(self) -> None:
        for uid in self._cdi.present():
            recorded = self._cdi.recorded(uid)
            if uid not in self._holdings and recorded is not None:
                self._record({"kind": Kind.PREPARING, "claim": claims.write_claim(recorded)})
                self._record({"kind": Kind.PREPARED, "uid": uid})
                self._doubtful.add(uid)

    def _recover_one(self, holding: Holding, *, damaged: bool) -> None:
        claim = holding.claim
        has_file = claim.uid in self._cdi.present()
        if holding.phase is Phase.RELEASING:
            self._release(claim.uid)
        elif holding.phase is Phase.PREPARING and not (damaged and has_file):
            log.info("undid an interrupted prepare", claim=claim.title, uid=claim.uid)
            self._release(claim.uid)
        elif claim.uid in self._doubtful or claim.boot != self._boot or (claim.devices and not has_file) or damaged:
            self._doubtful.add(claim.uid)
        elif claim.devices and self._cdi.recorded(claim.uid) != claim:
            try:
                self._cdi.write(claim, self._mounts())
            except CdiError as error:  # the old file stands; Prepare tries again
                log.problem("cannot rewrite CDI file", claim=claim.title, uid=claim.uid, error=str(error))

    def prepare(self, uid: api.UID, plan: Callable[[Sequence[PreparedClaim]], PreparedClaim]) -> PreparedClaim:
        """Prepare one claim; again is no different from the first time.

        Args:
            uid: the claim.
            plan: decides from everything held here what this claim gets; raises PrepareError.

        Raises:
            PrepareError: from `plan`; nothing was changed.
            JournalError, CdiError: nothing stays of a claim that was not prepared before.
            LockError: the lock was not free.
        """
        with self._changing():
            known = self._holdings.get(uid)
            if known is not None and known.phase is not Phase.PREPARED:
                self._release(uid)  # an attempt that failed so badly that even undoing it did
                known = None
            claim = plan([holding.claim for holding in self._holdings.values()])
            if known is None or known.claim != claim:
                self._record({"kind": Kind.PREPARING, "claim": claims.write_claim(claim)})
                self._unrecorded.discard(uid)  # the release still owed was of the claim's former life here
            try:
                self._cdi.write(claim, self._mounts())
                if known is None:
                    self._record({"kind": Kind.PREPARED, "uid": uid})
            except (CdiError, JournalError):
                if known is None:
                    self._release(uid)
                raise
            self._doubtful.discard(uid)
            return claim

    def unprepare(self, uid: api.UID) -> bool:
        """Release a claim; needs neither the claim, nor a server, nor a GPU. Whether it was held.

        Raises CdiError when its file cannot be removed, LockError when the lock was not free. A full disk is no error:
        the claim is released and the record is written later.
        """
        with self._changing():
            held = uid in self._holdings
            self._release(uid)
            return held

    def held(self) -> tuple[PreparedClaim, ...]:
        """Every claim that holds devices here, as far as this instance has seen; takes no lock."""
        return tuple(holding.claim for holding in self._holdings.values())

    def doubtful(self) -> tuple[PreparedClaim, ...]:
        """Claims to be compared with the API server before they are believed."""
        return tuple(claim for claim in self.held() if claim.uid in self._doubtful)

    def confirm(self, uid: api.UID) -> None:
        """A doubtful claim turned out to be true: write its file. Raises CdiError, LockError, JournalError."""
        with self._changing():
            holding = self._holdings.get(uid)
            # Device nodes move between boots: a claim of another one waits for the kubelet to prepare it again.
            if holding is not None and holding.claim.boot == self._boot:
                if holding.phase is Phase.PREPARING:
                    self._record({"kind": Kind.PREPARED, "uid": uid})
                self._cdi.write(holding.claim, self._mounts())
            self._doubtful.discard(uid)

    def settle(self) -> None:
        """Catch up on records that a full disk refused. Raises LockError, JournalError."""
        if self._unrecorded:
            with self._changing():
                pass

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """The lock, with what another instance did meanwhile read and what was owed written."""
        with self._lock.held(LOCK_SECONDS):
            records = self._journal.refresh()
            if records is not None:
                self._holdings = _fold(records)
            for uid in tuple(self._unrecorded):
                self._released(uid)
            yield
            if self._journal.length > COMPACT_BYTES:
                self._compact()

    def _release(self, uid: api.UID) -> None:
        if uid in self._holdings:
            self._record_owed({"kind": Kind.RELEASING, "uid": uid})
        self._cdi.remove(uid)
        self._released(uid)

    def _released(self, uid: api.UID) -> None:
        if uid not in self._holdings and uid not in self._unrecorded:
            return
        if self._record_owed({"kind": Kind.RELEASED, "uid": uid}):
            self._unrecorded.discard(uid)
        else:
            self._unrecorded.add(uid)
        self._holdings = {known: holding for known, holding in self._holdings.items() if known != uid}
        self._doubtful.discard(uid)

    def _record(self, record: Record) -> None:
        self._journal.append(record)
        self._holdings = claims.apply(self._holdings, record)

    def _record_owed(self, record: Record) -> bool:
        """Write what is being done anyway; a disk too full even for the spare room is told, not raised."""
        try:
            self._journal.append(record, must=True)
        except JournalError as error:
            log.problem("cannot record a release", uid=str(record["uid"]), error=str(error))
            return False
        self._holdings = claims.apply(self._holdings, record)
        return True

    def _compact(self) -> None:
        try:
            self._journal.compact(claims.records_of(self._holdings))
        except JournalError as error:
            log.problem("cannot compact the journal", error=str(error))


def _fold(records: Sequence[Record]) -> Holdings:
    holdings: Mapping[api.UID, Holding] = {}
    for record in records:
        holdings = claims.apply(holdings, record)
    return holdings
