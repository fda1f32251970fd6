"""The parsers of what others wrote: valid inputs, the call, and the errors that it may raise."""

from __future__ import annotations

import io
import json
import re
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kafka.protocol.consumer import FetchResponse, ListOffsetsResponse

from tests.conftest import ROOT
from tests.fuzz.event_targets import event_codec, events, spool, state
from tests.fuzz.target import Call, Target
from tests.verbs.audit.logs import encode as encode_log
from tests.verbs.audit.logs import written
from tidemark.core.errors import ConfigError, WireError

DATA = ROOT / "tests" / "testdata"
SECRET = "hunter/2"
# Variables. The secret is no valid name: logs and metrics have those.
_CLIENT = {"security_protocol": "SSL", "ssl_password": SECRET, "client_id": SECRET}
_WINDOW = {"name": SECRET, "start": "22:00", "end": "23:00", "days": ["monday"], "topics": ["a"]}
VARIABLES: tuple[dict[str, Any], ...] = (
    {"CLUSTERS": [{"name": "a", "bootstrap_servers": ["k:1"], "topics_deny": [SECRET]}]},
    {"CLUSTERS": [{"name": "b", "shards": 2, "jmx": [{"broker": 1, "url": f"http://k/{SECRET}"}]}]},
    {"CLUSTERS": [{"name": "a", "client": _CLIENT}]},
    {"KAFKA_CLIENT": _CLIENT},
    {"NOTIFY_RECEIVERS": [{"name": "r", "url": f"http://r/{SECRET}", "alerts": [".*"]}]},
    {"NOTIFY_ALERTMANAGERS": [{"name": "r", "urls": [f"http://r/{SECRET}"], "clusters": ["a"]}]},
    {"NOTIFY_MAINTENANCE": [_WINDOW]},
    {"STREAM_SPARK": {"spark.password": SECRET, "kafka.a": "b"}},
    {"STREAM_CHECKPOINT": SECRET, "COLLECT_SPOOL_DIRECTORY": SECRET, "COLLECT_LISTEN": "a:1"},
    {"COLLECT_WATCHDOG_URL": f"http://r/{SECRET}", "NOTIFY_EXTERNAL_URL": f"http://r/{SECRET}"},
    {"DETECT_OVERRIDES": [{"topics": SECRET, "lag_ms": 50}], "EXPORT_DETAIL_TOPICS": "a,b"},
)


def _variables(data: bytes) -> dict[str, str]:
    """Variables of a JSON object, structured ones as YAML. A value that is put in is the secret."""
    try:
        document = json.loads(data.replace(b'"x"', f'"{SECRET}"'.encode()))
    except (ValueError, RecursionError):
        return {}
    found = document.items() if isinstance(document, dict) else ()
    return {
        f"TIDEMARK_{name}": value if isinstance(value, str) else json.dumps(value)
        for name, value in found
        # What the system takes in a variable.
        if re.fullmatch("[A-Z_]+", name) and not re.search("[\0\ud800-\udfff]", str(value))
    }


@contextmanager
def codec() -> Iterator[Target]:
    """Answers of brokers, as the collector decodes them."""
    from tidemark.collect.codecs.fetch import decode_fetch
    from tidemark.collect.codecs.list_offsets import decode_list_offsets

    listed = ListOffsetsResponse.ListOffsetsTopicResponse
    fetched = FetchResponse.FetchableTopicResponse
    offsets = ListOffsetsResponse(
        throttle_time_ms=0,
        topics=[
            listed(
                name="orders",
                partitions=[
                    listed.ListOffsetsPartitionResponse(
                        partition_index=n, error_code=0, timestamp=-1, offset=70 + n, leader_epoch=3
                    )
                    for n in range(3)
                ],
            )
        ],
    )
    records = FetchResponse(
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[
            fetched(
                topic="orders",
                partitions=[
                    fetched.PartitionData(
                        partition_index=n,
                        error_code=0,
                        high_watermark=70,
                        last_stable_offset=70,
                        log_start_offset=0,
                        aborted_transactions=None,
                        preferred_read_replica=-1,
                        records=None,
                    )
                    for n in range(3)
                ],
            )
        ],
    )
    answers = [
        *(bytes([version]) + bytes(offsets.encode(version=version)) for version in (1, 4, 7)),
        b"\x80" + bytes(records.encode(version=12)),
    ]

    def call(data: bytes) -> None:
        kind, body = data[0] if data else 0, data[1:]
        decode_fetch(body) if kind & 0x80 else decode_list_offsets(body, 1 + kind % 9)

    yield Target(answers, call, (WireError,))


@contextmanager
def records() -> Iterator[Target]:
    """Views and alerts, as the exporter, the pages and the verbs read them."""
    from tests.export.test_hostile_records import show
    from tests.pages.make import past_alerts, views
    from tidemark.core.records import encode_record

    seeds = [*map(encode_record, views()), *map(encode_record, past_alerts())]
    yield Target(seeds, show, (WireError,))


