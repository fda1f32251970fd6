"""Fills docs/replication.md with what the model prints: `python -m tests.docs.replication` (`make docs`); `--check` only compares.

A block stands between two comments; the first one says what of the model belongs there, the last is `<!-- end -->`:

    <!-- model show NAME --protocol P --steps 4-7,12 --without "produce,fetch" -->  rows of the table
    <!-- model show NAME --protocol P --logs 4,7,12 -->                             the replica logs after these steps
    <!-- model ends NAME --protocol P Q -->                                         the last logs and the verdict under each
    <!-- model counterexample kip-101.WeakIsr -->                                   a committed result of `tidemark model check`
    <!-- model list scenarios|protocols -->                                         a table of them

Columns that say nothing in the rows shown are left out; `--without epochs` takes the leader epochs out of the brokers' columns.
"""

from __future__ import annotations

import re
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final, NamedTuple, NoReturn

from tests.conftest import ROOT
from tests.model.golden import FOLDER
from tidemark.model.protocols import PROTOCOLS
from tidemark.model.scenarios import SCENARIOS
from tidemark.model.scenarios.play import Play
from tidemark.model.scenarios.told import cells, picture, verdict
from tidemark.model.table import aligned

PAGE: Final = ROOT / "docs" / "replication.md"
BLOCK: Final = re.compile(
    r"^<!-- model (?P<order>.+?) -->\n(?P<text>.*?)^<!-- end -->$", flags=re.MULTILINE | re.DOTALL
)
# What hosting sites show of a code block without a scroll bar.
WIDTH: Final = 110
NARROWEST_TELLING: Final = 32
TELLING: Final = "what happens"
EPOCHS: Final = "epochs"
BETWEEN_LOGS: Final = "      "
# What the name of a committed counterexample says of its space, as options of `tidemark model check`.
OPTIONS: Final = {
    "three-replicas": "--replicas 3",
    "epochs-to-3": "--records 3 --max-epoch 3",
    "lossy-disk": "--lossy-disk",
    "unclean-election": "--unclean-election",
}


class Told(NamedTuple):
    """The printed table, cell by cell; `steps` are rows of the play, the first one is 0."""

    heading: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]


def told(play: Play) -> Told:
    """The cells of the printed table, those included that it leaves out for saying nothing anywhere."""
    heading, *steps = cells(play)
    return Told(heading, tuple(steps))


def without_epochs(all_of_it: Told) -> Told:
    """The columns of the brokers end with their high watermarks."""
    ends = [
        len(name.removesuffix(" epochs")) if name.endswith(" epochs") else None
        for name in all_of_it.heading
    ]
    heading, *steps = (
        [cell[:end].rstrip() for cell, end in zip(row, ends, strict=True)]
        for row in (all_of_it.heading, *all_of_it.steps)
    )
    return Told(tuple(heading), tuple(map(tuple, steps)))


def excerpt(all_of_it: Told, ranges: Sequence[range], hidden: frozenset[str]) -> list[str]:
    """Some rows, `…` where rows are left out between them, without columns that are hidden or say nothing there."""
    chosen = [all_of_it.steps[step] for steps in ranges for step in steps]
    kept = [
        at
        for at, name in enumerate(all_of_it.heading)
        if name in {"step", TELLING} or (name not in hidden and any(row[at] for row in chosen))
    ]
    widths = [max(len(row[at]) for row in (all_of_it.heading, *chosen)) for at in kept[:-1]]
    telling = max(NARROWEST_TELLING, WIDTH - sum(widths) - 2 * len(widths))
    rows = [tuple(all_of_it.heading[at] for at in kept)]
    for number, steps in enumerate(ranges):
        if number:
            rows.append(("…", *[""] * (len(kept) - 1)))
        for step in steps:
            cells = [all_of_it.steps[step][at] for at in kept]
            for line, words in enumerate(wrap(cells[-1], telling)):
                rows.append((*(cells[:-1] if line == 0 else [""] * (len(kept) - 1)), words))
    return aligned(rows)


