"""PromQL whose metrics and labels are in the signals table; a misspelt one fails when the file is built."""

from __future__ import annotations

from tidemark.core.signals import SIGNALS

# The matcher of the dashboards' cluster variable.
CHOSEN = {"kafka_cluster": "=~$kafka_cluster"}


def series(name: str, **matchers: str) -> str:
    """A selector. A matcher's value is an equality, or begins with its operator: "=~a|b", "!=a".

    Raises KeyError for a metric that does not exist, ValueError for a label that it does not have.
    """
    signal = SIGNALS[name]
    parts = []
    for label, value in matchers.items():
        if label not in signal.labels:
            raise ValueError(f"{name} has no label {label}")
        operator = next((o for o in ("=~", "!~", "!=") if value.startswith(o)), "=")
        parts.append(
            f'{label}{operator}"{value.removeprefix(operator if operator != "=" else "")}"'
        )
    return f"{name}{{{','.join(parts)}}}" if parts else name


def chosen(name: str, **matchers: str) -> str:
    """A selector within the clusters that the dashboard shows; Tidemark's own metrics have no cluster."""
    return series(name, **(CHOSEN if "kafka_cluster" in SIGNALS[name].labels else {}), **matchers)


def increase(selector: str, window: str) -> str:
    return f"increase({selector}[{window}])"


def happened(selector: str, window: str) -> str:
    """Whether a counter of the exporter grew within `window`, however little Prometheus saw of it before.

    `increase` alone misses an event that comes together with its series, and one while nothing was scraped. So the value
    is also held against the last one of the day before the window; and where the series is younger than the exporter
    (fewer samples than tidemark_build_info has) what it counts is new. A Prometheus that meets an exporter with old
    counts sees both at once, and is not told of old events.
    """
    young = f"count_over_time({selector}[{window}]) < on (job, instance) group_left () count_over_time({series('tidemark_build_info')}[{window}])"
    return f"{increase(selector, window)} > 0 or {selector} > last_over_time({selector}[1d] offset {window}) or ({selector} > 0 and {young})"


def sum_by(expression: str, *labels: str) -> str:
    return f"sum by ({', '.join(labels)}) ({expression})"
