"""Two real minutes without receivers: alerts fire, change and resolve meanwhile.

An Alertmanager refuses connections, and a webhook fails in one way. `tidemark export` is a process
of its own and reads real topics, to which this module writes as the stream does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

from msgspec import structs

from tests.delivery.exporter import Exporter, Stream, fired_now, resolved_now, settings_for
from tests.delivery.services import RealAlertmanager, wait_for
from tests.delivery.webhook import Kind, Webhook
from tests.export.make import cluster_view, open_alert, view
from tidemark.core.records import Alert
from tidemark.settings import Alertmanager, Receiver
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.receiver import WebhookReceiver

DOWN_SECONDS = 120.0
# Retries are five seconds apart. An alert that fired and resolved during the outage resolves at
# Alertmanager half a minute after its delivery.
DELIVERY_SECONDS = 60.0
# Longer than until the next post of everything to Alertmanager: a repetition would arrive.
AFTER_SECONDS = 6.0
# A message for each alert makes a repetition visible.
DOCUMENT_ROUTE = {
    "receiver": "hook",
    "group_by": ["..."],
    "group_wait": "0s",
    "group_interval": "1s",
    "repeat_interval": "4h",
}

# (name in the timeline, state) of alerts in the order of arrival.
Delivered = list[tuple[str, str]]


class Outage:
    """Begins at once, in a thread. `figures`: durations and metrics by name."""

    def __init__(
        self, stack: ExitStack, cluster: LocalCluster, folder: Path, kind: Kind = "refuse"
    ) -> None:
        self.kind = kind
        self._alerts: dict[str, Alert] = {}
        self._open: dict[str, Alert] = {}
        self._stopped = threading.Event()
        self.figures: dict[str, float] = {}
        self.direct = stack.enter_context(closing(Webhook()))
        self.behind = stack.enter_context(WebhookReceiver())
        document = {
            "route": DOCUMENT_ROUTE,
            "receivers": [{"name": "hook", "webhook_configs": [{"url": self.behind.url}]}],
        }
        self._manager = stack.enter_context(RealAlertmanager(folder, self.behind.url, document))
        settings = settings_for(cluster, f"outage-{kind}")
        settings.notify.receivers = [Receiver(name="hook", url=self.direct.url)]
        settings.notify.alertmanagers = [Alertmanager(name="main", urls=[self._manager.url])]
        self._stream = stack.enter_context(closing(Stream(settings)))
        self._pass()
        self._exporter = stack.enter_context(closing(Exporter(settings, folder)))
        threads = stack.enter_context(ThreadPoolExecutor(1, "outage"))
        stack.callback(self._stopped.set)
        self._done: Future[None] = threads.submit(self._play)

    def wait(self) -> None:
        """Waits for the end of the outage. Raises the error that ended it, if any."""
        self._done.result()

    def delivered(self) -> dict[str, Delivered]:
        """Every alert of each path, in the order of arrival."""
        names = {alert.labels["partition"]: name for name, alert in self._alerts.items()}
        received = {"webhook": self.direct.alerts(), "Alertmanager": list(self.behind.alerts())}
        return {
            path: [(names[each.labels["partition"]], each.status) for each in alerts]
            for path, alerts in received.items()
        }

    def expected(self) -> Delivered:
        """Each alert once, and once the resolution of each resolved one."""
        return sorted(
            [(name, "firing") for name in self._alerts]
            + [(n, "resolved") for n in self._alerts if n not in self._open]
        )

    def is_complete(self, *paths: str) -> bool:
        """Whether everything expected was delivered on these paths."""
        return all(set(self.delivered()[path]) >= set(self.expected()) for path in paths)

    def descriptions(self, name: str) -> set[str]:
        """The descriptions of an alert that the webhook received."""
        fingerprint = self._alerts[name].fingerprint
        return {
            each.annotations["description"]
            for each in self.direct.alerts()
            if each.fingerprint == fingerprint
        }

    def _play(self) -> None:
        self._fire("ends during the outage")
        self._fire("stays")
        self._until(
            lambda: len(self.direct.alerts()) == len(list(self.behind.alerts())) == 2,
            30.0,
            "both are delivered before the outage",
        )
        self.direct.down(self.kind)
        self._manager.stop()
        began = time.monotonic()
        assert self.direct.fails()
        for second, act in self._timeline():
            self._passes(began + second)
            act()
        self._passes(began + DOWN_SECONDS)
        self._measure()
        assert self.direct.fails()
        self.figures["down seconds"] = time.monotonic() - began
        self.direct.up()
        returned = time.monotonic()
        self._until(
            lambda: self.is_complete("webhook"),
            DELIVERY_SECONDS,
            "the webhook gets everything",
        )
        self.figures["webhook: seconds after its return"] = time.monotonic() - returned
        self._manager.start()
        returned = time.monotonic()
        self._until(
            lambda: self.is_complete("webhook", "Alertmanager"),
            DELIVERY_SECONDS,
            "Alertmanager gets everything",
        )
        self.figures["Alertmanager: seconds after its return"] = time.monotonic() - returned
        self._passes(time.monotonic() + AFTER_SECONDS)

    def _timeline(self) -> list[tuple[float, Callable[[], None]]]:
        """Actions by the second of the outage."""
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
        self._alerts[name] = self._open[name] = fired_now(len(self._alerts), alertname, **labels)
        self._stream.write(self._open[name])

    def _change(self, name: str) -> None:
        alert = self._open[name]
        self._open[name] = structs.replace(
            alert, annotations={**alert.annotations, "description": "A newer description."}
        )
        self._stream.write(
            structs.replace(
                self._open[name], id=f"{alert.id}.update", state="update", at=time.time()
            )
        )

    def _end(self, name: str) -> None:
        self._stream.write(resolved_now(self._open.pop(name)))

    def _pass(self) -> None:
        """Writes the views of a pass: the cluster, and the partitions with open alerts."""
        now = time.time()
        held = [
            view(partition=int(each.labels["partition"]), at=now, alerts=[open_alert(each)])
            for each in self._open.values()
        ]
        self._stream.write(cluster_view(at=now), *held)

    def _passes(self, until: float) -> None:
        """Writes passes until that moment (monotonic), a second apart."""
        while (left := until - time.monotonic()) > 0:
            self._pass()
            assert not self._stopped.wait(min(1.0, left)), "the tests ended before the outage"

    def _until(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        wait_for(condition, seconds, what, lambda: self._passes(time.monotonic() + 0.5))
