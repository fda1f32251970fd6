"""What docs/permissions.md lists: the rights of verbs, and the alerts with Describe alone."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final, NamedTuple

from tests.conftest import ROOT

PAGE: Final = ROOT / "docs" / "permissions.md"
_SECTION: Final = "## On the Kafka that has Tidemark's topics"
_DESCRIBE: Final = "### Alerts with Describe alone"
_ROW: Final = re.compile(r"^\| `([^`]+)` \| (\w+) \| (Topic|Group)s? ([^|;]+)", re.MULTILINE)
_OPTIONAL: Final = re.compile(
    r"^\| (\w+) \| (?:(Topic)s? `([^`]+)`( \(prefixed\))?|(Cluster)) \| `", re.MULTILINE
)


class Right(NamedTuple):
    """`kind` is topic, group or cluster, `operation` in the words of kafka-acls.sh."""

    operation: str
    kind: str
    name: str
    prefixed: bool = False


def rights_of_verbs() -> dict[str, set[Right]]:
    """Verb -> its rights. Describe, which Read and Write imply, is not among them."""
    found: dict[str, set[Right]] = defaultdict(set)
    for verb, operation, kind, names in _ROW.findall(_section()):
        prefixed = "(prefixed)" in names
        for name in re.findall(r"`([^`]+)`", names):
            found[verb].add(Right(operation, kind.lower(), name, prefixed))
    return dict(found)


def optional_rights() -> set[Right]:
    """Those of the second table."""
    return {
        Right(operation, "cluster", "")
        if cluster
        else Right(operation, kind.lower(), name, bool(prefixed))
        for operation, kind, name, prefixed, cluster in _OPTIONAL.findall(_section())
    }


def alerts_with_describe_alone() -> dict[str, set[str]]:
    """Alert -> never, less or more; all other alerts are the same as with all rights."""
    _, _, section = PAGE.read_text(encoding="utf-8").partition(_DESCRIBE)
    rows = re.findall(r"^\| (Kafka[\w, ]+) \| ([a-z, ]+):", section, re.MULTILINE)
    return {name: {*words.split(", ")} for names, words in rows for name in names.split(", ")}


def _section() -> str:
    return PAGE.read_text(encoding="utf-8").partition(_SECTION)[2]
