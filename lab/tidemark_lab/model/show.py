"""`tidemark model show`: a scenario, or parts of it, as tables and drawings."""

from __future__ import annotations

import json
import shutil

import click

from tidemark.core.errors import ConfigError
from tidemark.core.step_table import MIN_LAST_COLUMN_WIDTH, WIDTH
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.scenarios import SCENARIOS
from tidemark_lab.model.scenarios.excerpt import (
    columns,
    excerpt,
    parse_ranges,
    side_by_side,
    without,
)
from tidemark_lab.model.scenarios.render import (
    draw_cluster,
    introduction,
    render_scenario,
    table_cells,
    table_legend,
)
from tidemark_lab.model.scenarios.run import ScenarioRun
from tidemark_lab.model.state import MAX_REPLICAS

MIN_WIDTH = 60


@click.command()
@click.argument("name")
@click.option("--protocol", type=click.Choice(list(PROTOCOLS)), help="Use another protocol.")
@click.option("--min-isr", type=click.IntRange(1, MAX_REPLICAS), help="Use another min ISR.")
@click.option("--steps", metavar="4-7,12", help="Only these rows of the table.")
@click.option("--logs", metavar="4,7", help="Only the logs after these steps.")
@click.option("--without", "hidden", metavar="COLUMN,…", help="Leave out columns: epochs,produce.")
@click.option("--alerts", is_flag=True, help="Also show what the detectors report of it.")
@click.option(
    "--width",
    type=click.IntRange(MIN_WIDTH),
    help="Columns of the table. Default: those of the terminal.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: the whole table.")
def show(
    name: str,
    protocol: str | None,
    min_isr: int | None,
    steps: str | None,
    logs: str | None,
    hidden: str | None,
    alerts: bool,
    width: int | None,
    as_json: bool,
) -> None:
    """Show a scenario as a table of steps and drawings of the logs.

    A narrow terminal omits columns that the last one describes too. --steps and --logs show parts.
    """
    if name not in SCENARIOS:
        raise ConfigError(f"unknown scenario {name}. Known scenarios: {', '.join(SCENARIOS)}.")
    width = width or shutil.get_terminal_size((WIDTH, 0)).columns
    scenario = SCENARIOS[name]
    run = scenario.run(protocol, min_isr)
    left_out = _hidden(hidden, run)
    if as_json:
        heading, *body = without(table_cells(run), left_out)
        rows_by_column = [dict(zip(heading, row, strict=True)) for row in body]
        document = {"name": name, "question": scenario.question, "steps": rows_by_column}
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    if steps is None and logs is None:
        lines = render_scenario(scenario, protocol, min_isr, width, left_out)
    else:
        lines = introduction(scenario, run, width)
    if steps is not None:
        cells = without(table_cells(run), left_out)
        rows = excerpt(cells, _ranges("--steps", steps, run), width, MIN_LAST_COLUMN_WIDTH)
        lines += ["", *rows, "", *table_legend(rows, width)]
    if logs is not None:
        drawings = [
            (f"after step {step}", draw_cluster(run.steps[step].cluster))
            for chosen in _ranges("--logs", logs, run)
            for step in chosen
        ]
        lines += ["", *side_by_side(drawings, width)]
    if alerts:
        # Imports every detector.
        from tidemark_lab.model.alerts import alert_lines

        lines += ["", *alert_lines(scenario, run, width)]
    click.echo("\n".join(lines))


def _ranges(option: str, text: str, run: ScenarioRun) -> list[range]:
    last = len(run.steps) - 1
    try:
        found = parse_ranges(text)
    except ValueError:
        raise ConfigError(f"{option} {text}: write steps and ranges, as in 4-7,12.") from None
    if any(steps[-1] > last for steps in found):
        raise ConfigError(f"{option} {text}: the last step is {last}.")
    return found


def _hidden(text: str | None, run: ScenarioRun) -> frozenset[str]:
    names = frozenset() if text is None else frozenset(name.strip() for name in text.split(","))
    known = columns(table_cells(run))
    unknown = sorted(names - set(known))
    if unknown:
        raise ConfigError(
            f"--without {', '.join(unknown)}: there is no such column. Columns: {', '.join(known)}."
        )
    return names
