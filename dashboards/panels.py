"""What every panel has in common: data source, legend, units, thresholds, and a place that is set by hand."""

from __future__ import annotations

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import GridPos, Threshold, ThresholdsMode

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")


def query(expression: str, legend: str, ref: str = "A", *, instant: bool = False) -> prometheus.Dataquery:
    """One PromQL query of a panel."""
    target = prometheus.Dataquery().datasource(SOURCE).expr(expression).legend_format(legend).ref_id(ref)
    return target.instant() if instant else target.range()


def thresholds(bad: float, colour: str) -> dashboard.ThresholdsConfig:
    steps = [Threshold(value=None, color="green"), Threshold(value=bad, color=colour)]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def number(
    panel_id: int,
    title: str,
    why: str,
    place: GridPos,
    expression: str,
    legend: str,
    *,
    bad: float,
    colour: str,
    absent: str = "unknown",
) -> stat.Panel:
    """The newest value, one per series: green below `bad`, else `colour`; `absent` is shown where there is no series."""
    return (
        stat.Panel()
        .id(panel_id)
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .grid_pos(place)
        .unit("short")
        .thresholds(thresholds(bad, colour))
        .color_mode(common_models.BigValueColorMode.BACKGROUND)
        .graph_mode(common_models.BigValueGraphMode.NONE)
        .text_mode(common_models.BigValueTextMode.VALUE_AND_NAME)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
        .no_value(absent)
        .with_target(query(expression, legend, instant=True))
    )


def lines(panel_id: int, title: str, why: str, place: GridPos, targets: list[prometheus.Dataquery], *, unit: str) -> timeseries.Panel:
    """Values over time, with gaps where nothing is known."""
    panel = (
        timeseries.Panel()
        .id(panel_id)
        .title(title)
        .description(why)
        .datasource(SOURCE)
        .grid_pos(place)
        .unit(unit)
        .min(0)
        .line_width(1)
        .fill_opacity(8)
        .show_points(common_models.VisibilityMode.NEVER)
        .span_nulls(False)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(common_models.LegendDisplayMode.TABLE)
            .placement(common_models.LegendPlacement.BOTTOM)
            .calcs(["lastNotNull", "max"])
        )
        .tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI).sort(common_models.SortOrder.DESCENDING))
    )
    for target in targets:
        panel = panel.with_target(target)
    return panel
