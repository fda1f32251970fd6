"""PromQL whose metrics and labels are in the signals table; a misspelt one fails when the file is built."""

from __future__ import annotations

from tidemark_exporters.signals import SIGNALS

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
        parts.append(f'{label}{operator}"{value.removeprefix(operator if operator != "=" else "")}"')
    return f"{name}{{{','.join(parts)}}}" if parts else name


def chosen(name: str, **matchers: str) -> str:
    """A selector within the clusters that the dashboard shows; Tidemark's own metrics have no cluster."""
    return series(name, **(CHOSEN if "kafka_cluster" in SIGNALS[name].labels else {}), **matchers)


def increase(selector: str, window: str) -> str:
    return f"increase({selector}[{window}])"


def sum_by(expression: str, *labels: str) -> str:
    return f"sum by ({', '.join(labels)}) ({expression})"
