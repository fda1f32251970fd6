"""Whether a broker holds the lock of its log directory (FileLock, in LogManager.lockLogDirs)."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from pathlib import Path
from typing import Final

LOCK: Final = ".lock"
# struct flock of Linux: type, whence, start, length, process.
_FLOCK: Final = "@hhqqi"


def is_locked(directory: Path) -> bool | None:
    """True while a process holds the lock. Asks the kernel and takes no lock itself.

    None where that is unknown: no right to read the file, or another system than Linux. A broker
    deletes the file when it stops in order.
    """
    if sys.platform != "linux":
        return None
    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        holder = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))[0]
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return bool(holder != fcntl.F_UNLCK)
