"""Fills the blocks of the chapters in docs/replication, and of their list in docs/replication.md.

`python -m tests.docs.replication` (`make docs`) writes them, `--check` only compares.

A block is between two comments. The first says what belongs there, the last is `<!-- end -->`:

    <!-- model show NAME --protocol P --steps 4-7,12 --without "produce,fetch" -->
        rows of a scenario's table
    <!-- model show NAME --protocol P --logs 4,7,12 -->
        the replica logs after these steps
    <!-- model ends NAME --protocol P Q -->
        the last logs and the verdict under each protocol
    <!-- model counterexample kip-101.WeakIsr -->
        a committed result of `tidemark model check`
    <!-- model list protocols -->
        a table of the protocols
    <!-- model list offsets -->
        which events move which of the five values, in all scenarios under one protocol
    <!-- model list completions -->
        which events complete which requests that wait, in the same runs
    <!-- kafka links -->
        the definitions of the links to KIPs and to Kafka's sources

A table omits the columns that are empty in its rows. `--without epochs` removes the leader epochs
from the columns of the brokers.
"""

from __future__ import annotations

import re
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from textwrap import wrap
from typing import Final, NamedTuple, NoReturn

from tests.conftest import ROOT
from tests.docs.kafka_links import definitions
from tests.model.golden import FOLDER
from tidemark.core.text import counted
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.scenarios import SCENARIOS
from tidemark_lab.model.scenarios.effects import REQUESTS, VALUES, effects
from tidemark_lab.model.scenarios.excerpt import excerpt, parse_ranges, side_by_side, without
from tidemark_lab.model.scenarios.render import draw_cluster, table_cells, verdict
from tidemark_lab.model.scenarios.run import ScenarioRun

INDEX: Final = ROOT / "docs" / "replication.md"
CHAPTERS: Final = ROOT / "docs" / "replication"
PAGES: Final = (INDEX, *sorted(CHAPTERS.glob("*.md")))
BLOCK: Final = re.compile(
    r"^<!-- (?P<order>(?:model|kafka) .+?) -->\n(?P<text>.*?)^<!-- end -->$",
    flags=re.MULTILINE | re.DOTALL,
)
# The width of a code block that hosting sites show without a scroll bar.
WIDTH: Final = 110
MIN_LAST_COLUMN_WIDTH: Final = 32
EPOCHS: Final = "epochs"
# Parts of a counterexample's file name, and their options of `tidemark model check`.
OPTIONS: Final = {
    "three-replicas": "--replicas 3",
    "epochs-to-3": "--records 3 --max-epoch 3",
    "lossy-disk": "--lossy-disk",
    "min-isr-2": "--min-isr 2",
    "unclean-election": "--unclean-election",
}


# The events of the generated tables, with the methods of a scenario that stand for each.
EVENTS: Final = {
    "The leader appends ([`Partition.scala:1363-1387`])": ("write", "write_in", "end"),
    "A follower's fetch reaches the leader ([`Partition.scala:918-958`])": ("fetch", "read"),
    "The follower gets the response ([`ReplicaFetcherThread.scala:107-151`])": ("receive",),
    "A change of the ISR takes effect ([`Partition.scala:1238-1267`])": ("grant",),
    "A broker becomes leader ([`Partition.scala:733-829`])": ("learn to lead",),
    "A broker becomes follower ([`Partition.scala:839-883`])": ("learn to follow", "learn_late"),
    "A broker stops, and starts from its checkpoint ([`Partition.scala:490-497`])": (
        "kill",
        "shut_down",
        "start",
    ),
    "A machine loses power ([`LogLoader.java:466-518`])": ("lose_power",),
    "A fetch that found nothing is added to the watcher list "
    "([`DelayedOperationPurgatory.java:123-175`])": ("watch",),
    "A record is appended to another partition of the fetch": ("append_elsewhere",),
    "The last partition of a produce request is committed": ("commit_elsewhere",),
    "Time passes ([`DelayedOperation.java:147-149`])": ("pass",),
}
# The consumer that the generated tables add to every scenario.
READER: Final = 9


class StepTable(NamedTuple):
    """The table of a scenario, cell by cell. `steps[0]` is the initial state."""

    heading: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]


def step_table(run: ScenarioRun) -> StepTable:
    """The table with all columns, including empty ones."""
    heading, *steps = table_cells(run)
    return StepTable(heading, tuple(steps))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{self.prog}: {message}")


