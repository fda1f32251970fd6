"""Logs of the long-running verbs: structured, on standard error, as text or JSON lines."""

from __future__ import annotations

import sys
from typing import Literal

import structlog


def configure_logs(log_format: Literal["text", "json"]) -> None:
    """Configures structlog for the whole process. Verbs call it after reading their settings."""
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
