"""No answer contradicts an open alert: every verb and page, over recorded incidents."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.pages.make import site
from tests.pages.markup import page
from tests.verbs.recordings import trace
from tests.verbs.run import outcome
from tests.verbs.top.shown import reduced
from tidemark.assess.losses import open_losses
from tidemark.command_line.options import FINDING
from tidemark.core.records import Alert, View, decode_record
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.recorded_lines import Line, LineReducer
from tidemark.verbs.top.screens.partition import partition_lines
from tidemark_exporters.export.table import Table

# Those with a loss that is open at the end come first.
HAS_LOSS = 6
INCIDENTS = (
    *("traces/unclean.jsonl", "cases/lossy-disk-called-unclean.jsonl"),
    *("cases/written-between-wrong.jsonl", "cases/loss-counts-deleted-records.jsonl"),
    *(
        "cases/unclean-return-of-old-leader-loss-missed.jsonl",
        "cases/ok-reassign-and-unclean.jsonl",
    ),
    *("cases/suspected-after-8-epochs.jsonl", "cases/ok-truncate-to-exactly-hw.jsonl"),
    *("traces/loss_0102.jsonl", "traces/kip101_modern.jsonl", "cases/truncation-text-false.jsonl"),
)
LOSES_NOTHING = re.compile(
    r"every committed record|no committed record is lost(?! besides)|No loss of committed records"
)

COST = re.compile(r"While broker \d+ is down, .*? replica(?:: [^.]*)?\.")


def lines_of(name: str) -> list[bytes]:
    folder, _, file = name.partition("/")
    if folder == "traces":
        return trace(file.removesuffix(".jsonl"))
    return (ROOT / "tests" / "testdata" / name).read_bytes().splitlines()


def views_of(lines: list[bytes]) -> tuple[Table, list[Alert]]:
    """What the stream says at the end of a recording."""
    reducer, table, alerts = LineReducer(Detection()), Table(), list[Alert]()
    for number, line in enumerate(lines, 1):
        for row in reducer.reduce(Line(0, number, line)):
            record = decode_record(row.value or b"")
            if isinstance(record, Alert):
                alerts.append(record)
            elif isinstance(record, View):
                table.apply(row.key.decode(), record, row.value)
    return table, alerts


def shown_by_top(lines: list[bytes], view: View) -> str:
    """The page of the partition, and the list of brokers."""
    snapshot = reduced(lines, view.kafka_cluster)
    row = snapshot.partition(view.topic or "", view.partition or 0)
    assert row is not None
    held = {broker for loss in open_losses(view) for broker in loss.holders}
    assert all(
        each.broker not in held or (each.held and not each.is_safe) for each in snapshot.brokers
    )
    return "\n".join(line.plain for line in partition_lines(snapshot, row, 300))


@pytest.mark.parametrize("name", INCIDENTS)
def test_every_answer_tells_an_open_loss_and_none_denies_it(name: str, tmp_path: Path) -> None:
    lines = lines_of(name)
    table, alerts = views_of(lines)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    pages = site(table, now=max(table.newest.values()) + 1, past=alerts)
    found = False
    for partition in table.partitions.values():
        view = partition.view
        losses = open_losses(view)
        found |= bool(losses)
        assert view.topic is not None
        place = {"cluster": view.kafka_cluster, "topic": view.topic, "partition": view.partition}
        where = ("--cluster", view.kafka_cluster, "--from", str(path))
        asked = (view.topic, str(view.partition))
        answers = {
            "page": page(pages, "/partition", **place).one("main").text,
            "choose-leader": outcome("choose-leader", *asked, *where)[1].out,
            "top": shown_by_top(lines, view),
            "timeline": outcome("timeline", *asked, *where, "--width", "300")[1].out,
        }
        costs = {verb: COST.findall(" ".join(answer.split())) for verb, answer in answers.items()}
        assert costs["page"] == costs["timeline"]
        assert set(costs["page"]) <= set(costs["top"])
        for verb, answer in answers.items():
            text = " ".join(answer.split())
            for loss in losses:
                assert str(loss) in text, (verb, loss)
                assert " ".join(loss.description.split(".")[0].split()) in text, (verb, loss)
                assert not LOSES_NOTHING.search(text), (verb, loss)
        listed = outcome("inspect", "--losses", *asked, *where[:2], "--from", str(path))[1].out
        assert bool(losses) != ("no committed record is known to be lost" in listed)
        for loss in losses:
            assert str(loss) in listed
            named = re.match(r"Broker (\d+) (?!came back)", loss.description)
            # One that is back in sync since has cut them.
            has_or_cut = {*loss.holders, *(view.in_sync_replicas or ())}
            assert named is None or int(named[1]) in has_or_cut, loss.description
            for broker in loss.holders:
                status, stop = outcome("safe-to-stop", str(broker), *where)
                assert status == FINDING, (broker, stop.out)
                asks = f"cluster={view.kafka_cluster}&broker={broker}"
                said = pages.answer("/api/v1/safe-to-stop", asks).body.decode()
                assert broker not in view.assigned or f"lost offsets {loss}" in said
                assert f"lost offsets {loss}, which broker {broker} has or may have" in stop.out
        chosen = json.loads(outcome("choose-leader", *asked, *where, "--json")[1].out)
        assert chosen["lost_already"] == [[loss.start, loss.end] for loss in losses]
    assert found == (name in INCIDENTS[:HAS_LOSS])
