"""Which consumer groups a loss reaches, asked once, for `inspect --losses` and `timeline`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kafka import TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import OffsetSpec

from tidemark.assess.losses import Loss
from tidemark.assess.lost_reads import STANDINGS, GroupReach, judge_commit
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.text import counted, table
from tidemark.kafka.client import choose_connection, make_admin, reason_of
from tidemark.settings import Connection, Settings

# A cluster may have thousands; each is asked alone, since one without a right fails its request.
MAX_GROUPS: Final = 2_000
# Rows for each loss; --json has all.
MAX_ROWS: Final = 50
NO_OFFSET: Final = -1


def groups_of(
    losses: Sequence[Loss], settings: Settings, bootstrap: str | None
) -> list[list[GroupReach]]:
    """For each loss the groups with a commit on its partition, worst first."""
    found: dict[int, list[GroupReach]] = {}
    for cluster in sorted({loss.cluster for loss in losses}):
        chosen = [number for number, loss in enumerate(losses) if loss.cluster == cluster]
        reaches = _of_cluster([losses[number] for number in chosen], settings, bootstrap)
        found.update(zip(chosen, reaches, strict=True))
    return [
        sorted(found[number], key=lambda each: (STANDINGS.index(each.standing), each.group))
        for number in range(len(losses))
    ]


def _of_cluster(
    losses: list[Loss], settings: Settings, bootstrap: str | None
) -> list[list[GroupReach]]:
    name = losses[0].cluster
    configured = [cluster for cluster in settings.clusters if cluster.name == name]
    if not configured and bootstrap is None:
        text = f"cluster {name} is not in the configuration; add it, or give --bootstrap"
        return [[_unknown("*", text)] for _ in losses]
    connection: Connection = configured[0] if configured else choose_connection(settings, bootstrap)
    try:
        admin = make_admin(connection)
    except (ClusterError, ConfigError) as error:
        return [[_unknown("*", str(error))] for _ in losses]
    try:
        return _ask(admin, losses)
    except kafka_errors.KafkaError as error:
        text = f"the groups cannot be listed ({reason_of(error)}); this needs Describe on Groups"
        return [[_unknown("*", text)] for _ in losses]
    finally:
        admin.close()


def _ask(admin: Any, losses: list[Loss]) -> list[list[GroupReach]]:
    listed = {each["group_id"]: each.get("group_type") for each in admin.list_groups()}
    places = {TopicPartition(loss.topic, loss.partition) for loss in losses}
    ends = _log_ends(admin, places)
    found: list[list[GroupReach]] = [[] for _ in losses]
    for group in sorted(listed)[:MAX_GROUPS]:
        if str(listed[group]).lower() == "share":
            text = "a share group: its position is in __share_group_state, not read here"
            reach = GroupReach(group=group, standing="share", text=text)
            for reaches in found:
                reaches.append(reach)
            continue
        try:
            commits = admin.list_group_offsets({group: sorted(places)})[group]
        except (kafka_errors.KafkaError, KeyError) as error:
            for loss, reaches in zip(losses, found, strict=True):
                reaches.append(_unknown(group, f"{reason_of(error)}; {_command(group, loss)}"))
            continue
        for loss, reaches in zip(losses, found, strict=True):
            place = TopicPartition(loss.topic, loss.partition)
            commit = commits.get(place)
            if commit is not None and commit.offset != NO_OFFSET:
                epoch = commit.leader_epoch
                known = epoch if epoch is not None and epoch >= 0 else None
                reaches.append(judge_commit(loss, group, commit.offset, known, ends.get(place)))
    if len(listed) > MAX_GROUPS:
        more = _unknown("*", f"{counted(len(listed) - MAX_GROUPS, 'group')} more, not asked")
        for reaches in found:
            reaches.append(more)
    return found


def _log_ends(admin: Any, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Where partitions end now; without those of which it cannot be read."""
    ends = {}
    for place in places:
        try:
            answer = admin.list_partition_offsets({place: OffsetSpec.LATEST})
        except (kafka_errors.KafkaError, KeyError):
            continue
        ends[place] = answer[place].offset
    return ends


def _command(group: str, loss: Loss) -> str:
    name = shlex.quote(group)
    return (
        f"with Describe on it, `kafka-consumer-groups.sh --bootstrap-server $BOOTSTRAP --describe "
        f"--group {name}` shows its offset of {loss.topic}-{loss.partition}"
    )


def _unknown(group: str, text: str) -> GroupReach:
    return GroupReach(group=group, standing="unknown", text=f"unknown: {text}")


def as_text(loss: Loss, reaches: Sequence[GroupReach]) -> list[str]:
    """The groups of one loss, worst first, under a heading."""
    place = f"{loss.topic}-{loss.partition} [{loss.start}, {loss.end})"
    if not reaches:
        return [f"{place}: no consumer group that this user may see has a commit on it now."]
    rows = [
        (each.group, "?" if each.committed is None else str(each.committed), each.text)
        for each in reaches[:MAX_ROWS]
    ]
    more = len(reaches) - len(rows)
    return [
        f"{place}, by the current commits (no earlier ones) of the groups that this user may see:",
        *(f"  {line}" for line in table([("GROUP", "COMMITTED", "WHAT THAT SAYS"), *rows])),
        *([f"  … and {more} more; --json lists all of them"] if more else []),
    ]
