"""The committed list of surviving mutants, each with the reason why no test kills it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.mutation.results import Mutant

LIST = Path(__file__).parent / "survivors.yaml"


class Listed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry: several changes of a function may share a reason."""

    function: str
    reason: str
    changes: list[str]
    # Whether the reason proves that no input shows the changes: they do not count.
    equivalent: bool = False


def read_list(path: Path = LIST) -> list[Listed]:
    """The committed list; an unknown or missing field is an error that names it."""
    return msgspec.yaml.decode(path.read_bytes(), type=list[Listed])


def compare(
    survivors: Iterable[Mutant], listed: Iterable[Listed]
) -> tuple[list[Mutant], list[tuple[str, str]]]:
    """(survivors that are not listed, listed changes that no longer survive).

    Equal changes are counted.
    """
    known = Counter(
        (entry.function, change.strip()) for entry in listed for change in entry.changes
    )
    fresh = []
    for mutant in survivors:
        key = (mutant.function, mutant.change)
        if known[key] > 0:
            known[key] -= 1
        else:
            fresh.append(mutant)
    return fresh, sorted(known.elements())


def proven_equivalent(survivors: Iterable[Mutant], listed: Iterable[Listed]) -> Counter[str]:
    """How many survivors of each module an entry proves to be equivalent."""
    proven, found = Counter[tuple[str, str]](), Counter[str]()
    for entry in listed:
        if entry.equivalent:
            proven.update((entry.function, change.strip()) for change in entry.changes)
    for mutant in survivors:
        key = (mutant.function, mutant.change)
        if proven[key] > 0:
            proven[key] -= 1
            found[mutant.function.rpartition(".")[0]] += 1
    return found


def as_yaml(mutants: Iterable[Mutant]) -> str:
    """Survivors in the form of the list, without reasons."""
    entries: dict[str, list[str]] = {}
    for mutant in mutants:
        entries.setdefault(mutant.function, []).append(mutant.change)
    lines: list[str] = []
    for function, changes in entries.items():
        lines += [f"- function: {function}", "  reason: ", "  changes:"]
        for change in changes:
            lines += ["    - |-", *(f"      {line}" for line in change.splitlines())]
    return "\n".join(lines)
