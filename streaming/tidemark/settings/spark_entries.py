"""Entries of `stream.spark`, which Spark and its Kafka client take unchecked, or ignore."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from tidemark.core.errors import ConfigError
from tidemark.settings.conversion import near_word, shown_key, with_stop
from tidemark.settings.java_options import near_security_option
from tidemark.settings.schema import Settings

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = (
    *("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    *("OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"),
)
# What the stream sets itself, whatever the entry says -> what sets it.
FIXED: Final = {
    "spark.sql.shuffle.partitions": "it follows from topics.partitions and stream.master",
    "spark.sql.streaming.stateStore.providerClass": "set stream.store_provider",
}
# All names that Spark 4.0 has under these two prefixes.
PROCESS_OPTIONS: Final = frozenset(
    {
        *(
            f"spark.driver.{name}"
            for name in (
                *("bindAddress", "blockManager.port", "cores", "defaultExtraClassPath"),
                *("defaultJavaOptions", "extraClassPath", "extraJavaOptions", "extraLibraryPath"),
                *("host", "libraryPath", "log.allowErasureCoding", "log.dfsDir", "log.layout"),
                *("log.localDir", "log.persistToDfs.enabled", "maxResultSize", "memory"),
                *("memoryOverhead", "memoryOverheadFactor", "minMemoryOverhead", "port"),
                *("appUIAddress", "python", "resourcesFile", "supervise", "timeout"),
                "userClassPathFirst",
            )
        ),
        *(
            f"spark.executor.{name}"
            for name in (
                *("allowSparkContext", "cores", "decommission.forceKillTimeout"),
                *("decommission.killInterval", "decommission.signal", "defaultExtraClassPath"),
                *("defaultJavaOptions", "extraClassPath", "extraJavaOptions", "extraLibraryPath"),
                *("failuresValidityInterval", "heartbeat.dropZeroAccumulatorUpdates"),
                *("heartbeat.maxFailures", "heartbeatInterval", "id", "instances"),
                *("killOnFatalError.depth", "logs.rolling.enableCompression"),
                *("logs.rolling.maxRetainedFiles", "logs.rolling.maxSize"),
                *("logs.rolling.size.maxBytes", "logs.rolling.strategy"),
                *("logs.rolling.time.interval", "maxNumFailures", "memory", "memoryOverhead"),
                *("memoryOverheadFactor", "metrics.fileSystemSchemes", "metrics.pollingInterval"),
                *("minMemoryOverhead", "plugins", "port", "processTreeMetrics.enabled"),
                *("pyspark.memory", "python.worker.log.details", "syncLogLevel.enabled", "uri"),
                "userClassPathFirst",
            )
        ),
    }
)


def check_spark(settings: Settings) -> None:
    """Raises ConfigError for the first entry that nothing reads, or that weakens a connection."""
    entries = settings.stream.spark
    for name in entries:
        if name in FIXED:
            raise _error(f"`{name}` has no effect; remove it: {FIXED[name]}.")
        if name.startswith("kafka."):
            near = near_security_option(name.removeprefix("kafka."))
            if near is not None:
                raise _error(f"Kafka has no option `{name}`; did you mean `kafka.{near}`?")
        elif name.startswith("spark."):
            _check_name(name)
        else:
            raise _error(
                f"`{shown_key(name)}` begins neither with `spark.` nor with `kafka.`, so that "
                "nothing would read it; write the whole name."
            )
    # The Java client takes protocols in lower case too.
    protocol = entries.get("kafka.security.protocol")
    if protocol is not None:
        _check_word("kafka.security.protocol", protocol.upper(), PROTOCOLS)
        _check_strength(protocol.upper(), settings.kafka.client.get("security_protocol"))
    if "kafka.sasl.mechanism" in entries:
        _check_word("kafka.sasl.mechanism", entries["kafka.sasl.mechanism"], MECHANISMS)


def _check_name(name: str) -> None:
    """Other names of these prefixes are those of plug-ins and newer versions."""
    if name in PROCESS_OPTIONS or not name.startswith(("spark.driver", "spark.executor")):
        return
    close = get_close_matches(name, PROCESS_OPTIONS, n=1, cutoff=0.9)
    if close and not name.startswith(("spark.driver.resource.", "spark.executor.resource.")):
        raise _error(f"Spark has no option `{name}`; did you mean `{close[0]}`?")


def _check_word(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        # The value is not shown: an entry may hold a secret that belongs elsewhere.
        text = f"`{name}` must be one of {', '.join(choices)}{near_word(value.upper(), choices)}"
        raise _error(with_stop(text))


def _check_strength(protocol: str, configured: object) -> None:
    """The entry replaces kafka.client's protocol for the connections that carry the alerts."""
    if configured not in PROTOCOLS:
        # Its own check names it.
        return
    for part, kind in (("SASL", "authentication"), ("SSL", "encryption")):
        if _has(str(configured), part) and not _has(protocol, part):
            raise _error(
                f"`kafka.security.protocol` {protocol} is without the {kind} of "
                f"kafka.client.security_protocol {configured}; remove it, or change kafka.client."
            )


def _has(protocol: str, part: str) -> bool:
    return protocol.startswith("SASL_") if part == "SASL" else protocol.endswith("SSL")


def _error(text: str) -> ConfigError:
    return ConfigError(f"configuration: stream.spark: {text}")
