"""`tidemark check-config`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import click
import msgspec

import tidemark.settings
from tidemark.command_line.completion import complete_receivers
from tidemark.command_line.options import command_config_option, config_option, load_with
from tidemark.command_line.output import echo
from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.settings import Settings
from tidemark.settings.alert_choice import choice_warnings
from tidemark.settings.environment import misspelt_variables

SCHEMA: Final = Path(tidemark.settings.__file__).with_name("tidemark.schema.json")


@click.command("check-config")
@config_option
@command_config_option
@click.option(
    "--reach",
    "with_reach",
    is_flag=True,
    help="Also connect to every Kafka and JMX endpoint in it, and list what the user may do there, "
    "by API, and risky configurations of the clusters.",
)
@click.option(
    "--acls",
    "with_acls",
    is_flag=True,
    help="Print the kafka-acls.sh commands that grant the rights of each cluster and verb.",
)
@click.option(
    "--no-stream",
    is_flag=True,
    help="Accept what only the stream refuses, for the configuration of collectors and exporters.",
)
@click.option(
    "--schema",
    is_flag=True,
    help="Print the JSON Schema of the configuration, for editors, and exit.",
)
@click.option(
    "--test-receiver",
    metavar="NAME",
    help="Also send a test notification to this receiver.",
    shell_complete=complete_receivers,
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def check_config(
    config: Path | None,
    command_config: Path | None,
    with_reach: bool,
    with_acls: bool,
    no_stream: bool,
    schema: bool,
    test_receiver: str | None,
    as_json: bool,
) -> None:
    """Check the configuration file, the environment variables and the client options.

    Exit status: 0 valid, 2 invalid, 1 no connection or no delivery.
    """
    if schema:
        echo(SCHEMA.read_text(encoding="utf-8"), nl=False)
        return
    # `tidemark version` also works without kafka-python.
    from tidemark.verbs.check_config.check_files import check_files

    settings = load_with(config, command_config)
    # The stream takes no properties file: its Kafka client is not the one that they configure.
    check_files(settings, with_stream=not no_stream and command_config is None)
    if test_receiver is not None:
        _require_receiver(settings, test_receiver)
    report = _Report(config, settings, as_json=as_json, with_reach=with_reach)
    try:
        if with_acls:
            report.show_acls(settings)
        if with_reach:
            report.show_reach(settings)
        if test_receiver is not None:
            report.test_receiver(settings, test_receiver)
    finally:
        if as_json:
            echo(json.dumps(report.document))


class _Report:
    """What a check found: printed as it comes, or kept for one JSON document."""

    def __init__(
        self, config: Path | None, settings: Settings, *, as_json: bool, with_reach: bool
    ) -> None:
        from tidemark.collect.cluster_choice import unwatched_line
        from tidemark.stream.start_checks import port_warnings

        self._as_json = as_json
        names = [cluster.name for cluster in settings.clusters]
        misspelt = list(misspelt_variables(os.environ))
        own = set(settings.kafka.bootstrap_servers)
        self.document: dict[str, Any] = {
            "config": None if config is None else str(config),
            "clusters": names,
            "misspelt_variables": dict(misspelt),
            "warnings": [*choice_warnings(settings), *port_warnings(settings)],
            "not_watched": [
                unwatched_line(cluster, settings.topics)
                for cluster in settings.clusters
                # As far as addresses tell it: `--reach` asks the cluster.
                if not own.isdisjoint(cluster.bootstrap_servers) and not cluster.watch_own_topics
            ],
        }
        for name, option in misspelt:
            self._echo(f"{name} is no option and is ignored; did you mean {option}?", err=True)
        for line in self.document["warnings"]:
            self._echo(f"warning: {line}", err=True)
        watched = ", ".join(names) or "none"
        self._echo(f"ok: {config or 'defaults and environment'}; watched clusters: {watched}")
        for line in [] if with_reach else self.document["not_watched"]:
            self._echo(line)
        if not names:
            # Valid, for example for the machine of the stream alone.
            where = (
                "" if config is not None else ", and give the file by --config or TIDEMARK_CONFIG"
            )
            self._echo(f"warning: nothing is watched: add `clusters`{where}.", err=True)

    def _echo(self, line: str, *, err: bool = False) -> None:
        if not self._as_json:
            echo(line, err=err)

    def show_acls(self, settings: Settings) -> None:
        from tidemark.verbs.check_config.acls import all_commands

        self.document["acls"] = []
        for line in all_commands(settings):
            self.document["acls"].append(line)
            self._echo(line)

    def show_reach(self, settings: Settings) -> None:
        from tidemark.verbs.check_config.reach import raise_failures, reach

        found = []
        self.document["reach"] = []
        for each in reach(settings):
            found.append(each)
            self.document["reach"].append(msgspec.to_builtins(each))
            for line in each.lines():
                self._echo(line, err=each.error is not None)
        raise_failures(found)

    def test_receiver(self, settings: Settings, name: str) -> None:
        # The exporters are installed only where they run.
        from tidemark_exporters.notify.receiver_check import send_test_notification

        success, lines = send_test_notification(settings, name)
        self.document["test_receiver"] = {"name": name, "delivered": success, "details": lines}
        for line in lines:
            self._echo(line, err=not line.startswith("ok: "))
        if not success:
            raise TidemarkError(f"receiver `{name}` did not take the test notification.")


def _require_receiver(settings: Settings, name: str) -> None:
    names = sorted(route.name for route in settings.notify.routes)
    if name not in names:
        raise ConfigError(
            f"--test-receiver: there is no receiver `{name}`; "
            f"there are: {', '.join(names) or 'none'}."
        )
