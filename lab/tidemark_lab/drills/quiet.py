"""The logs of a drill: its progress and its result are all that it prints."""

from __future__ import annotations

import logging

import structlog

from tidemark.kafka.client_log import quiet_client_logs


def quiet_logs() -> None:
    """The collector reports refused answers, which brokers give while they start."""
    quiet_client_logs()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
