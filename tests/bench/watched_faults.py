"""Faults on real brokers that two pipelines watch: Tidemark's processes and the usual stack.

Tidemark runs as shipped: `collect`, Kafka, `stream`, `export`, a webhook. Its topics have one
replica, on broker 3, which no fault touches: that stands for a Kafka of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from tests.bench.usual_stack import JMX_RULES, UNDER_REPLICATED, UsualStack
from tests.jmx_agent import jmx_agent
from tests.parts import Parts
from tests.soak.first_posts import first_posts
from tests.soak.sampling import NEWEST_PASS, metric
from tidemark.core.errors import TidemarkError
from tidemark.jvm.jars import connector_jars
from tidemark.jvm.java import find_java
from tidemark.kafka.topics import topic_specifications
from tidemark.settings import load_settings
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.layout import CONTROLLER
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.brokers.ports import free_ports
from tidemark_lab.brokers.probe import Probe
from tidemark_lab.brokers.receiver import WebhookReceiver
from tidemark_lab.brokers.wait import comes_true, wait_until
from tidemark_lab.demo.services import FRESH_SECONDS, STEADY_SECONDS, Services
from tidemark_lab.demo.watched import as_received
from tidemark_lab.faults.fault import Fault
from tidemark_lab.faults.node_faults import Crash, Pause, SlowFollower
from tidemark_lab.judge.expected import open_alerts

TOPIC: Final = "orders"
PARTITIONS: Final = 12
LEADER, FOLLOWER, OWN_TOPICS = BROKERS
SEVERITIES: Final = ["critical", "warning"]
# Of the reference detector, as detectors of Tidemark are named.
CONDITIONS: Final = ("FOLLOWER_LAG", "BROKER_DOWN", "HW_STALLED", "UNDER_REPLICATED", "OFFLINE")
# For both pipelines to post. The usual stack needs about 40 s.
MESSAGE_SECONDS: Final = 90.0
# After both have posted, for further alerts.
AFTER_SECONDS: Final = 8.0
QUIET_SECONDS: Final = 120.0
# Of earlier faults; they remain for ten minutes or longer.
LASTING: Final = {"KafkaIsrChurn", "KafkaEpochBumpStorm", "KafkaLogTruncation"}
WHOLE_SECONDS: Final = 90.0
# Shorter than broker.session.timeout.ms: the follower is never fenced.
SLOW_STOPPED_SECONDS, SLOW_RUNNING_SECONDS = 5.0, 0.7


@dataclass(frozen=True)
class FaultKind:
    """A fault. `held_seconds`: it ends after this time, whoever has posted."""

    name: str
    make: Callable[[LocalCluster], Fault]
    broker: int
    held_seconds: float | None = None


PAUSED: Final = FaultKind("follower paused", lambda c: Pause(c, FOLLOWER), FOLLOWER)
KILLED: Final = FaultKind("follower killed", lambda c: Crash(c, FOLLOWER), FOLLOWER)
LEADER_KILLED: Final = FaultKind("leader killed", lambda c: Crash(c, LEADER), LEADER)
SLOW: Final = FaultKind(
    "follower slow, in sync",
    lambda c: SlowFollower(c, FOLLOWER, SLOW_STOPPED_SECONDS, SLOW_RUNNING_SECONDS),
    FOLLOWER,
    held_seconds=60.0,
)


@dataclass
class Outcome:
    """What was seen of one fault. Unix seconds; alert or condition -> its first moment."""

    fault: str
    began: float
    ended: float = 0.0
    detectable: dict[str, float] = field(default_factory=dict)
    tidemark: dict[str, float] = field(default_factory=dict)
    usual: dict[str, float] = field(default_factory=dict)


class WatchedCluster(Parts):
    """Brokers with agents and load, Tidemark's processes and a probe. A context manager."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder, self._runs = folder, 0

    def _start(self) -> None:
        nodes = (*BROKERS, CONTROLLER)
        ports = free_ports(len(nodes))
        self._targets = {node: f"127.0.0.1:{port}" for node, port in zip(nodes, ports, strict=True)}
        flags = {
            node: [jmx_agent(f"http://{target}/metrics", JMX_RULES)]
            for node, target in self._targets.items()
        }
        enter, java = self._stack.enter_context, find_java()
        self._cluster = enter(LocalCluster(self._folder / "kafka", java=java, jvm_flags=flags))
        self._hook = enter(WebhookReceiver())
        jars = str(connector_jars(java=java)[0].parent)
        self._services = Services(self._cluster, self._folder, self._hook.url, java, jars)
        self._configure()
        self._create_topics()
        places = [(TOPIC, number) for number in range(PARTITIONS)]
        enter(
            LoadProducer(self._cluster.bootstrap_servers, places, self._folder / "acks.jsonl", 200)
        )
        addresses = {broker: self._cluster.address(broker) for broker in BROKERS}
        self._probe = enter(Probe(addresses, TOPIC, 0, self._folder / "probe.jsonl"))
        self._stack.callback(self._services.stop)
        self._services.start(with_prometheus=False)
        self._services.wait_ready()

    def _configure(self) -> None:
        config = self._services.config
        document = yaml.safe_load(config.read_text(encoding="utf-8"))
        document["topics"] = {"replication_factor": 1, "min_in_sync_replicas": 1}
        document["notify"]["receivers"][0]["severities"] = SEVERITIES
        config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        self._services.settings = load_settings(config)

    def _create_topics(self) -> None:
        # The exporter's positions are there too.
        own = {"__consumer_offsets": (1, {"cleanup.policy": "compact"})}
        specified: Mapping[str, tuple[int, Mapping[str, str]]] = {
            **own,
            **topic_specifications(self._services.settings.topics),
        }
        for name, (partitions, configs) in specified.items():
            places = dict.fromkeys(range(partitions), (OWN_TOPICS,))
            self._cluster.create_topic(name, places, configs)
        assigned = dict.fromkeys(range(PARTITIONS), (LEADER, FOLLOWER))
        self._cluster.create_topic(TOPIC, assigned, {"min.insync.replicas": "1"})

    def run(self, kind: FaultKind) -> Outcome:
        """Injects and heals a fault, and waits until nothing is wrong again."""
        self._runs += 1
        self._wait_quiet()
        stack = UsualStack(self._folder / f"usual-{self._runs}", self._targets)
        fault = kind.make(self._cluster)
        with stack:
            outcome = Outcome(kind.name, time.time())
            try:
                fault.inject()
                self._hold(kind, outcome, stack)
            finally:
                outcome.ended = time.time()
                fault.heal()
        for condition in CONDITIONS:
            at = self._probe.first(condition, outcome.began)
            if at is not None and at <= outcome.ended:
                outcome.detectable[condition] = at
        self._make_whole()
        return outcome

    def _hold(self, kind: FaultKind, outcome: Outcome, stack: UsualStack) -> None:
        """Until both pipelines have posted, or for the fault's own time."""
        settled: float | None = None

        def both_have_posted() -> bool:
            nonlocal settled
            outcome.tidemark = first_posts(self._hook.alerts(), outcome.began)
            outcome.usual = first_posts(stack.firing(), outcome.began)
            if kind.held_seconds is None and outcome.tidemark and UNDER_REPLICATED in outcome.usual:
                settled = settled or time.monotonic()
            return settled is not None and time.monotonic() - settled > AFTER_SECONDS

        # Whoever has not posted by then is missing in the outcome.
        seconds = kind.held_seconds or MESSAGE_SECONDS
        comes_true(both_have_posted, seconds, check=self._services.check)

    def _make_whole(self) -> None:
        wait_until(lambda: self._cluster.is_whole([TOPIC]), WHOLE_SECONDS, "all replicas in sync")
        self._cluster.elect_preferred_leaders({TOPIC: list(range(PARTITIONS))})
        wait_until(
            lambda: self._cluster.all_partitions(TOPIC, lambda p: bool(p.leader_id == LEADER)),
            WHOLE_SECONDS,
            f"broker {LEADER} leads again",
        )

    def _wait_quiet(self) -> None:
        """Until no alert is open and passes are judged as they come: Spark is slow at first."""
        found: set[str] = set()
        age = math.inf
        since: float | None = None

        def is_quiet() -> bool:
            nonlocal found, age, since
            found = open_alerts(map(as_received, self._hook.alerts())) - LASTING
            newest = metric(self._services.listen, NEWEST_PASS)
            age = math.inf if newest is None else time.time() - newest
            since = None if found or age > FRESH_SECONDS else (since or time.monotonic())
            return since is not None and time.monotonic() - since >= STEADY_SECONDS

        if not comes_true(is_quiet, QUIET_SECONDS, check=self._services.check):
            print(f"  the machine is busy: the newest pass is {age:.1f} s old", flush=True)
            if found:
                raise TidemarkError(f"open before a fault: {', '.join(sorted(found))}")


def run_faults(folder: Path, kinds: list[FaultKind]) -> Iterator[Outcome]:
    with WatchedCluster(folder) as watched:
        for kind in kinds:
            yield watched.run(kind)
