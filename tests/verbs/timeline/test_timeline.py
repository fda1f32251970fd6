"""`tidemark timeline`: the steps of recorded faults and of scenarios."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.golden import assert_written
from tests.verbs.recordings import alerts_of, recording, trace, write
from tests.verbs.run import tidemark
from tidemark.assess.lost_reads import GroupReach
from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.events import Observation
from tidemark.core.identity import group_of
from tidemark.core.records import Alert
from tidemark.detect.default_thresholds import Detection
from tidemark.kafka.topic_reader import Message
from tidemark.observations.recorded_lines import read_lines
from tidemark.verbs.timeline import command, source
from tidemark.verbs.timeline.report import MAX_LINES, Subject, as_json, as_markdown, as_text
from tidemark.verbs.timeline.source import Wanted, of_recordings

run = partial(tidemark, "timeline")
CASES = ROOT / "tests" / "testdata" / "cases"
GOLDEN = ROOT / "tests" / "testdata" / "timeline"
THREE = "partition orders-0 replicas=1,2,3"


@pytest.fixture
def unclean(tmp_path: Path) -> str:
    return write(tmp_path / "unclean.jsonl", trace("unclean"))


def steps(tmp_path: Path, *commands: str) -> list[list[str]]:
    """What happened in each step of a scenario, without alerts."""
    file = write(tmp_path / "events.jsonl", recording(*commands))
    return [
        step["changes"]
        for step in json.loads(run("orders", "0", "--from", file, "--json").out)["steps"]
    ]


def test_an_unclean_election_fits_100_columns_and_names_what_matters(
    unclean: str, tmp_path: Path
) -> None:
    out = run("trace", "0", "--from", unclean, "--width", "100").out.replace(str(tmp_path), "…")
    assert max(map(len, out.splitlines())) <= 100
    assert_written(GOLDEN / "unclean.txt", out)
    for severity, shown in (("critical", {"critical"}), ("info", {"critical", "warning", "info"})):
        document = json.loads(
            run("trace-0", "--from", unclean, "--json", "--severity", severity).out
        )
        alerts = [alert for step in document["steps"] for alert in step["alerts"]]
        assert {alert["labels"]["severity"] for alert in alerts} == shown
        assert "7 committed records of trace-0 are lost" in document["verdict"][0]
    text = " ".join(run("trace", "0", "--from", unclean, "--markdown").out.split())
    for named in (
        # The last high watermark and its age, the kill, the election.
        "last HW seen: 12 (broker 1, epoch 0), 6.5 s before",
        "1, the leader, does not answer (refused); no process listens on its port",
        "election: 2 leads in epoch 2, not in sync before (ISR none, eligible 1)",
        # The proven range, the old leader's return, its truncation.
        "CRITICAL KafkaCommittedDataLoss: Broker 1 had the lost records of trace-0 when it last",
        "7 committed records of trace-0 are lost: offsets \\[5, 12)",
        "1 answers again after 9.9 s as a follower of 2 in epoch 2",
        "Broker 1 cut at least 7 records off its log of trace-0, from 12 to 5",
    ):
        assert named in text, named


def test_the_groups_of_a_loss_are_shown_where_asked(
    unclean: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach = GroupReach(group="billing", standing="read", text="read the lost records [5, 9)")
    monkeypatch.setattr(command, "groups_of", lambda losses, *_: [[reach] * 7 for _ in losses])
    place = ("trace-0", "--from", unclean, "--width", "300")
    out = run(*place, "--groups", "--bootstrap", "k:1").out
    assert "GROUPS of [5, 12), by current commits: billing: read the lost records [5, 9); " in out
    assert "; 2 more, by tidemark inspect --losses --groups." in out
    assert "GROUPS" not in run(*place).out


def test_markdown_has_a_row_for_each_step_and_the_evidence(unclean: str) -> None:
    lines = run("trace", "0", "--from", unclean, "--markdown").out.splitlines()
    assert lines[0] == "# Time line of trace-0"
    document = json.loads(run("trace", "0", "--from", unclean, "--json").out)
    rows = [line for line in lines if line.startswith("| 2001")]
    assert len(rows) == len(document["steps"])
    assert {row.count(" | ") for row in rows} == {4}
    at = next(n for n, line in enumerate(lines) if line.startswith("KafkaCommittedDataLoss at"))
    assert json.loads(lines[at + 2])["proven"] == [5, 12]


def test_a_partition_that_nothing_happened_to(tmp_path: Path) -> None:
    assert steps(tmp_path, THREE, "pass 5 add=10") == [
        ["the first observation: 1 leads in epoch 0"],
        ["the newest observation"],
    ]


def test_a_clean_election_and_the_sets(tmp_path: Path) -> None:
    found = steps(
        tmp_path,
        THREE,
        "pass 2 add=10",
        "pass leader=2 epoch=1 isr=2,3 down=1:refused add=0",
        "pass isr=2 elr=3",
        "pass isr=1,2,3 elr=none down=none",
        "pass adding=4 replicas=1,2,3,4",
    )
    seen = "last HW seen: 20 (broker 1, epoch 0), 1.0 s before"
    refused = "1, the leader, does not answer (refused); no process listens on its port"
    assert found[1:5] == [
        [
            f"{refused}; {seen}; its log ended at 20",
            "election: 2 leads in epoch 1, in sync before (1,2,3)",
            f"its log ends at 20; {seen}",
            "ISR 1,2,3→2,3",
        ],
        ["ISR 2,3→2", "ELR ?→3"],
        [
            "1 answers again after 2.0 s as a follower of 2 in epoch 1",
            "ISR 2→1,2,3",
            "ELR 3→none",
        ],
        ["assigned 1,2,3→1,2,3,4", "adding none→4"],
    ]


def test_times_in_which_nothing_was_seen_are_marked(tmp_path: Path) -> None:
    commands = (THREE, "pass 2 add=10", "pass 4 missed", "pass", "pass every=60 period=1", "pass")
    file = write(tmp_path / "events.jsonl", recording(*commands))
    lines = run("orders", "0", "--from", file, "--width", "200").out.splitlines()
    gaps = [line.split(maxsplit=2)[2] for line in lines if line.startswith("…")]
    assert gaps == [
        "nothing was seen for 4.0 s: 4 passes did not see the partition",
        "nothing was seen for 1 min: no pass ended",
    ]
    assert any(line.startswith("Nothing was seen in 2 gaps of 1 min 4 s") for line in lines)


def test_a_fall_of_a_log_is_in_the_column_cut(tmp_path: Path) -> None:
    commands = (THREE, "pass 2 leo=100 hw=100", "pass leo=1:100,2:100,3:40")
    file = write(tmp_path / "events.jsonl", recording(*commands))
    lines = run("orders", "0", "--from", file, "--width", "200").out.splitlines()
    (cut,) = [line for line in lines if "fell from" in line]
    assert "3→40" in cut
    assert "the log of 3 fell from 100 to 40" in cut


def test_records_of_the_metadata_log_audits_and_deletion(tmp_path: Path) -> None:
    found = steps(
        tmp_path,
        THREE,
        "pass 2 add=10",
        "record leader=2 epoch=1 isr=2,3 cause=fenced elr=1",
        "record leader=2 epoch=1 isr=2,3 cause=unknown elr=none",
        "audit 1,2 offset=4 epoch=0",
        "gone",
    )
    assert found[1][0].startswith("controller, record ")
    assert found[1][0].endswith("(fenced): leader 2 in epoch 1, ISR 2,3, eligible 1")
    assert found[2][0].endswith(": leader 2 in epoch 1, ISR 2,3")
    assert found[3] == ["audit: 1,2 hold different batches at offset 4"]
    assert found[4] == ["the partition was deleted"]


def test_a_time_can_be_chosen(unclean: str) -> None:
    bounds = ("--since", "2001-09-09T01:46:50Z", "--until", "2001-09-09T01:46:52Z")
    document = json.loads(run("trace", "0", "--from", unclean, "--json", *bounds).out)
    silent = "1 does not answer (refused); 2 does not answer (refused)"
    first = document["steps"][0]["changes"]
    assert first == [f"the first observation: no leader in epoch 1; {silent}"]
    assert all(1_000_000_010 <= step["at"] <= 1_000_000_012 for step in document["steps"])


def test_an_unknown_partition_and_two_clusters_are_errors(tmp_path: Path) -> None:
    lines = trace("unclean")
    file = write(tmp_path / "unclean.jsonl", lines)
    assert "nothing-0 was not observed there" in run("nothing", "0", "--from", file, code=1).err
    other = []
    for line in lines:
        batch = decode_batch(line)
        batch.cluster = "other"
        other.append(encode_batch(batch))
    both = write(tmp_path / "both.jsonl", [*lines, *other])
    assert "--cluster: other, trace" in run("trace", "0", "--from", both, code=2).err
    run("trace", "0", "--from", both, "--cluster", "other")
    assert "exclude" in run("trace", "0", "--from", file, "--json", "--markdown", code=2).err


def test_large_offsets_are_shown_above_a_round_one(tmp_path: Path) -> None:
    commands = (THREE, "pass 2 leo=98765432 hw=98765432", "pass 2 leo=98765532 hw=98765432 isr=1")
    file = write(tmp_path / "events.jsonl", recording(*commands)[1:])
    lines = run("orders", "0", "--from", file, "--width", "100").out.splitlines()
    assert max(map(len, lines)) <= 100
    assert "LEO, HW and epochs of the brokers are above offset 98765000." in lines
    assert any("* 532 432    532 432" in line for line in lines)
    wide = run("orders", "0", "--from", file, "--width", "160").out
    assert "* 98765532 98765432" in wide
    assert "are above" not in wide


def test_columns_of_the_terminal_are_honoured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = run("trace", "0", "--from", write(tmp_path / "unclean.jsonl", trace("unclean"))).out
    assert 70 < max(map(len, out.splitlines())) <= 80


def test_one_incident_is_shown_and_an_earlier_loss_is_told(tmp_path: Path) -> None:
    lost = ("pass 3 leo=100 hw=100", "pass 4 leader=2 isr=2 down=1:refused leo=2:60 hw=60")
    later = ("pass isr=2,1 down=none leo=60 hw=60", "pass 2000", "pass 3 down=1:refused isr=2")
    two = "partition orders-0 replicas=1,2 min_isr=1 epoch=none"
    file = write(tmp_path / "events.jsonl", recording(two, *lost, *later))
    out = run("orders-0", "--from", file).out
    assert "LOST: Broker 1 " in out
    assert "1 does not answer (refused)" in out
    assert "election: 2 leads" not in out
    since = out.partition("--since ")[2].split()[0]
    whole = run("orders-0", "--from", file, "--since", since).out
    assert "election: 2 leads" in whole
    assert "before this incident" not in whole


@pytest.mark.parametrize(
    "path", [*sorted(CASES.glob("*.jsonl")), *CASES.glob("real-[hlm]*")], ids=lambda path: path.name
)
def test_every_recorded_case_has_a_time_line(path: Path) -> None:
    """The first partition of each: no failure, steps that ascend, every form."""
    wanted = next(
        Wanted(event.topic, event.partition)
        for line in read_lines([str(path)])
        for event in decode_batch(line.data).events
        if isinstance(event, Observation)
    )
    cluster, line = of_recordings([str(path)], wanted, Detection(), lambda _: None)
    subject = Subject(cluster, wanted.topic, wanted.partition, path.name)
    times = [step["at"] for step in as_json(subject, line)["steps"]]
    assert times == sorted(times)
    assert line.observations > 0
    for width in (60, 100, 160):
        assert len(as_text(subject, line, width)) <= MAX_LINES
    assert as_markdown(subject, line)


# Events and alerts from Tidemark's topics: the time line is that of the recording.


GROUPS = 16
LINES = trace("unclean")


class Topic:
    """A TopicReader over LINES, all in one partition of GROUPS."""

    narrowed: tuple[set[int], float] | None = None

    def __init__(self) -> None:
        self.end = dict.fromkeys(range(GROUPS), 0)

    def narrow(self, numbers: Collection[int], since: float) -> None:
        Topic.narrowed = (set(numbers), since)

    def read_to_end(self) -> Iterator[Message]:
        for offset, line in enumerate([b"{}", *LINES]):
            yield Message(0, offset, None, line)


def alerts() -> list[Alert]:
    """What the stream publishes: at least once, in no order between partitions."""
    found = alerts_of(LINES)
    return [*reversed(found), *found[:3]]


def test_the_time_line_is_that_of_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "TopicReader", lambda *_: nullcontext(Topic()))
    monkeypatch.setattr(source, "alerts_of_topic", lambda _: iter(alerts()))
    place = ("timeline", "trace", "0", "--cluster", "trace", "--json")
    out = tidemark(*place, "--since", "2001-09-09T00:00:00Z").out
    found = json.loads(out)
    recorded = write(tmp_path / "events.jsonl", LINES)
    expected = json.loads(tidemark(*place, "--from", recorded).out)
    assert found["source"] == "tidemark.replica-state"
    assert found["steps"] == expected["steps"]
    # Only the partition that has the events is read, from the time on.
    assert Topic.narrowed == ({group_of("trace", "trace", 0, GROUPS)}, 999_993_600.0)
    # An hour by default.
    assert "was not observed there" in tidemark("timeline", "trace", "0", code=1).err
