"""What it would cost Spark to keep the state of a group in smaller values, so-called pages.

The stream writes the state of each group whole, because it is one value. Here a stateful query of
the same form keeps the same documents of partitions, so many in a value, and changes those that a
pass observes. It reads only which ones: no event is decoded, nothing is judged or published, and no
pass record touches a value. So it is what any such design would cost at least.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import msgspec

from tests.bench.folded import fold_passes
from tests.bench.moving_passes import MovingPasses
from tests.bench.row import Row
from tests.bench.stream_load import PERIOD_SECONDS, SICK, folder_sizes
from tests.processes import whole_cpu_seconds
from tidemark.core.offset_history import add_sample
from tidemark.core.partition import PartitionState, decode_state, encode_state
from tidemark.reduce.group_state import decode_group
from tidemark.settings import Settings, Topics
from tidemark.stream.fold import ROW_SCHEMA, STATE_SCHEMA, FoldFunction
from tidemark.stream.session import start_session
from tidemark.stream.stored_state import from_stored, to_stored

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.state import GroupState

GROUPS = 16
PARTITIONS = 100_000
MOVES = 10
# Before the documents are taken: the histories of moving partitions are full.
FOLDED_PASSES = 12
# A group as it is, and smaller values.
SIZES = (PARTITIONS // GROUPS, 100, 10, 2)
WARM_UP, PASSES = 2, 3
# Two samples: the history of a log that does not grow.
QUIET_HISTORY = 4

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[list[bytes]] = msgspec.msgpack.Decoder(list[bytes])


class Spent(NamedTuple):
    """Of a pass: CPU seconds of all processes, and bytes of new files of state."""

    cpu_seconds: float
    written: int


def rows() -> Iterator[Row]:
    load = MovingPasses(PARTITIONS, MOVES, 1, PERIOD_SECONDS, sick=SICK)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents = folded_documents(load)
        # Any partition may share a value with any other, as it shares a group.
        order = sorted(range(PARTITIONS), key=lambda partition: crc32(load.key(partition)))
        places = {partition: place for place, partition in enumerate(order)}
        ordered = [documents[partition] for partition in order]
        (folder / "documents").write_bytes(_encoder.encode(ordered))
        spark = start_session(Settings(topics=Topics(partitions=GROUPS)), os.environ)
        try:
            for size in SIZES:
                yield from _rows_of(spark, folder, load, places, size)
        finally:
            spark.stop()


def _rows_of(
    spark: SparkSession, folder: Path, load: MovingPasses, places: Mapping[int, int], size: int
) -> Iterator[Row]:
    """With `size` partitions in a value. `places`: of a partition's document among all."""
    own = folder / str(size)
    (own / "passes").mkdir(parents=True)
    query = _start(spark, folder, own, size)
    try:
        first = _spent(query, own, range(PARTITIONS), size)
        spent, observed = [], 0
        for number in range(FOLDED_PASSES, FOLDED_PASSES + WARM_UP + PASSES):
            touched = [places[partition] for partition, _ in load.observations(number)]
            spent.append(_spent(query, own, touched, size))
            observed = len(touched)
    finally:
        query.stop()
    values = (PARTITIONS + size - 1) // size
    written = median(each.written for each in spent[WARM_UP:])
    how = (
        f"{PARTITIONS:,} documents of partitions in {values:,} values, {observed:,} changed by a "
        f"pass; median of {PASSES}; the state store and its function alone, without events, "
        "judgement, rows and pass records"
    )
    name = f"{size:,} partitions in a value"
    yield Row(
        name=f"state pages: a pass, {name}",
        value=median(each.cpu_seconds for each in spent[WARM_UP:]),
        unit="CPU s",
        how=how,
    )
    yield Row(
        name=f"state pages: checkpoint to the state that changed, {name}",
        value=written / (first.written * observed / PARTITIONS),
        unit="×",
        how=how,
    )
    yield Row(
        name=f"state pages: checkpoint, {name}",
        value=written / 1e6,
        unit="MB",
        how=f"new files; {how}",
    )


def folded_documents(load: MovingPasses) -> list[bytes]:
    """The state of each partition after some passes, in their order."""
    passes = ([value for _, value in load.records(number)] for number in range(FOLDED_PASSES))
    ((blob, _),) = deque(fold_passes(passes), maxlen=1)
    known = decode_group(blob).partitions
    return [known[load.key(partition).decode()] for partition in range(PARTITIONS)]


def _start(spark: SparkSession, folder: Path, own: Path, size: int) -> StreamingQuery:
    source = spark.readStream.schema("page int, touched string").json(str(own / "passes"))
    rows = source.groupBy("page").applyInPandasWithState(
        make_touch(folder / "documents", size), ROW_SCHEMA, STATE_SCHEMA, "update", "NoTimeout"
    )
    writer = rows.writeStream.format("noop").outputMode("update")
    writer = writer.option("checkpointLocation", str(own / "checkpoint"))
    return writer.trigger(processingTime="100 milliseconds").start()


def make_touch(documents: Path, size: int) -> FoldFunction:
    """In place of the fold: changes documents of a page as an observation would."""

    def touch(
        key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        start = int(key[0]) * size
        places = [
            int(number) - start
            for frame in frames
            for text in frame["touched"]
            for number in text.split(",")
        ]
        if state.exists:
            state.update((changed(state.get[0], places),))
        else:
            page = _encoder.encode(_documents(documents)[start : start + size])
            state.update((to_stored(page),))
        return iter(())

    return touch


def changed(stored: bytes, places: Iterable[int]) -> bytes:
    """The page with other documents at some places."""
    page = _decoder.decode(from_stored(stored))
    for place in places:
        page[place] = moved(page[place])
    return to_stored(_encoder.encode(page))


@cache
def _documents(path: Path) -> list[bytes]:
    return _decoder.decode(path.read_bytes())


def moved(document: bytes) -> bytes:
    """The document after one more observation, with other offsets where they moved before."""
    state = decode_state(document)
    state.pass_number += 1
    at = state.observed_at = state.observed_at + PERIOD_SECONDS
    step = crc32(document) % 20_000 if len(state.offset_history) > QUIET_HISTORY else 0
    for replica in state.replicas:
        replica.sampled_at = at
        replica.log_end_offset = (replica.log_end_offset or 0) + step
        replica.high_watermark = (replica.high_watermark or 0) + step
    _move_leader(state, at, step)
    return encode_state(state)


def _move_leader(state: PartitionState, at: float, step: int) -> None:
    end = (state.leader_end_after or 0) + step
    state.leader_end_before = state.leader_end_after = end
    state.offset_history = add_sample(state.offset_history, at, end)
    state.high_watermark_read_at = at
    if step:
        state.high_watermark, state.high_watermark_moved_at = end, at


def _spent(query: StreamingQuery, own: Path, touched: Iterable[int], size: int) -> Spent:
    """Publishes the places that a pass observes as one file, and waits until it is folded."""
    pages: dict[int, list[str]] = defaultdict(list)
    for place in touched:
        pages[place // size].append(str(place))
    lines = [
        msgspec.json.encode({"page": page, "touched": ",".join(numbers)})
        for page, numbers in pages.items()
    ]
    state = own / "checkpoint" / "state"
    known, cpu = folder_sizes(state), whole_cpu_seconds()
    new = own / "new.json"
    new.write_bytes(b"\n".join(lines))
    new.rename(own / "passes" / f"{len(list((own / 'passes').iterdir())):03}.json")
    query.processAllAvailable()
    used = whole_cpu_seconds() - cpu
    found = folder_sizes(state)
    return Spent(used, sum(found[path] for path in found.keys() - known.keys()))
