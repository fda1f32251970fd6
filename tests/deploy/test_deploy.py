"""The files for deployment, as far as they can be checked without running them."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from dashboards.alerting import RuleFile
from dashboards.health_rules import FILE as HEALTH
from dashboards.replication_rules import FILE as REPLICATION
from tests.conftest import ROOT, need
from tidemark.assets import KUBERNETES_RULES, list_assets
from tidemark.cli import COMMANDS
from tidemark.settings import load_settings

DEPLOY = ROOT / "deploy"
KUBERNETES = sorted((DEPLOY / "kubernetes").rglob("*.yaml"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
WORDS = {"type": "array", "items": {"type": "string"}}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
# The part of the Compose specification that our file uses; a misspelled key is refused.
SERVICE = {
    "type": "object",
    "required": ["image", "restart"],
    "additionalProperties": False,
    "properties": {
        "image": {"type": "string", "pattern": r"^(tidemark|[a-z]+/[a-z]+:v?\d+\.\d+\.\d+)$"},
        "build": {
            "type": "object",
            "additionalProperties": False,
            "required": ["context", "dockerfile"],
            "properties": {"context": {"type": "string"}, "dockerfile": {"type": "string"}},
        },
        "command": WORDS,
        "restart": {"enum": ["on-failure", "unless-stopped"]},
        "environment": TEXTS,
        "stop_grace_period": {"type": "string", "pattern": r"^\d+s$"},
        "ports": {
            "type": "array",
            "items": {"type": "string", "pattern": r"^127\.0\.0\.1:\d+:\d+$"},
        },
        "volumes": {
            "type": "array",
            "items": {"type": "string", "pattern": r"^[^:]+:/[^:]+(:ro)?$"},
        },
        "depends_on": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["condition"],
                "properties": {
                    "condition": {
                        "enum": [
                            "service_completed_successfully",
                            "service_healthy",
                            "service_started",
                        ]
                    }
                },
            },
        },
        "healthcheck": {
            "type": "object",
            "additionalProperties": False,
            "required": ["test"],
            "properties": {
                "test": WORDS,
                "interval": {"type": "string"},
                "timeout": {"type": "string"},
                "retries": {"type": "integer"},
            },
        },
    },
}
COMPOSE_SCHEMA = {
    "type": "object",
    "required": ["name", "services", "volumes"],
    "additionalProperties": False,
    "patternProperties": {"^x-": {}},
    "properties": {
        "name": {"type": "string"},
        "services": {"type": "object", "additionalProperties": SERVICE},
        "volumes": {"type": "object", "additionalProperties": {"type": "null"}},
    },
}


def parse(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def compose() -> Any:
    return parse(DEPLOY / "compose" / "compose.yaml")


def check(tool: str, *arguments: str) -> None:
    run = subprocess.run([need(tool), *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def listen_addresses(path: Path) -> dict[str, str | None]:
    settings = load_settings(path, {})
    verbs = ("collect", "stream", "export")
    return {verb: getattr(settings, verb).listen for verb in verbs}


def test_compose_follows_its_schema() -> None:
    jsonschema.Draft202012Validator(COMPOSE_SCHEMA).validate(compose())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("prots", []),
        ("ports", ["9754:9754"]),
        ("image", "kafka:latest"),
        ("depends_on", {"a": {"condition": "healthy"}}),
    ],
)
def test_the_compose_schema_refuses_mistakes(key: str, value: Any) -> None:
    document = compose()
    document["services"]["export"][key] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(COMPOSE_SCHEMA).validate(document)


def test_compose_refers_to_existing_services_volumes_and_files() -> None:
    document = compose()
    for name, service in document["services"].items():
        assert service.get("depends_on", {}).keys() <= document["services"].keys(), name
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / "compose" / source).exists(), mount
            else:
                assert source in document["volumes"], mount
        if service["image"] == "tidemark":
            assert service["command"][0] in COMMANDS
            assert (
                DEPLOY / "compose" / service["build"]["context"] / service["build"]["dockerfile"]
            ).exists()


def test_compose_runs_the_brokers_that_its_configuration_names() -> None:
    brokers = [f"{name}:9092" for name in compose()["services"] if name.startswith("kafka-")]
    settings = load_settings(DEPLOY / "compose" / "config" / "tidemark.yaml", {})
    assert settings.kafka.bootstrap_servers == settings.clusters[0].bootstrap_servers == brokers
    advertised = [
        s["environment"]["KAFKA_ADVERTISED_LISTENERS"]
        for s in compose()["services"].values()
        if "KAFKA_NODE_ID" in s.get("environment", {})
    ]
    assert advertised == [f"PLAINTEXT://{broker}" for broker in brokers]


def test_the_configurations_are_accepted() -> None:
    assert load_settings(DEPLOY / "kubernetes" / "tidemark.yaml", {}).clusters


def test_the_image_does_not_run_as_root_and_starts_the_command() -> None:
    lines = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    instructions = [line.split(maxsplit=1) for line in lines if re.match(r"[A-Z]+ ", line)]
    assert ["ENTRYPOINT", '["tidemark"]'] in instructions
    stages: list[list[list[str]]] = []
    for each in instructions:
        if each[0] == "FROM":
            stages.append([])
        stages[-1].append(each)
    _, *started = stages
    assert len(started) == 2
    for stage in started:
        names = [name for name, _ in stage]
        last = len(names) - 1 - names[::-1].index("USER")
        assert stage[last] == ["USER", "10001"]
        assert "RUN" not in names[last:]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_units_start_a_verb_with_few_rights(path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys have capitals
    unit.read_string(path.read_text(encoding="utf-8"))
    assert unit.sections() == ["Unit", "Service", "Install"]
    service = unit["Service"]
    verb = service["ExecStart"].split()[1]
    assert path.stem == f"tidemark-{verb}"
    assert verb in COMMANDS
    assert int(service["TimeoutStopSec"]) > 10
    assert (service["DynamicUser"], service["NoNewPrivileges"], service["ProtectSystem"]) == (
        "yes",
        "yes",
        "strict",
    )
    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("on-failure", "2")


def test_the_units_link_to_what_the_documented_install_writes() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    (folder,) = re.findall(r"tidemark assets export (\S+)$", page, flags=re.MULTILINE)
    assets = {path for path, _ in list_assets()}
    for path in UNITS:
        (link,) = re.findall(r"^Documentation=file://(.+)$", path.read_text(), flags=re.MULTILINE)
        assert link.startswith(f"{folder}/")
        assert link.removeprefix(f"{folder}/") in assets
        assert f"deploy/systemd/{path.name}" in assets
    assert f"cp {folder}/deploy/systemd/tidemark-*.service /etc/systemd/system/" in page


def test_what_builds_from_a_checkout_is_documented() -> None:
    """An export of the assets has no source: what refers to it is of no use there."""
    exported = {path for path, _ in list_assets()}
    build = compose()["services"]["collect"]["build"]
    root = (DEPLOY / "compose" / build["context"]).resolve()
    assert root == ROOT and "pyproject.toml" not in exported
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert "`compose/` and `docker/` need a checkout" in page
    for name in ("compose/compose.yaml", "docker/Dockerfile"):
        assert "# In a checkout, because" in (DEPLOY / name).read_text(encoding="utf-8")


def test_there_is_a_unit_for_each_long_running_verb() -> None:
    assert [path.stem for path in UNITS] == [
        "tidemark-collect",
        "tidemark-export",
        "tidemark-stream",
    ]


@pytest.mark.parametrize("path", KUBERNETES, ids=lambda path: path.relative_to(DEPLOY).as_posix())
def test_manifests_are_complete(path: Path) -> None:
    if path.name == "tidemark.yaml":
        return
    for document in documents(path):
        assert {"apiVersion", "kind"} <= document.keys()
        if document["kind"] in {"Deployment", "StatefulSet"}:
            check_workload(document["spec"])


def check_workload(spec: dict[str, Any]) -> None:
    pod = spec["template"]["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["terminationGracePeriodSeconds"] > 10
    claims = {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])}
    for container in pod["containers"]:
        assert container["args"][0] in COMMANDS
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert (
            container["resources"]["limits"]["memory"]
            == container["resources"]["requests"]["memory"]
        )
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted <= {volume["name"] for volume in pod["volumes"]} | claims


@pytest.mark.parametrize("verb", ["collect", "export", "stream"])
def test_kubernetes_accepts_the_manifests_and_probes_each_process(verb: str) -> None:
    for document in documents(DEPLOY / "kubernetes" / f"{verb}.yaml"):
        kubernetes_validate.validate(document, "1.33", strict=True)
        if document["kind"] != "Service":
            (container,) = document["spec"]["template"]["spec"]["containers"]
            assert container["livenessProbe"]["httpGet"]["path"] == "/-/healthy"
            assert container["readinessProbe"]["httpGet"]["path"] == "/-/ready"


def test_kustomize_lists_the_manifests() -> None:
    folder = DEPLOY / "kubernetes"
    listed = set(parse(folder / "kustomization.yaml")["resources"])
    below = "deploy/kubernetes/"
    there = {path.removeprefix(below) for path, _ in list_assets() if path.startswith(below)} - {
        "kustomization.yaml",
        "tidemark.yaml",
    }
    assert there - listed == {"rules/kafka-replication.yaml"}
    assert listed <= there


@pytest.mark.parametrize("rules", [HEALTH, REPLICATION], ids=lambda rules: rules.name)
def test_the_prometheus_rule_holds_the_rules(rules: RuleFile) -> None:
    document = yaml.safe_load(dict(list_assets())[f"{KUBERNETES_RULES}{rules.name}.yaml"])
    assert (document["apiVersion"], document["kind"]) == (
        "monitoring.coreos.com/v1",
        "PrometheusRule",
    )
    assert document["metadata"] == {"name": rules.name}
    assert document["spec"] == yaml.safe_load(rules.prometheus())


def test_prometheus_accepts_the_scrape_configuration() -> None:
    path = DEPLOY / "prometheus" / "prometheus.yaml"
    check("promtool", "check", "config", "--syntax-only", str(path))
    rules = {Path(name).name for name in parse(path)["rule_files"]}
    assert rules == {"tidemark-health.yaml"}


def targets_of(configuration: Any) -> dict[str, str]:
    """Port by service."""
    (static,) = configuration["static_configs"]
    return dict(target.split(":") for target in static["targets"])


def test_prometheus_scrapes_and_notifies_the_services_of_compose() -> None:
    prometheus, services = parse(DEPLOY / "prometheus" / "prometheus.yaml"), compose()["services"]
    settings = load_settings(DEPLOY / "compose" / "config" / "tidemark.yaml", {})
    listen = listen_addresses(DEPLOY / "compose" / "config" / "tidemark.yaml")
    (scraped,) = prometheus["scrape_configs"]
    assert {name: f"0.0.0.0:{port}" for name, port in targets_of(scraped).items()} == listen
    assert listen.keys() == {
        name for name, service in services.items() if service["image"] == "tidemark"
    }
    (notified,) = prometheus["alerting"]["alertmanagers"]
    for name, port in [("export", targets_of(scraped)["export"]), *targets_of(notified).items()]:
        assert f"127.0.0.1:{port}:{port}" in services[name]["ports"]
    # The exporter posts where Prometheus does: only there both are one message for one cause.
    (manager,) = settings.notify.alertmanagers
    assert manager.urls == [f"http://{name}:{port}" for name, port in targets_of(notified).items()]


def test_the_pod_monitor_and_the_annotations_name_the_port_of_each_verb() -> None:
    listen = listen_addresses(DEPLOY / "kubernetes" / "tidemark.yaml")
    monitor = parse(DEPLOY / "kubernetes" / "monitor.yaml")
    assert (monitor["apiVersion"], monitor["kind"]) == ("monitoring.coreos.com/v1", "PodMonitor")
    (selected,) = monitor["spec"]["selector"]["matchExpressions"]
    scraped = {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]}
    for verb, address in listen.items():
        workload, *services = documents(DEPLOY / "kubernetes" / f"{verb}.yaml")
        template = workload["spec"]["template"]
        assert template["metadata"]["labels"][selected["key"]] == verb
        assert verb in selected["values"]
        (port,) = template["spec"]["containers"][0]["ports"]
        assert port["name"] in scraped
        assert f"0.0.0.0:{port['containerPort']}" == address
        annotations = [each["metadata"].get("annotations", {}) for each in (template, *services)]
        assert [
            each["prometheus.io/port"]
            for each in annotations
            if each.get("prometheus.io/scrape") == "true"
        ] == [str(port["containerPort"])]


# amtool of Debian knows no receiver for Teams: tests/delivery/test_receivers.py.
@pytest.mark.parametrize(
    ("name", "unused"), [("alertmanager.yml", set()), ("receivers.yml", {"opsgenie"})]
)
def test_alertmanager_accepts_its_configuration_and_every_route_has_a_receiver(
    name: str, unused: set[str]
) -> None:
    path = DEPLOY / "alertmanager" / name
    check("amtool", "check-config", str(path))
    route = parse(path)["route"]
    assert {route["receiver"], *(each["receiver"] for each in route["routes"])} == {
        each["name"] for each in parse(path)["receivers"]
    } - unused


def guide_block(name: str) -> dict[str, Any]:
    """The YAML block of docs/guide.md that begins with this key."""
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    shown = re.search(rf"^{name}:\n.*?(?=^```)", guide, flags=re.MULTILINE | re.DOTALL)
    assert shown is not None
    document: dict[str, Any] = yaml.safe_load(shown[0])
    return document


def test_the_guide_shows_alertmanagers_routes() -> None:
    shown = guide_block("route")["route"]
    route = parse(DEPLOY / "alertmanager" / "alertmanager.yml")["route"]
    assert {key: value for key, value in shown.items() if key != "routes"}.items() <= route.items()
    assert [each for each in route["routes"] if each["receiver"] == "on-call"] == shown["routes"]


def test_the_guide_shows_alertmanagers_inhibit_rules() -> None:
    document = parse(DEPLOY / "alertmanager" / "alertmanager.yml")
    assert guide_block("inhibit_rules")["inhibit_rules"] == document["inhibit_rules"]


def test_grafana_finds_the_dashboards_where_compose_mounts_them() -> None:
    provider = parse(DEPLOY / "grafana" / "provisioning" / "dashboards" / "tidemark.yaml")[
        "providers"
    ][0]
    grafana = compose()["services"]["grafana"]
    assert f"../../dashboards/grafana:{provider['options']['path']}:ro" in grafana["volumes"]
    source = parse(DEPLOY / "grafana" / "provisioning" / "datasources" / "tidemark.yaml")[
        "datasources"
    ][0]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")


def test_the_brokers_of_compose_write_into_their_volumes() -> None:
    services = compose()["services"]
    for service in (services[name] for name in services if name.startswith("kafka-")):
        (mount,) = service["volumes"]
        assert mount.split(":")[1] == service["environment"]["KAFKA_LOG_DIRS"]
