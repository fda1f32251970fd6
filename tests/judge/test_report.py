from __future__ import annotations

import json
import xml.etree.ElementTree as ET

from tests.judge.examples import marks
from tidemark_lab.judge.report import as_table, document, exit_code, junit
from tidemark_lab.judge.verdict import Check, Result

PASSED = Result(
    "unclean-election",
    "4.1.2",
    41.2,
    [Check("KafkaOffline", "PASSED", "fired", 5.0, 1.25, 7.0, 2.0)],
    list(marks("kill").values()),
    acknowledged=900,
    lost=70,
    proven=60,
    shortfall_records=10,
    shortfall_ms=99.6,
    unproven={"never sampled": 10},
)
FAILED = Result("b", "4.1.2", 1.0, [Check("records", "FAILED", "3 lost\x00 of 4")])
UNKNOWN = Result("c", "4.1.2", 1.0, error="the brokers did not start")


def test_the_table_has_a_line_for_each_drill_and_each_finding() -> None:
    assert as_table([PASSED, FAILED, UNKNOWN]) == [
        "DRILL             KAFKA  VERDICT  SECONDS  ALERTS  SLOWEST  LOST  PROVEN",
        "unclean-election  4.1.2  PASSED        41       1    1.2 s    70      60",
        "b                 4.1.2  FAILED         1       0        -     0       0",
        "c                 4.1.2  UNKNOWN        1       0        -     0       0",
        "b on 4.1.2: records: 3 lost\x00 of 4",
        "c on 4.1.2: the brokers did not start",
        "1 PASSED, 1 FAILED, 1 UNKNOWN",
        "3 runs, 1 fault, 900 acknowledged records, 70 lost, 60 of them proven",
        "  10 not proven: never sampled",
        "KafkaOffline to the webhook: p50 2.0 s, p99 2.0 s of 1, within 7 s",
    ]


def test_json_has_every_check_with_its_times() -> None:
    (found,) = json.loads(json.dumps(document([PASSED])))["drills"]
    assert found["verdict"] == "PASSED"
    assert found["checks"][0]["seconds_from_detectable"] == 1.25
    assert found["checks"][0]["seconds_to_webhook"] == 2.0
    assert found["not_proven"] == {"never sampled": 10}
    assert (found["lost_records"], found["shortfall_ms"]) == (70, 100)


def test_junit_counts_failures_and_errors() -> None:
    root = ET.fromstring(junit([PASSED, FAILED, UNKNOWN]))  # noqa: S314 - our own
    counts = [
        tuple(int(suite.attrib[name]) for name in ("tests", "failures", "errors")) for suite in root
    ]
    assert counts == [(1, 0, 0), (1, 1, 0), (1, 0, 1)]


def test_a_failure_outweighs_what_is_unknown() -> None:
    assert exit_code([PASSED]) == 0
    assert exit_code([PASSED, UNKNOWN]) == 1
    assert exit_code([PASSED, UNKNOWN, FAILED]) == 3
