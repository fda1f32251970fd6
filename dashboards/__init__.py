"""Grafana dashboards and Prometheus rules as code; the generated files are committed.

Every metric name comes from the metric table (`tidemark.core.metric_table`). For development only:
not in the wheel.
"""
