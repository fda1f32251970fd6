"""The command line. Each verb's module is imported only when the verb is used.

Exit status: 0 success, 1 runtime error, 2 wrong usage or configuration, 3 findings.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import sys
from difflib import get_close_matches
from pathlib import Path

import click

from tidemark import __version__
from tidemark.command_line.output import echo
from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.core.extras import LAB_WHEEL, missing_package

# verb -> module:command, and the line of `tidemark --help`, which imports no verb
COMMANDS = {
    "collect": (
        "tidemark.collect.command:collect",
        "Observe clusters and publish replica-state events.",
    ),
    "escrow": (
        "tidemark.escrow.command:escrow",
        "Keep second copies of committed records that lie on one disk.",
    ),
    "stream": (
        "tidemark.stream.command:stream",
        "Turn events into views and alerts with Spark Structured Streaming.",
    ),
    "export": (
        "tidemark_exporters.command:export",
        "Serve metrics, the status page and its API, and deliver alerts.",
    ),
    "top": ("tidemark.verbs.top.command:top", "Watch a cluster in the terminal."),
    "replay": (
        "tidemark.verbs.replay.command:replay",
        "Run recorded events through the detectors.",
    ),
    "timeline": (
        "tidemark.verbs.timeline.command:timeline",
        "Show an incident in a partition step by step.",
    ),
    "inspect": (
        "tidemark.verbs.inspect.command:inspect",
        "Show the replicas of a topic, or list lost records.",
    ),
    "safe-to-stop": (
        "tidemark.verbs.safe_to_stop.command:safe_to_stop",
        "List the partitions that stopping brokers would affect.",
    ),
    "choose-leader": (
        "tidemark.verbs.choose_leader.command:choose_leader",
        "Show what electing each replica of a partition would lose.",
    ),
    "audit": (
        "tidemark.verbs.audit.command:audit",
        "Compare the records of all replicas, by brokers or by folders.",
    ),
    "salvage": (
        "tidemark.verbs.salvage.command:salvage",
        "Read lost records from saved logs, and send them to a topic.",
    ),
    "ack": ("tidemark.verbs.ack.command:ack", "Close an event alert."),
    "assets": (
        "tidemark.verbs.assets:assets",
        "Write the dashboards, rules and documentation that come with it.",
    ),
    "check-config": (
        "tidemark.verbs.check_config.command:check_config",
        "Check the configuration.",
    ),
    "version": ("tidemark.verbs.version:version", "Print the versions that a bug report needs."),
}
# The verbs of the distribution kafka-tidemark-lab, which are its entry points.
LAB_COMMANDS = {
    "model": "Step through Kafka's replication protocols and search them for violations.",
    "demo": "Inject faults into a local cluster and check the alerts.",
    "drill": "Inject faults into local brokers and compare alerts with their disks.",
}
# How alike a name and what was written for it must be: no false cure.
_ALIKE = 0.7
HELP_LINES = {name: line for name, (_, line) in COMMANDS.items()} | LAB_COMMANDS


class LazyGroup(click.Group):
    """Imports a command on use: a machine needs only the dependencies of its own commands."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(HELP_LINES)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in HELP_LINES:
            return None
        try:
            if cmd_name in LAB_COMMANDS:
                command = _lab_command(cmd_name)
            else:
                module, _, attribute = COMMANDS[cmd_name][0].partition(":")
                command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            raise missing_package(cmd_name, error) from None
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Names the near verb of one that does not exist."""
        if args and args[0] not in HELP_LINES and not args[0].startswith("-"):
            close = get_close_matches(args[0].lower(), HELP_LINES, n=1, cutoff=_ALIKE)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise click.UsageError(f"No such command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(HELP_LINES.items()))


def _lab_command(verb: str) -> object:
    """A verb of the laboratory. Raises ConfigError where it is not installed."""
    # Slow to import, and the other verbs start without it.
    from importlib.metadata import entry_points

    for entry in entry_points(group="tidemark.verbs", name=verb):
        return entry.load()
    raise ConfigError(
        f"`tidemark {verb}` is part of the laboratory, which is not installed. Install its wheel "
        f"beside this one: pip install {LAB_WHEEL}; in a checkout: `make setup`."
    )


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tidemark")
def cli() -> None:
    """Tidemark monitors the replication of Apache Kafka clusters.

    Exit status: 0 success, 1 runtime error, 2 wrong usage or configuration, 3 findings.
    """


def usage_line(error: click.ClickException, verb: str) -> str:
    """A wrong flag or argument as one line, with the cure. `verb`: the first word, or nothing."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else f"tidemark {verb}".strip()
    setting = ""
    if isinstance(error, click.NoSuchOption):
        setting = _as_setting(path.split()[-1], error.option_name)
        # click's own are often far from what was written: --once for --to.
        close = get_close_matches(error.option_name, error.possibilities or (), cutoff=_ALIKE)
        error = click.NoSuchOption(error.option_name, possibilities=close, ctx=context)
    message = " ".join(error.format_message().split()) + setting
    message = re.sub("a valid (integer|float)( range)?", "a number", message)
    end = "" if message.endswith((".", "?")) else "."
    return f"{path}: {message}{end} `{path} --help` lists what it takes."


def _as_setting(section: str, flag: str) -> str:
    """Where an option is set that is no flag of the verb; nothing where it is no option either."""
    from tidemark.settings.environment import variables

    wanted = (section, flag.lstrip("-").replace("-", "_"))
    for name, option, _ in variables():
        if option == wanted:
            return f" Set {'.'.join(option)} in the file of --config, or the variable {name}."
    return ""


def _prepare_streams() -> None:
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # None: closed by who started it, as by `<&-`.
        stream = getattr(sys, name) or Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115
        setattr(sys, name, stream)
        if mode == "w" and isinstance(stream, io.TextIOWrapper):
            # Where the locale has no such character, one more escape.
            stream.reconfigure(errors="backslashreplace")


def main(arguments: list[str] | None = None) -> None:
    """Runs a verb. Operating errors become one line on standard error and an exit status."""
    _prepare_streams()
    words = sys.argv[1:] if arguments is None else arguments
    verb = next((word for word in words[:1] if word in HELP_LINES), "")
    for name in ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"):
        # Of another program: prometheus_client would keep our metrics in its files.
        os.environ.pop(name, None)
    try:
        code = cli.main(args=arguments, prog_name="tidemark", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            echo(usage_line(error, verb), err=True)
        sys.exit(2)
    except ModuleNotFoundError as error:
        # A verb that imports a package when it needs it.
        known = missing_package(verb, error)
        if not isinstance(known, TidemarkError):
            raise
        echo(f"tidemark: {known}", err=True)
        sys.exit(known.exit_code)
    except TidemarkError as error:
        echo(f"tidemark: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        # The reader of the output is gone (`| head`), or its disk is full.
        if error.errno == errno.ENOSPC:
            echo(
                f"tidemark: cannot write: {error.strerror}. Free some, or write elsewhere.",
                err=True,
            )
        elif not isinstance(error, BrokenPipeError):
            raise
        # Without this Python reports it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
