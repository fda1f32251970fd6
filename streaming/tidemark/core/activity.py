"""Activity: what is going on at a partition, as one small set of flags.

The reducer computes the flags once per fold (`evolve.activity`). They decide which detectors run
(`Detector.wakes_on`), whether the partition is judged at every pass, and whether the fast path
may fold the next observation. A partition without a flag is at rest.

Plain integers: the flags are tested for every observation, and `enum.IntFlag` costs a microsecond
per operation.
"""

from __future__ import annotations

from typing import Final

Activity = int
NONE: Final = 0

# No leader is known, or no leader serves.
NO_LEADER: Final = 1 << 0
# The in-sync set is unknown, smaller than the assignment or below its minimum, or a reassignment
# adds replicas.
ISR: Final = 1 << 1
# A replica did not answer.
UNANSWERED: Final = 1 << 2
# A log ends elsewhere than at the high watermark, or one of the two is unknown.
LAG: Final = 1 << 3
# A replica knows another leader epoch than the partition's, or a second one acts as leader.
EPOCH: Final = 1 << 4
# More was committed under earlier epochs than the leader's high watermark covers.
COMMITTED: Final = 1 << 5
# A loss was read, confirmed or not.
LOSS: Final = 1 << 6
# Sparse state that a state detector judges.
SPARSE: Final = 1 << 7
# A difference between two logs was read.
DIVERGENCE: Final = 1 << 8
# Alerts of the class "state" are pending or firing.
ALERTS: Final = 1 << 9
# The newest passes listed the partition as missed.
MISSED: Final = 1 << 10
# Brokers left the in-sync set at some time.
SHRINKS: Final = 1 << 11
# A checkpoint file has a higher high watermark than its broker reported last.
CHECKPOINT: Final = 1 << 12
# The controller marks the leader as recovering from an unclean election.
RECOVERING: Final = 1 << 13

# The last three describe a fold, not the state after it.
# The leader, its epoch, or the epoch that a replica knows changed.
ELECTION: Final = 1 << 14
# A log got shorter, or the set of sampled replicas changed.
LOG_FELL: Final = 1 << 15
# What is known of the committed records of earlier epochs changed.
HISTORY: Final = 1 << 16

# Time alone can make these worth an alert: the partition is judged at every pass.
JUDGED_EACH_PASS: Final = (
    NO_LEADER | ISR | UNANSWERED | LAG | LOSS | SPARSE | RECOVERING | DIVERGENCE | ALERTS | MISSED
)
# A collector observes a partition with one of these in every pass; it thins only the others.
OBSERVED_EACH_PASS: Final = NO_LEADER | ISR | UNANSWERED | LAG
# The fast path folds none of these: they need the whole reducer.
NEEDS_WHOLE_FOLD: Final = (
    NO_LEADER
    | UNANSWERED
    | COMMITTED
    | LOSS
    | SPARSE
    | RECOVERING
    | DIVERGENCE
    | MISSED
    | CHECKPOINT
)
# A fold with one of these can complete what an open event reports.
EVENTFUL: Final = LOSS | RECOVERING | DIVERGENCE | ELECTION | LOG_FELL | HISTORY
