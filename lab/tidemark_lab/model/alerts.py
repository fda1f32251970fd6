"""What the detectors report of a scenario: one collection pass after each step. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from textwrap import wrap
from typing import Final, NamedTuple

from tidemark.core.codec import encode_batch
from tidemark.core.records import Alert
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.recorded_lines import Line, LineReducer
from tidemark_lab.model.observe import build_batch
from tidemark_lab.model.replica_manager.model_state import stopped_replicas, to_model_state
from tidemark_lab.model.scenarios.run import ScenarioRun
from tidemark_lab.model.scenarios.scenario import Scenario
from tidemark_lab.model.state import MAX_EPOCH, MAX_LOG_SIZE, MAX_RECORDS, Constants

ORIGIN: Final = 1.7e9
# Seconds between two passes, one after each step.
PERIOD: Final = 1.0
# Passes after the last step: a loss is certain in the second one that shows it, others need longer.
LAST_PASSES: Final = 15


class StoryAlert(NamedTuple):
    """An alert that fired or was updated `seconds` after the pass of a step."""

    step: int
    seconds: int
    alert: Alert


def story_alerts(scenario: Scenario, run: ScenarioRun) -> Iterator[StoryAlert]:
    """The alerts in order, with the default thresholds. A stopped broker does not answer."""
    constants = Constants(
        scenario.brokers,
        MAX_LOG_SIZE,
        MAX_RECORDS,
        MAX_EPOCH,
        run.cluster.min_in_sync_replicas,
    )
    reducer = LineReducer(Detection())
    last = len(run.steps) - 1
    for number, step in enumerate(chain(run.steps, repeat(run.steps[-1], LAST_PASSES))):
        batch = build_batch(
            run.cluster.protocol,
            constants,
            to_model_state(step.cluster),
            number,
            ORIGIN + PERIOD * number,
            silent=stopped_replicas(step.cluster),
        )
        for record in reducer.records(Line(0, number + 1, encode_batch(batch)), "alerts"):
            if isinstance(record, Alert) and record.state != "resolved":
                yield StoryAlert(min(number, last), max(0, number - last), record)


def alert_lines(scenario: Scenario, run: ScenarioRun, width: int) -> list[str]:
    """What is assumed, then a line or more for each alert."""
    assumed = (
        f"What Tidemark reports, if it polls once after each step, {PERIOD:.0f} s apart, and "
        f"{LAST_PASSES} times after the last one:"
    )
    lines = wrap(assumed, width)
    for found in story_alerts(scenario, run):
        when = f"step {found.step}" + (f" + {found.seconds} s" if found.seconds else "")
        labels, text = found.alert.labels, found.alert.annotations["description"]
        severity = labels["severity"]
        update = "updated " if found.alert.state == "update" else ""
        lines += wrap(
            f"{when + ':':14}  {update}{severity} {labels['alertname']}: {text}",
            width,
            initial_indent="  ",
            subsequent_indent=" " * 18,
        )
    return lines if len(lines) > len(wrap(assumed, width)) else [*lines, "  nothing"]
