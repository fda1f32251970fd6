"""The links of docs/replication to KIPs and to Kafka's sources.

Its pages have shortcut references: `[KIP-101]`, or a code span in brackets that names a file and
its lines, such as ``[`Partition.scala:377`]``. A version before the file is its tag: without one it
is VERSION. `definitions` writes the link of each reference that a page uses.
"""

from __future__ import annotations

import re
from typing import Final

VERSION: Final = "4.1.2"
WIKI: Final = "https://cwiki.apache.org/confluence/display/KAFKA"
GITHUB: Final = "https://github.com/apache/kafka/blob"

KIP: Final = re.compile(r"KIP-\d+")
SOURCE: Final = re.compile(
    r"(?:(?P<tag>\d+\.\d+(?:\.\d+)*):)?(?P<file>[A-Z]\w+\.(?:java|scala))"
    r":(?P<first>\d+)(?:-(?P<last>\d+))?"
)
REFERENCE: Final = re.compile(rf"\[({KIP.pattern}|`{SOURCE.pattern}`)\](?!\(|: http)")

# The wiki page of each KIP.
KIPS: Final = {
    "KIP-101": "KIP-101+-+Alter+Replication+Protocol+to+use+Leader+Epoch"
    "+rather+than+High+Watermark+for+Truncation",
    "KIP-279": "KIP-279%3A+Fix+log+divergence+between+leader+and+follower"
    "+after+fast+leader+fail+over",
    "KIP-320": "KIP-320%3A+Allow+fetchers+to+detect+and+handle+log+truncation",
    "KIP-392": "KIP-392%3A+Allow+consumers+to+fetch+from+closest+replica",
    "KIP-497": "KIP-497%3A+Add+inter-broker+API+to+alter+ISR",
    "KIP-595": "KIP-595%3A+A+Raft+Protocol+for+the+Metadata+Quorum",
    "KIP-664": "KIP-664%3A+Provide+tooling+to+detect+and+abort+hanging+transactions",
    "KIP-890": "KIP-890%3A+Transactions+Server-Side+Defense",
    "KIP-903": "KIP-903%3A+Replicas+with+stale+broker+epoch+should+not+be+allowed+to+join+the+ISR",
    "KIP-966": "KIP-966%3A+Eligible+Leader+Replicas",
}
# The folder of each source file, at every tag that a page names.
FOLDERS: Final = {
    "AbstractFetcherThread.scala": "core/src/main/scala/kafka/server",
    "CleanShutdownFileHandler.java": "storage/src/main/java/org/apache/kafka/storage/internals"
    "/checkpoint",
    "DefaultRecordBatch.java": "clients/src/main/java/org/apache/kafka/common/record",
    "DelayedDeleteRecords.java": "server/src/main/java/org/apache/kafka/server/purgatory",
    "DelayedFetch.scala": "core/src/main/scala/kafka/server",
    "DelayedOperation.java": "server-common/src/main/java/org/apache/kafka/server/purgatory",
    "DelayedOperationPurgatory.java": "server-common/src/main/java/org/apache/kafka/server"
    "/purgatory",
    "DelayedProduce.scala": "core/src/main/scala/kafka/server",
    "FetchCollector.java": "clients/src/main/java/org/apache/kafka/clients/consumer/internals",
    "FetchIsolation.java": "server-common/src/main/java/org/apache/kafka/server/storage/log",
    "FileRecords.java": "clients/src/main/java/org/apache/kafka/common/record",
    "KafkaApis.scala": "core/src/main/scala/kafka/server",
    "KafkaConfig.scala": "core/src/main/scala/kafka/server",
    "KafkaController.scala": "core/src/main/scala/kafka/controller",
    "LeaderEpochFileCache.java": "storage/src/main/java/org/apache/kafka/storage/internals/epoch",
    "LeaderEpochFileCache.scala": "core/src/main/scala/kafka/server/epoch",
    "LocalLog.java": "storage/src/main/java/org/apache/kafka/storage/internals/log",
    "Log.scala": "core/src/main/scala/kafka/log",
    "LogCleanerManager.java": "storage/src/main/java/org/apache/kafka/storage/internals/log",
    "LogFileUtils.java": "storage/src/main/java/org/apache/kafka/storage/internals/log",
    "LogLoader.java": "storage/src/main/java/org/apache/kafka/storage/internals/log",
    "LogManager.scala": "core/src/main/scala/kafka/log",
    "LogOffsetMetadata.java": "storage/src/main/java/org/apache/kafka/storage/internals/log",
    "Partition.scala": "core/src/main/scala/kafka/cluster",
    "PartitionChangeBuilder.java": "metadata/src/main/java/org/apache/kafka/controller",
    "PartitionRegistration.java": "metadata/src/main/java/org/apache/kafka/metadata",
    "PartitionMetadataFile.java": "storage/src/main/java/org/apache/kafka/storage/internals"
    "/checkpoint",
    "ProducerConfig.java": "clients/src/main/java/org/apache/kafka/clients/producer",
    "ProducerStateManager.java": "storage/src/main/java/org/apache/kafka/storage/internals/log",
    "RackAwareReplicaSelector.java": "clients/src/main/java/org/apache/kafka/common/replica",
    "RemoteLeaderEndPoint.scala": "core/src/main/scala/kafka/server",
    "Replica.java": "server/src/main/java/org/apache/kafka/server/replica",
    "Replica.scala": "core/src/main/scala/kafka/cluster",
    "ReplicaFetcherThread.scala": "core/src/main/scala/kafka/server",
    "ReplicaManager.scala": "core/src/main/scala/kafka/server",
    "ReplicaState.java": "server/src/main/java/org/apache/kafka/server/replica",
    "ReplicationConfigs.java": "server/src/main/java/org/apache/kafka/server/config",
    "ReplicationControlManager.java": "metadata/src/main/java/org/apache/kafka/controller",
    "UnifiedLog.java": "storage/src/main/java/org/apache/kafka/storage/internals/log",
}


def definitions(page: str) -> list[str]:
    """The definitions of all references, sorted. Raises ValueError for an unknown KIP or file."""
    labels = sorted({found[1] for found in REFERENCE.finditer(page)})
    return [f"[{label}]: {source_url(label.strip('`'))}" for label in labels]


def source_url(reference: str) -> str:
    """The page of a KIP, or of `File.java:1-2`. Raises ValueError for one that is not known."""
    source = SOURCE.fullmatch(reference)
    if source is None:
        if reference not in KIPS:
            raise ValueError(f"{reference} has no page in KIPS")
        return f"{WIKI}/{KIPS[reference]}"
    tag, file, first, last = source.group("tag", "file", "first", "last")
    if file not in FOLDERS:
        raise ValueError(f"{file} has no folder in FOLDERS")
    lines = f"#L{first}-L{last}" if last else f"#L{first}"
    return f"{GITHUB}/{tag or VERSION}/{FOLDERS[file]}/{file}{lines}"
