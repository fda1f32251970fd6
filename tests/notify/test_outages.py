"""A webhook that fails for a while, in each way that receivers do: nothing is lost or repeated.

The sender, its threads and its HTTP client are those of `tidemark export`, over real sockets; only
Kafka is missing. tests/delivery has the same with all of it, and for two minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.delivery.webhook import KINDS, Kind, Webhook
from tests.export.make import alert, cluster_view, open_alert
from tests.notify.rig import MemoryStore
from tidemark.core.records import Alert
from tidemark.settings import Cluster, Notify, Receiver, Settings
from tidemark.web.webhook_client import make_clients
from tidemark_exporters.notify import address
from tidemark_exporters.notify.delivery import Delivery, make_delivery

DOWN_SECONDS = 0.4
LIMIT_SECONDS = 20.0
# Of a post. A post that was taken and timed out would be repeated: a busy machine is given time.
HANG_SECONDS, TIMEOUT_SECONDS = 1.0, 10.0
ATTEMPTS = 2


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with closing(Webhook()) as hook:
        yield hook


class Exporter:
    """The delivery to a webhook; time passes in `run`."""

    def __init__(self, url: str, timeout_seconds: float) -> None:
        receiver = Receiver(name="hook", url=url, timeout_seconds=timeout_seconds)
        notify = Notify(receivers=[receiver], gather_seconds=0.05)
        settings = Settings(clusters=[Cluster(name="east")], notify=notify)
        clients = {"hook": make_clients(receiver)}
        self.store = MemoryStore()
        self.delivery: Delivery = make_delivery(
            settings, clients, {0: 1_000_000}, lambda *_: self.store, time.time
        )
        self.delivery.start()
        self.attempts = 0
        self._open: dict[str, Alert] = {}
        self.written = 0
        self.expected: list[tuple[str, str]] = []

    def write(self, *alerts: Alert) -> None:
        """Records of the alerts topic. One that was written before is a repetition."""
        records = []
        for each in alerts:
            if (each.fingerprint, each.state) not in self.expected:
                self.expected.append((each.fingerprint, each.state))
            if each.state == "resolved":
                self._open.pop(each.fingerprint, None)
            else:
                self._open[each.fingerprint] = each
            records.append((each, (0, self.written)))
            self.written += 1
        self.delivery.alerts(records)

    def run(self, seconds: float, until: Callable[[], bool] | None = None) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not (until is not None and until()):
            now = time.time()
            in_views = [open_alert(each) for each in self._open.values()]
            self.delivery.view(cluster_view(at=now))
            self.delivery.tick({"east": now}, lambda views=in_views: views)  # type: ignore[misc]
            for each in self.delivery.senders[0].report().addresses:
                self.attempts += each.attempts["again"]
            time.sleep(0.02)


def fired(number: int, name: str = "KafkaFollowerLag", **options: Any) -> Alert:
    now = time.time()
    return alert(name, at=now, starts_at=now - 3, partition=str(number), **options)


def resolved(number: int) -> Alert:
    now = time.time()
    return alert(
        "KafkaFollowerLag",
        "resolved",
        at=now,
        starts_at=now - 3,
        reason="cleared",
        partition=str(number),
    )


def outage(webhook: Webhook, kind: Kind, seconds: float) -> None:
    exporter = Exporter(webhook.url, HANG_SECONDS if kind == "hang" else TIMEOUT_SECONDS)

    def received() -> list[tuple[str, str]]:
        return [(each.fingerprint or "", each.status) for each in webhook.alerts()]

    def everything() -> bool:
        return set(received()) >= set(exporter.expected)

    try:
        exporter.write(fired(0), fired(1))
        exporter.run(LIMIT_SECONDS, everything)
        assert sorted(received()) == sorted(exporter.expected)
        webhook.down(kind)
        assert webhook.fails()
        loss = fired(3, "KafkaCommittedDataLoss", severity="critical", incident="ab")
        # One ends, one comes and goes, one is urgent and repeated, one stays, one is the last.
        exporter.write(resolved(0), fired(2), loss)
        exporter.run(seconds / 2)
        exporter.write(resolved(2), loss, fired(4))
        exporter.run(seconds / 2)
        exporter.write(fired(5))
        exporter.run(LIMIT_SECONDS, lambda: exporter.attempts >= ATTEMPTS)
        assert exporter.attempts >= ATTEMPTS, "it did not try again"
        assert webhook.fails()
        assert sorted(received()) == sorted(exporter.expected[:2])
        webhook.up()
        exporter.run(LIMIT_SECONDS, everything)
        # A repetition would arrive.
        exporter.run(0.4)
        assert sorted(received()) == sorted(exporter.expected)
        # The loss does not wait behind the others.
        assert received()[2] == (loss.fingerprint, "firing")
        order = [pair for pair in received() if pair[0] == fired(2).fingerprint]
        assert [state for _, state in order] == ["firing", "resolved"]
        assert not webhook.was_redirected()
    finally:
        exporter.delivery.stop(5.0)
    assert exporter.store.commits[0].offset == exporter.written


@pytest.mark.parametrize("kind", KINDS)
def test_after_an_outage_everything_arrives_once(
    kind: Kind, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "FIRST_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(address, "LONGEST_WAIT_SECONDS", 0.1)
    outage(webhook, kind, DOWN_SECONDS)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["302", "401", "404"])
def test_after_two_minutes_everything_arrives_once(kind: Kind, webhook: Webhook) -> None:
    outage(webhook, kind, 120.0)
