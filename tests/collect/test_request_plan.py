from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemark.collect.codecs.fetch import BEYOND
from tidemark.collect.codecs.list_offsets import OffsetEntry
from tidemark.collect.codecs.metadata_image import PartitionMetadata
from tidemark.collect.watched.request_plan import BrokerPlan, Subset
from tidemark.collect.watched.watched_partition import WatchedPartition

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


@given(PLACES, st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), max_size=8))
def test_an_answer_that_is_placed_again_is_where_it_was(
    places: list[tuple[str, int]], given: list[tuple[int, int]]
) -> None:
    """A template gives an unchanged answer as the same object; two columns share a subset."""
    made = plan(places)
    whole = [(t, [(n, 0, 100 * n, 7) for n in numbers]) for t, numbers in made.all.topics]
    moved = [(t, [(n, 0, 100 * n + 1, 7) for n in numbers]) for t, numbers in made.all.topics]
    # A broker may have an order of its own, and give an entry twice.
    turned = [
        (t, [(n, 0, 100 * n + 2, 7) for n in numbers[::-1]])
        for t, numbers in reversed(made.all.topics)
    ]
    answers: list[list[tuple[str, list[OffsetEntry]]]] = [
        *(whole, moved, whole[:-1], turned, turned[1:]),
        [*turned, *whole[:1]],
        [*turned, ("z", [(0, 0, 5, 7)])],
    ]
    for answer, column in given:
        into: list[OffsetEntry | None] = [None] * len(places)
        made.all.place(answers[answer], into, str(column))
        found = made.all.by_slot(answers[answer])
        assert into == [found.get(index) for index in range(len(places))]


LATEST = st.tuples(
    st.sampled_from([0] * 9 + [6]), st.sampled_from([5, 5, 0, -1]), st.sampled_from([2, 2, 2, -1])
)


@given(PLACES.filter(bool), st.data())
def test_a_replica_without_a_record_of_its_epoch_is_fetched_at_its_end(
    places: list[tuple[str, int]], data: st.DataObject
) -> None:
    made = plan(places)
    size = len(places)
    usual = data.draw(st.booleans())
    for index, watched in enumerate(made.slots):
        error, end, epoch = (0, 5, 2) if usual else data.draw(LATEST)
        made.answers.latest[index] = (watched.number, error, end, epoch)
    slots = st.integers(0, size - 1)
    made.without_newest_epoch = data.draw(
        st.dictionaries(slots, st.sampled_from([(2, 5), (2, 4), (1, 5)]), max_size=3)
    )
    subset = Subset(made.slots, sorted(data.draw(st.sets(slots, min_size=1))))
    columns = list(zip(*made.fetch_columns(subset), strict=True))
    for index, found in zip(subset.indices, columns, strict=True):
        latest = made.answers.latest[index]
        assert latest is not None
        _, error, end, epoch = latest
        if error:
            expected, is_epochless = (0, -1, BEYOND), False
        elif end >= 0 and (epoch < 0 or made.without_newest_epoch.get(index) == (epoch, end)):
            expected, is_epochless = (-1, epoch, end), True
        else:
            expected, is_epochless = (max(epoch, 0), epoch, BEYOND), False
        assert found == expected
        assert (index in made.answers.epochless) == is_epochless
