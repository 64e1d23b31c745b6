"""What is prepared on this node: the only module that changes it.

Every change is: intent to the journal, act, outcome to the journal, all under the node's lock. A start finds one of:
nothing (the claim was never promised), an intent without its CDI file (undone: the kubelet asks again), a release under
way (finished), or a prepared claim (its CDI file is made good if it is not). What cannot be told from the disk alone is
`doubtful`: held, but to be compared with the claim on the API server before it is believed. That is a prepared claim
whose CDI file is gone under the same boot id (an Unprepare that a full disk kept from being recorded), one of another
boot, and one that its CDI file shows and the journal does not, or not to the end: the journal was lost or cut.
A journal that loses records while the plugin runs is written anew from memory.
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
        self._compacted = 0  # bytes of the journal when it was last written anew

    def recover(self) -> None:
        """Bring disk and state together at start. Raises JournalError, LockError."""
        with self._lock.held(LOCK_SECONDS):
            self._holdings = _fold(self._journal.open())
            damaged = self._journal.damaged
            if damaged:
                log.problem("journal was damaged", set_aside=self._journal.set_aside, kept=len(self._holdings))
            self._cdi.clear_temporaries()
            files = {uid: self._cdi.recorded(uid) for uid in self._cdi.present()}
            for uid in files.keys() - self._holdings.keys():
                with _told("cannot remove CDI file", uid=uid):
                    self._recover_file(uid, files[uid])
            for uid, holding in tuple(self._holdings.items()):
                with _told("cannot recover claim", claim=holding.claim.title, uid=uid):
                    self._recover_one(holding, files, damaged=damaged)

    def _recover_file(self, uid: api.UID, claim: PreparedClaim | None) -> None:
        """A CDI file whose claim is not in the journal; device nodes move, so one of another boot is of no use."""
        if claim is not None and claim.boot == self._boot:
            log.problem("claim was missing from the journal", claim=claim.title, uid=uid)
            self._doubtful.add(uid)
            for record in claims.records_of({uid: Holding(claim, Phase.PREPARED)}):
                self._record_owed(record)
        else:
            self._cdi.remove(uid)
            log.info("removed CDI file without a claim", uid=uid)

    def _recover_one(self, holding: Holding, files: Mapping[api.UID, PreparedClaim | None], *, damaged: bool) -> None:
        claim = holding.claim
        has_file = claim.uid in files
        is_as_recorded = has_file and files[claim.uid] == claim
        if holding.phase is Phase.RELEASING:
            self._release(claim.uid)
        elif holding.phase is Phase.PREPARING and not (has_file if damaged else is_as_recorded):
            log.info("undid an interrupted prepare", claim=claim.title, uid=claim.uid)
            self._release(claim.uid)
        elif (
            holding.phase is Phase.PREPARING or damaged or claim.boot != self._boot or (claim.devices and not has_file)
        ):
            self._doubtful.add(claim.uid)
        elif claim.devices and not is_as_recorded:
            self._cdi.write(claim, self._mounts())  # if that fails the old file stands, and Prepare tries again

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
        """Catch up on records that a full disk refused, and put back what somebody took away.

        The kubelet does not ask again for a claim it knows as prepared (kubernetes#141433), but containers of its pod
        may start again and need the CDI file. Raises LockError, JournalError, CdiError.
        """
        if self._unrecorded or self._without_file() or not self._journal.present:
            with self._changing():
                for claim in self._without_file():
                    self._cdi.write(claim, self._mounts())
                    log.info("wrote CDI file that was gone", claim=claim.title, uid=claim.uid)

    def _without_file(self) -> list[PreparedClaim]:
        present = set(self._cdi.present())
        return [
            holding.claim
            for uid, holding in self._holdings.items()
            if holding.phase is Phase.PREPARED
            and holding.claim.devices
            and holding.claim.boot == self._boot
            and uid not in self._doubtful
            and uid not in present
        ]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """The lock, with what another instance did meanwhile read and what was owed written."""
        with self._lock.held(LOCK_SECONDS):
            records = self._journal.refresh()
            if records is not None:
                self._reread(_fold(records))
            for uid in tuple(self._unrecorded):
                self._release(uid)
            yield
            if self._journal.length > max(COMPACT_BYTES, 2 * self._compacted):
                self._compact()

    def _reread(self, found: Holdings) -> None:
        """Take over what the journal says; where it lost something, what is in memory stands until it is checked."""
        if self._journal.damaged:
            log.problem("journal was damaged", set_aside=self._journal.set_aside, kept=len(found))
            self._doubtful |= {uid for uid, holding in self._holdings.items() if found.get(uid) != holding}
            self._holdings = {**found, **self._holdings}
            self._compact()
        else:
            self._holdings = found

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
        self._doubtful.discard(uid)

    def _record(self, record: Record) -> None:
        self._journal.append(record)
        self._holdings = claims.apply(self._holdings, record)

    def _record_owed(self, record: Record) -> bool:
        """Write what is done anyway, and whether that worked; a disk too full even for the spare room is told."""
        self._holdings = claims.apply(self._holdings, record)
        try:
            self._journal.append(record, must=True)
        except JournalError as error:
            log.problem("cannot record what is done", kind=record["kind"], uid=record.get("uid"), error=str(error))
            return False
        return True

    def _compact(self) -> None:
        try:
            self._journal.compact(claims.records_of(self._holdings))
        except JournalError as error:
            log.problem("cannot write the journal anew", error=str(error))
        self._compacted = self._journal.length


@contextmanager
def _told(message: str, **pairs: object) -> Iterator[None]:
    """What goes wrong with one CDI file at start is told, and the start goes on: Unprepare must be served."""
    try:
        yield
    except CdiError as error:
        log.problem(message, **pairs, error=str(error))


def _fold(records: Sequence[Record]) -> Holdings:
    holdings: Mapping[api.UID, Holding] = {}
    for record in records:
        holdings = claims.apply(holdings, record)
    return holdings
