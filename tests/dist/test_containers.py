"""What cannot be run here: the Dockerfile, compose.yaml and the example of KEDA. They are compared with the
image of `make image`, which was run, and with the files and the numbers that they name. Prometheus's own tool
checks its configuration and tries the queries.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import jobboard.cli
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CONTAINERS = ROOT / "packaging" / "containers"
PROMTOOL = ROOT / "target" / "tools" / "prometheus" / "usr" / "bin" / "promtool"
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
COMPOSE = yaml.safe_load((CONTAINERS / "compose.yaml").read_text())
START = (ROOT / "packaging" / "image" / "jobboard-start").read_text()


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    """Of the image that `make image` has made, which only root can."""
    if os.geteuid() != 0:
        pytest.skip("only root makes the image that it is compared with")
    [archive] = (ROOT / "target" / "images").glob(f"jobboard-{VERSION}-linux-amd64.tar")
    with tarfile.open(archive) as whole:
        [about] = json.load(whole.extractfile("manifest.json"))
        found: dict[str, Any] = json.load(whole.extractfile(about["Config"]))["config"]
        return found


def instructions() -> list[tuple[str, str]]:
    """Of the last stage of the Dockerfile."""
    text = re.sub(r"\\\n\s*", "", (CONTAINERS / "Dockerfile").read_text())
    last = text.rpartition("\nFROM ")[2]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in last.splitlines()[1:] if line]


def test_the_dockerfile_makes_the_image_that_was_run(config: dict[str, Any]) -> None:
    found = dict(instructions())
    assert found["USER"] == config["User"]
    assert found["WORKDIR"] == config["WorkingDir"]
    assert {found["VOLUME"]} == set(config["Volumes"])
    assert set(found["EXPOSE"].split()) == {port.partition("/")[0] for port in config["ExposedPorts"]}
    assert found["STOPSIGNAL"] == config["StopSignal"]
    assert json.loads(found["ENTRYPOINT"]) == config["Entrypoint"]
    options, _, command = found["HEALTHCHECK"].partition(" CMD ")
    health = config["Healthcheck"]
    assert json.loads(command) == health["Test"][1:]
    seconds = {name: int(value) * 10**9 for name, value in re.findall(r"--([\w-]+)=(\d+)s", options)}
    assert seconds == {
        "interval": health["Interval"],
        "timeout": health["Timeout"],
        "start-period": health["StartPeriod"],
    }


def test_the_dockerfile_copies_what_is_there() -> None:
    for instruction, words in instructions():
        if instruction == "COPY" and "--from" not in words:
            *sources, _ = [word for word in words.split() if not word.startswith("--")]
            assert all((ROOT / source).is_file() for source in sources)
    [pattern] = re.findall(r"sed -n '(.*)' redis\.conf", (CONTAINERS / "Dockerfile").read_text())
    done = subprocess.run(["sed", "-n", pattern, ROOT / "redis.conf"], capture_output=True, text=True)
    roles = re.findall(r"^user (\w+) on >choose-a-password ", done.stdout, re.MULTILINE)
    assert roles == re.findall(r"^# user (\w+) on >", (ROOT / "redis.conf").read_text(), re.MULTILINE)
    values = (ROOT / "packaging" / "helm" / "jobboard" / "values.yaml").read_text()
    assert "user metrics on " in START, "the image makes this user itself, for its console"
    for role in set(roles) - {"metrics"}:
        assert f"role {role} JOBBOARD_{role.upper()}_PASSWORD" in START, "the image does not know this role"
        assert f'\n  {role}: ""\n' in values, "the chart does not know this role"


def test_compose_mounts_what_is_there_and_says_what_the_image_knows() -> None:
    named = {"ports": [], "secrets": set(COMPOSE["secrets"])}
    for name, service in COMPOSE["services"].items():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            assert source in COMPOSE["volumes"] or (CONTAINERS / source).is_file(), f"{name}: {source}"
        for secret in service.get("secrets", ()):
            assert secret in named["secrets"]
        for variable, value in service.get("environment", {}).items():
            if variable.startswith("JOBBOARD_"):
                known = variable.removesuffix("_FILE")
                assert known in START
            if str(value).startswith("/run/secrets/"):
                assert value.rpartition("/")[2] in service["secrets"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        assert set(service.get("depends_on", ())) <= set(COMPOSE["services"])
    assert {
        service["image"] for service in COMPOSE["services"].values() if "jobboard" in service["image"]
    } == {f"jobboard:{VERSION}"}
    assert set(COMPOSE["services"]) == {"server", "console", "prometheus", "grafana"}


def test_grafana_is_told_where_prometheus_and_the_dashboard_are() -> None:
    [source] = yaml.safe_load((CONTAINERS / "grafana/datasources.yml").read_text())["datasources"]
    dashboard = json.loads((ROOT / "examples/grafana-dashboard.json").read_text())
    [wanted] = [one for one in dashboard["templating"]["list"] if one["type"] == "datasource"]
    assert source["type"] == wanted["query"] and source["url"] == "http://prometheus:9090"
    [provider] = yaml.safe_load((CONTAINERS / "grafana/dashboards.yml").read_text())["providers"]
    mounts = COMPOSE["services"]["grafana"]["volumes"]
    assert any(f":{provider['options']['path']}/" in mount for mount in mounts)


def promtool(*words: object, folder: Path) -> None:
    if not PROMTOOL.exists():
        pytest.skip(f"{PROMTOOL} is missing: scripts/prometheus unpacks it")
    done = subprocess.run([PROMTOOL, *map(str, words)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_its_configuration_and_scrapes_the_console(tmp_path: Path) -> None:
    text = (CONTAINERS / "prometheus.yml").read_text()
    [scrape] = yaml.safe_load(text)["scrape_configs"]
    service = COMPOSE["services"]["console"]
    [target] = scrape["static_configs"][0]["targets"]
    assert target == "console:8379" and service["environment"]["JOBBOARD_CONSOLE_HOST"] == "console"
    (tmp_path / "alerts.yml").write_bytes((ROOT / "examples/alerts.yml").read_bytes())
    (tmp_path / "metrics_token").write_text("t")
    here = text.replace("/run/secrets/metrics_token", str(tmp_path / "metrics_token"))
    (tmp_path / "prometheus.yml").write_text(here)
    promtool("check", "config", "prometheus.yml", folder=tmp_path)


def keda() -> tuple[dict[str, Any], dict[str, Any]]:
    deployment, scaled = yaml.safe_load_all((ROOT / "examples/keda-worker.yaml").read_text())
    return deployment, scaled


LABELS = 'board="mails",queue="default"'
LOADS = [
    # ready, claimed, how long until it is empty or None: never; jobs that count, seconds that count
    (0, 0, 0, 0, 0),
    (0, 3, 0, 3, 0),
    (10, 4, 120, 14, 120),
    (10, 4, None, 14, 600),
    (0, 2, None, 2, 0),
]


@pytest.mark.parametrize("ready, claimed, drain, jobs, seconds", LOADS)
def test_the_queries_of_keda_say_how_much_work_there_is(
    tmp_path: Path, ready: int, claimed: int, drain: int | None, jobs: int, seconds: int
) -> None:
    """Prometheus evaluates them over numbers as the module gives them."""
    _, scaled = keda()
    work, time = [trigger["metadata"]["query"] for trigger in scaled["spec"]["triggers"]]
    series = [
        (f'jobboard_jobs{{{LABELS},state="{state}"}}', value) for state, value in STATES(ready, claimed)
    ]
    series += [('jobboard_jobs{board="mails",queue="other",state="ready"}', 99)]
    if drain is not None:
        series.append((f"jobboard_drain_seconds{{{LABELS}}}", drain))
    test = {
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": f"{value}x3"} for name, value in series],
                "promql_expr_test": [
                    {"expr": query, "eval_time": "2m", "exp_samples": [{"labels": "{}", "value": value}]}
                    for query, value in ((work, jobs), (time, seconds))
                ],
            }
        ]
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))
    promtool("test", "rules", "test.yml", folder=tmp_path)


def STATES(ready: int, claimed: int) -> list[tuple[str, int]]:
    return [("ready", ready), ("claimed", claimed), ("scheduled", 50), ("failed", 7)]


def test_the_example_of_keda_fits_the_worker_and_kubernetes() -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="scripts/dist-tests installs the schemas")
    deployment, scaled = keda()
    kubernetes.validate(deployment, "1.34", strict=True)
    assert scaled["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    program, *words = container["command"]
    assert program == "jobboard"
    arguments = jobboard.cli.build_parser().parse_args(words)
    by_work = scaled["spec"]["triggers"][0]
    assert by_work["metricType"] == "AverageValue"
    assert by_work["metadata"]["threshold"] == str(arguments.threads)
    stop = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert int(str(words[words.index("--stop-within") + 1]).removesuffix("s")) < stop


def test_the_numbers_that_the_queries_name_exist() -> None:
    _, scaled = keda()
    commands = (ROOT / "commands.md").read_text()
    for trigger in scaled["spec"]["triggers"]:
        for name in re.findall(r"jobboard_\w+", trigger["metadata"]["query"]):
            assert f"`{name}`" in commands
