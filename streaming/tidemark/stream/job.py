"""The one query: events in, views, alerts and dead letters out.

The checkpoint fixes the query's source, grouping key, stateful operator and state schema. Rates,
triggers and the function's body may change between restarts.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery

from tidemark.reduce.rows import MAX_PAYLOAD, MAX_ROW_BYTES
from tidemark.settings import Settings
from tidemark.stream.batch_bounds import MAX_VALUE_BYTES
from tidemark.stream.fold import ROW_SCHEMA, STATE_SCHEMA, make_fold
from tidemark.stream.kafka_options import sink_options, source_options
from tidemark.stream.session import tasks_at_once

QUERY: Final = "tidemark"
# Names of the two observations in a progress report.
READ: Final = "tidemark_read"
WRITTEN: Final = "tidemark_written"
TRIGGER_MS: Final = 500
LARGE_TRIGGER_MS: Final = 5_000


def trigger_ms(settings: Settings) -> int:
    """The time between the starts of two batches."""
    chosen = settings.stream.trigger_ms
    usual = LARGE_TRIGGER_MS if settings.stream.large else TRIGGER_MS
    return usual if chosen is None else chosen


def read_events(spark: SparkSession, settings: Settings) -> DataFrame:
    """The event topic's records, undecoded; observes a batch's record count and oldest timestamp.

    Of a value that no collector writes only the beginning goes on to Python: 100 records of 15 MB
    are 1.5 MB of traffic.

    `failOnDataLoss=false`: when retention or an election removes events before the stream reads
    them, stopping makes the gap longer. The passes in the gap are missing, the detectors report
    their partitions as blind, and the stream continues with the oldest event left. With `true` it
    stays down until an operator deletes the checkpoint.
    """
    source = (
        spark.readStream.format("kafka")
        .options(**source_options(settings.kafka, settings.stream))
        .option("subscribe", settings.topics.replica_state)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", settings.stream.max_offsets_per_trigger)
        .option("groupIdPrefix", "tidemark-stream")
        .option("failOnDataLoss", "false")
    )
    return (
        source.load()
        .selectExpr(
            f"if(length(value) > {MAX_VALUE_BYTES}, substring(value, 1, {MAX_PAYLOAD}), value) "
            "AS value",
            "coalesce(length(value), 0) AS size",
            "partition",
            "offset",
            "unix_millis(timestamp) AS timestamp_ms",
        )
        .observe(
            READ,
            functions.count("offset").alias("records"),
            functions.min("timestamp_ms").alias("oldest_ms"),
        )
    )


def fold_events(events: DataFrame, settings: Settings, max_row_bytes: int) -> DataFrame:
    """Rows (topic, key, value) of the sink: each Kafka partition is a group with one state."""
    rows = events.groupBy("partition").applyInPandasWithState(
        make_fold(settings.detect, settings.topics, max_row_bytes),
        ROW_SCHEMA,
        STATE_SCHEMA,
        "update",
        "NoTimeout",
    )

    def rows_of(topic: str, name: str) -> Column:
        return functions.count(functions.when(functions.col("topic") == topic, 1)).alias(name)

    topics = settings.topics
    return rows.observe(
        WRITTEN,
        rows_of(topics.partition_views, "views"),
        rows_of(topics.alerts, "alerts"),
        rows_of(topics.dead_letters, "dead_letters"),
    )


def start_query(
    spark: SparkSession,
    settings: Settings,
    once: bool = False,
    max_row_bytes: int = MAX_ROW_BYTES,
) -> StreamingQuery:
    """Starts the query; `once` processes what the topic holds now and ends."""
    events = read_events(spark, settings)
    tasks = tasks_at_once(spark.sparkContext.master or "")
    if tasks is not None:
        # A read task for each that runs at once, and not for each Kafka partition.
        events = events.coalesce(tasks)
    writer = (
        fold_events(events, settings, max_row_bytes)
        .writeStream.format("kafka")
        .options(**sink_options(settings.kafka, settings.stream))
        .option("checkpointLocation", settings.stream.checkpoint)
        .outputMode("update")
        .queryName(QUERY)
    )
    writer = (
        writer.trigger(availableNow=True)
        if once
        else writer.trigger(processingTime=f"{trigger_ms(settings)} milliseconds")
    )
    return writer.start()