def _parse(order: str) -> Namespace:
    parser = _Parser(prog="docs/replication")
    subjects = parser.add_subparsers(dest="subject", required=True)
    links = subjects.add_parser("kafka")
    links.add_argument("verb", choices=("links",))
    verbs = subjects.add_parser("model").add_subparsers(dest="verb", required=True)
    show = verbs.add_parser("show")
    show.add_argument("name", choices=SCENARIOS)
    show.add_argument("--protocol", choices=PROTOCOLS)
    what = show.add_mutually_exclusive_group(required=True)
    what.add_argument("--steps", type=parse_ranges)
    what.add_argument("--logs", type=parse_ranges)
    show.add_argument("--without", type=_names, default=[])
    ends = verbs.add_parser("ends")
    ends.add_argument("name", choices=SCENARIOS)
    ends.add_argument("--protocol", nargs="+", choices=PROTOCOLS, required=True)
    verbs.add_parser("counterexample").add_argument("name")
    verbs.add_parser("list").add_argument("what", choices=("protocols", "offsets", "completions"))
    return parser.parse_args(shlex.split(order))


def block(text: str, page: str = "") -> list[str]:
    """The lines of one block of a page."""
    order = _parse(text)
    match order.verb:
        case "show":
            return _steps(order) if order.steps else _logs(order)
        case "ends":
            return _ends(order)
        case "counterexample":
            return _counterexample(order.name)
        case "links":
            return ["", *definitions(page), ""]
        case _:
            return {"protocols": _protocols, "offsets": _offsets, "completions": _completions}[
                order.what
            ]()


def _run(order: Namespace, ranges: list[range]) -> tuple[ScenarioRun, str]:
    """The run that an order asks for, and the command that shows it."""
    run = SCENARIOS[order.name].run(order.protocol)
    missing = [step for steps in ranges for step in steps if step >= len(run.steps)]
    if missing:
        raise ValueError(f"{order.name} has no step {missing[0]}")
    protocol = f" --protocol {order.protocol}" if order.protocol else ""
    return run, f"`tidemark model show {order.name}{protocol}`"


def _steps(order: Namespace) -> list[str]:
    ranges: list[range] = order.steps
    run, command = _run(order, ranges)
    parts = (f"{steps[0]}–{steps[-1]}" if len(steps) > 1 else str(steps[0]) for steps in ranges)
    plural = "s" * (sum(map(len, ranges)) > 1)
    hidden = frozenset(order.without)
    cells = table_cells(run)
    unknown = hidden - {EPOCHS, *cells[0]}
    if unknown:
        raise ValueError(f"{order.name} has no column {', '.join(sorted(unknown))}")
    caption = f"{command}, step{plural} {', '.join(parts)} of {len(run.steps) - 1}"
    shown = excerpt(without(cells, hidden), ranges, WIDTH, MIN_LAST_COLUMN_WIDTH)
    return _figure(shown, caption)


def _logs(order: Namespace) -> list[str]:
    ranges: list[range] = order.logs
    run, command = _run(order, ranges)
    drawings = [
        (f"after step {step}", draw_cluster(run.steps[step].cluster))
        for steps in ranges
        for step in steps
    ]
    return _figure(side_by_side(drawings, WIDTH), command)


def _ends(order: Namespace) -> list[str]:
    clusters = {PROTOCOLS[name]: SCENARIOS[order.name].run(name).cluster for name in order.protocol}
    lines = side_by_side(
        [
            (f"{protocol.name}, {protocol.releases}", draw_cluster(cluster))
            for protocol, cluster in clusters.items()
        ],
        WIDTH,
    )
    for protocol, cluster in clusters.items():
        label = f"{protocol.name}: "
        text = wrap(" ".join(verdict(cluster)), WIDTH - len(label))
        lines += ["", f"{label}{text[0]}", *(" " * len(label) + line for line in text[1:])]
    command = f"`tidemark model show {order.name} --protocol {order.protocol[0]}`"
    return _figure(lines, f"{command}, and so on: the end of each")


