"""What else the records of a measured stream cost: read and counted in Spark, folded without it.

`python -m tests.bench.same_events SETTINGS.json CHECKPOINT` counts the observations of the event
topic in Spark: the stream's own source and grouping, and a function that only decodes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from kafka import TopicPartition

from tests.bench.row import Row
from tests.bench.stream_load import Shape
from tests.processes import whole_cpu_seconds
from tidemark.core.codec import decode_batch
from tidemark.core.events import Observation
from tidemark.detect.default_thresholds import Detection
from tidemark.garbage_collector import collection_paused
from tidemark.kafka.client import make_consumer
from tidemark.reduce.group import fold_group
from tidemark.reduce.rows import RawRecord
from tidemark.settings import Settings
from tidemark.stream.batch_bounds import bounded_records
from tidemark.stream.fold import ROW_SCHEMA, STATE_SCHEMA
from tidemark.stream.job import read_events
from tidemark.stream.session import start_session, tasks_at_once

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.state import GroupState

# A fold of the plain loop takes so many records of a group.
BATCH_RECORDS = 200


def same_events(settings: Settings, shape: Shape, folder: Path) -> Iterator[Row]:
    """Rows without a target, beside those of the whole job over the same topic."""
    counted, microseconds = counted_in_spark(settings, folder)
    how = f"all {counted:,} observations of the topic; {shape.how}"
    yield Row(
        name=f"stream: decoded and counted in Spark, {shape.name}",
        value=microseconds,
        unit="µs",
        how=f"CPU of {how}, the second run of one process, without its start",
    )
    polled, folded = in_a_plain_loop(settings)
    yield Row(
        name=f"stream: polled by kafka-python, {shape.name}",
        value=1e6 * polled / counted,
        unit="µs",
        how=f"CPU of one process; {how}",
    )
    yield Row(
        name=f"stream: folded in a plain loop, {shape.name}",
        value=1e6 * folded / counted,
        unit="µs",
        how=f"CPU of one process, {BATCH_RECORDS} records of a group at a time; {how}",
    )


def counted_in_spark(settings: Settings, folder: Path) -> tuple[int, float]:
    """Observations, and CPU microseconds for one, in a process of its own."""
    given = folder / "counted.json"
    given.write_bytes(msgspec.json.encode(settings))
    command = [sys.executable, "-m", "tests.bench.same_events", str(given), str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    observed, seconds = json.loads(done.stdout.splitlines()[-1])
    return observed, 1e6 * seconds / observed


def in_a_plain_loop(settings: Settings) -> tuple[float, float]:
    """CPU seconds to read the event topic, and to fold it group by group."""
    topic, groups = settings.topics.replica_state, settings.topics.partitions
    consumer: Any = make_consumer(settings.kafka, auto_offset_reset="earliest")
    places = [TopicPartition(topic, group) for group in range(groups)]
    consumer.assign(places)
    ends = consumer.end_offsets(places)
    waiting: dict[int, list[RawRecord]] = defaultdict(list)
    began = time.process_time()
    while any(consumer.position(place) < ends[place] for place in places):
        for place, records in consumer.poll(timeout_ms=500).items():
            waiting[place.partition] += [
                RawRecord(place.partition, r.offset, r.timestamp / 1000, r.value) for r in records
            ]
    polled = time.process_time() - began
    consumer.close()
    began = time.process_time()
    for group, records in waiting.items():
        blob: bytes | None = None
        for start in range(0, len(records), BATCH_RECORDS):
            with collection_paused():
                blob, _ = fold_group(
                    blob, records[start : start + BATCH_RECORDS], Detection(), group, groups
                )
    return polled, time.process_time() - began


def count_observations(
    key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """In place of the fold: the state of a group is the number of its observations."""
    import pandas as pd

    observed = int.from_bytes(state.get[0]) if state.exists else 0
    for record in bounded_records(frames):
        observed += sum(
            isinstance(e, Observation) for e in decode_batch(record.value or b"").events
        )
    value = observed.to_bytes(8)
    state.update((value,))
    yield pd.DataFrame({"topic": [str(key[0])], "key": [b""], "value": [value]})


def main(given: str, folder: str) -> None:
    """Counts twice, and prints the observations and the CPU seconds of the second time."""
    settings = msgspec.json.decode(Path(given).read_bytes(), type=Settings)
    spark = start_session(settings, os.environ)
    counted: dict[str, int] = {}
    seconds = 0.0
    for number in range(2):
        began = whole_cpu_seconds()
        query = start_count(spark, settings, f"counted_{number}", Path(folder))
        query.awaitTermination()
        seconds = whole_cpu_seconds() - began
        for row in spark.table(f"counted_{number}").collect():
            counted[row.topic] = max(counted.get(row.topic, 0), int.from_bytes(row.value))
    print(json.dumps([sum(counted.values()), seconds]), flush=True)
    spark.stop()


def start_count(spark: SparkSession, settings: Settings, name: str, folder: Path) -> StreamingQuery:
    """As the stream's own query, until the end of the topic and into memory."""
    events = read_events(spark, settings)
    tasks = tasks_at_once(spark.sparkContext.master or "")
    if tasks is not None:
        events = events.coalesce(tasks)
    rows = events.groupBy("partition").applyInPandasWithState(
        count_observations, ROW_SCHEMA, STATE_SCHEMA, "update", "NoTimeout"
    )
    writer = rows.writeStream.format("memory").outputMode("update").queryName(name)
    writer = writer.option("checkpointLocation", str(folder / f"{name}-{os.getpid()}"))
    return writer.trigger(availableNow=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
