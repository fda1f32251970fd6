"""What all dashboards share: variables, annotations, and links to one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    Panel,
    RowPanel,
    VariableRefresh,
    VariableSort,
)

from dashboards.panels import SOURCE
from dashboards.promql import series
from tidemark.settings import Notify

FLEET, OVERVIEW, TOPIC, PARTITION, BROKERS, PIPELINE = (
    f"tidemark-{name}"
    for name in ("fleet", "overview", "topic", "partition", "brokers", "pipeline")
)
TAGS = ["kafka", "tidemark"]
STATUS_PAGE = Notify().external_url


def choice(
    name: str, label: str, metric: str, *, many: bool, numeric: bool = False, **matchers: str
) -> tuple[str, dashboard.QueryVariable]:
    """A variable with the values of a label of a metric: (name, builder).

    `many`: several values can be chosen, or all.
    """
    variable = (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(f"label_values({series(metric, **matchers)}, {name})")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NUMERICAL_ASC if numeric else VariableSort.ALPHABETICAL_ASC)
    )
    return name, variable.multi(True).include_all(True) if many else variable


def clusters(*, many: bool = True) -> tuple[str, dashboard.QueryVariable]:
    return choice("kafka_cluster", "Cluster", "tidemark_last_pass_timestamp_seconds", many=many)


def annotation(name: str, colour: str, expression: str, text: str) -> dashboard.AnnotationQuery:
    """Marks the times at which `expression` has series. `text` is a template of their labels."""
    return (
        dashboard.AnnotationQuery()
        .name(name)
        .datasource(SOURCE)
        .enable(True)
        .icon_color(colour)
        .expr(expression)
        .title_format(name)
        .text_format(text)
    )


def make_dashboard(
    uid: str,
    title: str,
    why: str,
    variables: Sequence[tuple[str, dashboard.QueryVariable]],
    annotations: Sequence[dashboard.AnnotationQuery],
    panels: Sequence[Builder[Panel] | Builder[RowPanel]],
) -> dashboard.Dashboard:
    """A dashboard. All link to one another by their tags, with the time range and the variables."""
    links = (
        dashboard.DashboardLink("Tidemark")
        .type(DashboardLinkType.DASHBOARDS)
        .tags(TAGS)
        .include_vars(True)
        .keep_time(True)
        .as_dropdown(False)
    )
    made = (
        dashboard.Dashboard(f"Tidemark / {title}")
        .uid(uid)
        .description(why)
        .tags(TAGS)
        .editable()
        .refresh("30s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(links)
        .with_variable(
            dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
        )
    )
    for _, variable in variables:
        made = made.with_variable(variable)
    address = dashboard.TextBoxVariable("status_page").label("Status page")
    made = made.with_variable(address.default_value(STATUS_PAGE))
    for each in annotations:
        made = made.annotation(each)
    for panel in panels:
        if isinstance(panel, dashboard.Row):
            made = made.with_row(panel)
        else:
            made = made.with_panel(cast("Builder[Panel]", panel))
    return made
