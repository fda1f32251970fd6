"""The one command. Each verb lives beside the code it runs and is imported only when it is called.

Exit codes: 0 ok, 1 runtime, 2 usage or configuration, 3 a finding.
"""

from __future__ import annotations

import importlib
import os
import sys

import click

from tidemark import __version__
from tidemark.core.errors import TidemarkError

# verb -> module:command, and the line `tidemark --help` shows without importing it
VERBS = {
    "collect": (
        "tidemark.collect.command:collect",
        "Observe clusters and publish replica-state events.",
    ),
    "stream": (
        "tidemark.stream.command:stream",
        "Run the Structured Streaming job: events to views and alerts.",
    ),
    "export": ("tidemark_exporters.command:export", "Serve metrics and deliver alerts."),
    "replay": (
        "tidemark.verbs.replay.command:replay",
        "Feed events from files or - through the reducer and the detectors.",
    ),
    "inspect": (
        "tidemark.verbs.inspect.command:inspect",
        "Show a topic's or partition's replicas, straight from the brokers; or what was lost.",
    ),
    "safe-to-stop": (
        "tidemark.verbs.safe_to_stop.command:safe_to_stop",
        "What stopping a broker now would take offline or down to a last copy.",
    ),
    "ack": ("tidemark.verbs.ack.command:ack", "Close an event alert."),
    "model": (
        "tidemark.verbs.model:model",
        "Play replication step by step, and search its protocols for what breaks them.",
    ),
    "demo": (
        "tidemark.demo.command:demo",
        "Play faults on a real local cluster and show whether the alerts came.",
    ),
    "check-config": ("tidemark.verbs.config:check_config", "Check the configuration."),
    "version": ("tidemark.verbs.config:version", "Print the version."),
}


class Verbs(click.Group):
    """Loads a verb's module when the verb is used, so that each machine needs only what its verb needs."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _, attribute = VERBS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tidemark")
def cli() -> None:
    """Tidemark watches the replication of Apache Kafka clusters, live."""


def main(arguments: list[str] | None = None) -> None:
    """Runs a verb; operating errors become one line on standard error and an exit code."""
    try:
        code = cli.main(args=arguments, prog_name="tidemark", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except TidemarkError as error:
        click.echo(f"tidemark: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output went away (`| head`); Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
