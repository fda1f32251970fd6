"""The files that a configuration names, for `check-config`: the other verbs read only their own."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tidemark.command_line.output import echo
from tidemark.core.errors import ConfigError
from tidemark.settings import Settings


def check_files(settings: Settings, *, with_stream: bool = True) -> None:
    """Raises ConfigError for the first file that cannot be read or does not hold what it must.

    `with_stream`: also for what only the stream refuses, which has another Kafka client.
    """
    from tidemark.kafka.oauth import check_oauth_files
    from tidemark.kafka.options import check_packages, check_tls, client_options

    for connection in (settings.kafka, *settings.clusters):
        options = client_options(connection)
        check_packages(connection, options)
        check_tls(connection, options)
        check_oauth_files(connection, options)
    _check_jmx(settings)
    _check_receivers(settings)
    _check_servers(settings)
    spool = settings.collect.spool_directory
    if spool is not None and _is_directory(spool) is False:
        raise ConfigError(
            "configuration: collect.spool_directory: it is not a directory; give a folder of the "
            "collector's own."
        )
    if with_stream:
        _check_stream(settings)


def _check_stream(settings: Settings) -> None:
    from tidemark.stream.start_checks import check_checkpoint, check_client

    jars = settings.stream.jars
    if jars is not None and not _is_directory(jars):
        raise ConfigError(
            "configuration: stream.jars: it is no folder; leave it out to have the jars fetched."
        )
    check_client(settings)
    check_checkpoint(settings, os.environ)


def _is_directory(path: str) -> bool | None:
    """None where nothing is there. A name may also be longer than the file system takes."""
    try:
        return stat.S_ISDIR(Path(path).stat().st_mode)
    except FileNotFoundError:
        return None
    except OSError:
        return False


def _check_servers(settings: Settings) -> None:
    """The files of the collector's watchdog, and of the HTTP servers."""
    from tidemark.collect.watchdog import watchdog_client
    from tidemark.web.gate import Gate

    watchdog_client(settings.collect)
    for section in (settings.collect, settings.stream, settings.export):
        if section.web_config_file is not None:
            Gate(Path(section.web_config_file))


def _check_jmx(settings: Settings) -> None:
    from tidemark.collect.sources.jmx.endpoint import check_files as check_endpoint
    from tidemark.collect.sources.jmx.figures import ScrapeError

    for cluster in settings.clusters:
        for endpoint in cluster.jmx:
            try:
                check_endpoint(endpoint)
            except ScrapeError as error:
                raise ConfigError(
                    f"configuration: cluster `{cluster.name}`: jmx of broker {endpoint.broker}: "
                    f"{error}."
                ) from None


def _check_receivers(settings: Settings) -> None:
    if not settings.notify.routes:
        return
    try:
        from tidemark.web.webhook_client import make_clients
    except ModuleNotFoundError as error:
        # The exporter's packages are installed only where it runs.
        echo(f"receivers are not checked: {error.name} is not installed here", err=True)
        return
    for route in settings.notify.routes:
        make_clients(route)
