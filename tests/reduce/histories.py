"""Random histories of one partition, as the records that its collectors write."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.scenarios.scenario import Scenario
from tidemark.core.codec import encode_batch
from tidemark.detect.default_thresholds import Detection, Thresholds
from tidemark.reduce.rows import RawRecord

# Short, so that a history of a few passes reaches every detector.
DETECTION = Detection(
    thresholds=Thresholds(
        fire_passes=2,
        clear_passes=1,
        lag_ms=1000,
        last_stable_stuck_ms=2000,
        reassignment_stuck_ms=2000,
        high_watermark_regressed_ms=2000,
        checkpoint_stale_ms=1000,
        lineage_anomaly_ms=1000,
        zombie_leader_ms=1000,
        stale_broker_ms=1000,
        divergence_ms=1000,
        epoch_bumps=2,
    )
)
passes = st.sampled_from(
    [
        "add=10",
        "5 add=7",
        "add=10 down=3:timed_out",
        "add=10 down=2:refused,3:refused",
        "down=none",
        "isr=1,2 add=5",
        "isr=1",
        "isr=1,2,3",
        "leader=none isr=none elr=1 leaderless",
        "leader=2 isr=2 lineage=0:5,1:9",
        "leader=1 isr=1,2,3 lineage=0:50",
        "leo=2:3 leader=2 isr=2",
        "hw=none",
        "missed",
        "unseen",
        "all-missed",
        "topic_id=b",
        "collector=c2@9",
        "collector=c1@1",
        "hw=1",
        "leo=1:900,2:900,3:800 hw=800",
        "unfenced",
        "leo=3:1",
        "leads=3 knows=3:0",
        "knows=3:0",
        "knows=none leads=none",
        "lso=2 add=5",
        "lso=none",
        "replicas=1,2,3,4 adding=4 leo=4:1",
        "replicas=1,2,3 adding=none",
        "replicas=1,2,4",
        "epoch=none hw=1",
        "epoch=none lineage=1:14",
        "lineage@2=0:9,1:4",
        "lineage@2=0:4,1:9",
        "leo=9 lineage=0:5,1:9 lineage@2=0:4,1:9",
        "leo=1:9,2:12,3:9 lineage=0:5,1:9 lineage@2=0:12",
        "quorum=1:5",
        "quorum=none:5",
        "preferred=1:20/1 in_sync=3:1",
        "every=3",
        "fast=1:0:30@0.8,60@0.2 hw=60 leo=60",
        "fast=1:0:40@0.5 leader=2 isr=2 lineage=0:5,1:9",
        "fast=2:1:70@0.9,80@-0.5",
        "fast=1:1:9@2.5",
    ]
)
# Each is followed by a pass: the clock of a scenario moves with passes only.
other_events = st.sampled_from(
    [
        "checkpoint 2 hw=900 age=0",
        "checkpoint 2 hw=1 age=9",
        "record cause=leader",
        "record isr=1,2 cause=fenced recovering",
        "record leader=none isr=none elr=2",
        "record leader=2 isr=2 elr=none",
        "record leader=3 isr=3 recovering",
        "audit 1,2 offset=1 epoch=0",
        "broker 2 fenced produce=2000",
        "broker 3 observer lag=9000",
        "broker 3 observer lag=0",
    ]
)


@st.composite
def histories(draw: st.DrawFn) -> list[RawRecord]:
    """The records of a few passes over one partition."""
    scenario = Scenario(thresholds=DETECTION.thresholds)
    # Checkpoint files and findings count only for a partition that was observed.
    minimum = draw(st.integers(1, 2))
    scenario.play(f"partition orders-0 replicas=1,2,3 min_isr={minimum}", "pass")
    epoch = 0
    commands = passes.map("pass {}".format) | other_events
    for command in draw(st.lists(commands, min_size=3, max_size=25)):
        elects = "leader=" in command
        epoch += elects
        if command.startswith("pass"):
            scenario.run(command if "epoch=" in command else f"{command} epoch={epoch}")
            continue
        is_record = command.startswith("record")
        scenario.run(f"{command} epoch={epoch}" if is_record else command)
        words = [word for word in command.split() if word.startswith(("leader=", "isr="))]
        scenario.run(" ".join(["pass", *(words if elects else []), f"epoch={epoch}"]))
    return [RawRecord(0, n, 0.0, encode_batch(batch)) for n, batch in enumerate(scenario.batches)]
