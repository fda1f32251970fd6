"""What all panels share: data source, legends, units, thresholds, texts for no data, the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import (
    DashboardLink,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    GridPos,
    Panel,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
# A step below the scrape interval shows nothing more.
MIN_INTERVAL = "15s"
# Shown instead of an empty panel: not every partition and replica has series.
NO_DETAIL = "no series: see export.granularity"
UNKNOWN = "unknown"
COLUMNS = 24
# Texts, and colours that differ in brightness too, for the values of a state.
IN_SYNC = {"1": ("in sync", "green"), "0": ("out of sync", "red")}
ANSWERS = {"1": ("answers", "green"), "0": ("silent", "red")}
AnyPanel = stat.Panel | timeseries.Panel | statetimeline.Panel | table.Panel
Words = dict[str, tuple[str, str]]


def query(
    expression: str, legend: str, ref: str = "A", *, instant: bool = False, as_table: bool = False
) -> prometheus.Dataquery:
    """One PromQL query of a panel."""
    target = (
        prometheus.Dataquery().datasource(SOURCE).expr(expression).legend_format(legend).ref_id(ref)
    )
    if as_table:
        target = target.format(PromQueryFormat.TABLE)
    return target.instant() if instant else target.range()


def queries(*pairs: tuple[str, str]) -> list[prometheus.Dataquery]:
    """Queries of (expression, legend), named A, B, …."""
    return [
        query(expression, legend, chr(ord("A") + index))
        for index, (expression, legend) in enumerate(pairs)
    ]


def thresholds(bad: float | None, colour: str) -> dashboard.ThresholdsConfig:
    """Green, and `colour` from `bad` on; blue when no value is bad."""
    steps = [Threshold(value=None, color="blue" if bad is None else "green")]
    return (
        dashboard.ThresholdsConfig()
        .mode(ThresholdsMode.ABSOLUTE)
        .steps([*steps, *([] if bad is None else [Threshold(bad, colour)])])
    )


def link(title: str, uid: str, **variables: str) -> DashboardLink:
    """A link to another dashboard with the time range, the data source, and `variables`."""
    chosen = "".join(f"&var-{name}={value}" for name, value in variables.items())
    return DashboardLink(
        title=title, url=f"/d/{uid}?${{__url_time_range}}&${{datasource:queryparam}}{chosen}"
    )


def number(
    panel_id: int,
    title: str,
    why: str,
    expression: str,
    legend: str,
    *,
    bad: float | None,
    colour: str = "red",
    unit: str = "short",
    absent: str = UNKNOWN,
    links: Sequence[DashboardLink] = (),
) -> stat.Panel:
    """The last value of each series, green below `bad`, else `colour`.

    `absent` is the text for no series.
    """
    return (
        stat.Panel()
        .id(panel_id)
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit(unit)
        .thresholds(thresholds(bad, colour))
        .color_mode(
            common_models.BigValueColorMode.BACKGROUND
            if bad is not None
            else common_models.BigValueColorMode.NONE
        )
        .graph_mode(common_models.BigValueGraphMode.NONE)
        .text_mode(common_models.BigValueTextMode.VALUE_AND_NAME)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
        .no_value(absent)
        .data_links([_builder(each) for each in links])
        .with_target(query(expression, legend, instant=True))
    )


def lines(
    panel_id: int,
    title: str,
    why: str,
    targets: Sequence[prometheus.Dataquery],
    *,
    unit: str,
    from_zero: bool = True,
    absent: str = UNKNOWN,
    links: Sequence[DashboardLink] = (),
) -> timeseries.Panel:
    """Values over time, with gaps for unknown values. `from_zero`: false for offsets."""
    panel = (
        timeseries.Panel()
        .id(panel_id)
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit(unit)
        .interval(MIN_INTERVAL)
        .line_width(1)
        .fill_opacity(8 if from_zero else 0)
        .show_points(common_models.VisibilityMode.AUTO)
        .span_nulls(False)
        .no_value(absent)
        .data_links([_builder(each) for each in links])
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(common_models.LegendDisplayMode.TABLE)
            .placement(common_models.LegendPlacement.BOTTOM)
            .calcs(["lastNotNull", "max"])
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_models.TooltipDisplayMode.MULTI)
            .sort(common_models.SortOrder.DESCENDING)
        )
    )
    if from_zero:
        panel = panel.min(0)
    for target in targets:
        panel = panel.with_target(target)
    return panel


def states(
    panel_id: int,
    title: str,
    why: str,
    targets: Sequence[prometheus.Dataquery],
    *,
    words: Words | None = None,
    bad: float | None = None,
    absent: str = UNKNOWN,
) -> statetimeline.Panel:
    """States over time, one row for each series.

    `words`: value -> (text, colour). Without it, colours are by value, red from `bad` on.
    """
    by_value, by_series = FieldColorModeId.THRESHOLDS, FieldColorModeId.PALETTE_CLASSIC
    panel = (
        statetimeline.Panel()
        .id(panel_id)
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit("none")
        .interval(MIN_INTERVAL)
        .merge_values(True)
        .show_value(common_models.VisibilityMode.AUTO)
        .row_height(0.8)
        .line_width(0)
        .fill_opacity(80)
        .no_value(absent)
        .thresholds(thresholds(bad, "red"))
        .color_scheme(
            dashboard.FieldColor().mode(
                by_value if words is not None or bad is not None else by_series
            )
        )
        .legend(
            common.VizLegendOptions()
            .show_legend(False)
            .display_mode(common_models.LegendDisplayMode.LIST)
        )
        .tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI))
    )
    if words is not None:
        options = {
            value: ValueMappingResult(text=text, color=colour)
            for value, (text, colour) in words.items()
        }
        panel = panel.mappings([ValueMap(options=options)])
    for target in targets:
        panel = panel.with_target(target)
    return panel


def listing(
    panel_id: int,
    title: str,
    why: str,
    columns: Sequence[tuple[str, str]],
    *,
    labels: dict[str, str],
    sort: str,
    units: dict[str, str] | None = None,
    bad: dict[str, float] | None = None,
    links: dict[str, Sequence[DashboardLink]] | None = None,
    absent: str = UNKNOWN,
) -> table.Panel:
    """A table of current values: a row for each label set, a column for each (heading, expression).

    The highest value of column `sort` is first. `labels`: label -> heading, in the order shown.
    `units`, `bad` (red from there on) and `links` are by heading. Grafana merges the rows of two
    queries when all their labels are equal, so each query is reduced to `labels`.
    """
    panel = (
        table.Panel()
        .id(panel_id)
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .unit("short")
        .no_value(absent)
        .filterable(True)
        .thresholds(thresholds(None, "red"))
        .sort_by([common.TableSortByFieldState().display_name(sort).desc(True)])
    )
    names: dict[str, str] = dict(labels)
    for index, (heading, expression) in enumerate(columns):
        ref = chr(ord("A") + index)
        panel = panel.with_target(
            query(
                f"max by ({', '.join(labels)}) ({expression})", "", ref, instant=True, as_table=True
            )
        )
        names["Value" if len(columns) == 1 else f"Value #{ref}"] = heading
    if len(columns) > 1:
        panel = panel.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    order = {name: index for index, name in enumerate(names)}
    arranged = {"excludeByName": {"Time": True}, "indexByName": order, "renameByName": names}
    panel = panel.with_transformation(DataTransformerConfig(id_val="organize", options=arranged))
    for heading in [*labels.values(), *(heading for heading, _ in columns)]:
        properties = _properties(heading, units or {}, bad or {}, links or {})
        if properties:
            panel = panel.override_by_name(heading, properties)
    return panel


def _properties(
    heading: str,
    units: dict[str, str],
    bad: dict[str, float],
    links: dict[str, Sequence[DashboardLink]],
) -> list[DynamicConfigValue]:
    found: list[tuple[str, Any]] = []
    if heading in units:
        found.append(("unit", units[heading]))
    if heading in bad:
        steps = [{"value": None, "color": "green"}, {"value": bad[heading], "color": "red"}]
        found.append(("thresholds", {"mode": "absolute", "steps": steps}))
        found.append(("custom.cellOptions", {"type": "color-background"}))
    if heading in links:
        found.append(("links", [{"title": each.title, "url": each.url} for each in links[heading]]))
    return [DynamicConfigValue(id_val=name, value=value) for name, value in found]


def _builder(of: DashboardLink) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(of.title).url(of.url or "")


def grid(*rows: tuple[int, Sequence[AnyPanel]]) -> list[Builder[Panel]]:
    """Panels in rows of (height, panels), of equal width within a row."""
    placed: list[Builder[Panel]] = []
    top = 0
    for height, panels in rows:
        width = COLUMNS // len(panels)
        placed += [
            panel.grid_pos(GridPos(h=height, w=width, x=index * width, y=top))
            for index, panel in enumerate(panels)
        ]
        top += height
    return placed
