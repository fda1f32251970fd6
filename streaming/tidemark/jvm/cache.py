"""Where downloaded jars, templates and generated files live: $TIDEMARK_CACHE, else ~/.cache/tidemark."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemark.core.errors import TidemarkError


def cache_dir(*parts: str) -> Path:
    """A directory inside the cache, made when it does not exist. Raises TidemarkError when it cannot be made."""
    named = os.environ.get("TIDEMARK_CACHE")
    root = (
        Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "tidemark"
    )
    path = root.expanduser().joinpath(*parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TidemarkError(
            f"cannot write the cache {path}: {error.strerror}. Set TIDEMARK_CACHE to a writable folder."
        ) from None
    return path


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Holds one lock of the cache across processes; the kernel lets go of it when the holder dies."""
    with (cache_dir() / f"{name}.lock").open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
