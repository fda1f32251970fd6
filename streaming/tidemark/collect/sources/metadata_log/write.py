"""`tidemark collect --metadata-dir`: the events of a folder as lines, for `tidemark replay`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from tidemark.collect.cluster_choice import no_such_cluster
from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.publish.pack import Packer
from tidemark.collect.publish.publisher import LinePublisher
from tidemark.collect.sources.metadata_log.folder import MetadataFolder
from tidemark.command_line.output import echo
from tidemark.core.errors import TidemarkError
from tidemark.settings import Cluster, Settings

EVENTS_AT_ONCE: Final = 1_000


def write_metadata_folder(
    folder: Path, settings: Settings, name: str | None, publisher: LinePublisher
) -> None:
    """Writes one line per 256 events. What is skipped goes to standard error.

    The topics are those of the configured cluster `name`; all topics without one. Raises
    ConfigError, and TidemarkError after the last line where something could not be read.
    """
    configured = {cluster.name: cluster for cluster in settings.clusters}
    if name is not None and configured and name not in configured:
        raise no_such_cluster(name, settings)
    cluster = configured.get(name or "") or Cluster(name=name or "local")
    watched = Inventory(cluster, publisher.groups)
    epoch = int(time.time() * 1000)
    packer = Packer(cluster.name, settings.collect.collector, epoch, 0, publisher.groups)
    waiting = 0
    log = MetadataFolder(folder, _report)
    for event in log.read(watched):
        packer.add(0, event)
        waiting += 1
        if waiting == EVENTS_AT_ONCE:
            publisher.put(packer.take())
            waiting = 0
        if publisher.broken:
            return
    publisher.put(packer.take())
    if not log.is_whole:
        raise TidemarkError(f"the metadata log in {folder} could not be read; see above.")


def _report(text: str) -> None:
    echo(f"collect: {text}", err=True)
