"""SHA-256 sums of jars that are fetched, in a file in the form of sha256sum.

Ivy compares a jar with a sum from the same registry, which a proxy can replace together with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tidemark.core.errors import TidemarkError

# Of Spark's Kafka connector.
SUMS: Final = Path(__file__).with_name("jars.sha256")


def known_sums(file: Path = SUMS) -> dict[str, str]:
    """File name -> SHA-256 in hexadecimal digits."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def check_sums(file: Path, roots: Iterable[str], jars: Iterable[Path]) -> list[str]:
    """The names of jars without a committed sum: some, where not every root has one.

    Raises TidemarkError for a jar that differs from its sum, and for an unlisted one beside listed
    roots.
    """
    sums = known_sums(file)
    listed = all(root in sums for root in roots)
    unlisted = []
    for jar in jars:
        expected = sums.get(jar.name)
        if expected is None and listed:
            raise TidemarkError(
                f"{jar.name} was fetched but is not in the list of jars. Do not use it: ask who "
                "runs the registry or proxy, or give a folder of jars that you trust "
                "(TIDEMARK_JARS)."
            )
        if expected is None:
            unlisted.append(jar.name)
        elif digest(jar) != expected:
            raise TidemarkError(
                f"{jar.name} as fetched has another SHA-256 sum than the one in the list of jars. "
                "Do not use it: a proxy or the registry gave another file. Try another network, "
                "or give a folder of jars that you trust (TIDEMARK_JARS)."
            )
    return unlisted


def digest(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
