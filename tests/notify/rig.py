"""A receiver of either kind over a log of alert records: simulated addresses, a clock, restarts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from hypothesis import strategies as st

from tests.export.make import NOW, alert, open_alert, view
from tidemark.core.identity import fingerprint
from tidemark.core.records import Alert, AlertState
from tidemark.core.text import utc
from tidemark.settings import Alertmanager, Cluster, Export, Notify, Receiver, Settings
from tidemark.settings.maintenance import Maintenance
from tidemark.web.webhook_client import NotDeliveredError
from tidemark_exporters.notify.delivery import make_delivery
from tidemark_exporters.notify.offsets import Commit
from tidemark_exporters.notify.receiver_state import ReceiverState
from tidemark_exporters.notify.retrying_sender import Sender

WEBHOOK, ALERTMANAGER = "webhook", "alertmanager"
DOWN = NotDeliveredError("HTTP 503", status=503)
UNAUTHORIZED = NotDeliveredError("HTTP 401", status=401)
REFUSED = NotDeliveredError("HTTP 400", status=400)
LOSS: dict[str, Any] = {
    "name": "KafkaCommittedDataLoss",
    "severity": "critical",
    "incident": "ab",
}

Transitions = list[tuple[str, str]]
# (partition, alert name) of each alert that fires, or resolves if it is open.
AlertSequence = list[tuple[str, str]]
Steps = list[tuple[str, int]]


def settings_of(*receivers: str) -> Settings:
    """A configuration with webhooks of these names, or one called hook."""
    urls = [Receiver(name=name, url="http://127.0.0.1:1/") for name in receivers or ("hook",)]
    return Settings(notify=Notify(receivers=urls))


class KilledError(BaseException):
    """The process died here."""


class Clock:
    """Unix seconds that do not change until moved."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class MemoryStore:
    """Commits that survive a restart of what uses them."""

    def __init__(self) -> None:
        self.commits: dict[int, Commit] = {}
        self.up = True

    def load(self) -> dict[int, Commit]:
        return dict(self.commits)

    def save(self, commits: dict[int, Commit]) -> bool:
        if self.up:
            self.commits = dict(commits)
        return self.up

    def close(self) -> None:
        self.up = False


class FakeWebhook:
    """Takes posts. Refuses all with `failure` while that is set, and those with `bad_partition`."""

    def __init__(self, clock: Clock, name: str = "hook") -> None:
        self.name = name
        self.clock = clock
        self.posts: list[Any] = []
        self.ids: list[str | None] = []
        # (fingerprint, state) of every transition that people are notified of, in order.
        self.notified: Transitions = []
        self.attempts = 0
        self.failure: BaseException | None = None
        self.bad_partition: str | None = None

    def post(self, body: bytes, message_id: str | None) -> None:
        self.attempts += 1
        if self.failure is not None:
            raise self.failure
        document = json.loads(body)
        bad = {"partition": self.bad_partition}.items()
        if any(bad <= each["labels"].items() for each in alerts_in(document)):
            raise NotDeliveredError("HTTP 400", status=400, text="invalid label set")
        self.posts.append(document)
        self.ids.append(message_id)
        self.take(alerts_in(document))

    def take(self, alerts: list[dict[str, Any]]) -> None:
        self.notified += [(each["fingerprint"], each["status"]) for each in alerts]

    @property
    def posted(self) -> list[dict[str, Any]]:
        """The alerts of all posts."""
        return [each for post in self.posts for each in alerts_in(post)]

    def sizes(self) -> list[int]:
        return [len(alerts_in(post)) for post in self.posts]

    def flush(self) -> None:
        pass


class FakeAlertmanager(FakeWebhook):
    """Keeps alerts by label set and ends them at endsAt. `restart` makes it forget the alerts."""

    def __init__(self, clock: Clock, name: str = "main/am:9093") -> None:
        super().__init__(clock, name)
        self.alerts: dict[str, dict[str, Any]] = {}

    def take(self, alerts: list[dict[str, Any]]) -> None:
        for each in alerts:
            assert seconds(each["startsAt"]) <= seconds(each["endsAt"])
            self.alerts[fingerprint(each["labels"])] = each
        self.flush()

    def flush(self) -> None:
        for mark, each in self.alerts.items():
            latest = next((s for known, s in reversed(self.notified) if known == mark), None)
            state = "firing" if seconds(each["endsAt"]) > self.clock.now else "resolved"
            if state != latest and (state == "firing" or latest == "firing"):
                self.notified.append((mark, state))

    def restart(self) -> None:
        self.alerts = {}

    def active(self) -> list[dict[str, Any]]:
        return [each for each in self.alerts.values() if seconds(each["endsAt"]) > self.clock.now]


