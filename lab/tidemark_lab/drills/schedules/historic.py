"""Drills of Kafka before and after KIP-101: how a follower truncates when it starts.

Before 0.11 it truncates to its own high watermark, which trails and may come from an old
checkpoint. That takes a power failure which the controller does not see: with one alive, a dead
replica leaves the in-sync set. So broker 3, the controller to be, is stopped first; it starts
before the replicas, and is paused until both are registered: it must see them together.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.replica_logs import read_replicas
from tidemark_lab.brokers.zookeeper import registered_brokers
from tidemark_lab.drills.drill import Drill, Step, Topic
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.drills.steps import (
    alert,
    busy,
    crash,
    heal,
    idle,
    inject,
    led_by,
    load,
    passes,
    wait,
    whole,
)
from tidemark_lab.faults.disk_faults import PageCacheLoss
from tidemark_lab.faults.fault import Fault
from tidemark_lab.faults.node_faults import ControlledRestart
from tidemark_lab.judge.expected import Expected

TRUNCATES: Final = "0.10.2.2"
ASKS: Final = "0.11.0.3"
_VERSIONS: Final = (TRUNCATES, ASKS)
_CONTROLLER, _FIRST, _SECOND = "stop broker 3", "kill broker 1", "kill broker 2"
_BOTH, _AGAIN = "lose power on both replicas", "kill broker 1 again"
# ZooKeeper's: the paused controller must keep its session while two brokers start.
_SESSIONS: Final = {3: {"zookeeper.session.timeout.ms": "60000"}}
_SECONDS: Final = 90.0
_CHECKPOINT_SECONDS: Final = 120.0
_AUDIT_SECONDS: Final = 120.0
# No difference, and some.
_AUDITED: Final = (0, 3)


def _registered(stage: Stage, *brokers: int) -> bool:
    return {*brokers} <= (registered_brokers(stage.cluster.controller_address) or set())


def _none_registered(stage: Stage) -> bool:
    return registered_brokers(stage.cluster.controller_address) == set()


def _audit(stage: Stage) -> None:
    """`tidemark audit` of the topic, as an operator runs it: every offset of all replicas.

    Raises ClusterError where it compares nothing.
    """
    servers = ",".join(stage.cluster.bootstrap_servers)
    command = [sys.executable, "-m", "tidemark.cli", "audit", TOPIC, "--whole", "--json"]
    try:
        ran = subprocess.run(
            [*command, "--bootstrap", servers],
            capture_output=True,
            text=True,
            timeout=_AUDIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"tidemark audit took longer than {_AUDIT_SECONDS:.0f} s.") from None
    if ran.returncode not in _AUDITED:
        raise ClusterError(f"tidemark audit ended with {ran.returncode}: {ran.stderr.strip()}")
    stage.differences = int(json.loads(ran.stdout)["differences"])


def _has_checkpoint(stage: Stage) -> bool:
    found = read_replicas(stage.cluster.log_directory(2), stage.places)
    return bool(found) and all((replica.high_watermark or 0) > 0 for replica in found.values())


class _HiddenPowerFailure(Fault):
    """Both replicas lose power. They return while the controller is paused, which elects broker 1.

    Broker 2 becomes its follower, and broker 1 answers nothing.
    """

    name = "power failure that the controller does not see"
    brokers = (1, 2)
    deadline_seconds = _SECONDS

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def inject(self) -> None:
        for broker in self.brokers:
            self._stage.cluster.kill_broker(broker)

    def heal(self) -> None:
        cluster = self._stage.cluster
        cluster.pause_broker(3)
        try:
            for broker in self.brokers:
                cluster.start_broker(broker)
            self._wait(lambda: _registered(self._stage, 1, 2), "both are registered")
            cluster.pause_broker(1)
        finally:
            cluster.resume_broker(3)


_POWER_FAILURE = (
    inject(_CONTROLLER, lambda stage: ControlledRestart(stage.cluster, 3)),
    wait("broker 3 has left", lambda stage: not _registered(stage, 3)),
)

HW_TRUNCATION_LOSS: Final = Drill(
    name="hw-truncation-loss",
    shows="A follower truncates to its old high watermark and is elected: no unclean election.",
    versions=_VERSIONS,
    topic=Topic((1, 2)),
    # The brokers write their checkpoint once, and lose power before they write it again.
    overrides={"replica.high.watermark.checkpoint.interval.ms": "60000"},
    broker_overrides=_SESSIONS,
    steps=(
        wait("broker 2 writes its checkpoint", _has_checkpoint, _CHECKPOINT_SECONDS),
        load(3),
        idle(),
        *_POWER_FAILURE,
        inject(_BOTH, _HiddenPowerFailure),
        wait("every session has ended", _none_registered, _SECONDS),
        heal(_CONTROLLER),
        heal(_BOTH),
        wait("broker 1 leads", led_by(1), _SECONDS),
        load(3),
        crash(_AGAIN, 1),
        wait("broker 2 leads", led_by(2), _SECONDS),
        passes(4),
        wait("brokers can start again", lambda stage: not _registered(stage, 1), _SECONDS),
        heal(_AGAIN),
        whole(),
        busy(),
        load(3),
        passes(4),
    ),
    lost={TRUNCATES: "some"},
    # Without topic ids, a log that is shorter everywhere may be that of a new topic: a suspicion.
    expected=(Expected("LOSS_RISK", _AGAIN, "warning", versions=(TRUNCATES,)),),
    allowed=("OFFLINE", "UNCLEAN_ELECTION", "COMMITTED_DATA_LOSS"),
)

HW_TRUNCATION_DIVERGENCE: Final = Drill(
    name="hw-truncation-divergence",
    shows="Two logs end alike and differ within, unseen by any offset: `tidemark audit` finds it.",
    versions=_VERSIONS,
    topic=Topic((1, 2)),
    overrides={"replica.high.watermark.checkpoint.interval.ms": "1000"},
    broker_overrides=_SESSIONS,
    steps=(
        load(4),
        idle(),
        *_POWER_FAILURE,
        crash(_FIRST, 1),
        inject(_SECOND, lambda stage: PageCacheLoss(stage.cluster, 2, stage.places, 20)),
        wait("every session has ended", _none_registered, _SECONDS),
        heal(_CONTROLLER),
        wait("broker 3 serves", lambda stage: stage.cluster.is_ready(3), _SECONDS),
        alert("OFFLINE"),
        heal(_SECOND),
        wait("broker 2 leads", led_by(2), _SECONDS),
        passes(4),
        busy(),
        load(6),
        idle(),
        heal(_FIRST),
        whole(),
        passes(4),
        Step("tidemark audit", _audit),
    ),
    lost="some",
    diverged=(TRUNCATES,),
    audited=True,
    allowed=("OFFLINE", "UNCLEAN_ELECTION", "COMMITTED_DATA_LOSS"),
    expected=(Expected("OFFLINE", _FIRST, "critical"),),
)
