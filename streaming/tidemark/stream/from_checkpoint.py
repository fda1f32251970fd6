"""`tidemark stream --from-checkpoint`: another number of groups, with the state of the old ones.

A checkpoint fixes the number of groups and the state store. The old query reads what is left of its
topic; its states are placed under the new number (`reduce.regroup`), and become the first states of
a new query, in a new checkpoint. It reads the new event topic from its beginning, so collectors may
have begun to write there. Spark calls the fold for groups with records only: an empty batch in each
partition makes every state be written.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
from msgspec import structs

from tidemark.core.codec import encode_batch
from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.core.events import Batch
from tidemark.kafka.send import send_to_topic
from tidemark.kafka.topic_reader import TopicReader
from tidemark.reduce.group_state import decode_group
from tidemark.reduce.regroup import regroup
from tidemark.settings import Settings
from tidemark.stream.checkpoint import CheckpointFolder, FixedSettings, fixed_settings
from tidemark.stream.failures import spark_errors
from tidemark.stream.job import Beginning, start_query, trigger_ms
from tidemark.stream.query import watch
from tidemark.stream.stored_state import from_stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A collector's pass and a batch of the stream take less.
QUIET_SECONDS: Final = 15.0
POLL_SECONDS: Final = 0.5
SENDER: Final = "tidemark"
NOTHING_CHANGED: Final = "Nothing was changed."

log = structlog.get_logger()


def take_over(
    spark: SparkSession,
    settings: Settings,
    source: CheckpointFolder,
    target: CheckpointFolder,
    stop: threading.Event,
) -> None:
    """Builds `target`, for `settings`, from `source`. Its stream and collectors have ended.

    Raises TidemarkError; then `source` can still be used.
    """
    before = check_folders(settings, source, target)
    if before is None:
        log.info("the state was taken over before", source=source.checkpoint)
        return
    old = with_fixed(settings, before, source.checkpoint)
    wait_until_quiet(old, source, stop)
    log.info("reading the rest of the old topic", topic=before.topic)
    finish(spark, old, stop, None)
    read_to = source.planned_offsets(max(source.batches()))
    states = read_states(spark, source.checkpoint)
    placed = regroup(states, before.partitions, settings.topics.partitions)
    log.info("writing the states", groups=len(placed), **counts(placed))
    try:
        build(spark, settings, Beginning(first_offsets(settings, before, read_to), placed), stop)
        if before.topic != settings.topics.replica_state:
            check_read(old, read_to)
    except TidemarkError as error:
        raise TidemarkError(
            f"{str(error).rstrip('.')}. The new checkpoint is not complete: remove "
            f"{target.checkpoint} and run the command again. The old one can still be used."
        ) from None
    target.write(fixed_settings(settings))
    source.replace(before, target.checkpoint)
    log.info(
        "the state was taken over",
        checkpoint=target.checkpoint,
        topic=settings.topics.replica_state,
        groups=len(placed),
    )


def build(
    spark: SparkSession, settings: Settings, beginning: Beginning, stop: threading.Event
) -> None:
    """Runs the first batches of the new query, and checks that each group has a state."""
    send_empty_batches(settings)
    finish(spark, settings, stop, beginning)
    missing = beginning.states.keys() - read_states(spark, settings.stream.checkpoint).keys()
    if missing:
        raise TidemarkError(f"the states of the groups {sorted(missing)} were not written.")


def first_offsets(settings: Settings, before: FixedSettings, read_to: str) -> str:
    """Where the new query begins: in the old topic where the old query ended."""
    return read_to if before.topic == settings.topics.replica_state else "earliest"


def check_folders(
    settings: Settings, source: CheckpointFolder, target: CheckpointFolder
) -> FixedSettings | None:
    """What `source` was started with; None where `target` has its state already.

    Raises ConfigError where it cannot become `target`.
    """
    before = source.fixed_settings()
    if before is None:
        raise ConfigError(
            f"--from-checkpoint: {source.checkpoint} has no tidemark.json: it is no checkpoint of "
            "`tidemark stream`, or nothing started there yet."
        )
    if before.replaced_by == target.checkpoint and target.fixed_settings() is not None:
        return None
    if before.replaced_by is not msgspec.UNSET:
        raise ConfigError(
            f"--from-checkpoint: the state of {source.checkpoint} was taken over by "
            f"{before.replaced_by} already."
        )
    if target.fixed_settings() is not None or target.is_used():
        raise ConfigError(
            f"stream.checkpoint: {target.checkpoint} is in use. Give a new folder, or remove it "
            "where this command was interrupted."
        )
    topic, partitions = settings.topics.replica_state, settings.topics.partitions
    if before.topic == topic and before.partitions != partitions:
        raise ConfigError(
            f"topics.partitions: the topic {topic} has {before.partitions} partitions, and its "
            f'records are placed by that. Set topics.event_topic_suffix, such as "-{partitions}".'
        )
    return before


def with_fixed(settings: Settings, fixed: FixedSettings, checkpoint: str) -> Settings:
    """The settings with what a checkpoint fixes, to run its query."""
    topics = structs.replace(settings.topics, partitions=fixed.partitions, event_topic_suffix="")
    prefix = topics.replica_state
    if not fixed.topic.startswith(prefix):
        raise ConfigError(
            f"topics.prefix: the checkpoint {checkpoint} reads {fixed.topic}. The prefix must "
            "stay; topics.event_topic_suffix may change."
        )
    topics.event_topic_suffix = fixed.topic.removeprefix(prefix)
    stream = structs.replace(
        settings.stream, checkpoint=checkpoint, store_provider=fixed.store_provider
    )
    return structs.replace(settings, topics=topics, stream=stream)


def wait_until_quiet(old: Settings, source: CheckpointFolder, stop: threading.Event) -> None:
    """Raises TidemarkError where a stream still works in `source`, or a collector writes.

    A stream that runs reads the empty batches that are sent here, and commits.
    """
    seconds = QUIET_SECONDS + 2 * trigger_ms(old) / 1000
    began = source.batches()
    send_empty_batches(old)
    ends = end_offsets(old)
    log.info("looking whether the stream or a collector still runs", seconds=seconds)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if source.batches() != began:
            raise TidemarkError(
                f"a stream still runs from the checkpoint {source.checkpoint}. Stop it first. "
                f"{NOTHING_CHANGED}"
            )
        if end_offsets(old) != ends:
            raise TidemarkError(
                f"a collector still writes to {old.topics.replica_state}. Start each collector "
                f"with the new topics.partitions and topics.event_topic_suffix first. "
                f"{NOTHING_CHANGED}"
            )
        if stop.wait(POLL_SECONDS):
            raise TidemarkError(f"stopped. {NOTHING_CHANGED}")


def check_read(old: Settings, read_to: str) -> None:
    """Raises TidemarkError where events came to the old topic after the old query's end."""
    offsets: dict[str, dict[str, int]] = msgspec.json.decode(read_to)
    read = {int(number): end for number, end in offsets[old.topics.replica_state].items()}
    late = sum(max(0, end - read.get(number, 0)) for number, end in end_offsets(old).items())
    if late:
        raise TidemarkError(
            f"{late} records came to {old.topics.replica_state} meanwhile: a collector still "
            "writes there. Stop it first."
        )


