from __future__ import annotations

import pytest

from tests.docs.drills import checks_of, keys_of, read_mechanisms, read_rows
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.brokers.versions import is_current
from tidemark_lab.drills.drill import Drill
from tidemark_lab.drills.schedules.table import DRILLS

# They must pass on every current version, the others on one.
EVERYWHERE = ("unclean-election", "rolling-restart", "last-known-leader", "zombie-leader")


@pytest.mark.parametrize("drill", DRILLS.values(), ids=lambda drill: drill.name)
def test_every_drill_has_passed_on_each_of_its_versions(drill: Drill) -> None:
    rows = read_rows()
    ran = {version: rows[key]["verdict"] for version, key in keys_of(drill, rows)}
    assert set(ran.values()) == {"PASSED"}
    old = {version for version in drill.versions if not is_current(version)}
    assert old <= ran.keys()
    if old != set(drill.versions):
        assert any(map(is_current, ran))


@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_drills_of_every_version_have_passed_on_each(name: str) -> None:
    ran = {version for version, _ in keys_of(DRILLS[name], read_rows())}
    assert {"4.2.2", "4.3.1", KAFKA_VERSION} <= ran


MECHANISMS = read_mechanisms()
WITHOUT_SOURCE = ("Watermark of event time in stream processing", "replica.lag.max.messages")


def test_each_mechanism_is_there_once() -> None:
    assert len({each["mechanism"] for each in MECHANISMS}) == len(MECHANISMS)


@pytest.mark.parametrize("row", MECHANISMS, ids=lambda row: row["mechanism"])
def test_a_drill_checks_the_mechanism_and_has_passed(row: dict[str, str | None]) -> None:
    """The drill still makes the check, once, or the row says why none can."""
    name, check = row["drill"], row.get("check")
    if name is None:
        assert row["why"] and check is None
        # Another subject, or what no broker has any more, has no source.
        assert row.get("source") or row["mechanism"] in WITHOUT_SOURCE
        return
    # A twin would hide that it is removed.
    assert checks_of(DRILLS[name])[str(check)] == 1
    rows = read_rows()
    ran = [rows[key] for _, key in keys_of(DRILLS[name], rows)]
    passed = [
        c["verdict"] == "PASSED" for each in ran for c in each["checks"] if c["name"] == check
    ]
    assert (passed and all(passed)) or check in {step.text for step in DRILLS[name].steps}
