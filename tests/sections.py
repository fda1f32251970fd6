"""The order of the tests: sections are folders, a stage is one to three lists of them.

`make tests` runs the stages one after another, the lists of a stage side by side, each in its own
pytest process. In the first stage two lists compute and one mostly waits. The scenes run alone,
because other load would disturb their timing. A broken reducer shows before a broker starts.
"""

from __future__ import annotations

from itertools import chain

STAGES = (
    (
        (
            *("core", "evolve", "detect", "scenarios", "reduce", "assess", "model", "settings"),
            *("kafka", "web", "jvm", "local", "demo", "collect", "verbs", "export", "notify"),
            *("pages", "docs", "deploy", "packaging", "mutation", "chaos", "drill", "fuzz"),
        ),
        ("model_and_detectors", "histories", "cases", "rules", "dashboards"),
        ("delivery",),
    ),
    (("scenes",),),
    (("stream",), ("cluster", "versions", "browser")),
)
SECTIONS = tuple(chain.from_iterable(chain.from_iterable(STAGES)))
