"""`python -m tests.histories --seed N --count M [--kind KIND] [--show SEED] [--write FOLDER]`"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.histories.campaign import Campaign, show
from tests.histories.kinds import KINDS
from tests.histories.modes import MODES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="The first seed.")
    parser.add_argument("--count", type=int, default=1000, help="How many histories.")
    parser.add_argument("--mode", choices=list(MODES), help="Only this generation of Kafka.")
    parser.add_argument(
        "--mixes-moments", action="store_true", help="Eligible replicas of another moment."
    )
    parser.add_argument("--show", type=int, help="Print one history and its alerts.")
    parser.add_argument("--write", type=Path, help="Write the shrunk events of each kind here.")
    parser.add_argument("--kind", choices=list(KINDS), help="Only this kind of history.")
    given = parser.parse_args()
    campaign = Campaign(
        mode=given.mode, mixes_moments=given.mixes_moments, kind=given.kind, every=True
    )
    if given.show is not None:
        show(campaign.plan(given.show))
        return 0
    campaign.play(given.seed, given.count)
    if given.write is not None:
        campaign.write(given.write)
    return int(bool(campaign.failures) or not campaign.tells_enough)


if __name__ == "__main__":
    sys.exit(main())
