"""A checkpoint and topics that 0.1.0 wrote: this version continues from them."""

from __future__ import annotations

import tarfile
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from tests.conftest import ROOT
from tests.stream import upgrade
from tests.stream.synthetic import reduce_all
from tests.stream.topics import Publisher, read_all
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]
FOLDER = ROOT / "tests" / "testdata" / "upgrade" / "0.1.0"
LAST_OLD_PASS = max(upgrade.RUNS[-1])


def alert_ids(values: list[bytes]) -> list[str]:
    return [msgspec.json.decode(value)["id"] for value in values]


@pytest.fixture
def restored(settings: Settings, tmp_path: Path) -> Settings:
    """Topics with the old events at their old offsets, new ones after them, and the checkpoint.

    The checkpoint has four shuffle partitions; this version would start one with two.
    """
    with tarfile.open(FOLDER / "checkpoint.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    made = structs.replace(
        upgrade.settings_at(settings.kafka.bootstrap_servers, tmp_path / "checkpoint"),
        log_format="json",
    )
    made.stream = structs.replace(made.stream, master="local[2]")
    ensure_topics(made.kafka, made.topics)
    return made


def test_the_stream_continues_from_the_checkpoint_of_0_1_0(
    restored: Settings, tmp_path: Path
) -> None:
    publisher = Publisher(restored)
    for partition, value in upgrade.read_records(FOLDER / "events.jsonl.gz"):
        publisher.send(partition, value)
    upgrade.events(restored, publisher, range(LAST_OLD_PASS + 1, LAST_OLD_PASS + 9))
    sent = publisher.close()
    ended = upgrade.run_once(restored, tmp_path)
    assert ended.returncode == 0, ended.stderr
    topics = restored.topics
    found = alert_ids([record.value for record in read_all(restored, topics.alerts, 1)])
    before = alert_ids([value for _, value in upgrade.read_records(FOLDER / "alerts.jsonl.gz")])
    rows = reduce_all(sent, upgrade.GROUPS)
    expected = alert_ids([r.value for r in rows if r.destination == "alerts" and r.value])
    # Together as if one version had read everything, and nothing twice.
    assert sorted(before + found) == sorted(expected)
    assert len(before) > 10
    assert len(found) > 5
    assert not read_all(restored, topics.dead_letters, 1)
    newest = max(
        (tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name)
    )
    assert '"spark.sql.shuffle.partitions":"4"' in newest.read_text(encoding="utf-8")
