"""PromQL over the metric table: a misspelt metric or label fails when the file is built."""

from __future__ import annotations

from tidemark.core.metric_table import METRICS

# Of an annotation: it holds two samples of a counter also where Prometheus scrapes once a minute.
RECENT = "3m"
# For the description of a panel with `increase`: Prometheus extrapolates to the edges of a window
# that is four scrapes long and holds the growth of three.
ESTIMATED = "Estimated from the scrapes around each point: one event may show as 1.33."
# For that of a panel with `counted`.
EXACT = "Exact unless the exporter restarted in it."
# For that of a panel with `worst`.
FEW = "The six worst of the time range."
# More lines of brokers or causes than this hide their names, and the names hide the lines.
LINES = 6
# The matcher of the dashboards' cluster variable.
CHOSEN = {"kafka_cluster": "=~$kafka_cluster"}


def series(name: str, **matchers: str) -> str:
    """A selector. The value of a matcher may begin with its operator: "=~a|b", "!=a"; default "=".

    Raises KeyError for an unknown metric, ValueError for a label that the metric does not have.
    """
    definition = METRICS[name]
    parts = []
    for label, value in matchers.items():
        if label not in definition.labels:
            raise ValueError(f"{name} has no label {label}")
        operator = next((o for o in ("=~", "!~", "!=") if value.startswith(o)), "=")
        parts.append(
            f'{label}{operator}"{value.removeprefix(operator if operator != "=" else "")}"'
        )
    return f"{name}{{{','.join(parts)}}}" if parts else name


# Of an exporter, and of no other process.
EXPORT_BUILD = series("tidemark_build_info", component="export")


def chosen(name: str, **matchers: str) -> str:
    """A selector within the chosen clusters, unless the metric has no cluster label."""
    return series(name, **(CHOSEN if "kafka_cluster" in METRICS[name].labels else {}), **matchers)


def pass_age() -> str:
    """Seconds since the newest evaluated pass of each chosen cluster."""
    return f"time() - {chosen('tidemark_last_pass_timestamp_seconds')}"


def increase(selector: str, window: str) -> str:
    return f"increase({selector}[{window}])"


def worst(expression: str, rank: str, *, least: bool = False, count: int = LINES) -> str:
    """The series with the largest `rank`, or the least, over the whole range that is shown.

    `count`: how many. The queries of one panel share LINES.
    """
    return f"{expression} and {'bottomk' if least else 'topk'}({count}, {rank})"


def largest(selector: str, count: int = LINES) -> str:
    return worst(selector, f"max_over_time({selector}[$__range] @ end())", count=count)


def smallest(selector: str) -> str:
    return worst(selector, f"min_over_time({selector}[$__range] @ end())", least=True)


def most_grown(selector: str, count: int = LINES) -> str:
    rank = f"increase({selector}[$__range] @ end())"
    return worst(increase(selector, "$__rate_interval"), rank, count=count)


def counted(selector: str, window: str) -> str:
    """How much a counter grew within `window`, exactly while the process did not restart.

    `increase` extrapolates to the edges of the window: 7 becomes 7.17. After a restart it is taken
    nevertheless, because no other function adds up what was counted before.
    """
    exact = f"max_over_time({selector}[{window}]) - min_over_time({selector}[{window}])"
    return f"({exact}) and resets({selector}[{window}]) == 0 or {increase(selector, window)}"


def happened(selector: str, window: str) -> str:
    """Whether a counter of the exporter grew within `window`, even with few samples before.

    `increase` misses an event that creates its series, and an event between two scrapes that are
    far apart. Therefore:
    * the value is also compared with the last one of the day before the window;
    * in a series that is younger than the exporter (fewer samples than its tidemark_build_info),
      any count is new.
    A new Prometheus sees the exporter and its old counts at the same time: it reports no old event.
    After an upgrade, the window has a tidemark_build_info of each version. A join needs one.
    """
    samples = f"count_over_time({EXPORT_BUILD}[{window}])"
    build = f"max by (job, instance) ({samples})"
    young = f"count_over_time({selector}[{window}]) < on (job, instance) group_left () {build}"
    earlier = f"last_over_time({selector}[1d] offset {window})"
    grown = f"{increase(selector, window)} > 0"
    return f"{grown} or {selector} > {earlier} or ({selector} > 0 and {young})"


def sum_by(expression: str, *labels: str) -> str:
    return f"sum by ({', '.join(labels)}) ({expression})"
