"""A faster Python worker daemon for Spark: imports what every task needs before the first fork.

Each Python task of Spark calls `importlib.invalidate_caches()`. Python 3.11 then reads the
directory of every archive on its path again, once for each package imported from it, and
pyspark.zip is on that path. Without archives on the path, PySpark comes from site-packages and
tasks save that time. Set by `spark.python.daemon.module`; it needs Tidemark installed beside
PySpark on the executors.
"""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import runpy
import sys
import zipfile
import zipimport
from contextlib import suppress
from pathlib import Path
from typing import Final

ARCHIVES: Final = (".zip", ".jar", ".egg")


def without_archives(path: list[str]) -> list[str]:
    """`path` without archives.

    Unchanged when site-packages has no PySpark, or another one than the archive.
    """
    kept = [entry for entry in path if not entry.endswith(ARCHIVES)]
    archive = next((entry for entry in path if entry.endswith("pyspark.zip")), None)
    installed = importlib.machinery.PathFinder.find_spec("pyspark", kept)
    if installed is None or installed.origin is None:
        return path
    if archive is not None:
        try:
            with zipfile.ZipFile(archive) as opened:
                same = (
                    opened.read("pyspark/version.py")
                    == Path(installed.origin).with_name("version.py").read_bytes()
                )
        except (OSError, KeyError, zipfile.BadZipFile):
            same = False
        if not same:
            return path
    return kept


def remove_archives() -> None:
    """Removes archives from the path and from the finders that `invalidate_caches` visits."""
    kept = without_archives(sys.path)
    for entry in set(sys.path_importer_cache):
        if isinstance(sys.path_importer_cache[entry], zipimport.zipimporter) and entry not in kept:
            del sys.path_importer_cache[entry]
    sys.path[:] = kept


def preload() -> None:
    """Imports what every worker imports, and excludes those objects from garbage collection."""
    import pandas  # noqa: F401, ICN001
    import pyarrow  # noqa: F401, ICN001

    import tidemark.stream.fold  # noqa: F401

    with suppress(ImportError):
        importlib.import_module("pyspark.worker")
    # Workers collect garbage after each task: without this they copy the pages they share.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    remove_archives()
    preload()
    # What Spark itself starts where spark.python.daemon.module is not set.
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
