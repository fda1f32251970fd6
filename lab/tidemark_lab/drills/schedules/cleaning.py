"""Drills of records that are removed in good order: no loss is claimed, and no alert fires."""

from __future__ import annotations

from typing import Final

from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.brokers.replica_logs import log_start_offset, read_checkpoint, read_log
from tidemark_lab.drills.drill import Drill, Step, Topic
from tidemark_lab.drills.schedules.historic import TRUNCATES
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.drills.steps import (
    acknowledged_since,
    heal,
    inject,
    load,
    passes,
    wait,
    whole,
)
from tidemark_lab.faults.topic_faults import Compaction, Recreation, RetentionShrink
from tidemark_lab.judge.expected import Expected

_CLAIMS: Final = ("COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION", "DIVERGENCE", "OFFLINE")
_QUIET: Final = (*_CLAIMS, "LOSS_RISK")
# Before 2.8; before 0.11 there are no leader epochs either.
_WITHOUT_TOPIC_IDS: Final = ("2.6.3", TRUNCATES)
_PLACE: Final[Place] = (TOPIC, 0)
_FAST: Final = {
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "500",
    "log.cleaner.backoff.ms": "500",
    "file.delete.delay.ms": "1000",
}
_RECREATE, _SHRINK, _COMPACT = "recreate the topic", "shrink the retention", "compact the log"
_SECONDS: Final = 40.0


def _recreate(stage: Stage) -> Recreation:
    topic = TOPIC_RECREATION.topic
    return Recreation(stage.cluster, TOPIC, topic.assignments, topic.all_configs)


TOPIC_RECREATION: Final = Drill(
    name="topic-recreation",
    shows="A topic is deleted and created again: its log starts over, and no loss is claimed.",
    # Without topic ids, and without leader epochs, too.
    versions=(KAFKA_VERSION, *_WITHOUT_TOPIC_IDS),
    steps=(
        load(4),
        inject(_RECREATE, _recreate),
        heal(_RECREATE),
        wait("the new topic takes records", acknowledged_since(_RECREATE, 50)),
        whole(),
        load(3),
        passes(6),
    ),
    recreated_by=_RECREATE,
    # A warning that says: created again, or lost. Nothing shows which.
    expected=(Expected("LOSS_RISK", _RECREATE, "warning", versions=_WITHOUT_TOPIC_IDS),),
    forbidden=_CLAIMS,
    quiet=True,
)


def _log_starts_have_moved(stage: Stage) -> bool:
    folders = (stage.cluster.log_directory(broker) for broker in (1, 2, 3))
    return all((log_start_offset(folder, _PLACE) or 0) > 0 for folder in folders)


RETENTION: Final = Drill(
    name="retention",
    shows="Retention deletes old segments: the log start moves in steps, and no loss is claimed.",
    overrides=_FAST,
    steps=(
        load(3),
        inject(_SHRINK, lambda stage: RetentionShrink(stage.cluster, [_PLACE], 0.0)),
        wait("every replica deletes segments", _log_starts_have_moved, _SECONDS),
        load(3),
        heal(_SHRINK),
        load(1),
        passes(5),
    ),
    forbidden=_QUIET,
    quiet=True,
)


def _is_compacted(stage: Stage) -> bool:
    """Whether offsets above the log start are gone in every replica's log."""
    for broker in (1, 2, 3):
        ids = read_log(stage.cluster.log_directory(broker), _PLACE) or {}
        if not ids or len(ids) == max(ids) + 1:
            return False
    return True


def _cleaned_up_to(stage: Stage) -> int:
    file = stage.cluster.log_directory(1) / "cleaner-offset-checkpoint"
    return read_checkpoint(file).get(_PLACE, 0)


def _find_cleaner_checkpoint(stage: Stage) -> None:
    """Kafka writes it after it has swapped the segments."""
    stage.reaches(lambda stage: _cleaned_up_to(stage) > 0, _SECONDS)
    found = _cleaned_up_to(stage)
    text = f"the leader's log is cleaned up to {found}"
    stage.show("cleaner-offset-checkpoint", text, holds=found > 0)


COMPACTION: Final = Drill(
    name="compaction",
    shows="The cleaner removes records with newer values: offsets disappear, nothing is claimed.",
    topic=Topic(configs={"cleanup.policy": "compact"}),
    overrides=_FAST,
    steps=(
        load(3),
        inject(_COMPACT, lambda stage: Compaction(stage.cluster, [_PLACE], 0.0)),
        wait("every replica is compacted", _is_compacted, _SECONDS),
        Step("read the cleaner's checkpoint", _find_cleaner_checkpoint),
        load(2),
        heal(_COMPACT),
        passes(5),
    ),
    compacted=True,
    forbidden=_QUIET,
    quiet=True,
)