def alerts_in(document: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["alerts"] if isinstance(document, dict) else document
    return found


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def transitions(alerts: Iterable[Alert]) -> Transitions:
    return [(each.fingerprint, each.state) for each in alerts]


def per_alert(pairs: Transitions) -> dict[str, list[str]]:
    """The states of each fingerprint, in order."""
    found: dict[str, list[str]] = {}
    for mark, state in pairs:
        found.setdefault(mark, []).append(state)
    return found


def episode(
    name: str = "KafkaFollowerLag", start: float = NOW, seconds: float = 5.0, **labels: Any
) -> list[Alert]:
    """An alert that fires and resolves."""
    end = start + seconds
    return [
        alert(name, at=start, starts_at=start - 3, **labels),
        alert(name, "resolved", at=end, starts_at=start - 3, reason="cleared", **labels),
    ]


def records(sequence: AlertSequence) -> list[Alert]:
    """In a row: an alert fires, and resolves when it comes again."""
    open_now: dict[tuple[str, str], float] = {}
    written = []
    for at, each in enumerate(sequence, start=int(NOW)):
        partition, name = each
        start = open_now.pop(each, None)
        state: AlertState = "firing" if start is None else "resolved"
        if start is None:
            start = open_now[each] = at
        written.append(alert(name, state, partition=partition, at=at, starts_at=start))
    return written


def random_sequences(partitions: str, *names: str) -> st.SearchStrategy[AlertSequence]:
    pairs = st.tuples(st.sampled_from(partitions), st.sampled_from(names))
    return st.lists(pairs, min_size=1, max_size=16)


def random_steps(**amounts: st.SearchStrategy[int]) -> st.SearchStrategy[Steps]:
    """Actions of `Rig.act`, each with an amount."""
    each = [st.tuples(st.just(name), amount) for name, amount in amounts.items()]
    return st.lists(st.one_of(each), max_size=30)


def window(start: float, end: float, **matchers: Any) -> Maintenance:
    return Maintenance(name="rack", start=utc(start), end=utc(end), **matchers)


class Rig:
    """One receiver of a kind as the exporter runs it, but for threads; passes flow.

    The stream asserts every open alert that was read, unless `asserts` is False.
    """

    def __init__(
        self,
        kind: str = WEBHOOK,
        *,
        instances: int = 1,
        windows: Iterable[Maintenance] = (),
        queue_size: int = 1000,
        heartbeat: bool = False,
        stale_seconds: float = 30.0,
        **options: Any,
    ) -> None:
        self.clock = Clock()
        self.store = MemoryStore()
        self.log: list[Alert] = []
        self.asserts = True
        # Alerts that views contain without a record in the log.
        self.unrecorded: list[Alert] = []
        # The newest pass; None: now.
        self.newest: float | None = None
        notify = Notify(
            queue_size=queue_size,
            external_url="http://tidemark.example/",
            maintenance=list(windows),
            heartbeat_receiver="main" if heartbeat else None,
        )
        self.settings = Settings(
            clusters=[Cluster(name="east")],
            export=Export(stale_seconds=stale_seconds),
            notify=notify,
        )
        self.addresses: list[Any]
        if kind == WEBHOOK:
            notify.receivers = [Receiver(name="main", url="http://127.0.0.1:1/", **options)]
            self.addresses = [FakeWebhook(self.clock, "main")]
        else:
            urls = [f"http://am-{number}:9093" for number in range(instances)]
            notify.alertmanagers = [Alertmanager(name="main", urls=urls, **options)]
            self.addresses = [FakeAlertmanager(self.clock, f"main/{url[7:]}") for url in urls]
        self.restart()

    @property
    def address(self) -> Any:
        return self.addresses[0]

    @property
    def sender(self) -> Sender:
        return self.delivery.senders[0]

    @property
    def state(self) -> ReceiverState:
        return self.sender._state

    @property
    def committed(self) -> int | None:
        """The committed offset."""
        return self.store.commits[0].offset if self.store.commits else None

    def restart(self) -> None:
        """As after kill -9: only the commits are left."""
        self.delivery = make_delivery(
            self.settings,
            {"main": self.addresses},
            {0: 1_000_000},
            lambda *_: self.store,
            self.clock,
        )
        self.reads = 0

    def write(self, *alerts: Alert) -> None:
        self.log.extend(alerts)

    def read(self, count: int | None = None) -> None:
        """The reader hands on the next records."""
        records = self.log[self.reads :][:count]
        self.delivery.alerts([(each, (0, self.reads + i)) for i, each in enumerate(records)])
        self.reads += len(records)

    def step(self, passed: float = 1.0) -> None:
        """Time passes, then all due alerts are posted and committed."""
        self.clock.now += passed
        newest = {each.fingerprint: each for each in self.log[: self.reads]}.values()
        asserted = [each for each in newest if self.asserts and each.state != "resolved"]
        in_views = [open_alert(each) for each in (*asserted, *self.unrecorded)]
        self.delivery.view(view(at=self.clock.now, alerts=in_views))
        pass_at = self.clock.now if self.newest is None else self.newest
        self.delivery.tick({"east": pass_at}, lambda: in_views)
        self.post()

    def post(self) -> None:
        """Posts and commits all that is due."""
        for address, fake in zip(self.sender.addresses, self.addresses, strict=True):
            self.sender.post_due(address)
            fake.flush()
        self.sender.commit()

    def run(self, whole_seconds: int) -> None:
        for _ in range(whole_seconds):
            self.step()

    @contextmanager
    def failing(self, failure: BaseException) -> Iterator[None]:
        """The first address fails meanwhile."""
        self.address.failure = failure
        yield
        self.address.failure = None

    def silence_readers(self, whole_seconds: int) -> None:
        """Posts and commits go on, the readers do not tick."""
        for _ in range(whole_seconds):
            self.clock.now += 1
            self.post()

    def act(self, action: str, amount: int) -> None:
        """One step of a random run."""
        match action:
            case "read":
                self.read(amount)
            case "run":
                self.step(amount)
            case "restart":
                self.restart()
            case "repeat":
                # The stream repeats the end of what it wrote.
                self.write(*self.log[-amount:])
            case "forget":
                self.addresses[amount].restart()
            case _:
                failures = {"down": DOWN, "refuse": REFUSED}
                self.addresses[amount].failure = failures.get(action)
                self.addresses[amount].bad_partition = "3" if action == "picky" else None

    def deliver_at_once(self, *alerts: Alert) -> None:
        """Writes, reads and posts before any time passes."""
        self.write(*alerts)
        self.read()
        self.post()

    def deliver(self, *alerts: Alert, after: int = 3) -> None:
        """Writes and reads, and lets enough time pass for a group to be due."""
        self.write(*alerts)
        self.read()
        self.run(after)
