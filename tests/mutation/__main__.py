"""`make mutation`: does a test fail when the reducer or an important detector is wrong?

mutmut makes one change at a time (an operator, a constant, a string, an argument) in each function
of the modules in workspace.py, and runs the tests that reach it until one fails. Changed strings
count too: people and programs read descriptions, causes, verdicts and keys of evidence. Assertions
are left out.

`python -m tests.mutation loss_proof divergence` runs these modules only. `--children N` tests N
mutants at a time (default: one per core). Exit code 1 when less than 95 % of the mutants are
killed, without those that survivors.yaml proves to be equivalent, or when one survives that it does
not list with a reason.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.mutation.results import Module, read_module
from tests.mutation.survivors import LIST, as_yaml, compare, proven_equivalent, read_list
from tests.mutation.workspace import FOLDER, ROOT, TARGETS, prepare

TARGET_PERCENT = 95.0


def chosen(names: list[str]) -> list[str]:
    """Targets by their last names; all of them without any name."""
    known = {target.rpartition(".")[2]: target for target in TARGETS}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no such module: {', '.join(unknown)}. There are: {', '.join(known)}")
    return [target for name, target in known.items() if not names or name in names]


def mutate(children: int) -> None:
    """Runs mutmut in the work folder; it prints its progress."""
    command = [
        str(Path(sys.executable).with_name("mutmut")),
        "run",
        "--max-children",
        str(children),
    ]
    code = subprocess.run(
        command, cwd=FOLDER, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, check=False
    ).returncode
    if code != 0:
        sys.exit(
            f"mutmut ended with {code} (see its output above). The tests must pass on the code "
            "without mutants."
        )


def table(modules: list[Module], equivalent: Counter[str]) -> list[str]:
    """A line per module, and one for all. Equivalent mutants do not count."""
    lines = [f"{'module':<28} {'mutants':>8} {'killed':>8} {'survived':>9} {'score':>8}"]
    rows = [
        (module.name, module.count - equivalent[module.name], module.killed) for module in modules
    ]
    _, counts, killed = zip(*rows, strict=True)
    lines += [
        f"{name:<28} {n:>8} {k:>8} {n - k:>9} {percent(n, k):>6.1f} %"
        for name, n, k in (*rows, ("all", sum(counts), sum(killed)))
    ]
    return lines


def percent(count: int, killed: int) -> float:
    return 100.0 * killed / count if count else 100.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument(
        "modules", nargs="*", help="last names of the modules, such as loss_proof; all without any"
    )
    parser.add_argument(
        "--children", type=int, default=os.cpu_count() or 1, help="mutants tested at a time"
    )
    arguments = parser.parse_args()
    targets = chosen(arguments.modules)
    began = time.monotonic()
    prepare(targets)
    mutate(arguments.children)
    modules = [read_module(name, FOLDER) for name in targets]
    minutes = (time.monotonic() - began) / 60
    survivors = [mutant for module in modules for mutant in module.survivors]
    listed = [entry for entry in read_list() if entry.function.rpartition(".")[0] in targets]
    fresh, gone = compare(survivors, listed)
    equivalent = proven_equivalent(survivors, listed)
    print("\n" + "\n".join(table(modules, equivalent)))
    print(f"{equivalent.total()} equivalent mutants left out")
    print(f"{minutes:.1f} minutes, {arguments.children} at a time")
    name = LIST.relative_to(ROOT)
    if gone:
        print(f"\n{len(gone)} entries of {name} survive no longer, remove them:")
        print("\n".join(f"  {function}: {change}" for function, change in gone))
    if fresh:
        print(f"\n{len(fresh)} survivors are not in {name}:\n{as_yaml(fresh)}")
    count = sum(module.count for module in modules) - equivalent.total()
    score = percent(count, sum(module.killed for module in modules))
    if score < TARGET_PERCENT:
        print(f"\n{score:.1f} % killed, the target is {TARGET_PERCENT:.0f} %")
    return 1 if fresh or score < TARGET_PERCENT else 0


if __name__ == "__main__":
    sys.exit(main())
