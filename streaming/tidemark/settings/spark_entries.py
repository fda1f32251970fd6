"""Entries of `stream.spark`, which Spark and its Kafka client take unchecked, or ignore."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Final, Literal, get_args

from tidemark.settings.conversion import near_word
from tidemark.settings.java_options import near_security_option
from tidemark.settings.schema import Settings

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal[
    "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"
]
PROTOCOLS: Final = get_args(Protocol)
# What the stream sets itself, whatever the entry says -> what sets it.
FIXED: Final = {
    "spark.sql.shuffle.partitions": "it follows from topics.partitions and stream.master",
    "spark.sql.streaming.stateStore.providerClass": "set stream.store_provider",
}
# Those of Spark's processes that people set. Others have longer names, or far ones.
COMMON: Final = frozenset(
    f"spark.{process}.{name}"
    for process in ("driver", "executor")
    for name in ("cores", "extraClassPath", "extraJavaOptions", "memory", "memoryOverhead")
) | {"spark.driver.maxResultSize", "spark.executor.instances", "spark.executor.pyspark.memory"}


def spark_mistakes(settings: Settings) -> Iterator[tuple[str, str]]:
    """(option, problem) of each entry that nothing reads, or that weakens a connection."""
    entries = settings.stream.spark
    problems = [*map(name_problem, entries)]
    # The Java client takes protocols in lower case too.
    protocol = entries.get("kafka.security.protocol", "").upper()
    if "kafka.security.protocol" in entries:
        problems.append(_word_problem("kafka.security.protocol", protocol, PROTOCOLS))
        problems.append(_weakness(protocol, settings.kafka.client.get("security_protocol")))
    if "kafka.sasl.mechanism" in entries:
        name = "kafka.sasl.mechanism"
        problems.append(_word_problem(name, entries[name], get_args(Mechanism)))
    yield from (("stream.spark", problem) for problem in problems if problem is not None)


def name_problem(name: str) -> str | None:
    """Other names of Spark's prefixes are those of plug-ins and newer versions."""
    if name in FIXED:
        return f"`{name}` has no effect; remove it: {FIXED[name]}"
    if name.startswith("kafka."):
        near = near_security_option(name.removeprefix("kafka."))
        return near and f"Kafka has no such option; did you mean `kafka.{near}`?"
    if not name.startswith("spark."):
        return (
            "an entry begins neither with `spark.` nor with `kafka.`, so that nothing would read "
            f"it; write the whole name{near_word(f'spark.{name}', COMMON)}"
        )
    as_long = [each for each in COMMON if abs(len(each) - len(name)) < 2]
    close = get_close_matches(name, as_long, n=1, cutoff=0.9)
    if name in COMMON or not close:
        return None
    return f"Spark has no option `{name}`; did you mean `{close[0]}`?"


def _word_problem(name: str, value: str, choices: Collection[str]) -> str | None:
    if value in choices:
        return None
    return f"`{name}` must be one of {', '.join(choices)}{near_word(value, choices)}"


def _weakness(protocol: str, configured: object) -> str | None:
    """The entry replaces kafka.client's protocol for the connections that carry the alerts."""
    if configured not in PROTOCOLS:
        # Its own check names it.
        return None
    before, after = (set(str(each).split("_")) for each in (configured, protocol))
    for part, kind in (("SASL", "authentication"), ("SSL", "encryption")):
        if part in before - after:
            return (
                f"`kafka.security.protocol` {protocol} is without the {kind} of "
                f"kafka.client.security_protocol {configured}; remove it, or change kafka.client"
            )
    return None
