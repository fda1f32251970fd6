"""The cache of jars, templates and generated files: $TIDEMARK_CACHE, else ~/.cache/tidemark."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemark.core.errors import TidemarkError


def cache_dir(*parts: str) -> Path:
    """A directory inside the cache, created if needed. Raises TidemarkError."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "tidemark"
    path = Path(os.environ.get("TIDEMARK_CACHE") or home).expanduser().joinpath(*parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TidemarkError(
            f"cannot write the cache {path}: {error.strerror}. "
            "Set TIDEMARK_CACHE to a writable folder."
        ) from None
    return path


@contextmanager
def cache_lock(name: str) -> Iterator[None]:
    """One lock of the cache, held across processes; the kernel releases it when its holder dies."""
    with (cache_dir() / f"{name}.lock").open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
