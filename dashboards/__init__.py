"""Grafana dashboards and Prometheus rules as code; the generated files are committed beside the builders.

Every metric name comes from the signals table (`tidemark.core.signals`). Development only: not in the wheel.
"""
