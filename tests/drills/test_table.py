"""The drills agree with the model's stories, and each is consistent in itself."""

from __future__ import annotations

import pytest

from tidemark.detect import DETECTORS
from tidemark.detect.default_thresholds import Thresholds
from tidemark_lab.brokers.versions import VERSIONS
from tidemark_lab.drills.drill import Drill
from tidemark_lab.drills.schedules.table import DRILLS, NOT_PLAYED
from tidemark_lab.model.scenarios import SCENARIOS

ALL = pytest.mark.parametrize("drill", DRILLS.values(), ids=lambda drill: drill.name)


def test_every_story_has_a_drill_or_a_reason_why_not() -> None:
    assert SCENARIOS.keys() <= DRILLS.keys() | NOT_PLAYED.keys()
    assert not DRILLS.keys() & NOT_PLAYED.keys()
    assert NOT_PLAYED.keys() <= SCENARIOS.keys()


@ALL
def test_names_exist(drill: Drill) -> None:
    assert set(drill.versions) <= VERSIONS.keys()
    detectors = {e.detector for e in drill.expected} | {*drill.forbidden, *drill.allowed}
    assert detectors <= DETECTORS.keys()
    Thresholds(**drill.thresholds)
    assert not {e.detector for e in drill.expected} & set(drill.forbidden)


@ALL
def test_every_fault_ends_and_every_expected_alert_has_its_fault(drill: Drill) -> None:
    texts = [step.text for step in drill.steps]
    injected = [text.removeprefix("inject: ") for text in texts if text.startswith("inject: ")]
    healed = [text.removeprefix("heal: ") for text in texts if text.startswith("heal: ")]
    assert sorted(injected) == sorted(healed)
    assert len(set(injected)) == len(injected)
    assert {expected.after for expected in drill.expected} <= set(injected)


@ALL
def test_a_drill_checks_something_and_says_what_it_shows(drill: Drill) -> None:
    assert drill.expected or drill.forbidden or drill.quiet
    assert drill.shows.endswith(".") and len(drill.shows) <= 90
