"""A new field of the observation: the places to edit, and what happens where one is forgotten.

Each test edits a copy of the package and runs it in a process of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "streaming" / "tidemark"
Place = tuple[str, str, str]
# Of each place: the file, a line that stands in it once, and the line that follows it then.
SCHEMA: Place = (
    "core/events.py",
    "    throttled_replicas: Brokers | None = None",
    "    news: Count | None = None",
)
STATE: Place = (
    "core/partition.py",
    "    throttled_replicas: list[int] | None = None",
    "    news: int | None = None",
)
OBSERVER: Place = ("collect/**/*.py", "    return Observation(", "        news=metadata.leader,")
EVOLVE: Place = ("evolve/observation.py", "KEPT_WHEN_NULL: Final = (", '    "news",')
SAMPLE: Place = (
    "core/events.py",
    "    size_bytes: Count | None = None",
    "    news: Count | None = None",
)

BEGIN = """
from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.events import Batch, Observation, Replica
from tidemark.evolve.activity import activity_of
from tidemark.evolve.fast_path import fold_offsets
from tidemark.evolve.observation import evolve

def observed(at, of_sample=None, **fields):
    sample = dict(log_end_offset=100, high_watermark=90, log_start_offset=0, leader_epoch=4)
    event = Observation(
        topic="orders", partition=0, observed_at=at, topic_id="a", leader=1, leader_epoch=4,
        replicas=[1], in_sync_replicas=[1], leader_log_end_offset_before=100,
        leader_log_end_offset_after=100, committed=90,
        samples=[Replica(broker=1, leads=True, **sample, **(of_sample or {}))], **fields,
    )
    batch = Batch(
        v=1, cluster="c", collector="c1", collector_epoch=1, pass_number=1, events=[event]
    )
    (read,) = decode_batch(encode_batch(batch)).events
    return read

def fold(state, event):
    moves = fold_offsets(state, event, state.pass_number + 1, activity_of(state)) is not None
    return moves, state if moves else evolve(state, event, "c1", 1, state.pass_number + 1)

state = evolve(None, observed(10.0), "c1", 1, 0)
moves, state = fold(state, observed(11.0))
assert moves
"""


def edited(folder: Path, places: list[Place]) -> set[str]:
    """Edits a copy of the package; the files that were touched."""
    leave = shutil.ignore_patterns("__pycache__", "*.jar", "*.html", "*.json")
    shutil.copytree(PACKAGE, folder / "tidemark", ignore=leave)
    touched = set()
    for pattern, line, following in places:
        files = [
            file
            for file in (folder / "tidemark").glob(pattern)
            if line in file.read_text(encoding="utf-8")
        ]
        (file,) = files
        text = file.read_text(encoding="utf-8")
        head, found, rest = text.rpartition(line)
        file.write_text(f"{head}{found}\n{following}{rest}", encoding="utf-8")
        touched.add(str(file.relative_to(folder)))
    return touched


def run(folder: Path, program: str) -> None:
    """Raises what the program raises."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program],
        env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_new_field_takes_four_places_beside_those_that_use_it(tmp_path: Path) -> None:
    """Schema, observer, state and evolution; the forms of the codec follow from the schema."""
    places = [SCHEMA, OBSERVER, STATE, EVOLVE]
    touched = edited(tmp_path, places)
    assert len(touched) == len(places)
    program = """
from tidemark.collect.codecs.metadata_image import EligibleReplicas, PartitionMetadata, Reassignment
from tidemark.collect.codecs.topic_configuration import TopicConfiguration
from tidemark.collect.watched.watched_partition import ShownMetadata, metadata_observation
assert observed(11.0, news=5).news == 5
_, state = fold(state, observed(12.0, news=5))
assert state.news == 5
for told in (5, None):
    moves, state = fold(state, observed(13.0, news=told))
    assert moves and state.news == 5
moves, state = fold(state, observed(14.0, news=6))
assert state.news == 6 and not moves
metadata = PartitionMetadata(7, 4, (7,), (7,), 0, True)
unknown = EligibleReplicas(), Reassignment((), ()), TopicConfiguration()
shown = ShownMetadata(metadata, *unknown, leaderless=False)
assert metadata_observation("orders", 0, None, shown).news == 7
"""
    run(tmp_path, program)


@pytest.mark.parametrize(
    ("places", "fields"),
    [
        ([SCHEMA], "news=5"),
        ([SCHEMA, STATE], "news=5"),
        ([SAMPLE], 'of_sample={"news": 5}'),
    ],
    ids=["observation", "with a place in states", "sample"],
)
def test_a_field_that_evolution_does_not_know_is_never_kept_old(
    tmp_path: Path, places: list[Place], fields: str
) -> None:
    """The whole fold takes each observation that reports it."""
    edited(tmp_path, places)
    program = f"""
moves, state = fold(state, observed(12.0, {fields}))
assert not moves
moves, state = fold(state, observed(13.0))
assert moves
"""
    run(tmp_path, program)
