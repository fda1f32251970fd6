"""Passes Spark's settings to its JVM in a file: PySpark puts them on a command line, which every
user of the machine can read (`ps`), and Spark writes that line into its event log.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from zlib import crc32

ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
# Option and setting names that Spark redacts on its pages, in logs and in its event log. Its own
# default has the first four.
REDACTED: Final = (
    "(?i)secret|password|token|access[.]?key|account[.]key|private[.]?key|keystore[.]key|"
    "passphrase|credential|jaas"
)


def private_folder(checkpoint: str) -> Path:
    """A new folder for temporary files, of this user alone; it goes when this process ends.

    What killed ones left goes here: a checkpoint has one stream, and so one such folder.
    """
    name = f"tidemark-stream-{crc32(bytes(Path(checkpoint).absolute())):08x}"
    for left in Path(tempfile.gettempdir()).glob(f"{name}-*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=f"{name}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@contextmanager
def settings_in_file(
    conf: Mapping[str, str],
    environ: MutableMapping[str, str] | None = None,
    folder: Path | None = None,
) -> Iterator[Path]:
    """While it is open, PySpark's launcher reads the settings from a file of this user alone."""
    environ = os.environ if environ is None else environ
    before = environ.get(ARGUMENTS)
    with tempfile.TemporaryDirectory(prefix="tidemark-spark-", dir=folder) as private:
        path = Path(private) / "spark.properties"
        # The folder has the mode 0700.
        path.write_text(as_properties(conf), encoding="utf-8")
        environ[ARGUMENTS] = (
            f"--load-spark-defaults --properties-file {shlex.quote(str(path))} "
            f"{before or 'pyspark-shell'}"
        )
        try:
            yield path
        finally:
            environ.pop(ARGUMENTS)
            if before is not None:
                environ[ARGUMENTS] = before


def as_properties(conf: Mapping[str, str]) -> str:
    """The text that java.util.Properties reads as `conf`."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in conf.items())


def _escaped(text: str) -> str:
    return "".join(
        f"\\u{ord(c):04x}"
        if c in "\t\n\r\f" or (ord(c) > 126 and ord(c) < 0x10000)
        else f"\\{c}"
        if c in "\\=:#! "
        else c
        for c in text
    )