def _counterexample(name: str) -> list[str]:
    """The actions of a committed counterexample, and the logs at its end."""
    path = FOLDER / "counterexamples" / f"{name}.txt"
    if not path.exists():
        raise ValueError(f"there is no counterexample {name}")
    rows, drawing, _legend = path.read_text(encoding="utf-8").split("\n\n")
    heading, *steps = rows.splitlines()
    end = heading.index("controller")
    protocol, invariant, *space = name.split(".")
    options = "".join(f" {OPTIONS[each]}" for each in space)
    shown = [row[:end].rstrip() for row in (heading, *steps) if row[:1] != "0"]
    logs = [line.removeprefix("  ") for line in drawing.splitlines()]
    command = f"`tidemark model check --protocol {protocol} --invariant {invariant}{options}`"
    return _figure([*shown, "", *logs], command)


def _figure(lines: Sequence[str], caption: str) -> list[str]:
    return ["```text", *lines, "```", "", f"<sub>{caption}</sub>"]


def _protocols() -> list[str]:
    column = "Shortest counterexamples without unclean elections and lossy disks"
    return [
        "",
        f"| Protocol of the model | Kafka | {column} |",
        "|---|---|---|",
        *(
            f"| `{each.name}` | {each.kafka or 'none'} | "
            f"{', '.join(_counterexamples(each.name)) or 'none found'} |"
            for each in PROTOCOLS.values()
        ),
        "",
    ]


def _offsets() -> list[str]:
    return _matrix(VALUES, lambda changes: " or ".join(sorted(changes)))


def _completions() -> list[str]:
    return _matrix(REQUESTS, lambda changes: "yes" if changes else "")


def _matrix(columns: Sequence[str], cell: Callable[[set[str]], str]) -> list[str]:
    """A row for each event that has an effect in one of the columns."""
    found = effects(_watched_runs())
    rows = []
    for event, methods in EVENTS.items():
        cells = [
            cell({change for each in methods for change in found.get((each, column), ())})
            for column in columns
        ]
        if any(cells):
            rows.append(f"| {event} | {' | '.join(text or '–' for text in cells)} |")
    names = (f"{name[0].upper()}{name[1:]}" for name in columns)
    return ["", f"| Event | {' | '.join(names)} |", "|---" * (len(columns) + 1) + "|", *rows, ""]


@cache
def _watched_runs() -> tuple[ScenarioRun, ...]:
    """Every scenario under the present protocol, with a consumer that fetches after each step.

    So each step finds a consumer's fetch to complete, if it can complete one.
    """
    runs = []
    for scenario in SCENARIOS.values():
        lines = [f"subscribe {READER}"]
        for line in filter(str.strip, scenario.script.splitlines()):
            lines += [line, f"poll {READER}"]
        # At the end, requests wait until their deadlines.
        for broker in range(1, scenario.brokers + 1):
            lines += [f"delete_records {broker} 1", f"write {broker}"]
        script = "\n".join((*lines, "wait 30000"))
        runs.append(scenario._replace(script=script).run("kip-966"))
    return tuple(runs)


def _counterexamples(protocol: str) -> Iterator[str]:
    """The lengths of the committed counterexamples of WeakIsr and StrongIsr.

    No links: the page is also read without the source.
    """
    for invariant in ("WeakIsr", "StrongIsr"):
        for space, suffix in (("", ""), (".three-replicas", " with three replicas")):
            path = FOLDER / "counterexamples" / f"{protocol}.{invariant}{space}.txt"
            if path.exists():
                text = path.read_text(encoding="utf-8")
                steps = counted(len(re.findall(r"^[1-9]", text, flags=re.MULTILINE)), "step")
                yield f"{invariant} in {steps}{suffix}"


def filled(page: str) -> str:
    """The page with every block up to date."""
    return BLOCK.sub(
        lambda found: "\n".join(
            (f"<!-- {found['order']} -->", *block(found["order"], page), "<!-- end -->")
        ),
        page,
    )


def stale(page: str) -> Iterator[str]:
    """The orders of the blocks that are out of date."""
    for found in BLOCK.finditer(page):
        if found["text"] != "\n".join((*block(found["order"], page), "")):
            yield found["order"]


def main() -> int:
    if sys.argv[1:] != ["--check"]:
        for path in PAGES:
            path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    outdated = [(path, order) for path in PAGES for order in stale(path.read_text("utf-8"))]
    for path, order in outdated:
        name = path.relative_to(ROOT)
        print(f"{name}: the block `{order}` is out of date: run make docs")
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
