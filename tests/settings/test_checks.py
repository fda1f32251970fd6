"""Every wrong option is refused with one line that names it."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.settings.load import load, refused
from tidemark.core.errors import ConfigError
from tidemark.detect.thresholds import Override
from tidemark.settings import (
    Alertmanager,
    Cluster,
    JmxEndpoint,
    Maintenance,
    Receiver,
    Settings,
    parse_address,
)
from tidemark.settings.conversion import _plain
from tidemark.settings.limits import limits
from tidemark.settings.sources import variables
from tidemark.settings.spark_entries import PROCESS_OPTIONS
from tidemark.web.options import Tls, WebFile


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colect: {}", "unknown field `colect`"),
        ("collect: {pass_second: 1}", "unknown field `pass_second` - at `$.collect`"),
        (
            "clusters: [{name: a, topic_allow: ['x']}]",
            "unknown field `topic_allow` - at `$.clusters[0]`",
        ),
        ("detect: {thresholds: {lag: 1}}", "unknown field `lag` - at `$.detect.thresholds`"),
        ("clusters: [{}]", "missing required field `name`"),
        ("clusters: [{name: 'a b'}]", "$.clusters[0].name"),
        ("collect: {pass_seconds: soon}", "$.collect.pass_seconds"),
        ("collect: {pass_seconds: 0}", "$.collect.pass_seconds"),
        ("collect: {compression: lz4}", "Invalid enum value 'lz4' - at `$.collect.compression`"),
        ("topics: {partitions: 0}", "$.topics.partitions"),
        ("kafka: {bootstrap_servers: []}", "$.kafka.bootstrap_servers"),
        ("[1, 2]", "the top level must be a mapping, found list"),
        ("a: [", "is not YAML"),
        ("a: \x00", "is not YAML"),
        ("clusters: [{name: a}, {name: b}, {name: a}]", "the cluster name `a` is used twice"),
        ("clusters: [{name: a, shard: 2, shards: 2}]", "shard 2 must be below shards 2"),
        (
            "clusters: [{name: a, jmx: [{broker: 1, url: 'kafka-1:9404'}]}]",
            "cluster `a`: jmx of broker 1: the url must be like http://",
        ),
        (
            "clusters: [{name: a, jmx: [{broker: 1, url: 'http://u:secret@kafka-1:9404'}]}]",
            "must have no password; use authorization_file",
        ),
        (
            (
                "clusters: [{name: a, jmx: [{broker: 1, url: 'http://h:1'}, "
                "{broker: 1, url: 'http://h:2'}]}]"
            ),
            "jmx of broker 1: a broker has one endpoint",
        ),
        (
            "topics: {replication_factor: 1}",
            "min_in_sync_replicas 2 must not exceed topics.replication_factor 1",
        ),
        ("clusters: [{name: a, topics_allow: ['(']}]", "`(` is not a regular expression"),
        (
            "notify: {receivers: [{name: r, url: 'http://r/', alerts: ['*']}]}",
            "`*` is not a regular expression",
        ),
        ("detect: {overrides: [{topics: '['}]}", "`[` is not a regular expression"),
        ("notify: {receivers: [{name: r}]}", "receiver `r` needs exactly one of url and url_file"),
        (
            "notify: {receivers: [{name: r, url: 'http://r/', url_file: f}]}",
            "receiver `r` needs exactly one of url and url_file",
        ),
        (
            "notify: {receivers: [{name: r, url: 'r.example.org/hook'}]}",
            "is not an http:// or https:// URL",
        ),
        (
            "notify: {receivers: [{name: r, url: 'http://r/'}, {name: r, url: 'http://s/'}]}",
            "the receiver name `r` is used twice",
        ),
        (
            (
                "notify: {receivers: [{name: r, url: 'http://r/'}], "
                "alertmanagers: [{name: r, urls: ['http://a/']}]}"
            ),
            "`r` is used twice",
        ),
        ("notify: {receivers: [{name: 'a b', url: 'http://r/'}]}", "$.notify.receivers[0].name"),
        ("notify: {alertmanagers: [{name: a, urls: []}]}", "$.notify.alertmanagers[0].urls"),
        ("notify: {alertmanagers: [{name: a, urls: ['am:9093']}]}", "begins with `am:9093`"),
        ("notify: {heartbeat_receiver: x}", "there is no receiver `x`"),
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
            "start `2026-11-21`",
        ),
        (
            (
                "notify: {maintenance: "
                "[{name: m, start: '2026-11-22 01:00', end: '2026-11-21 01:00'}]}"
            ),
            "`m`: it ends before it starts",
        ),
        (
            "notify: {maintenance: [{name: m, start: '1:00', end: '2:00', time_zone: Mars/Base}]}",
            "there is no time zone `Mars/Base`",
        ),
        (
            "notify: {maintenance: [{name: m, start: a, end: b, days: [caturday]}]}",
            "Invalid enum value 'caturday'",
        ),
        (
            (
                "notify: {maintenance: [{name: m, start: '2026-11-21 22:00', "
                "end: '2026-11-22 02:00', topics: ['(']}]}"
            ),
            "`(` is not a regular",
        ),
        ("collect: {watchdog_url: 'ftp://x/'}", "begins with `ftp://x/`"),
        ("kafka: {bootstrap_servers: ['localhost']}", "`localhost` is not a host:port"),
        ("clusters: [{name: a, bootstrap_servers: ['k:99999']}]", "`k:99999` is not a host:port"),
        ("export: {listen: '9754'}", "`9754` is not a host:port"),
        (
            "detect: {runbook_url: 'https://u:s3cret@r.example.org/'}",
            "detect.runbook_url: every alert shows this URL",
        ),
        (
            "notify: {external_url: 'https://u@t.example.org/'}",
            "notify.external_url: every alert shows this URL",
        ),
        (
            "detect: {disabled: [ISR_CHANGE, ISR_CHANGES]}",
            "there is no detector `ISR_CHANGES`; there are AT_MIN_ISR, ",
        ),
        ("log_format: xml", "$.log_format"),
    ],
)
def test_wrong_options_are_named_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    assert message in refused(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("topics: {partitions: 100000}", "; write a whole number from 1 to 1024."),
        ("stream: {trigger_ms: -1}", "; write a whole number from 0 to 2147483647."),
        ("collect: {pass_seconds: 0}", "; write a number above 0, up to 1000000000."),
        (
            "clusters: [{name: a, jmx: [{broker: -1, url: 'http://h:1'}]}]",
            "; write a whole number from 0 to below 2147483648.",
        ),
        ("topics: {prefix: ''}", "; write 1 to 100 letters, digits, `.`, `_` and `-`."),
        ("clusters: [{name: 'a b'}]", "; write 1 to 100 letters, digits, `.`, `_` and `-`."),
        ("collect: {collector: ''}", "; write 1 to 100 characters."),
        ("stream: {checkpoint: ''}", "; write 1 or more characters."),
        ("kafka: {bootstrap_servers: []}", "; write 1 or more entries."),
    ],
)
def test_a_value_beyond_its_limits_has_them_in_words(text: str, cure: str, tmp_path: Path) -> None:
    message = refused(text, tmp_path)
    assert cure in message
    assert "regex" not in message


def test_every_limit_of_an_option_has_words() -> None:
    """`limits` fails at a pattern that it does not know."""
    checked = [(".".join(path), kind) for _, path, kind in variables(Settings)]
    for struct in (
        Cluster,
        JmxEndpoint,
        Receiver,
        Alertmanager,
        Maintenance,
        Override,
        WebFile,
        Tls,
    ):
        fields = msgspec.inspect.type_info(struct).fields  # type: ignore[attr-defined]
        checked += [(option.name, option.type) for option in fields]
    limited = [(name, limits(_plain(kind))) for name, kind in checked if is_limited(_plain(kind))]
    assert len(limited) > 50
    assert [name for name, words in limited if words is None] == []


def is_limited(kind: Any) -> bool:
    names = ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern")
    return any(getattr(kind, name, None) is not None for name in names)


def test_a_section_is_no_near_word_for_an_option_of_its_name(tmp_path: Path) -> None:
    message = refused("detect: {overrides: [{clusters: east, topics: a}]}", tmp_path)
    assert "unknown field `clusters` - at `$.detect.overrides[0]`." in message
    assert "did you mean" not in message


@pytest.mark.parametrize(
    "text",
    [
        "notify: {receivers: [{name: r, url: 'hooks.example.org/s3cret'}]}",
        "detect: {runbook_url: 'https://u:s3cret@r.example.org/'}",
        "notify: {external_url: 'https://s3cret@t.example.org/'}",
    ],
)
def test_the_message_about_a_url_hides_its_secret(text: str, tmp_path: Path) -> None:
    assert "s3cret" not in refused(text, tmp_path)


def test_an_at_sign_in_the_path_of_a_published_url_is_no_login(tmp_path: Path) -> None:
    url = "https://r.example.org/@team/runbooks"
    assert load(f"detect: {{runbook_url: '{url}'}}", tmp_path).detect.runbook_url == url


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
    with pytest.raises(ConfigError, match="is not a host:port"):
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


def test_the_options_of_sparks_processes_are_those_of_its_jars() -> None:
    """Else a name that Spark reads could be taken for a typing error."""
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
    assert found == PROCESS_OPTIONS
