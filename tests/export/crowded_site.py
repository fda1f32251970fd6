"""`python -m tests.export.crowded_site WEB_CONFIG_FILE`: an exporter's site, for many clients.

Prints its port, and renders its table anew each second until its input ends.
"""

from __future__ import annotations

import sys
import threading
import time
from itertools import count

from tests.export.make import view
from tidemark.core.records import encode_record, view_key
from tidemark.settings import Export
from tidemark.web.health import Health
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Renderer
from tidemark_exporters.export.own_metrics import ExportMetrics
from tidemark_exporters.export.table import Table
from tidemark_exporters.http_server import Site, serve_site
from tidemark_exporters.pages.responses import Pages

# A page of 3.3 MB, of which half is new at each refresh.
PARTITIONS = 1_200


def main() -> None:
    table, renderer = Table(), Renderer(Export(max_series=100_000))
    site = Site(ExportMetrics().registry.render, Pages(table, 30.0, list))
    server = serve_site(site, Health(list), "127.0.0.1:0", sys.argv[1])
    ended = threading.Event()
    threading.Thread(target=await_end, args=(ended,), daemon=True).start()
    for step in count():
        now, end = time.time(), 10**12 + step
        for number in range(PARTITIONS):
            topic = f"topic-{number % 30}-of-a-customer"
            each = view(topic, number // 30, at=now, high_watermark=end, log_end_offset=end)
            key = view_key(each.kafka_cluster, each.topic, each.partition)
            table.apply(key, each, encode_record(each))
        site.exposition = renderer.render(table, EventCounters(), now)
        if step == 0:
            print(server.port, flush=True)
        if ended.wait(1.0):
            break
    server.close()


def await_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


if __name__ == "__main__":
    main()
