"""Logs of the long-running verbs: events with fields, to standard error, as text or one JSON object a line."""

from __future__ import annotations

import sys
from typing import Literal

import structlog


def configure_logs(log_format: Literal["text", "json"]) -> None:
    """Sets structlog up for the whole process; a verb calls it once its configuration is read."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
