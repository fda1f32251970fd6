"""A new detector is one module, one line and its texts, as in the example of CONTRIBUTING.md."""

from __future__ import annotations

import importlib
import re
import textwrap
from pathlib import Path

import pytest

from dashboards.replication_rules import rules_of
from tests.conftest import ROOT
from tests.docs.texts import missing_texts
from tests.scenarios.text import play
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS
from tidemark.detect.detector import Detector
from tidemark_exporters.export.counters import EventCounters

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MODULE = re.search(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
SCENARIO = re.search(r"^  ```\n(.*?)^  ```$", PAGE, flags=re.MULTILINE | re.DOTALL)
TRAP = """\
# trap: FOLLOWER_AHEAD
# The follower has less than the leader.

partition orders-0 replicas=1,2 min_isr=1
pass 4 leo=1:14,2:10 hw=10
----
(no alert)
"""
# The form of a section; tests/docs/test_runbooks.py checks the real ones.
SECTION = "\n## KafkaFollowerAhead\n\n**Meaning.** …\n"
ROW = (
    '\n| <a id="kafkafollowerahead"></a>[KafkaFollowerAhead](runbooks.md#kafkafollowerahead) '
    "| FOLLOWER_AHEAD | state | info | … |\n"
)


@pytest.fixture
def detector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Detector:
    """The example in a temporary package, and its line in the table."""
    assert MODULE is not None
    package = tmp_path / "more_detectors"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "follower_ahead.py").write_text(MODULE[1], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    added: Detector = importlib.import_module("more_detectors.follower_ahead").DETECTOR
    monkeypatch.setitem(DETECTORS, added.id, added)
    return added


def test_it_fires_and_resolves(detector: Detector) -> None:
    assert SCENARIO is not None
    scenario = textwrap.dedent(SCENARIO[1])
    assert play(scenario) == scenario
    assert play(TRAP) == TRAP


def test_rules_and_metrics_include_it(detector: Detector) -> None:
    name = alert_name(detector.id)
    assert [rule.alert for rule in rules_of(detector.id)] == [name]
    counters = EventCounters()
    counters.add_cluster("east")
    started = [labels for series in counters.values.values() for labels in series]
    assert any(f'alertname="{name}"' in labels for labels in started)


def test_the_checks_of_texts_require_all_of_them(detector: Detector) -> None:
    assert SCENARIO is not None
    scenarios = [textwrap.dedent(SCENARIO[1]), TRAP]
    assert len(missing_texts(detector, [], "", "")) == 5
    assert missing_texts(detector, scenarios, "", SECTION) == ["a row in docs/alerts.md"]
    assert missing_texts(detector, scenarios, ROW, SECTION) == []


def test_the_example_is_less_than_a_page() -> None:
    assert (
        len(re.findall("\n", PAGE[PAGE.index("## Add a detector") : PAGE.index("## Tests")])) < 80
    )
