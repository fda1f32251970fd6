"""`salvage --from-escrow`: what is held, as a table and as logs to salvage from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.verbs.run import outcome, tidemark
from tests.verbs.salvage.logs import batch, sent
from tidemark.escrow.sealed import Label, Seal, read_label
from tidemark.kafka.topic_reader import Message
from tidemark.verbs.salvage import folders

# Offsets of one batch each, and their epochs, as they were read: some twice, then those of an
# unclean leader, which wrote other records at 14, and of another partition.
HELD = [(10, 4), (12, 4), (14, 4), (12, 4), (14, 4), (13, 6), (15, 6), (10, 4)]


def messages(cluster: str = "main") -> Iterator[Message]:
    for number, (start, epoch) in enumerate(HELD):
        label = Label(
            cluster=cluster,
            topic="orders",
            partition=int(number == len(HELD) - 1),
            start=start,
            end=start + 2,
            leader_epoch=epoch,
        )
        data = batch(start, [sent(start + 100 * epoch), sent(start + 1 + 100 * epoch)], epoch=epoch)
        yield Message(label.partition, number, *Seal(None).close(label, data), 1_700_000_000_000)
    yield Message(0, 99, b"of another writer", b"", None)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    found = list(messages())
    monkeypatch.setattr(
        folders,
        "stored",
        lambda _: ((label, each) for each in found if (label := read_label(each.key)) is not None),
    )
    return found


def test_what_is_held_is_listed(held: list[Message]) -> None:
    lines = tidemark("salvage", "--from-escrow").out.splitlines()
    assert [line.split()[:5] for line in lines[1:]] == [
        ["main", "orders-0", "[10,", "16)", "4"],
        ["main", "orders-0", "[13,", "17)", "6"],
        ["main", "orders-1", "[10,", "12)", "4"],
    ]


def test_each_lost_offset_comes_once_from_the_lost_epoch(held: list[Message]) -> None:
    run = ("salvage", "--from-escrow", "--partition", "orders:0", "--from", "11", "--to", "17")
    done = tidemark(*run, "--epoch", "4", "--json", "--values", "text", code=3)
    assert [line.split('"offset":')[1].split(",")[0] for line in done.out.splitlines()] == [
        *map(str, range(11, 16))
    ]
    assert "the new leader wrote other records there in epoch 6" in done.err


def test_what_an_earlier_loss_left_is_none_of_a_later_one(held: list[Message]) -> None:
    """Of epoch 6 the escrow has [13, 15) alone: what follows in epoch 4 was not in its log."""
    held[:] = [*held[:5], held[5]]
    run = ("salvage", "--from-escrow", "--partition", "orders:0", "--from", "13", "--to", "16")
    done = tidemark(*run, "--epoch", "6", "--json", "--values", "text", code=3)
    assert [line.split('"offset":')[1].split(",")[0] for line in done.out.splitlines()] == [
        *("13", "14")
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give the saved folders, or --from-escrow"),
        (("orders-0", "--from-escrow"), "give the saved folders, or --from-escrow"),
        (("--from-escrow", "--from", "1", "--to", "2"), "need --partition TOPIC-PARTITION"),
        (
            ("--from-escrow", "--from", "1", "--to", "2", "--partition", "x:0"),
            "the escrow holds no record of x-0",
        ),
        (
            ("--from-escrow", "--from", "1", "--to", "2", "--partition", "orders:0"),
            "several clusters; give --cluster",
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_cure(
    held: list[Message], words: tuple[str, ...], message: str
) -> None:
    held += messages("other")
    status, done = outcome("salvage", *words)
    assert message in done.err
    assert status in (1, 2)


def test_another_key_is_named(held: list[Message]) -> None:
    label = Label(cluster="main", topic="orders", partition=0, start=1, end=3, sealed_with="a key")
    key, value = Seal(None).close(label, b"")
    held[:] = [Message(0, 0, key.replace(b"}", b',"sealed_with":"abc"}'), value, 0)]
    run = ("--from", "1", "--to", "2", "--partition", "orders:0")
    _, done = outcome("salvage", "--from-escrow", *run)
    assert "it is encrypted with the key abc; escrow.key_file is not set" in done.err
