"""Prometheus' text format 0.0.4 and OpenMetrics 1.0, by hand: prepared lines take the values in (20 times cheaper than a Gauge)."""

from __future__ import annotations

from tidemark.core.signals import SIGNALS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CONTENT_TYPE_OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def escape(value: str) -> str:
    """A label value as it stands between quotes: backslash, quote and line feed escaped."""
    return value.translate(_ESCAPES)


def label_set(**labels: object) -> str:
    """`kafka_cluster="a",topic="b"`: the inside of the braces."""
    return ",".join(f'{name}="{escape(str(value))}"' for name, value in labels.items())


def header(name: str, *, openmetrics: bool = False) -> bytes:
    """HELP and TYPE of one metric, with line ends.

    OpenMetrics differs for counters alone: the family goes without `_total`, its samples have it. `name` must be in
    the signals table (KeyError): no metric exists beside it.
    """
    signal = SIGNALS[name]
    of = name.removesuffix("_total") if openmetrics else name
    return f"# HELP {of} {signal.help}\n# TYPE {of} {signal.kind}\n".encode()


def samples(name: str, labels: list[str]) -> bytes:
    """The lines of one metric with a line end each, `%a` where their values stand: `samples(…) % values` writes them all at once."""
    return "".join([f"{name}{{{inside.replace('%', '%%')}}} %a\n" for inside in labels]).encode(
        "utf-8", "replace"
    )
