"""A webhook, by properties: each transition once and in order, whatever fails, dies or refuses."""

from __future__ import annotations

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.notify.rig import (
    AlertSequence,
    KilledError,
    Rig,
    Steps,
    Transitions,
    alerts_in,
    per_alert,
    random_sequences,
    random_steps,
    records,
    transitions,
)
from tidemark_exporters.notify.groups import is_loss

NONE = st.just(0)
FEW = st.integers(1, 9)


@example(
    # A later loss or offline partition overtakes no firing of its group.
    sequence=[
        *2 * [("0", "KafkaFollowerLag")],
        ("0", "KafkaCommittedDataLoss"),
        *2 * [("0", "KafkaFollowerLag")],
        ("0", "KafkaOffline"),
    ],
    steps=[("read", 3), ("run", 2)],
)
@settings(max_examples=200)
@given(
    sequence=random_sequences("012", "KafkaFollowerLag", "KafkaOffline", "KafkaCommittedDataLoss"),
    steps=random_steps(
        read=FEW, run=st.integers(0, 3), down=NONE, up=NONE, restart=NONE, repeat=FEW
    ),
)
def test_every_transition_arrives_once_despite_failures(
    sequence: AlertSequence, steps: Steps
) -> None:
    rig = Rig()
    written = records(sequence)
    rig.write(*written)
    for action, amount in [*steps, ("up", 0)]:
        rig.act(action, amount)
    rig.deliver(after=45)
    assert per_alert(rig.address.notified) == per_alert(transitions(written))
    assert rig.committed == len(rig.log)


@settings(max_examples=60)
@example(
    sequence=[("0", "KafkaFollowerLag")] * 4,
    steps=[("down", 0), ("read", 9), ("run", 3), ("up", 0), ("kill", 3), ("run", 3)],
)
@given(
    sequence=random_sequences("012", "KafkaFollowerLag", "KafkaOffline", "KafkaCommittedDataLoss"),
    steps=random_steps(
        read=FEW, run=st.integers(0, 3), repeat=FEW, down=NONE, up=NONE, kill=st.integers(1, 3)
    ),
)
def test_kills_repeat_at_most_the_post_in_flight(sequence: AlertSequence, steps: Steps) -> None:
    """The sender commits before each post: tests/notify/test_retrying_sender.py."""
    rig = Rig()
    # The posts of each process that was killed, and of the last one.
    runs: list[list[Transitions]] = [[]]
    # The post that it does not survive, counted from now.
    last = 0
    accept = rig.address.post

    def post(body: bytes, message_id: str | None) -> None:
        nonlocal last
        rig.sender.commit()
        accept(body, message_id)
        found = alerts_in(json.loads(body))
        runs[-1].append([(e["fingerprint"], f"{e['status']} {e['startsAt']}") for e in found])
        last -= 1
        if last == 0:
            raise KilledError

    rig.address.post = post
    written = records(sequence)
    rig.write(*written)
    for action, amount in [*steps, ("up", 0)]:
        if action == "kill":
            last = amount
            continue
        try:
            rig.act(action, amount)
        except KilledError:
            rig.restart()
            runs.append([])
    last = 0
    rig.deliver(after=45)
    once: set[tuple[str, str]] = set()
    in_flight: Transitions = []
    for run in runs:
        for found in run:
            assert once & set(found) <= set(in_flight)
            once |= set(found)
        in_flight = [*in_flight, *(run[-1] if run else [])]
    assert len(once) == len(written)
    assert rig.committed == len(rig.log)


@settings(max_examples=150)
@given(
    sequence=random_sequences("01234", "KafkaFollowerLag", "KafkaCommittedDataLoss"),
    steps=random_steps(
        read=FEW,
        run=st.sampled_from([0, 1, 3, 61]),
        **dict.fromkeys(("down", "refuse", "picky", "up", "mute", "unmute"), NONE),
    ),
)
@example(
    sequence=[("0", "KafkaFollowerLag")] * 2 + [("3", "KafkaCommittedDataLoss")] * 3,
    steps=[("refuse", 0), ("read", 4)],
)
@example(
    sequence=[
        ("0", "KafkaCommittedDataLoss"),
        *[("0", "KafkaFollowerLag")] * 3,
        ("0", "KafkaCommittedDataLoss"),
        ("0", "KafkaFollowerLag"),
    ],
    steps=[("refuse", 0), ("read", 5)],
)
@example(
    sequence=[("0", "KafkaCommittedDataLoss")] * 2 + [("1", "KafkaCommittedDataLoss")] * 2,
    steps=[("down", 0), ("read", 2), ("refuse", 0), ("run", 1)],
)
@example(
    sequence=[("0", "KafkaCommittedDataLoss")] * 2 + [("1", "KafkaCommittedDataLoss")] * 2,
    steps=[("down", 0), ("read", 4), ("refuse", 0), ("run", 1)],
)
@example(
    sequence=[
        *[("0", "KafkaCommittedDataLoss")] * 3,
        *[("0", "KafkaFollowerLag")] * 2,
        ("0", "KafkaCommittedDataLoss"),
        ("0", "KafkaFollowerLag"),
    ],
    steps=[("refuse", 0), ("read", 3)],
)
def test_refusals_never_repeat_a_post_or_drop_a_loss(sequence: AlertSequence, steps: Steps) -> None:
    rig = Rig(queue_size=3)
    muted = False
    rig.state._mute = lambda each, _: "rack" if muted and not is_loss(each) else None
    rig.write(*records(sequence))
    for action, amount in [*steps, ("up", 0), ("unmute", 0)]:
        if action in {"mute", "unmute"}:
            muted = action == "mute"
        else:
            rig.act(action, amount)
        rig.step(0)
    rig.deliver(after=70)
    posted = [(e["fingerprint"], e["status"], e["startsAt"]) for e in rig.address.posted]
    assert len(posted) == len(set(posted))
    losses = per_alert(transitions(each for each in rig.log if is_loss(each)))
    arrived = per_alert(rig.address.notified)
    assert {mark: arrived.get(mark) for mark in losses} == losses
    # Of another alert states are missing where it was refused or dropped; none is out of order.
    written = per_alert(transitions(rig.log))
    for mark, states in arrived.items():
        in_log = iter(written[mark])
        assert all(state in in_log for state in states)
    assert rig.committed == len(rig.log)
