"""Lists the jars of new versions of Kafka: `python -m tests.versions.sums VERSION…`.

Fetches them, checked against the registry's own checksums, and writes their SHA-256 sums into the
list of the laboratory. A jar that is listed with another sum is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidemark.core.errors import TidemarkError
from tidemark.jvm.jars import digest, known_sums
from tidemark_lab.brokers.jars import SUMS
from tidemark_lab.brokers.versions import kafka_version


def merged(known: Mapping[str, str], jars: Sequence[Path]) -> dict[str, str]:
    """File name -> sum, by name. Raises TidemarkError."""
    found = {jar.name: digest(jar) for jar in jars}
    for name in known.keys() & found.keys():
        if known[name] != found[name]:
            raise TidemarkError(f"{name} is listed with another SHA-256 sum. Do not use it.")
    return dict(sorted({**known, **found}.items()))


def main(versions: Sequence[str]) -> int:
    sums = known_sums(SUMS)
    for version in versions:
        sums = merged(sums, kafka_version(version).jars())
    lines = (f"{digest}  {name}\n" for name, digest in sums.items())
    SUMS.write_text("".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
