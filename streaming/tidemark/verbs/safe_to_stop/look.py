"""A survey of a live cluster: a few passes of the collector over all its topics."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from tidemark.assess.safe_to_stop import LAG_LIMIT_MS
from tidemark.collect.collection_pass import PassRunner
from tidemark.core.codec import decode_batch
from tidemark.core.records import View
from tidemark.detect.thresholds import Detection
from tidemark.settings import Cluster, Collect
from tidemark.verbs.safe_to_stop.survey import Survey

# A later pass has what the first one started to read aside: minimum in-sync replicas, eligible leaders, reassignments.
MIN_PASSES: Final = 2
PAUSE_SECONDS: Final = 0.2
# Configurations that are not read by then may not be read at all.
LOOK_SECONDS: Final = 10.0
# A follower behind by less than this at the second look is fetching; of another it is awaited whether it catches up.
CATCHING_UP_MS: Final = 100.0


def survey_live(cluster: Cluster, settings: Collect, detection: Detection) -> Survey:
    """Every topic of the cluster, watched or not and whatever the shard: stopping a broker spares none.

    Two passes where all is well; up to LOOK_SECONDS while minimums are unread or an in-sync follower is behind.
    """
    whole = msgspec.structs.replace(cluster, topics_allow=[".*"], topics_deny=[], shard=0, shards=1)
    passes = PassRunner(whole, settings, 1, int(time.time() * 1000))
    survey = Survey(detection)

    async def run() -> None:
        begun = time.monotonic()
        number = 0
        while True:
            for record in await passes.run(set()):
                survey.take(decode_batch(record.payload))
            number += 1
            took = time.monotonic() - begun
            if took > LOOK_SECONDS or (
                number >= MIN_PASSES and _is_enough(survey.views(cluster.name), took * 1000)
            ):
                return
            await passes.loop.sleep(PAUSE_SECONDS)

    try:
        passes.loop.run(run)
    finally:
        passes.close()
    return survey


def _is_enough(views: list[View], took_ms: float) -> bool:
    if any(view.effective_min_in_sync_replicas is None for view in views):
        return False
    return took_ms > LAG_LIMIT_MS + 500 or not any(_is_behind(view) for view in views)


def _is_behind(view: View) -> bool:
    return any(
        replica.in_sync and not replica.inferred and (replica.lag_ms or 0.0) > CATCHING_UP_MS
        for replica in view.replicas
    )