def beside(pictures: Sequence[tuple[str, list[str]]]) -> list[str]:
    """Drawings with their titles, as many side by side as fit, the rest below."""
    shelves: list[list[list[str]]] = [[]]
    for title, drawn in pictures:
        lines = [title, "", *drawn]
        width = max(map(len, lines))
        lines = [line.ljust(width) for line in lines]
        taken = sum(len(each[0]) + len(BETWEEN_LOGS) for each in shelves[-1])
        if taken + width > WIDTH and shelves[-1]:
            shelves.append([])
        shelves[-1].append(lines)
    printed: list[str] = []
    for shelf in shelves:
        printed += [""] if printed else []
        printed += [BETWEEN_LOGS.join(row).rstrip() for row in zip(*shelf, strict=True)]
    return printed


def _ranges(text: str) -> list[range]:
    """`4-7,12` as ranges of steps."""
    pairs = [part.partition("-") for part in text.split(",")]
    return [range(int(first), int(last or first) + 1) for first, _, last in pairs]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{self.prog}: {message}")


def _order(text: str) -> Namespace:
    """What a block asks for."""
    parser = _Parser(prog="model")
    verbs = parser.add_subparsers(dest="verb", required=True)
    show = verbs.add_parser("show")
    show.add_argument("name", choices=SCENARIOS)
    show.add_argument("--protocol", choices=PROTOCOLS)
    what = show.add_mutually_exclusive_group(required=True)
    what.add_argument("--steps", type=_ranges)
    what.add_argument("--logs", type=_ranges)
    show.add_argument("--without", type=_names, default=[])
    ends = verbs.add_parser("ends")
    ends.add_argument("name", choices=SCENARIOS)
    ends.add_argument("--protocol", nargs="+", choices=PROTOCOLS, required=True)
    found = verbs.add_parser("counterexample")
    found.add_argument("name")
    listed = verbs.add_parser("list")
    listed.add_argument("what", choices=("scenarios", "protocols"))
    return parser.parse_args(shlex.split(text))


def block(text: str) -> list[str]:
    """The lines of one block."""
    order = _order(text)
    match order.verb:
        case "show":
            return _show(order)
        case "ends":
            return _ends(order)
        case "counterexample":
            return _counterexample(order.name)
        case _:
            return _scenarios() if order.what == "scenarios" else _protocols()


def _show(order: Namespace) -> list[str]:
    play = SCENARIOS[order.name].play(order.protocol)
    command = f"tidemark model show {order.name}" + (
        f" --protocol {order.protocol}" if order.protocol else ""
    )
    last = len(play.rows) - 1
    missing = [step for steps in order.steps or order.logs for step in steps if step > last]
    if missing:
        raise ValueError(f"{order.name} has no step {missing[0]}")
    if order.steps:
        shown = ", ".join(
            f"{steps[0]}–{steps[-1]}" if len(steps) > 1 else str(steps[0]) for steps in order.steps
        )
        shown = (
            f"steps {shown}" if len(order.steps) > 1 or len(order.steps[0]) > 1 else f"step {shown}"
        )
        hidden = frozenset(order.without)
        whole = without_epochs(told(play)) if EPOCHS in hidden else told(play)
        unknown = hidden - {EPOCHS, *whole.heading}
        if unknown:
            raise ValueError(f"{order.name} has no column {', '.join(sorted(unknown))}")
        return [
            *_fenced(excerpt(whole, order.steps, hidden)),
            "",
            f"<sub>`{command}`, {shown} of {last}</sub>",
        ]
    steps = [step for each in order.logs for step in each]
    pictures = [(f"after step {step}", picture(play.rows[step].cluster)) for step in steps]
    return [*_fenced(beside(pictures)), "", f"<sub>`{command}`</sub>"]


