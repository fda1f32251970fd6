"""The verdict on each mutant, from the files that mutmut writes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import orig_function_and_class_names_from_key

# An endless loop is noticed too.
KILLED = ("killed", "timeout")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mutant that no test killed. `change`: its -/+ lines without their indentation."""

    function: str
    change: str
    status: str


@dataclass(frozen=True, slots=True)
class Module:
    """One mutated module."""

    name: str
    count: int
    survivors: tuple[Mutant, ...]

    @property
    def killed(self) -> int:
        return self.count - len(self.survivors)


def read_module(name: str, folder: Path) -> Module:
    """The verdicts on a module. A mutant that was not tested has survived."""
    path = Path("src/tidemark") / f"{name.replace('.', '/')}.py"
    # mutmut finds its files relative to the working folder only.
    with contextlib.chdir(folder):
        data = SourceFileMutationData(path=path)
        data.load()
        survivors = [
            Mutant(
                f"{name}.{_function(key)}", change_of(get_diff_for_mutant(key, path=path)), status
            )
            for key, code in data.exit_code_by_key.items()
            if (status := status_by_exit_code[code]) not in KILLED
        ]
    return Module(name, len(data.exit_code_by_key), tuple(survivors))


def _function(key: str) -> str:
    function, owner = orig_function_and_class_names_from_key(key)
    return function if owner is None else f"{owner}.{function}"


def change_of(diff: str) -> str:
    """Only the changed lines of a unified diff."""
    lines = (
        line
        for line in diff.splitlines()
        if line[:1] in ("-", "+") and not line.startswith(("---", "+++"))
    )
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in lines)
