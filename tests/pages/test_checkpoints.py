"""The pages show what is on disk where it is read, and say where it is not."""

from __future__ import annotations

from typing import Any

from tests.export.make import NOW, broker_view, cluster_view, view
from tests.pages.make import site, table
from tests.pages.markup import items, page
from tidemark.core.records import CheckpointView, ReplicaView, View


def on_disk(topic: str, behind: int | None, **fields: Any) -> View:
    files = CheckpointView(
        high_watermark=90,
        recovery_point=20,
        lineage_starts=[(0, 0), (4, 18)],
        read_at=NOW - 3,
        behind_records=behind,
        unflushed_records=None if behind is None else 80,
        **fields,
    )
    logs = {"log_end_offset": 100, "high_watermark": 100, "in_sync": True}
    replicas = [ReplicaView(broker=1, **logs, checkpoint=files), ReplicaView(broker=2, **logs)]  # type: ignore[arg-type]
    return view(topic, 0, assigned=[1, 2], in_sync_replicas=[1, 2], replicas=replicas)


def views_of(read_at: float = NOW - 2, behind: int | None = 10) -> list[View]:
    broker = broker_view(
        1,
        outcome="ok",
        checkpoint_modified_at=read_at - 4,
        checkpoint_read_at=read_at,
        stopped_clean=True,
        stopped_at=NOW - 3600,
    )
    outcomes = {"1": "ok", "2": "ok"}
    return [cluster_view(broker_outcomes=outcomes), broker, on_disk("orders", behind)]


def test_a_broker_shows_what_it_would_start_from() -> None:
    pages = site(table([*views_of(), on_disk("payments", 70)]))
    section = page(pages, "/broker", cluster="east", broker=1).one("main")
    assert "If it is killed now" in section.text
    rows = [[cell.text for cell in row.all("td")] for row in section.all("tbody")[-1].all("tr")]
    # The most records first.
    assert rows == [["90", "100", "70", "20", "100", "80"], ["90", "100", "10", "20", "100", "80"]]
    assert "records of 2 replicas, at most 70 of one" in section.text
    assert "Last stop seen in its log directories: clean" in section.text
    (item,) = items(pages, "brokers", cluster="east", broker=1)["items"]
    assert item["checkpoint"] == {
        "modified_at": NOW - 6,
        "read_at": NOW - 2,
        "behind_partitions": 2,
        "behind_records": 80,
        "behind_records_max": 70,
        "unflushed_partitions": 2,
        "unflushed_records": 160,
        "unflushed_records_max": 80,
    }
    assert [one["topic"] for one in item["checkpoints"]] == ["payments", "orders"]
    assert (item["stopped_clean"], item["stopped_at"]) == (True, NOW - 3600)


def test_a_broker_that_is_not_read_claims_nothing() -> None:
    pages = site(table(views_of()))
    other = page(pages, "/broker", cluster="east", broker=2).one("main").text
    assert "If it is killed now" not in other
    (item,) = items(pages, "brokers", cluster="east", broker=2)["items"]
    assert "checkpoint" not in item
    old = site(table(views_of(read_at=NOW - 400, behind=None)))
    text = page(old, "/broker", cluster="east", broker=1).one("main").text
    assert "what it would start from is unknown" in text
    assert "Above the checkpointunknown" in text.replace("\n", "")


def test_a_partition_shows_the_files_of_each_replica_that_is_read() -> None:
    root = page(site(table(views_of())), "/partition", cluster="east", topic="orders", partition=0)
    (row,) = root.one("table", id="disk").one("tbody").all("tr")
    assert row.one("th").text == "1"
    cells = [cell.text for cell in row.all("td")]
    assert cells[2:] == ["–", "–", "0@0 4@18", "5 s ago"]
    assert cells[0].startswith("90") and "10 behind" in cells[0]
    assert cells[1].startswith("20") and "80 behind the log end" in cells[1]
    without = page(site(), "/partition", cluster="east", topic="orders", partition=0)
    assert without.all("table", id="disk") == []
