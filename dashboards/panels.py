"""What all panels share: data source, legends, units, thresholds, texts for no data, the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

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
    RangeMap,
    RegexMap,
    RowPanel,
    SpecialValueMap,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.dashboard import DashboardRangeMapOptions as Range
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
# A step below the scrape interval shows nothing more.
MIN_INTERVAL = "15s"
# Shown instead of an empty panel: not every partition and replica has series.
NO_DETAIL = "no series: see export.granularity"
UNKNOWN = "unknown"
COLUMNS = 24
# Text and colour by value; "1+" is 1 and more.
IN_SYNC = {"1": ("in sync", "green"), "0": ("out of sync", "red")}
ANSWERS = {"1": ("answers", "green"), "0": ("silent", "red")}
OPEN = {"1+": ("open", "red"), "0": ("none", "green")}
YES_NO = {"1": ("yes", "red"), "0": ("no", "green")}
_SIZE_COLOURS = ["red", "orange", "yellow", "green", "blue", "purple", "dark-green", "dark-blue"]
SIZES = {str(size): (str(size), colour) for size, colour in enumerate(_SIZE_COLOURS)}
# Seconds of an axis: Grafana's own unit writes 100 s as 1.67 mins.
SECONDS = "suffix:s"
# How far an axis reaches at least: without it, an axis of zeros reaches to 100.
_LEAST_AXIS = {"short": 4.0, SECONDS: 1.0, "percentunit": 1.0}
AnyPanel = stat.Panel | timeseries.Panel | statetimeline.Panel | table.Panel
Words = dict[str, tuple[str, str]]
# As Grafana's SDK takes them.
Mapping = ValueMap | RangeMap | RegexMap | SpecialValueMap


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


def page(title: str, path: str, **parameters: str) -> DashboardLink:
    """A link to the status page of `tidemark export`, whose address is a variable."""
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return DashboardLink(title=title, url=f"${{status_page:raw}}/{path}?{query}")


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
    words: Words | None = None,
    absent: str = UNKNOWN,
    links: Sequence[DashboardLink] = (),
) -> stat.Panel:
    """The last value of each series, green below `bad`, else `colour`; as in `words` where given.

    `absent` is the text for no series. Without a legend there is one series, and no name.
    """
    return (
        _Number()
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
        .text_mode(
            common_models.BigValueTextMode.VALUE_AND_NAME
            if legend
            else common_models.BigValueTextMode.VALUE
        )
        .mappings(_mappings(words or {}))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
        .no_value(absent)
        .data_links([_builder(each) for each in links])
        .with_target(query(expression, legend, instant=True))
    )


class _Number(stat.Panel):
    """Where there are several values in a narrow panel, each has its name and value in one line."""

    def grid_pos(self, grid_pos: GridPos) -> Self:
        if grid_pos.w < COLUMNS // 3:
            self.orientation(common_models.VizOrientation.HORIZONTAL)
        return super().grid_pos(grid_pos)


def lines(
    panel_id: int,
    title: str,
    why: str,
    targets: Sequence[prometheus.Dataquery],
    *,
    unit: str,
    from_zero: bool = True,
    dashed: str | None = None,
    absent: str = UNKNOWN,
    links: Sequence[DashboardLink] = (),
) -> timeseries.Panel:
    """Values over time, with gaps for unknown values. `from_zero`: false for offsets.

    `dashed`: how the legends of one kind of lines end, where two kinds have a line each.
    """
    panel = (
        _Lines()
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
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_models.TooltipDisplayMode.MULTI)
            .sort(common_models.SortOrder.DESCENDING)
        )
    )
    if from_zero:
        panel = panel.min(0)
        if unit in _LEAST_AXIS:
            panel = panel.axis_soft_max(_LEAST_AXIS[unit])
    if dashed is not None:
        dash = DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]})
        panel = panel.override_by_regexp(f"/{dashed}$/", [dash])
    expressions = [target.build().expr or "" for target in targets]
    if all("increase(" in each and "resets(" not in each for each in expressions):
        panel = panel.axis_label("estimated")
    for target in targets:
        panel = panel.with_target(target)
    return panel


class _Lines(timeseries.Panel):
    """A graph whose legend fits its width: the largest first, beside the lines, or a short list."""

    def grid_pos(self, grid_pos: GridPos) -> Self:
        legend = common.VizLegendOptions().show_legend(True)
        if grid_pos.w == COLUMNS:
            modes = common_models.LegendDisplayMode.TABLE, common_models.LegendPlacement.RIGHT
            legend = legend.calcs(["lastNotNull", "max"]).sort_by("Max").sort_desc(True)
        else:
            modes = common_models.LegendDisplayMode.LIST, common_models.LegendPlacement.BOTTOM
        self.legend(legend.display_mode(modes[0]).placement(modes[1]))
        return super().grid_pos(grid_pos)


def states(
    panel_id: int,
    title: str,
    why: str,
    targets: Sequence[prometheus.Dataquery],
    *,
    words: Words | None = None,
    own_scales: bool = False,
    absent: str = UNKNOWN,
) -> statetimeline.Panel:
    """States over time, one row for each series.

    `words`: what each value is. Without them a scale of colours spans the values, of all series or
    of each (`own_scales`). Never by thresholds: Grafana then merges the values between two of
    them, and shows these in place of words (grafana/grafana #71804).
    """
    colour = dashboard.FieldColor()
    if words is None:
        colour = colour.mode(FieldColorModeId.CONTINUOUS_BL_PU)
    else:
        # Of a value without a word.
        colour = colour.mode(FieldColorModeId.FIXED).fixed_color("gray")
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
        .line_width(1)
        .fill_opacity(80)
        .no_value(absent)
        .color_scheme(colour)
        .mappings(_mappings(words or {}))
        .legend(
            common.VizLegendOptions()
            .show_legend(False)
            .display_mode(common_models.LegendDisplayMode.LIST)
        )
        .tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI))
    )
    if own_scales:
        panel = panel.field_min_max(True)
    for target in targets:
        panel = panel.with_target(target)
    return panel


def _mappings(words: Words) -> list[Mapping]:
    """Grafana takes the first that fits."""
    results = {value: ValueMappingResult(text, colour) for value, (text, colour) in words.items()}
    exact = {value: result for value, result in results.items() if not value.endswith("+")}
    ranges = [
        RangeMap(Range(from_val=float(value[:-1]), result=result))
        for value, result in results.items()
        if value.endswith("+")
    ]
    return [*([ValueMap(options=exact)] if exact else []), *ranges]


def listing(
    panel_id: int,
    title: str,
    why: str,
    columns: Sequence[tuple[str, str]],
    *,
    labels: dict[str, str],
    sort: Sequence[str],
    units: dict[str, str] | None = None,
    bad: dict[str, float] | None = None,
    links: dict[str, Sequence[DashboardLink]] | None = None,
    words: dict[str, Words] | None = None,
    absent: str = UNKNOWN,
) -> table.Panel:
    """A table of current values: a row for each label set, a column for each (heading, expression).

    The highest values of the columns in `sort` are first. `labels`: label -> heading, in the order
    shown. `units`, `bad` (red from there on), `words` and `links` are by heading. Grafana merges
    the rows of two queries when all their labels are equal: each query is reduced to `labels`.
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
        .cell_height(common_models.TableCellHeight.SM)
        .min_width(80)
        .thresholds(thresholds(None, "red"))
        .sort_by([common.TableSortByFieldState().display_name(each).desc(True) for each in sort])
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
        properties = _properties(heading, units or {}, bad or {}, words or {}, links or {})
        if properties:
            panel = panel.override_by_name(heading, properties)
    return panel


def _properties(
    heading: str,
    units: dict[str, str],
    bad: dict[str, float],
    words: dict[str, Words],
    links: dict[str, Sequence[DashboardLink]],
) -> list[DynamicConfigValue]:
    found: list[tuple[str, Any]] = []
    if heading in units:
        found.append(("unit", units[heading]))
    if heading in bad:
        steps = [{"value": None, "color": "green"}, {"value": bad[heading], "color": "red"}]
        found.append(("thresholds", {"mode": "absolute", "steps": steps}))
    if heading in words:
        found.append(("mappings", [each.to_json() for each in _mappings(words[heading])]))
    if heading in bad or heading in words:
        found.append(("custom.cellOptions", {"type": "color-background"}))
    if heading == "Alert":
        # The longest name of an alert.
        found.append(("custom.width", 250))
    if heading in links:
        found.append(("links", [{"title": each.title, "url": each.url} for each in links[heading]]))
    return [DynamicConfigValue(id_val=name, value=value) for name, value in found]


def _builder(of: DashboardLink) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(of.title).url(of.url or "")


def grid(*rows: tuple[int, Sequence[AnyPanel]], top: int = 0) -> list[Builder[Panel]]:
    """Panels in rows of (height, panels), of equal width within a row."""
    placed: list[Builder[Panel]] = []
    for height, panels in rows:
        width = COLUMNS // len(panels)
        placed += [
            panel.grid_pos(GridPos(h=height, w=width, x=index * width, y=top))
            for index, panel in enumerate(panels)
        ]
        top += height
    return placed


class Section(NamedTuple):
    """Panels below a heading. `row_id`: of the heading, which is a panel of Grafana too."""

    row_id: int
    title: str
    rows: Sequence[tuple[int, Sequence[AnyPanel]]]
    collapsed: bool = False


def sections(*parts: Section) -> list[Builder[Panel] | Builder[RowPanel]]:
    """Sections below one another."""
    placed: list[Builder[Panel] | Builder[RowPanel]] = []
    top = 0
    for part in parts:
        row = dashboard.Row(part.title).id(part.row_id).collapsed(part.collapsed)
        row = row.grid_pos(GridPos(h=1, w=COLUMNS, x=0, y=top))
        panels = grid(*part.rows, top=top + 1)
        placed.append(row)
        top += 1
        if part.collapsed:
            for panel in panels:
                row.with_panel(panel)
        else:
            placed += panels
            top += sum(height for height, _ in part.rows)
    return placed
