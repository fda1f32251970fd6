"""The log of kafka-python: silent, because it repeats with tracebacks what our errors say in one
line; on demand, through the log of the process, without its secrets.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import structlog

LEVELS: Final = ("none", "error", "warning", "info", "debug")
_LOGGER: Final = "kafka"
_SILENT: Final = logging.CRITICAL + 1
# A request of a broken broker can name thousands of partitions.
MAX_CHARACTERS: Final = 2_000
_HIDDEN: Final = "(hidden)"


def quiet_client_logs() -> None:
    """Silences it, unless `show_client_log` has given it a level."""
    logger = logging.getLogger(_LOGGER)
    if not any(isinstance(handler, _ToStructlog) for handler in logger.handlers):
        logger.setLevel(_SILENT)


def show_client_log(level: str) -> None:
    """Adds its lines of this level and worse to ours; `none` silences it."""
    logger = logging.getLogger(_LOGGER)
    for handler in [each for each in logger.handlers if isinstance(each, _ToStructlog)]:
        logger.removeHandler(handler)
    if level == "none":
        logger.setLevel(_SILENT)
        return
    logger.setLevel(logging.getLevelNamesMapping()[level.upper()])
    logger.addHandler(_ToStructlog())
    logger.propagate = False


class _ToStructlog(logging.Handler):
    """A line of kafka-python as one of ours, at the level info or worse."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = without_secrets(record)
        except Exception as error:
            # A line of another library must not end a thread of ours.
            text = f"{type(error).__name__} in the line {record.msg!r}"
        level = logging.WARNING if record.levelno > logging.INFO else logging.INFO
        structlog.get_logger().log(
            level, "kafka-python", module=record.name, line=" ".join(text.split())[:MAX_CHARACTERS]
        )


def without_secrets(record: logging.LogRecord) -> str:
    """The message; requests that log in, their bytes, and options with passwords are hidden."""
    args = record.args
    if isinstance(args, Mapping):
        return f"{record.msg} {_HIDDEN}"
    return str(record.msg) % tuple(map(_shown, args or ())) if args else str(record.msg)


def _shown(value: Any) -> Any:
    """Only what kafka-python logs with a secret inside: its options, and requests of SASL.

    It also logs each request as the bytes that it sends.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value)} bytes"
    if isinstance(value, Mapping) or "Sasl" in type(value).__name__:
        return f"{type(value).__name__} {_HIDDEN}"
    return value
