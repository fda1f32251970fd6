"""What the first batch waits for, done while Java starts and while the query is planned.

A start takes most of its time in one thread after the other: packages, Java, the plan, the Python
worker. On two cores the packages and the worker cost no time beside the others.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from tidemark.stream.session import is_local

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

# Java starts without them. Two threads must not import one package: PySpark imports itself.
LATER: Final = ("pandas", "pyarrow")


def import_packages() -> None:
    """Imports what Java's start needs, and begins with what the query needs.

    Raises ModuleNotFoundError, which names the package, before anything waits.
    """
    import pyspark  # noqa: F401

    for name in LATER:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
    threading.Thread(target=_import, daemon=True).start()


def _import() -> None:
    # The query imports them again, and raises the error in its own thread.
    with suppress(Exception):
        for name in LATER:
            importlib.import_module(name)


def start_worker(spark: SparkSession) -> None:
    """Begins to start the Python worker of a local run, which the first batch uses.

    Elsewhere the executor that gets the first batch is not known.
    """
    if is_local(spark.sparkContext.master or ""):
        threading.Thread(target=_use_worker, args=(spark,), daemon=True).start()


def _use_worker(spark: SparkSession) -> None:
    # The end of the process, or an error that the first batch meets too.
    with suppress(Exception):
        spark.range(1, numPartitions=1).mapInPandas(_same, "id long").collect()


def _same(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    return iter(frames)
