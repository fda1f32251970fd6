"""A second stream that takes over when the first one is gone: both share the checkpoint.

Each batch writes a file to the checkpoint's `offsets`. Collectors send passes all the time, so that
a stream that runs writes one at least every few seconds. Where two wrote the same batch, Spark ends
the one that was late; started again as a standby, it waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from tidemark.core.errors import ConfigError
from tidemark.settings import Settings
from tidemark.stream.session import local_folder

# Four batches of a large cluster. With a start of Spark, it folds again within 60 s.
UNCHANGED_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 1.0

log = structlog.get_logger()


def wait_for_turn(
    settings: Settings, stop: threading.Event, clock: Callable[[], float] = time.monotonic
) -> None:
    """Returns once no stream has written to the checkpoint for a while, or after `stop`.

    Raises ConfigError where the checkpoint is not in a folder of this machine.
    """
    folder = local_folder(settings.stream.checkpoint)
    if folder is None:
        raise ConfigError(
            f"--standby: {settings.stream.checkpoint} is no folder of this machine. Mount it on "
            "both, or leave one stream to the scheduler of the cluster, which starts it again."
        )
    log.info("standby: waits until no stream writes", checkpoint=str(folder))
    newest, since = _newest_batch(folder), clock()
    while clock() - since < UNCHANGED_SECONDS:
        if stop.wait(LOOK_SECONDS):
            return
        if (found := _newest_batch(folder)) != newest:
            newest, since = found, clock()
    log.info("standby: takes over", checkpoint=str(folder), batch=newest)


def _newest_batch(folder: Path) -> int | None:
    """Its number; None where there is none, or the folder cannot be read now."""
    with suppress(OSError):
        names = [path.name for path in (folder / "offsets").iterdir()]
        return max((int(name) for name in names if name.isdecimal()), default=None)
    return None