@contextmanager
def configuration() -> Iterator[Target]:
    """The YAML file, variables, the files in both, and the properties file of --command-config.

    No message about a variable shows the secret, which is in all of them.
    """
    from tidemark.kafka.command_config import client_of, parse_properties
    from tidemark.settings import load_settings
    from tidemark.verbs.check_config.check_files import check_files

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.yaml"
        properties = (
            b"Psecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=a.B required \\\n"
            b'  username="u" password="p\\u0041";\nssl.truststore.type=PEM\n'
        )

        def check(file: Path | None, variables: dict[str, str]) -> None:
            with patch.dict("os.environ", variables):
                try:
                    # Of packages that are not installed.
                    with redirect_stderr(io.StringIO()):
                        check_files(load_settings(file, variables))
                except ConfigError as error:
                    shown = str(error)
                    if "\n" in shown:
                        raise ValueError("not one line") from error
                    if any(SECRET in text for text in variables.values()) and SECRET in shown:
                        raise ValueError("a secret in a message") from error
                    raise

        def call(data: bytes) -> None:
            if data[:1] == b"P":
                client_of(parse_properties(data.decode("utf-8", "replace")))
                return
            if variables := _variables(data):
                check(None, variables)
                return
            path.write_bytes(data)
            check(path, {})

        text = (ROOT / "docs" / "reference-config.yaml").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        sections = re.findall(r"^\w+:.*(?:\n[ -].*)*", "\n".join(lines), flags=re.MULTILINE)
        small = b'kafka: {bootstrap_servers: ["a:1"]}\nclusters:\n- {name: a, shards: 2}\n'
        document = json.dumps({"clusters": [{"name": "a", "bootstrap_servers": ["k:1"]}]}).encode()
        seeds = [*(each.encode() for each in sections), small, document, document, properties]
        seeds += [json.dumps(each).encode() for each in VARIABLES]
        yield Target(seeds, call, (ConfigError,))


@contextmanager
def http() -> Iterator[Target]:
    """Requests to the server of the long-running verbs, and query strings of the pages."""
    import requests

    from tests.web.serving import serving
    from tidemark_exporters.pages import listing
    from tidemark_exporters.pages.query import BadRequestError, Query

    with serving() as server:
        sent = 0

        def call(data: bytes) -> None:
            nonlocal sent
            if data[:1] == b"?":
                Query(data[1:].decode("latin-1"), listing.ALERTS)
                return
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
                try:
                    connection.sendall(data)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65_536):
                        pass
                except OSError:
                    # The server closes what it refuses.
                    pass
            sent += 1
            if sent % 50 == 0:
                address = f"http://127.0.0.1:{server.port}/-/healthy"
                assert requests.get(address, timeout=10).status_code == 200

        seeds = [
            b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nAuthorization: Basic dTpw\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            b"GET /-/healthy HTTP/1.0\r\n\r\n",
            b"?status=past&cluster=a&page=2&limit=10&q=%C3%A9",
        ]
        yield Target(seeds, call, (BadRequestError,))


@contextmanager
def logs() -> Iterator[Target]:
    """Segments and checkpoint files of brokers, and the metadata log."""
    from tidemark.collect.sources.log_directories import formats
    from tidemark.collect.sources.metadata_log.batches import read_batches
    from tidemark.collect.sources.metadata_log.records import decode_record
    from tidemark.kafka.decompression import UnreadableRecordsError
    from tidemark.record_log.batches import DamagedLogError, split_batches
    from tidemark.verbs.audit.comparison import record_digests

    parsers: list[Call] = [
        formats.parse_offsets,
        formats.parse_epochs,
        formats.parse_topic_id,
        formats.parse_meta_properties,
        decode_record,
        lambda data: read_batches(data, check_crc=False),
    ]

    def segment(data: bytes) -> None:
        for batch in split_batches(data, 0)[0]:
            record_digests(batch)

    parsers.append(segment)

    def call(data: bytes) -> None:
        parsers[data[0] % len(parsers) if data else 0](data[1:])

    log = encode_log(written(3, 2, start=10, epoch=4))
    texts = [
        b"0\n2\nt 0 4\nu 1 5\n",
        b"0\n1\n0 0\n",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n",
    ]
    metas = [b"version=1\nbroker.id=1\ncluster.id=x\n", b'{"version":0,"brokerEpoch":7}']
    seeds = [
        bytes([n]) + each for n, each in enumerate([*texts, *metas, b"\x01\x00\x00", log, log])
    ]
    errors = (WireError, formats.FormatError, DamagedLogError, UnreadableRecordsError)
    yield Target(seeds, call, errors)


@contextmanager
def jmx() -> Iterator[Target]:
    """Bodies of jmx_exporter endpoints, and tokens of OAuth servers."""
    from kafka.errors import SaslAuthenticationFailedError

    from tidemark.collect.sources.jmx.figures import FigureReader, ScrapeError
    from tidemark.kafka.oauth import _token

    def call(data: bytes) -> None:
        if data[:1] == b"{":
            _token(data, "host")
            return
        reader = FigureReader()
        reader.feed(data)
        reader.event(1, 9.0)

    seeds = [path.read_bytes() for path in sorted((DATA / "jmx").glob("*.txt"))]
    # Labels that are one long word.
    seeds.append(b"# HELP\n" + b"kafka_server_app_info{%b} 1\n" % (b"a" * 60_000) * 16)
    seeds.append(b'{"access_token": "a.b.c", "expires_in": 300}')
    yield Target(seeds, call, (ScrapeError, SaslAuthenticationFailedError))


TARGETS = {
    "codec": codec,
    "events": events,
    "event-codec": event_codec,
    "spool": spool,
    "records": records,
    "state": state,
    "configuration": configuration,
    "http": http,
    "logs": logs,
    "jmx": jmx,
}
