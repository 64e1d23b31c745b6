"""What goes by itself: events, an hour after they were made."""

from __future__ import annotations

from dradriver.lab.apiserver import kinds, storage


def test_events_expire_after_an_hour() -> None:
    now = 0.0
    uids = iter("abc")
    store = storage.Store(lambda: now, lambda: next(uids))
    store.create(kinds.NAMESPACE, {"metadata": {"name": "default"}})
    store.create(kinds.EVENT, {"metadata": {"name": "old", "namespace": "default"}})
    now = 1800.0
    store.create(kinds.EVENT, {"metadata": {"name": "new", "namespace": "default"}})
    now = 3601.0
    store.sweep()
    assert [key for key, _ in store.items(kinds.EVENT)[0]] == [("default", "new")]
