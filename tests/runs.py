"""Long runs from the command line: `python -m tests.soak`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

from tidemark.core.errors import TidemarkError
from tidemark.kafka.client_log import quiet_client_logs


def exit_code(name: str, run: Callable[[], int]) -> int:
    """Of a run that SIGTERM and SIGHUP interrupt as Ctrl-C does; its errors are one line."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    quiet_client_logs()
    try:
        return run()
    except TidemarkError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