def end_offsets(settings: Settings) -> dict[int, int]:
    """Of the event topic, by partition. Raises ClusterError."""
    with TopicReader(settings.kafka, settings.topics.replica_state) as reader:
        return reader.end


def send_empty_batches(settings: Settings) -> None:
    """One to each partition of the event topic. Raises ClusterError."""
    empty = Batch(
        v=1, cluster=SENDER, collector=SENDER, collector_epoch=0, pass_number=0, events=[]
    )
    value = encode_batch(empty)
    send_to_topic(
        settings.kafka,
        settings.topics.replica_state,
        lambda partitions: [(number, None, value) for number in range(partitions)],
        "The command needs the right to write there.",
    )


def finish(
    spark: SparkSession, settings: Settings, stop: threading.Event, beginning: Beginning | None
) -> None:
    """Runs a query to the end of its topic. Raises TidemarkError, also after a request to stop."""
    query = start_query(spark, settings, once=True, beginning=beginning)
    watch(query, stop, settings.stream.checkpoint)
    if stop.is_set():
        raise TidemarkError("stopped before the state was taken over.")


def read_states(spark: SparkSession, checkpoint: str) -> dict[int, bytes]:
    """The state of each group, as the newest batch left it."""
    with spark_errors(checkpoint):
        rows: list[Any] = (
            spark.read.format("statestore")
            .load(checkpoint)
            .selectExpr("key.partition AS number", "value.groupState.state AS state")
            .collect()
        )
    return {int(row["number"]): from_stored(row["state"]) for row in rows}


def counts(states: dict[int, bytes]) -> dict[str, int]:
    decoded = [decode_group(state) for state in states.values()]
    return {
        "clusters": len({name for state in decoded for name in state.clusters}),
        "partitions": sum(len(state.partitions) for state in decoded),
    }
