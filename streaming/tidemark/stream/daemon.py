"""Spark's Python worker daemon, faster to answer: it loads what every task needs before it forks the first worker.

Each Python task of Spark calls `importlib.invalidate_caches()`; Python 3.11 then reads the directory of every archive
on its path again, once for each package imported from it, and pyspark.zip stands on that path. Without archives on
the path PySpark comes from site-packages and that time is gone. Set by `spark.python.daemon.module`; it runs where
Tidemark is installed beside PySpark on the executors, and nowhere else.
"""

from __future__ import annotations

import gc
import importlib.machinery
import sys
import zipfile
import zipimport
from pathlib import Path
from typing import Final

ARCHIVES: Final = (".zip", ".jar", ".egg")


def without_archives(path: list[str]) -> list[str]:
    """`path` without archives; as it is when PySpark in site-packages is missing or is not the one Spark itself carries."""
    kept = [entry for entry in path if not entry.endswith(ARCHIVES)]
    carried = next((entry for entry in path if entry.endswith("pyspark.zip")), None)
    installed = importlib.machinery.PathFinder.find_spec("pyspark", kept)
    if installed is None or installed.origin is None:
        return path
    if carried is not None:
        try:
            with zipfile.ZipFile(carried) as archive:
                same = (
                    archive.read("pyspark/version.py")
                    == Path(installed.origin).with_name("version.py").read_bytes()
                )
        except (OSError, KeyError, zipfile.BadZipFile):
            same = False
        if not same:
            return path
    return kept


def leave_archives() -> None:
    """Takes archives off the path, and out of the cache of finders, which is what `invalidate_caches` goes through."""
    kept = without_archives(sys.path)
    for entry in set(sys.path_importer_cache):
        if isinstance(sys.path_importer_cache[entry], zipimport.zipimporter) and entry not in kept:
            del sys.path_importer_cache[entry]
    sys.path[:] = kept


def preload() -> None:
    """Imports what every worker would import, and takes those objects out of the collector's sight."""
    import pandas  # noqa: F401, ICN001
    import pyarrow  # noqa: F401, ICN001
    import pyspark.worker  # noqa: F401

    import tidemark.stream.fold  # noqa: F401

    # Workers collect garbage after each task: not over the modules, and without touching the pages they share.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    leave_archives()
    preload()
    from pyspark.daemon import manager

    manager()  # type: ignore[no-untyped-call]
