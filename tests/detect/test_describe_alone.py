"""docs/permissions.md lists exactly the alerts that differ with Describe alone.

Each scenario text is played twice: as written, and without what the brokers refuse to such a user.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.conftest import ROOT
from tests.documented_rights import alerts_with_describe_alone
from tests.scenarios.describe_alone import OTHER_SOURCES, DescribeAlone, fired
from tests.scenarios.text import play, scenario_files
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS

RANKS = {"info": 1, "warning": 2, "critical": 3}


def severities(answers: str) -> dict[str, int]:
    """Alert -> the rank of its highest severity."""
    found: dict[str, int] = defaultdict(int)
    for name, severity in fired(answers):
        found[name] = max(found[name], RANKS[severity])
    return found


def played() -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """The alerts of each scenario with all rights, and with Describe alone."""
    for path in scenario_files(ROOT / "tests" / "testdata" / "detect"):
        written = path.read_text(encoding="utf-8")
        if not any(line.startswith(OTHER_SOURCES) for line in written.splitlines()):
            yield severities(written), severities(play(written, DescribeAlone()))


def test_the_page_lists_the_alerts_that_differ() -> None:
    seen: set[str] = set()
    raised: set[str] = set()
    found: dict[str, set[str]] = defaultdict(set)
    for full, alone in played():
        seen |= full.keys()
        raised |= alone.keys()
        for name in full.keys() | alone.keys():
            if alone.get(name, 0) < full.get(name, 0):
                found[name].add("less")
            elif alone.get(name, 0) > full.get(name, 0):
                found[name].add("more")
    assert seen == {alert_name(detector) for detector in DETECTORS}
    found |= {name: {"never"} for name in seen - raised}
    assert alerts_with_describe_alone() == found
