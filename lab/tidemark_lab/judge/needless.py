"""The alerts of a run joined to its benign faults by time: those that are needless. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tidemark.core.identity import alert_name
from tidemark.core.records import Alert
from tidemark.core.text import counted, utc
from tidemark_lab.faults.fault import FaultRecord
from tidemark_lab.faults.node_faults import ControlledRestart, Pause, RollingRestart
from tidemark_lab.faults.topic_faults import PreferredElection, Reassignment

# Planned work: no ticket.
SILENT = (ControlledRestart.name, RollingRestart.name, PreferredElection.name, Reassignment.name)
SHORT_PAUSE_SECONDS = 3.0
MAX_WARNINGS = 3
# No benign fault loses or cuts a committed record or elects a leader uncleanly: what claims or
# suspects it is untrue, of any severity. A replica that a reassignment returns does start empty.
UNTRUE_ALERTS = {
    alert_name(detector) for detector in ("COMMITTED_DATA_LOSS", "DIVERGENCE", "UNCLEAN_ELECTION")
}
UNTRUE_CLAIM = re.compile(r"\bcut \d+ records? off\b.*\bwhich was committed\b")
SEVERITIES = ("critical", "warning", "info")


@dataclass
class Caused:
    """A fault, and the alerts that began from its injection to the next one's."""

    fault: FaultRecord | None
    alerts: list[Alert] = field(default_factory=list)

    @property
    def title(self) -> str:
        fault = self.fault
        return "before any fault" if fault is None else f"{fault.name}: {fault.detail}"

    def of(self, severity: str) -> list[Alert]:
        return [alert for alert in self.alerts if alert.labels["severity"] == severity]


def join(faults: Sequence[FaultRecord], alerts: Iterable[Alert]) -> list[Caused]:
    """Each alert that fired, with the last fault injected before the alert's condition began."""
    caused = [Caused(None), *(Caused(fault) for fault in faults)]
    for alert in alerts:
        if alert.state == "firing":
            earlier = (c for c in caused if c.fault is None or c.fault.begin <= alert.starts_at)
            [*earlier][-1].alerts.append(alert)
    return caused


def failures(caused: Sequence[Caused]) -> list[str]:
    """Every reason why the run fails."""
    return [f"{one.title}: {reason}" for one in caused for reason in _failures(one)]


def _failures(one: Caused) -> Iterable[str]:
    for alert in one.of("critical"):
        yield f"critical {_text(alert)}"
    warnings, allowed = one.of("warning"), allowed_warnings(one.fault)
    if len(warnings) > allowed:
        yield f"{counted(len(warnings), 'warning')}, {allowed} allowed"
    elif one.fault is not None:
        for alert in warnings:
            if not names(alert, one.fault):
                yield f"a warning without its broker or partition: {_text(alert)}"
    untrue = [alert for alert in one.alerts if is_untrue(alert)]
    if untrue:
        yield f"{counted(len(untrue), 'untrue claim')}, such as {_text(untrue[0])}"


def allowed_warnings(fault: FaultRecord | None) -> int:
    """0 for planned work, for a pause too short to matter, and where there was no fault."""
    if fault is None or fault.name in SILENT:
        return 0
    is_short = fault.healed_at - fault.begin < SHORT_PAUSE_SECONDS
    return 0 if fault.name == Pause.name and is_short else MAX_WARNINGS


def is_untrue(alert: Alert) -> bool:
    """Whether an alert claims what no benign fault does."""
    claims = UNTRUE_CLAIM.search(alert.annotations["description"]) is not None
    return claims or alert.labels["alertname"] in UNTRUE_ALERTS


def names(alert: Alert, fault: FaultRecord) -> bool:
    """Whether an alert names a broker or a partition that the fault touches."""
    labels, text = alert.labels, alert.annotations["description"]
    if any(labels.get("broker") == str(broker) for broker in fault.brokers):
        return True
    pattern = r"\b(?:broker|leader|controller|node) (\d+)\b"
    if {int(number) for number in re.findall(pattern, text, re.IGNORECASE)} & {*fault.brokers}:
        return True
    partition = labels.get("partition")
    return partition is not None and (labels["topic"], int(partition)) in fault.partitions


def table(caused: Sequence[Caused]) -> str:
    """Per fault, the number of alerts by severity and name, then the totals."""
    lines = []
    for one in caused:
        fault = one.fault
        times = "" if fault is None else f"  [{utc(fault.begin)}, {fault.end - fault.begin:.1f} s]"
        lines.append(f"{one.title}{times}")
        lines += [f"    {line}" for line in _counts(one.alerts)]
    lines.append("total")
    lines += [f"    {line}" for line in totals(alert for one in caused for alert in one.alerts)]
    return "".join(line + "\n" for line in lines)


def _counts(alerts: Iterable[Alert]) -> list[str]:
    counts = Counter((alert.labels["severity"], alert.labels["alertname"]) for alert in alerts)
    return [
        f"{severity:8}  {name:32} {count:4}"
        for severity in SEVERITIES
        for (its, name), count in counts.most_common()
        if its == severity
    ]


def totals(alerts: Iterable[Alert]) -> list[str]:
    """A line for each severity: the number of alerts that fired, and of which name how many."""
    counts = Counter(
        (alert.labels["severity"], alert.labels["alertname"])
        for alert in alerts
        if alert.state == "firing"
    )
    lines = []
    for severity in SEVERITIES:
        own = {name: count for (its, name), count in counts.most_common() if its == severity}
        by_name = ", ".join(f"{name} {count}" for name, count in own.items())
        lines.append(f"{severity:8} {sum(own.values()):4}  {by_name}".rstrip())
    return lines


def _text(alert: Alert) -> str:
    return f"{alert.labels['alertname']}: {alert.annotations['description']}"
