"""Logs of the long-running verbs: structured, on standard error, as text or JSON lines."""

from __future__ import annotations

import logging
import os
import sys
from typing import Final, Literal

import structlog

from tidemark.core.text import printable_lines

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")


def configure_logs(
    log_format: Literal["text", "json"],
    level: Literal["debug", "info", "warning", "error"] = "info",
) -> None:
    """Configures structlog for the whole process. Verbs call it after reading their settings.

    Text is coloured on a terminal, unless NO_COLOR is set to anything (no-color.org).
    """
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        )
    )
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *([] if log_format == "json" else [_escape]),
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _escape(
    _logger: object, _method: str, entry: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Values may be names that others chose. JSON escapes by itself."""
    return {
        key: printable_lines(value) if isinstance(value, str) else value
        for key, value in entry.items()
    }
