"""The definition behind a sample's name, for tests that read expositions, queries and documents."""

from __future__ import annotations

from tidemark.core.metric_table import METRICS, MetricDefinition


def definition_of(sample: str) -> MetricDefinition:
    """The definition of that name, or the histogram of a `_bucket`, `_sum` or `_count` sample.

    Raises KeyError for a name that is not in the table.
    """
    histogram = METRICS.get(sample.rpartition("_")[0])
    if (
        histogram is not None
        and histogram.kind == "histogram"
        and sample.endswith(("_bucket", "_sum", "_count"))
    ):
        return histogram
    return METRICS[sample]
