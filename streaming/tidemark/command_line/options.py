"""Options and arguments that several verbs share, and the settings that they select.

A wrong value is one line, exit 2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from msgspec.structs import replace

from tidemark.command_line.completion import complete_clusters
from tidemark.core.errors import ConfigError
from tidemark.kafka.client_log import LEVELS as CLIENT_LOG_LEVELS
from tidemark.kafka.client_log import show_client_log
from tidemark.logs import FORMATS, LEVELS, configure_logs
from tidemark.settings import Settings, load_settings

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
# Exit status of a verb that found what an operator looks for.
FINDING: Final = 3

Command = TypeVar("Command", bound=Callable[..., Any])
# Key of click's context: the options of `log_options`, by their path in the configuration.
_FLAGS: Final = "tidemark.command_line.options"

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="TIDEMARK_CONFIG",
    help="YAML configuration file. Default: $TIDEMARK_CONFIG.",
)
bootstrap_option = click.option(
    "--bootstrap",
    metavar="HOST:PORT,…",
    help="Bootstrap servers to use instead of the configured ones.",
)
cluster_option = click.option(
    "--cluster",
    "name",
    metavar="NAME",
    help="Cluster to use, by its configured name.",
    shell_complete=complete_clusters,
)
command_config_option = click.option(
    "--command-config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Security options as a properties file of Kafka's own tools, in place of the configured "
    "ones.",
)


class FiniteRange(click.FloatRange):
    """A number within both bounds. click's own range takes `nan`, which no bound excludes."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{number} is not in the range {self._describe_range()}.", param, ctx)
        return number


def parse_since(text: str, now: float, option: str = "--since") -> float:
    """Unix seconds of `24h`, `90m` or `7d` before `now`, or of an ISO 8601 time (default UTC)."""
    age = re.fullmatch(r"(\d{1,9})([smhd])", text)
    try:
        if age is not None:
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])}).total_seconds()
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{option} {text}: give an age (90m, 24h, 7d) or a time (2026-11-21T14:00:00Z)."
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _keep(context: click.Context, option: click.Parameter, value: str | None) -> None:
    context.meta.setdefault(_FLAGS, {})[option.name] = value


def _log_option(flag: str, words: tuple[str, ...], text: str) -> Callable[[Command], Command]:
    return click.option(
        flag, type=click.Choice(words), expose_value=False, callback=_keep, help=text
    )


def log_options(command: Command) -> Command:
    """`--log-level`, `--log-format` and `--kafka-client-log-level`, for `load_long_running`."""
    for option in (
        _log_option(
            "--kafka-client-log-level",
            CLIENT_LOG_LEVELS,
            "Also log what kafka-python reports. [default: none]",
        ),
        _log_option("--log-format", FORMATS, "Form of the log on standard error. [default: text]"),
        _log_option("--log-level", LEVELS, "Log this and worse. [default: info]"),
    ):
        command = option(command)
    return command


def load_long_running(
    config: Path | None,
    command_config: Path | None = None,
    flags: dict[str, Any] | None = None,
) -> Settings:
    """The settings of a verb with `log_options`, and its log as they say."""
    context = click.get_current_context(silent=True)
    log_flags = {} if context is None else context.meta.get(_FLAGS, {})
    settings = load_with(config, command_config, {**log_flags, **(flags or {})})
    configure_logs(settings.log_format, settings.log_level)
    return settings


def load_with(
    config: Path | None,
    command_config: Path | None = None,
    flags: dict[str, Any] | None = None,
) -> Settings:
    """The settings, with the client options of `--command-config` for every connection."""
    settings = load_settings(config, flags=flags)
    show_client_log(settings.kafka_client_log_level)
    if command_config is None:
        return settings
    from tidemark.kafka.command_config import read_command_config

    client = read_command_config(command_config)
    settings.kafka = replace(settings.kafka, client=client)
    settings.clusters = [replace(cluster, client=client) for cluster in settings.clusters]
    return settings


def refuse_both(source: str | None, bootstrap: str | None) -> None:
    """Raises ConfigError where both a recording and brokers are given."""
    if source is not None and bootstrap is not None:
        raise ConfigError("--from reads a recording; leave out --bootstrap.")


def require_one(clusters: list[str]) -> None:
    """Raises ConfigError for several names."""
    if len(clusters) > 1:
        raise ConfigError(
            f"there are several clusters; choose one with --cluster: {', '.join(clusters)}."
        )
