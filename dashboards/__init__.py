"""Grafana dashboards and Prometheus rules as code; the generated files are committed.

Every metric name comes from the signals table (`tidemark.core.signals`). For development only: not
in the wheel.
"""
