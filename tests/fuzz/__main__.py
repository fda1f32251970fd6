"""`python -m tests.fuzz [TARGET…] --seconds 600`: hostile inputs for each parser.

Exit status 1 where an input raised another error than the parser's own, took more than a second of
CPU time, or made the process grow. The input is kept: `--input FILE` gives it to the parser again.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import traceback
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import structlog

from tests.fuzz.mutate import mutant
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

MAX_SECONDS: Final = 1.0
MAX_GROWTH_MEBIBYTES: Final = 256
MAX_FINDINGS: Final = 20


class Finding(NamedTuple):
    what: str
    data: bytes


def trial(target: Target, data: bytes) -> str | None:
    """What is wrong with the answer to one input."""
    began = time.process_time()
    try:
        target.call(data)
    except target.errors:
        pass
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
        return f"{type(error).__name__} at {place}: {error}"[:300]
    taken = time.process_time() - began
    return f"{taken:.1f} s of CPU time" if taken > MAX_SECONDS else None


def fuzz(
    name: str, seconds: float, seed: int, count: int | None = None
) -> tuple[int, list[Finding]]:
    """Inputs until the time or their number is over: how many, and one finding for each kind."""
    random, found, number = Random(f"{name}-{seed}"), dict[str, Finding](), 0
    with TARGETS[name]() as target:
        for data in target.seeds:
            problem = trial(target, data)
            assert problem is None, f"{name}: a valid input: {problem}"
        grown = peak_mebibytes()
        until = time.monotonic() + seconds
        while time.monotonic() < until and number != count and len(found) < MAX_FINDINGS:
            data = mutant(target.seeds, random)
            number += 1
            problem = trial(target, data)
            if problem is not None:
                kind = "slow" if "CPU time" in problem else problem.partition(":")[0] + problem[:60]
                found.setdefault(kind, Finding(problem, data))
            grown_to = peak_mebibytes()
            if grown_to > grown + MAX_GROWTH_MEBIBYTES:
                found["memory"] = Finding(f"the process grew by {grown_to - grown} MiB", data)
                break
    return number, list(found.values())


def peak_mebibytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=600.0, help="for each target")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--input", type=Path, help="only this input")
    given = parser.parse_args()
    if unknown := set(given.targets) - TARGETS.keys():
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    failed = False
    for name in given.targets or TARGETS:
        if given.input is not None:
            with TARGETS[name]() as target:
                print(trial(target, given.input.read_bytes()) or "nothing is wrong")
            continue
        number, found = fuzz(name, given.seconds, given.seed)
        print(
            f"{name}: {number:,} inputs with seed {given.seed}, {len(found)} findings, "
            f"at most {peak_mebibytes()} MiB",
            flush=True,
        )
        for each in found:
            given.keep.mkdir(exist_ok=True)
            path = given.keep / f"{name}-{sha256(each.data).hexdigest()[:12]}"
            path.write_bytes(each.data)
            print(f"  {each.what}\n    {path}")
        failed = failed or bool(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