def _ends(order: Namespace) -> list[str]:
    plays = [(PROTOCOLS[name], SCENARIOS[order.name].play(name)) for name in order.protocol]
    drawn = [
        (f"{protocol.name}, Kafka {protocol.kafka}", picture(play.cluster))
        for protocol, play in plays
    ]
    lines = beside(drawn)
    for protocol, play in plays:
        label = f"{protocol.name}: "
        lines += [
            "",
            *wrap(
                " ".join(verdict(play.cluster)),
                WIDTH,
                initial_indent=label,
                subsequent_indent=" " * len(label),
            ),
        ]
    return [
        *_fenced(lines),
        "",
        f"<sub>`tidemark model show {order.name} --protocol {order.protocol[0]}`, and so on: the end of each</sub>",
    ]


def _counterexample(name: str) -> list[str]:
    """Steps and actions of a committed counterexample, and the logs at its end; that a search still finds it is tested elsewhere."""
    path = FOLDER / "counterexamples" / f"{name}.txt"
    if not path.exists():
        raise ValueError(f"there is no counterexample {name}")
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = lines[: lines.index("")]
    cut = rows[0].index("controller")
    drawn = [line.removeprefix("  ") for line in lines[lines.index("") + 1 :]]
    protocol, invariant, *space = name.split(".")
    options = "".join(f" {OPTIONS[each]}" for each in space)
    shown = [*(row[:cut].rstrip() for row in rows if row[:1] != "0"), "", *drawn[: drawn.index("")]]
    return [
        *_fenced(shown),
        "",
        f"<sub>`tidemark model check --protocol {protocol} --invariant {invariant}{options}`</sub>",
    ]


def _scenarios() -> list[str]:
    rows = [f"| [{each.name}](#{each.name}) | {each.question} |" for each in SCENARIOS.values()]
    return ["", "| Story | Its question, and the answer |", "|---|---|", *rows, ""]


def _protocols() -> list[str]:
    rows = [
        f"| `{each.name}` | {each.kafka} | {', '.join(_broken(each.name)) or 'none found'} |"
        for each in PROTOCOLS.values()
    ]
    return [
        "",
        "| Protocol of the model | Kafka | Shortest ways to break it without unclean elections and lossy disks |",
        "|---|---|---|",
        *rows,
        "",
    ]


def _broken(protocol: str) -> Iterator[str]:
    """The committed counterexamples of two invariants, linked."""
    for invariant in ("WeakIsr", "StrongIsr"):
        for path in sorted((FOLDER / "counterexamples").glob(f"{protocol}.{invariant}.*txt")):
            faults = path.name.split(".")[2:-1]
            if faults in ([], ["three-replicas"]):
                rows = [
                    line
                    for line in path.read_text(encoding="utf-8").splitlines()
                    if re.match(r"[1-9]", line)
                ]
                with_three = " with three replicas" * bool(faults)
                yield f"[{invariant} in {len(rows)} steps{with_three}](../{path.relative_to(ROOT).as_posix()})"


def _fenced(lines: Sequence[str]) -> list[str]:
    return ["```text", *lines, "```"]


def filled(page: str) -> str:
    """The page with every block as the model prints it now."""
    return BLOCK.sub(
        lambda found: "\n".join(
            (f"<!-- model {found['order']} -->", *block(found["order"]), "<!-- end -->")
        ),
        page,
    )


def stale(page: str) -> Iterator[str]:
    """What the blocks that differ ask for."""
    for found in BLOCK.finditer(page):
        if found["text"] != "\n".join((*block(found["order"]), "")):
            yield found["order"]


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    if sys.argv[1:] == ["--check"]:
        differing = list(stale(page))
        for order in differing:
            print(
                f"docs/replication.md: the block `model {order}` is not what the model prints: run make docs"
            )
        return 1 if differing else 0
    PAGE.write_text(filled(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
