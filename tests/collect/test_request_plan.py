from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemark.collect.codecs.list_offsets import OffsetEntry
from tidemark.collect.metadata_image import PartitionMetadata
from tidemark.collect.request_plan import BrokerPlan
from tidemark.collect.watched_partition import WatchedPartition

PLACES = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 30)), max_size=20, unique=True
)


def plan(places: list[tuple[str, int]]) -> BrokerPlan:
    metadata = PartitionMetadata(1, 0, (1,), (1,), 0)
    slots = [WatchedPartition(topic, number, None, 0, metadata) for topic, number in places]
    for watched in slots:
        watched.update(metadata)
    return BrokerPlan(1, slots)


@given(PLACES, st.randoms(use_true_random=False), st.booleans())
def test_entries_are_placed_at_their_slots_in_any_order(
    places: list[tuple[str, int]], random: object, keep_order: bool
) -> None:
    made = plan(places)
    entries = [
        (topic, (number, 0, 100 * number, 7))
        for topic, numbers in made.all.topics
        for number in numbers
    ]
    if not keep_order:
        random.shuffle(entries)  # type: ignore[attr-defined]
    answer: list[tuple[str, list[OffsetEntry]]] = []
    for topic, entry in entries:
        if answer and answer[-1][0] == topic:
            answer[-1][1].append(entry)
        else:
            # A broker repeats a topic when errors come first.
            answer.append((topic, [entry]))
    made.all.place(answer, made.answers.latest)
    assert [entry and entry[0] for entry in made.answers.latest] == [
        watched.number for watched in made.slots
    ]


def test_entries_not_asked_for_are_ignored() -> None:
    made = plan([("a", 0), ("a", 1)])
    made.all.place(
        [("a", [(1, 0, 5, 0), (9, 0, 6, 0)]), ("z", [(0, 0, 7, 0)])], made.answers.latest
    )
    assert made.answers.latest == [None, (1, 0, 5, 0)]


def test_clear_forgets_the_answers_of_the_last_pass() -> None:
    made = plan([("a", 0)])
    made.all.place([("a", [(0, 0, 5, 0)])], made.answers.latest)
    made.answers.outcome = "ok"
    made.answers.clear()
    assert [*made.answers.latest, *made.answers.fetched, *made.answers.committed] == [None] * 3
    assert made.answers.outcome is None
