"""Prometheus text of jmx_exporter to the figures of one broker, line by line.

Three forms of its names are read: those of the rules that Tidemark ships, which are the names of
jmx_exporter's example kafka-2_0_0.yml and of Strimzi
(`kafka_server_replicamanager_isrshrinks_total`), and those without any rule
(`kafka_server_ReplicaManager_Count{name="IsrShrinksPerSec"}`), in any case of letters.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tidemark.core.events import BrokerState, JmxFigures

MAX_LINE_BYTES: Final = 64 * 1024
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
# Lines of the MBeans below; a broker has about 50.
MAX_LINES: Final = 10_000
_MAX_COUNT: Final = 2**63 - 1
_MAX_SMALL_COUNT: Final = 2**31 - 1
# Those of `events.Count`; the others are of `events.SmallCount`.
_LARGE: Final = frozenset(
    {
        "fetcher_max_lag_records",
        "expired_produces",
        "expired_follower_fetches",
        "expired_consumer_fetches",
        "last_applied_record_lag_ms",
    }
)

# A figure's canonical name and the label that tells its variants apart -> field of BrokerState or
# JmxFigures. The name is in lower case, without `_total`, `_value`, `_count` and `persec`.
_FETCHER: Final = "kafka_server_replicafetchermanager"
_MANAGER: Final = "kafka_server_replicamanager"
_PURGATORY: Final = "kafka_server_delayedoperationpurgatory"
_CONTROLLER: Final = "kafka_controller_kafkacontroller"
FIGURES: Final[dict[tuple[str, str | None], str]] = {
    (f"{_PURGATORY}_numdelayedoperations", "produce"): "produce_purgatory",
    (f"{_PURGATORY}_numdelayedoperations", "fetch"): "fetch_purgatory",
    (f"{_PURGATORY}_numdelayedoperations", "electleader"): "elect_leader_purgatory",
    (f"{_PURGATORY}_purgatorysize", "produce"): "produce_purgatory_watches",
    (f"{_PURGATORY}_purgatorysize", "fetch"): "fetch_purgatory_watches",
    ("kafka_server_delayedproducemetrics_expires", None): "expired_produces",
    ("kafka_server_delayedfetchmetrics_expires", "follower"): "expired_follower_fetches",
    ("kafka_server_delayedfetchmetrics_expires", "consumer"): "expired_consumer_fetches",
    (f"{_MANAGER}_isrshrinks", None): "isr_shrinks",
    (f"{_MANAGER}_isrexpands", None): "isr_expands",
    (f"{_MANAGER}_failedisrupdates", None): "failed_isr_updates",
    (f"{_MANAGER}_underreplicatedpartitions", None): "under_replicated_partitions",
    (f"{_MANAGER}_offlinereplicacount", None): "offline_replicas",
    (f"{_FETCHER}_maxlag", "replica"): "fetcher_max_lag_records",
    (f"{_FETCHER}_minfetchrate", "replica"): "fetcher_min_rate",
    (f"{_FETCHER}_failedpartitionscount", "replica"): "failed_fetcher_partitions",
    (f"{_FETCHER}_deadthreadcount", "replica"): "dead_fetcher_threads",
    ("kafka_controller_controllerstats_uncleanleaderelections", None): "unclean_leader_elections",
    (f"{_CONTROLLER}_activecontrollercount", None): "is_active_controller",
    (f"{_CONTROLLER}_lastappliedrecordlagms", None): "last_applied_record_lag_ms",
}
# Fields of BrokerState itself; the others are of JmxFigures.
_OF_BROKER: Final = frozenset({"produce_purgatory", "fetch_purgatory", "elect_leader_purgatory"})
_APP_INFO: Final = "kafka_server_app_info_starttimems"
# Labels that tell the variants of a figure apart.
_VARIANTS: Final = ("delayedoperation", "fetchertype", "clientid")
# A series of one partition or topic is not the broker's figure.
_DETAIL: Final = frozenset({"topic", "partition"})
# In lower case, by which most lines are skipped.
_PREFIXES: Final = tuple(
    sorted({name.rpartition("_")[0].encode() for name, _ in FIGURES} | {b"kafka_server_app_info"})
)
_LONGEST_PREFIX: Final = max(map(len, _PREFIXES))
# A literal beginning lets `re` skip the other lines fast. A longer line is cut: it has no value.
_OF_KAFKA: Final = re.compile(rb"\n(kafka_[sc][^\n]{0,%d})" % MAX_LINE_BYTES)
_TEXT_FORMAT: Final = re.compile(rb"#|[a-zA-Z_:][\w:]*[{ \t]")
_SAMPLE: Final = re.compile(
    r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?[ \t]+(?P<value>\S+)(?:[ \t]+-?\d+)?\s*"
)
# A label begins where a word does: else a long word would be searched from each of its letters.
_LABEL: Final = re.compile(r'(?<!\w)([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


class ScrapeError(Exception):
    """An endpoint has no figures now. The text names the problem and the cure, and no secret."""


class FigureReader:
    """Takes a body in pieces of any size. It keeps MAX_LINE_BYTES of it at most."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._brokers: set[int] = set()
        self._started_at: float | None = None
        # The end of the text so far, from its last line end on; it begins with one.
        self._rest = b"\n"
        self._size = self._lines = 0
        self._start = b""

    def feed(self, piece: bytes) -> None:
        """Raises ScrapeError for a body or a line that is too long."""
        self._size += len(piece)
        if self._size > MAX_BODY_BYTES:
            raise ScrapeError(
                f"the answer is longer than {MAX_BODY_BYTES >> 20} MiB; export fewer MBeans, as "
                "deploy/jmx/tidemark-jmx-exporter.yaml does"
            )
        if len(self._start) < 64:
            self._start = (self._start + piece[:64]).lstrip()[:64]
        text = self._rest + piece
        end = text.rfind(b"\n")
        self._rest = text[end:]
        if len(self._rest) > MAX_LINE_BYTES + 1:
            raise ScrapeError(
                f"a line is longer than {MAX_LINE_BYTES >> 10} KiB: this is no Prometheus text"
            )
        for line in _OF_KAFKA.findall(text, 0, end):
            if line[:_LONGEST_PREFIX].lower().startswith(_PREFIXES):
                self._lines += 1
                self._read(line)
        if self._lines > MAX_LINES:
            raise ScrapeError(
                f"the answer has more than {MAX_LINES} figures of a broker: it cannot be one's"
            )

    def _read(self, line: bytes) -> None:
        found = _SAMPLE.fullmatch(line.decode("utf-8", "replace"))
        if found is None:
            return
        labels = {label.lower(): value for label, value in _LABEL.findall(found["labels"] or "")}
        name = _canonical(found["name"].lower(), labels)
        if _DETAIL & labels.keys():
            return
        variant = next((labels[v].lower() for v in _VARIANTS if v in labels), None)
        field = FIGURES.get((name, variant))
        if field is None and name != _APP_INFO:
            return
        try:
            value = float(found["value"])
        except ValueError:
            return
        if field is not None:
            self._values[field] = value
            return
        self._started_at = value / 1000.0 if 0 < value < 1e14 else None
        if labels.get("id", "").isdecimal() and len(labels["id"]) <= 10:
            self._brokers.add(int(labels["id"]))

    def event(self, broker: int, at: float) -> BrokerState:
        """The event of a body that was read to its end. A last line without an end is cut.

        Raises ScrapeError where the body has no figure, or is another broker's.
        """
        if self._brokers and broker not in self._brokers:
            other = min(self._brokers)
            raise ScrapeError(
                f"the endpoint is that of broker {other}; give the address of broker {broker}'s"
            )
        values = {
            name: v for name in self._values if (v := _value(name, self._values[name])) is not None
        }
        if not values:
            raise ScrapeError(self._why_empty())
        figures = {name: values[name] for name in values.keys() - _OF_BROKER}
        return BrokerState(
            broker=broker,
            observed_at=at,
            jmx=JmxFigures(started_at=self._started_at, **figures),
            **{name: values[name] for name in values.keys() & _OF_BROKER},
        )

    def _why_empty(self) -> str:
        if not self._start:
            return "the answer is empty; is the agent still starting?"
        if self._start.startswith(b"<"):
            return "the answer is HTML, not Prometheus text; give the path of the metrics"
        if not _TEXT_FORMAT.match(self._start):
            return "the answer is no Prometheus text; give the path of the metrics"
        return (
            "the answer has none of a broker's figures; use the rules of "
            "deploy/jmx/tidemark-jmx-exporter.yaml"
        )


def _canonical(name: str, labels: dict[str, str]) -> str:
    """The name in lower case, with the MBean's name, without the words for its attribute."""
    base, _, attribute = name.rpartition("_")
    if "name" in labels and attribute in ("value", "count"):
        name = f"{base}_{labels['name'].lower()}"
    return name.removesuffix("_total").removesuffix("persec")


def _value(field: str, value: float) -> Any:
    """A count, a rate or a flag; None where the value is not possible: NaN, below 0, a fraction."""
    if not 0 <= value <= (_MAX_COUNT if field in _LARGE else _MAX_SMALL_COUNT):
        return None
    if field == "fetcher_min_rate":
        return value
    if field == "is_active_controller":
        return bool(value)
    return int(value) if value.is_integer() else None
