"""The words of the stories, each in a sentence or two."""

from __future__ import annotations

from typing import Final

LEADER_EPOCH: Final = (
    "A leader epoch is the number of one leadership. Every decision of the controller about the "
    "leader counts it up, also one that finds no leader. There is at most one leader in an epoch, "
    "and every record keeps the number of the leader that wrote it: two logs that have the same "
    "epoch at the same offset have the same record there."
)
GLOSSARY: Final = {
    "Leader epoch": LEADER_EPOCH,
    "Log end offset (LEO)": (
        "The offset that the next record of a log will get: one past its last record."
    ),
    "High watermark (HW)": (
        "Records below it are committed: all in-sync replicas have them, and consumers may read "
        "them. The leader moves it. A follower learns it one fetch later, so its own trails."
    ),
    "In-sync replicas (ISR)": (
        "The replicas that the leader waits for before it commits. The next leader is elected "
        "from them. A replica that falls behind, or is seen to be down, is removed. "
        "One that restarts before that is seen stays in; so does the last one, until 4.0."
    ),
    "Controller": (
        "Elects the leaders, and keeps the ISR. A broker acts by a decision once it has learned it."
    ),
    "Checkpoint": (
        "A file of each broker with its high watermark, written every few seconds. After a restart "
        "the broker knows no newer one."
    ),
    "Flush": (
        "A record that is appended is in the memory of its machine until it is flushed to the "
        "disk. A broker that is killed loses none; a machine that loses power loses what is not "
        "flushed. Kafka relies on the other replicas, and seldom flushes."
    ),
    "OFFSET_OUT_OF_RANGE": (
        "A leader's answer to a fetch from beyond the end of its log, or from before its start."
    ),
    "Purgatory": (
        "Where a broker keeps requests that wait: produce requests for the high watermark, fetch "
        "requests for records."
    ),
    "Epoch cache, as in 0@0 1@3": (
        "A broker's note of where each leader epoch starts in its log: epoch 0 at offset 0, epoch "
        "1 at offset 3. Epoch 0 so ends at offset 3, and the last one at the log end offset."
    ),
    "OffsetForLeaderEpoch": (
        "The request of a new follower, from 0.11 on: where does the epoch of my last record end "
        "in your log? It keeps its records below the answer, and truncates the others. From 2.7 "
        "on each fetch asks it."
    ),
    "Truncate": ("A follower removes the records from an offset on, to equal its leader's log."),
    "Minimum ISR (min.insync.replicas)": (
        "With fewer replicas in sync, a write with acks=all is refused. With 1, the leader alone "
        "can commit."
    ),
    "Lost": (
        "Was committed, and is not in the log of the present leader. Where another log still has "
        "it, no consumer reads it there."
    ),
    "acks": (
        "When a producer hears that its record is safe: acks=all once it is committed, acks=1 "
        "once the leader has it, acks=0 never."
    ),
    "Eligible leader replicas (ELR)": (
        "From 4.0 on: replicas that have left the ISR and still have every committed record. They "
        "are elected where the ISR is empty, then the last known leader."
    ),
    "Unclean election (unclean.leader.election.enable)": (
        "The election of a replica that is not in the ISR, because no other is alive: what it "
        "does not have is lost."
    ),
}
