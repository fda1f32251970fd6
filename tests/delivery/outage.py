"""Two real minutes without receivers: alerts fire, change and resolve meanwhile.

A webhook and an Alertmanager refuse connections. `tidemark export` is a process of its own and
reads real topics; everything else here surrounds it: the stream that writes, the receivers.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import structs

from tests.delivery.alertmanager import RealAlertmanager, wait_for
from tests.delivery.exporter import Exporter, Stream, happened, settings_for
from tests.export.make import cluster_view, open_alert, view
from tidemark.core.records import Alert
from tidemark.local.cluster import LocalCluster
from tidemark.local.receiver import ReceivedAlert, WebhookReceiver
from tidemark.settings import Alertmanager, Receiver

DOWN_SECONDS = 120.0
# Retries are five seconds apart. An alert that fired and resolved during the outage resolves at
# Alertmanager half a minute after its delivery.
TOLD_SECONDS = 60.0
# A repetition would have come: by that end everything was posted to Alertmanager again.
AFTER_SECONDS = 6.0
# A message for each alert, so that a repetition shows.
DOCUMENT_ROUTE = {
    "receiver": "hook",
    "group_by": ["..."],
    "group_wait": "0s",
    "group_interval": "1s",
    "repeat_interval": "4h",
}

Told = list[tuple[str, str]]


class Webhook:
    """A receiver whose port is its own also while nobody listens there."""

    def __init__(self) -> None:
        self._port = socket.socket()
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port.bind(("127.0.0.1", 0))
        self.port = int(self._port.getsockname()[1])
        self._lives: list[WebhookReceiver] = []
        self.up()

    @property
    def url(self) -> str:
        return self._lives[0].url

    def up(self) -> None:
        self._lives.append(WebhookReceiver(self.port).__enter__())

    def down(self) -> None:
        self._lives[-1].__exit__(None, None, None)

    def refuses(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except ConnectionRefusedError:
            return True
        return False

    def alerts(self) -> list[ReceivedAlert]:
        return [each for life in self._lives for each in life.alerts()]

    def close(self) -> None:
        self.down()
        self._port.close()


def ended(alert: Alert) -> Alert:
    now = time.time()
    state_id = alert.id.replace("firing", "resolved")
    return structs.replace(
        alert, id=state_id, state="resolved", ends_at=now, at=now, reason="cleared"
    )


def told(alerts: list[ReceivedAlert], names: dict[str, str]) -> Told:
    """(name in the story, state) of every alert of a receiver, in the order in which they came."""
    return [(names[each.labels["partition"]], each.status) for each in alerts]


class Outage:
    """Begins when it is entered; `over` waits for its end. `figures`: what was measured."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self._folder = folder
        self._settings = settings_for(cluster, "outage")
        self._alerts: dict[str, Alert] = {}
        self._open: dict[str, Alert] = {}
        self._stopped = threading.Event()
        self.figures: dict[str, float] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.direct = Webhook()
            stack.callback(self.direct.close)
            self.behind = stack.enter_context(WebhookReceiver())
            document = {
                "route": DOCUMENT_ROUTE,
                "receivers": [{"name": "hook", "webhook_configs": [{"url": self.behind.url}]}],
            }
            self._manager = stack.enter_context(
                RealAlertmanager(self._folder, self.behind.url, document)
            )
            self._settings.notify.receivers = [Receiver(name="hook", url=self.direct.url)]
            self._settings.notify.alertmanagers = [
                Alertmanager(name="main", urls=[self._manager.url])
            ]
            self._stream = Stream(self._settings)
            stack.callback(self._stream.close)
            self._pass()
            self._exporter = Exporter(self._settings, self._folder)
            stack.callback(self._exporter.process.wait, 10)
            stack.callback(self._exporter.process.kill)
            threads = stack.enter_context(ThreadPoolExecutor(1, "outage"))
            stack.callback(self._stopped.set)
            self._done: Future[None] = threads.submit(self._play)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def over(self) -> None:
        """Raises what went wrong meanwhile."""
        self._done.result()

    def told(self) -> dict[str, Told]:
        """By way of delivery."""
        names = {alert.labels["partition"]: name for name, alert in self._alerts.items()}
        return {
            "webhook": told(self.direct.alerts(), names),
            "Alertmanager": told(list(self.behind.alerts()), names),
        }

    def expected(self) -> Told:
        """Each alert once, and once the end of those that ended."""
        return sorted(
            [(name, "firing") for name in self._alerts]
            + [(n, "resolved") for n in self._alerts if n not in self._open]
        )

    def complete(self) -> bool:
        return all(set(found) >= set(self.expected()) for found in self.told().values())

    def words(self, name: str) -> set[str]:
        """The descriptions with which the webhook was told of an alert."""
        mark = self._alerts[name].fingerprint
        return {
            each.annotations["description"]
            for each in self.direct.alerts()
            if each.fingerprint == mark
        }

    def _play(self) -> None:
        self._fire("ends during the outage")
        self._fire("stays")
        self._until(
            lambda: len(self.direct.alerts()) == len(list(self.behind.alerts())) == 2,
            30.0,
            "both are told before the outage",
        )
        self.direct.down()
        self._manager.stop()
        began = time.monotonic()
        assert self.direct.refuses()
        for second, act in self._story():
            self._passes(began + second)
            act()
        self._passes(began + DOWN_SECONDS)
        self._measure()
        assert self.direct.refuses()
        self.figures["down seconds"] = time.monotonic() - began
        self.direct.up()
        returned = time.monotonic()
        self._until(
            lambda: set(self.told()["webhook"]) >= set(self.expected()),
            TOLD_SECONDS,
            "the webhook gets everything",
        )
        self.figures["webhook: seconds after its return"] = time.monotonic() - returned
        self._manager.start()
        returned = time.monotonic()
        self._until(self.complete, TOLD_SECONDS, "Alertmanager gets everything")
        self.figures["Alertmanager: seconds after its return"] = time.monotonic() - returned
        self._passes(time.monotonic() + AFTER_SECONDS)

    def _story(self) -> list[tuple[float, Callable[[], None]]]:
        """What happens at which second of the outage."""
        return [
            (5, lambda: self._end("ends during the outage")),
            (10, lambda: self._fire("changes")),
            (20, lambda: self._change("changes")),
            (30, lambda: self._fire("comes and goes")),
            (
                40,
                lambda: self._fire(
                    "election", "KafkaUncleanElection", severity="critical", incident="a1"
                ),
            ),
            (
                41,
                lambda: self._fire(
                    "loss", "KafkaCommittedDataLoss", severity="critical", incident="b1"
                ),
            ),
            (60, lambda: self._end("comes and goes")),
            # The stream writes at least once.
            (
                70,
                lambda: self._stream.write(
                    self._alerts["changes"], self._alerts["loss"], self._open["loss"]
                ),
            ),
            (
                90,
                lambda: self._fire(
                    "second loss", "KafkaCommittedDataLoss", severity="critical", incident="b2"
                ),
            ),
            (118, lambda: self._fire("last moment")),
        ]

    def _measure(self) -> None:
        for name, series in {
            "failed attempts": 'attempts_total{outcome="again",receiver="hook"}',
            "alerts that wait": 'queue_length{receiver="hook"}',
            "seconds that the oldest waits": 'oldest_seconds{receiver="hook"}',
        }.items():
            found = self._exporter.metric(f"tidemark_delivery_{series}")
            self.figures[f"webhook: {name}"] = found or 0.0

    def _fire(self, name: str, alertname: str = "KafkaFollowerLag", **labels: str) -> None:
        self._alerts[name] = self._open[name] = happened(len(self._alerts), alertname, **labels)
        self._stream.write(self._open[name])

    def _change(self, name: str) -> None:
        alert = self._open[name]
        self._open[name] = structs.replace(
            alert, annotations={**alert.annotations, "description": "Newer words."}
        )
        self._stream.write(
            structs.replace(
                self._open[name], id=f"{alert.id}.update", state="update", at=time.time()
            )
        )

    def _end(self, name: str) -> None:
        self._stream.write(ended(self._open.pop(name)))

    def _pass(self) -> None:
        """What the stream writes of a pass: the cluster, and the partitions with open alerts."""
        now = time.time()
        held = [
            view(partition=int(each.labels["partition"]), at=now, alerts=[open_alert(each)])
            for each in self._open.values()
        ]
        self._stream.write(cluster_view(at=now), *held)

    def _passes(self, until: float) -> None:
        """Passes flow until that moment (monotonic), a second apart."""
        while (left := until - time.monotonic()) > 0:
            self._pass()
            assert not self._stopped.wait(min(1.0, left)), "the tests ended before the outage"

    def _until(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        def look() -> bool:
            self._passes(time.monotonic() + 0.5)
            return condition()

        wait_for(look, seconds, what)
