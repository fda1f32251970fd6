"""One drill in a process of its own.

`python -m tidemark_lab.drills.worker NAME VERSION FILE [DIR]`.
Progress goes to standard output, the result to FILE. SIGTERM ends the drill and its brokers.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
import structlog

from tidemark.kafka.client_log import quiet_client_logs
from tidemark_lab.brokers.signals import exit_on
from tidemark_lab.drills.run import run_drill
from tidemark_lab.drills.schedules.table import find_drill


def quiet_logs() -> None:
    """A drill prints its progress and its result alone.

    The collector reports refused answers, which brokers give while they start.
    """
    quiet_client_logs()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def main(arguments: Sequence[str]) -> int:
    name, version, file, *record = arguments
    exit_on(signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    quiet_logs()
    began = time.monotonic()

    def say(text: str) -> None:
        click.echo(f"[{time.monotonic() - began:5.1f} s] {name} on {version}: {text}")

    result = run_drill(find_drill(name), version, Path(record[0]) if record else None, say)
    Path(file).write_bytes(msgspec.json.encode(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
