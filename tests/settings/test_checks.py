"""Every wrong option is refused with one line that names it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import inspect

from tests.settings.load import load, refused
from tidemark.core.errors import ConfigError
from tidemark.settings import Settings, parse_address
from tidemark.settings.spark_entries import COMMON, name_problem
from tidemark.web.options import WebFile


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colect: {}", "unknown field `colect`"),
        ("collect: {pass_second: 1}", "collect: unknown field `pass_second`"),
        (
            "clusters: [{name: a, topic_allow: ['x']}]",
            "clusters[0]: unknown field `topic_allow`",
        ),
        ("detect: {thresholds: {lag: 1}}", "detect.thresholds: unknown field `lag`"),
        ("clusters: [{}]", "missing required field `name`"),
        ("clusters: [{name: 'a b'}]", "clusters[0].name"),
        ("collect: {pass_seconds: soon}", "collect.pass_seconds"),
        ("collect: {pass_seconds: 0}", "collect.pass_seconds"),
        ("export: {granularity: rack}", "export.granularity: it must be one of auto, cluster"),
        ("topics: {partitions: 0}", "topics.partitions"),
        ("kafka: {bootstrap_servers: []}", "kafka.bootstrap_servers"),
        ("[1, 2]", "the top level must be a mapping, found list"),
        ("a: [", "is not YAML"),
        ("a: \x00", "is not YAML"),
        ("clusters: [{name: a}, {name: b}, {name: a}]", "clusters[2]: its name is used twice"),
        (
            "clusters: [{name: a, shard: 2, shards: 2}]",
            "clusters[0].shard: it must be below shards",
        ),
        (
            "clusters: [{name: a, jmx: [{broker: 1, url: 'kafka-1:9404'}]}]",
            "clusters[0].jmx[0].url: it is not an http:// or https:// URL",
        ),
        (
            "clusters: [{name: a, jmx: [{broker: 1, url: 'http://u:secret@kafka-1:9404'}]}]",
            "clusters[0].jmx[0].url: it must have no user and no password",
        ),
        (
            (
                "clusters: [{name: a, jmx: [{broker: 1, url: 'http://h:1'}, "
                "{broker: 1, url: 'http://h:2'}]}]"
            ),
            "clusters[0].jmx[1]: a broker has one endpoint",
        ),
        (
            "topics: {replication_factor: 1}",
            "topics.min_in_sync_replicas: it must not exceed topics.replication_factor",
        ),
        (
            "clusters: [{name: a, topics_allow: ['(']}]",
            "clusters[0].topics_allow[0]: it is not a regular expression",
        ),
        (
            "notify: {receivers: [{name: r, url: 'http://r/', alerts: ['*']}]}",
            "notify.receivers[0].alerts[0]: it is not a regular expression",
        ),
        (
            "detect: {overrides: [{topics: '['}]}",
            "detect.overrides[0].topics: it is not a regular expression",
        ),
        (
            "notify: {receivers: [{name: r}]}",
            "notify.receivers[0]: it needs exactly one of url and url_file",
        ),
        (
            "notify: {receivers: [{name: r, url: 'http://r/', url_file: f}]}",
            "notify.receivers[0]: it needs exactly one of url and url_file",
        ),
        (
            "notify: {receivers: [{name: r, url: 'r.example.org/hook'}]}",
            "it is not an http:// or https:// URL",
        ),
        (
            "notify: {receivers: [{name: r, url: 'http://r/'}, {name: r, url: 'http://s/'}]}",
            "notify.receivers[1]: its name is used twice",
        ),
        (
            (
                "notify: {receivers: [{name: r, url: 'http://r/'}], "
                "alertmanagers: [{name: r, urls: ['http://a/']}]}"
            ),
            "notify.alertmanagers[0]: its name is used twice",
        ),
        ("notify: {receivers: [{name: 'a b', url: 'http://r/'}]}", "notify.receivers[0].name"),
        ("notify: {alertmanagers: [{name: a, urls: []}]}", "notify.alertmanagers[0].urls"),
        (
            "notify: {alertmanagers: [{name: a, urls: ['am:9093']}]}",
            "notify.alertmanagers[0].urls[0]: it is not an http://",
        ),
        ("notify: {heartbeat_receiver: x}", "notify.heartbeat_receiver: no such receiver"),
        (
            "notify: {maintenance: [{name: m, start: '22:00', end: '02:00'}]}",
            'must be written as "2026-11-21 22:00" (or give `days`)',
        ),
        (
            "notify: {maintenance: [{name: m, start: 'x', end: '02:00', days: [monday]}]}",
            'must be written as "22:00"',
        ),
        (
            "notify: {maintenance: [{name: m, start: 2026-11-21, end: 2026-11-22}]}",
            "notify.maintenance[0]: start and end must be written as",
        ),
        (
            (
                "notify: {maintenance: "
                "[{name: m, start: '2026-11-22 01:00', end: '2026-11-21 01:00'}]}"
            ),
            "notify.maintenance[0]: it ends before it starts",
        ),
        (
            "notify: {maintenance: [{name: m, start: '1:00', end: '2:00', time_zone: Mars/Base}]}",
            "there is no such time_zone",
        ),
        (
            "notify: {maintenance: [{name: m, start: a, end: b, days: [caturday]}]}",
            "days[0]: it must be one of friday",
        ),
        (
            (
                "notify: {maintenance: [{name: m, start: '2026-11-21 22:00', "
                "end: '2026-11-22 02:00', topics: ['(']}]}"
            ),
            "topics[0]: it is not a regular",
        ),
        ("collect: {watchdog_url: 'ftp://x/'}", "collect.watchdog_url: it is not an http://"),
        (
            "kafka: {bootstrap_servers: ['localhost']}",
            "kafka.bootstrap_servers[0]: it is not host:port",
        ),
        (
            "clusters: [{name: a, bootstrap_servers: ['k:99999']}]",
            "clusters[0].bootstrap_servers[0]: it is not host:port",
        ),
        ("export: {listen: '9754'}", "export.listen: it is not host:port"),
        (
            "notify: {dashboard_url: 'https://u:s3cret@r.example.org/'}",
            "notify.dashboard_url: every alert shows this URL",
        ),
        (
            "notify: {external_url: 'https://s3cret@t.example.org/'}",
            "notify.external_url: every alert shows this URL",
        ),
        (
            "detect: {disabled: [ISR_CHANGE, ISR_CHANGES]}",
            "detect.disabled[1]: no such detector; there are AT_MIN_ISR, ",
        ),
        ("log_format: xml", "log_format"),
        # A value beyond its limits has them.
        ("topics: {partitions: 100000}", "Expected `int` <= 1024."),
        ("collect: {pass_seconds: 0}", "Expected `float` > 0."),
        ("clusters: [{name: a, jmx: [{broker: -1, url: 'http://h:1'}]}]", "Expected `int` >= 0."),
        ("topics: {prefix: ''}", "write 1 to 100 letters, digits, `.`, `_` and `-`."),
        ('topics: {prefix: "a\\n"}', "write 1 to 100 letters, digits, `.`, `_` and `-`."),
        ("clusters: [{name: 'a b'}]", "write 1 to 100 letters, digits, `.`, `_` and `-`."),
        ("stream: {master: local(4)}", "write local[4], spark://host:7077, yarn or"),
        ("collect: {collector: ''}", "Expected `str` of length >= 1."),
        ("kafka: {bootstrap_servers: []}", "write an entry, or leave it out"),
        (
            "notify: {receivers: [{name: r, url: 'hooks.example.org/s3cret'}]}",
            "it is not an http:// or https:// URL",
        ),
    ],
)
def test_wrong_options_are_named_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    shown = refused(text, tmp_path)
    assert message in shown
    assert "regex" not in shown
    assert "s3cret" not in shown


def patterns(kind: Any, name: str) -> Iterator[tuple[str, str | None]]:
    """(option, words) of every option below a type whose text has a pattern."""
    words = None
    if isinstance(kind, inspect.Metadata):
        words, kind = (kind.extra_json_schema or {}).get("description"), kind.type
    if isinstance(kind, inspect.StrType) and kind.pattern is not None:
        assert kind.pattern.endswith(r"\Z"), f"{name}: `$` also matches before a line end"
        yield name, words
    for option in getattr(kind, "fields", ()):
        yield from patterns(option.type, f"{name}.{option.name}")
    for each in getattr(kind, "types", ()):
        yield from patterns(each, name)
    for part in ("item_type", "value_type"):
        if hasattr(kind, part):
            yield from patterns(getattr(kind, part), name)


def test_every_pattern_of_an_option_has_words() -> None:
    found = [*patterns(inspect.type_info(Settings), ""), *patterns(inspect.type_info(WebFile), "")]
    assert len(found) >= 6
    assert [name for name, words in found if words is None] == []


def test_a_section_is_no_near_word_for_an_option_of_its_name(tmp_path: Path) -> None:
    message = refused("detect: {overrides: [{clusters: east, topics: a}]}", tmp_path)
    assert "detect.overrides[0]: unknown field; there are topics, fire_passes, " in message
    assert "did you mean" not in message


def test_an_at_sign_in_the_path_of_a_published_url_is_no_login(tmp_path: Path) -> None:
    url = "https://r.example.org/@team/tidemark"
    assert load(f"notify: {{external_url: '{url}'}}", tmp_path).notify.external_url == url


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("a:1", "a", 1),
        ("kafka-1.example.org:9092", "kafka-1.example.org", 9092),
        ("[::1]:65535", "::1", 65535),
        ("0.0.0.0:0", "0.0.0.0", 0),
    ],
)
def test_valid_addresses_are_parsed(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)


@pytest.mark.parametrize(
    "text",
    ["", "a", ":1", "a:", "a:b", "a:65536", "::1:9092", "http://a:1", "u@a:1", "a :1", "a:1 "],
)
def test_invalid_addresses_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="it is not host:port"):
        parse_address(text)


@pytest.mark.parametrize(
    "entry",
    [
        *("kafka.security.protocol: SASL_SSL", "kafka.acks: all", "kafka.max.request.size: '1'"),
        *("kafka.ssl.cipher.suites: A", "kafka.ssl.engine.factory.class: A"),
        *(
            "spark.driver.memory: 2g",
            "spark.driver.memoryOverhead: 1g",
            "spark.executor.cores: '2'",
        ),
        *(
            "spark.executor.resource.gpu.amount: '1'",
            "spark.executorEnv.A: b",
            "spark.master: yarn",
        ),
    ],
)
def test_entries_of_spark_and_of_its_kafka_client_are_taken(entry: str, tmp_path: Path) -> None:
    text = f"kafka: {{client: {{security_protocol: SSL}}}}\nstream: {{spark: {{{entry}}}}}"
    (name,) = load(text, tmp_path).stream.spark
    assert name == entry.partition(":")[0]


def test_no_name_that_spark_reads_is_taken_for_a_typing_error() -> None:
    pyspark = pytest.importorskip("pyspark")
    found: set[str] = set()
    for jar in (Path(pyspark.__file__).parent / "jars").glob("spark-*.jar"):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".class"):
                    words = re.findall(
                        rb"spark\.(?:driver|executor)\.[A-Za-z][A-Za-z0-9.]*", archive.read(name)
                    )
                    found |= {word.decode() for word in words}
    # Names of classes.
    found = {name for name in found if "Backend" not in name}
    assert len(found) > 50
    assert found > COMMON
    assert [name for name in found if name_problem(name) is not None] == []
