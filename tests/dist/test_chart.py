"""The Helm chart: linted and rendered by Helm itself, checked against the schemas of Kubernetes, and what it
starts compared with the image. No cluster is here: nothing of it was installed in one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import build
import pytest
import yaml

helm = pytest.importorskip("helm_python.chart", reason="scripts/dist-tests installs Helm")
kubernetes = pytest.importorskip("kubernetes_validate", reason="scripts/dist-tests installs the schemas")

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "packaging" / "helm" / "jobboard"
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
IMAGE = {"image": {"repository": "registry.example.com/jobboard"}}
FULL = {
    **IMAGE,
    "replicas": 2,
    "passwords": {"default": 'a "b" \\', "worker": "w", "observer": "o%/"},
    "metricsToken": "t",
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "tls": {"secret": "certificate"},
    "server": {
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    },
    "console": {
        "write": True,
        "hosts": ["jobs.example.com"],
        "options": ["--secure", "--history", "/history"],
        "affinity": {"podAntiAffinity": {}},
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraVolumes": [{"name": "history", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "history", "mountPath": "/history"}],
    },
    "affinity": {"nodeAffinity": {}},
    "persistence": {"storageClass": "fast"},
    "nodeSelector": {"disk": "ssd"},
    "podAnnotations": {"a": "b"},
    "imagePullSecrets": [{"name": "registry"}],
}
LEAST = {**IMAGE, "passwords": {"default": "a"}, "console": {"enabled": False}}
OWN_SECRET = {**IMAGE, "existingSecret": "mine", "existingSecretKeys": ["default", "observer"]}


def rendered(
    values: dict[str, Any], name: str = "jobs", path: Path = CHART
) -> dict[tuple[str, str], dict[str, Any]]:
    """What Kubernetes is given, by kind and name."""
    with helm.Chart.load(path) as chart:
        texts = chart.render(values, name=name, namespace="work")
    documents = [
        one
        for path, text in texts.items()
        if path.endswith(".yaml")
        for one in yaml.safe_load_all(text)
        if one
    ]
    return {(one["kind"], one["metadata"]["name"]): one for one in documents}


@pytest.mark.parametrize("values", [FULL, LEAST, OWN_SECRET], ids=["full", "least", "own secret"])
def test_it_is_linted_and_fits_the_schemas(values: dict[str, Any]) -> None:
    report = helm.lint(CHART, values, strict=True)
    assert not report["errors"]
    assert [one["error"] for one in report["messages"]] == ["icon is recommended"]
    found = rendered(values)
    for (kind, _), document in found.items():
        if kind not in ("ServiceMonitor", "PrometheusRule"):  # of an operator, not of Kubernetes
            for version in ("1.25", "1.34"):
                kubernetes.validate(document, version, strict=True)
    assert ("StatefulSet", "jobs-jobboard") in found


def test_the_values_of_the_page_are_taken() -> None:
    page = (ROOT / "docs/operate/kubernetes.md").read_text()
    [block] = re.findall(r"^```yaml values\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    values = yaml.safe_load(block)
    assert ("StatefulSet", "jobs-jobboard") in rendered(values)
    for options in re.findall(r"`(console|server)\.options: (\[.*?\])`", page):
        assert rendered({**values, options[0]: {"options": json.loads(options[1])}})


def test_its_versions_are_those_of_the_project() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (VERSION, VERSION)


def test_the_packed_chart_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "DIST", tmp_path)
    build.chart(VERSION)
    [packed] = tmp_path.iterdir()
    assert packed.name == f"jobboard-chart-{VERSION}.tgz"
    assert rendered(FULL, path=packed) == rendered(FULL)
    files = {path.relative_to(CHART.parent).as_posix() for path in CHART.rglob("*") if path.is_file()}
    with tarfile.open(packed) as archive:
        assert set(archive.getnames()) == files
    bytes_of_first = packed.read_bytes()
    build.chart(VERSION)
    assert packed.read_bytes() == bytes_of_first


def test_what_it_names_is_there() -> None:
    """Services find pods, pods their secret, the monitor the console; ports and keys agree."""
    found = rendered(FULL)
    [server] = [one for (kind, _), one in found.items() if kind == "StatefulSet"]
    [console] = [one for (kind, _), one in found.items() if kind == "Deployment"]
    pods = {
        one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"] for one in (server, console)
    }
    first = {**pods["jobs-jobboard"], "statefulset.kubernetes.io/pod-name": "jobs-jobboard-0"}
    for name, labels in (
        ("jobs-jobboard", first),
        ("jobs-jobboard-servers", pods["jobs-jobboard"]),
        ("jobs-jobboard-console", pods["jobs-jobboard-console"]),
    ):
        selector = found["Service", name]["spec"]["selector"]
        assert selector.items() <= labels.items()
    assert server["spec"]["serviceName"] == "jobs-jobboard-servers"
    assert (
        not found["Service", "jobs-jobboard"]["spec"]["selector"].items()
        <= pods["jobs-jobboard-console"].items()
    )
    for one in (server, console):
        assert one["spec"]["selector"]["matchLabels"].items() <= pods[one["metadata"]["name"]].items()
        volumes = {volume["name"]: volume for volume in one["spec"]["template"]["spec"]["volumes"]}
        assert volumes["secret"]["secret"]["secretName"] == "jobs-jobboard"
        assert volumes["tls"]["secret"]["secretName"] == "certificate"
        [container] = one["spec"]["template"]["spec"]["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} - {"data"} == set(volumes)
    secret = {
        key: base64.b64decode(value).decode()
        for key, value in found["Secret", "jobs-jobboard"]["data"].items()
    }
    assert secret == {**FULL["passwords"], "metrics-token": "t"}
    monitor = found["ServiceMonitor", "jobs-jobboard"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= (
        found["Service", "jobs-jobboard-console"]["metadata"]["labels"].items()
    )
    [endpoint] = monitor["endpoints"]
    assert endpoint["port"] in [
        port["name"] for port in found["Service", "jobs-jobboard-console"]["spec"]["ports"]
    ]
    assert endpoint["authorization"]["credentials"]["key"] in secret


@pytest.mark.parametrize("values", [FULL, OWN_SECRET], ids=["full", "own secret"])
def test_the_image_knows_what_it_is_given(values: dict[str, Any]) -> None:
    start = (ROOT / "packaging" / "image" / "jobboard-start").read_text()
    keys = set(values.get("existingSecretKeys") or {*FULL["passwords"], "metrics-token"})
    for (kind, _), one in rendered(values).items():
        if kind not in ("StatefulSet", "Deployment"):
            continue
        pod = one["spec"]["template"]["spec"]
        [container] = pod["containers"]
        for variable in container["env"]:
            name = variable["name"]
            assert name.removesuffix("_FILE") in start or "_PASSWORD" in name or name == "TZ"
            if variable["name"].endswith("_FILE"):
                assert variable["value"].rpartition("/")[2] in keys
        assert pod["enableServiceLinks"] is False  # they would be named as our variables are
        assert pod["securityContext"]["runAsUser"] == 10001
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["image"] == f"registry.example.com/jobboard:{VERSION}"


def told(values: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = rendered(values)["ConfigMap", "jobs-jobboard"]["data"]
    return found


def test_the_pods_learn_who_is_the_primary_and_a_change_restarts_none() -> None:
    pod = "jobs-jobboard-{}.jobs-jobboard-servers:6379".format
    assert told(LEAST) == {
        "JOBBOARD_PRIMARY": pod(0),
        "JOBBOARD_COPIES": "",
        "JOBBOARD_ALLOW_EMPTY": "no",
    }
    three = {**LEAST, "replicas": 3}
    assert told(three)["JOBBOARD_COPIES"] == f"{pod(1)} {pod(2)}"
    other = {**three, "primary": 1, "allowEmpty": True}
    assert told(other) == {
        "JOBBOARD_PRIMARY": pod(1),
        "JOBBOARD_COPIES": f"{pod(0)} {pod(2)}",
        "JOBBOARD_ALLOW_EMPTY": "yes",
    }
    before, after = rendered(three), rendered(other)
    assert before["StatefulSet", "jobs-jobboard"] == after["StatefulSet", "jobs-jobboard"]
    selector = after["Service", "jobs-jobboard"]["spec"]["selector"]
    assert selector["statefulset.kubernetes.io/pod-name"] == "jobs-jobboard-1"
    [server] = after["StatefulSet", "jobs-jobboard"]["spec"]["template"]["spec"]["containers"]
    assert server["envFrom"] == [{"configMapRef": {"name": "jobs-jobboard"}}]


def test_an_own_secret_is_used_and_none_is_made() -> None:
    found = rendered(OWN_SECRET)
    assert not [kind for kind, _ in found if kind == "Secret"]
    server = found["StatefulSet", "jobs-jobboard"]["spec"]["template"]["spec"]
    assert server["volumes"][0]["secret"]["secretName"] == "mine"


def test_what_yaml_takes_for_a_number_stays_a_text() -> None:
    """A name of digits alone, and a password whose base64 (4422) is digits too."""
    own = {
        **IMAGE,
        "existingSecret": "123",
        "existingSecretKeys": ["default", "observer", "metrics-token"],
        "tls": {"secret": "456"},
        "persistence": {"storageClass": "1", "size": "1e3"},
        "serviceMonitor": {"enabled": True, "interval": "15", "path": "/a #b"},
        "terminationGracePeriodSeconds": 1_000_000,
    }
    for values in (own, {**LEAST, "passwords": {"default": "\u3376"}}):
        for (kind, _), document in rendered(values, "true").items():
            if kind != "ServiceMonitor":
                kubernetes.validate(document, "1.34", strict=True)
    [endpoint] = rendered(own)["ServiceMonitor", "jobs-jobboard"]["spec"]["endpoints"]
    assert (endpoint["path"], endpoint["interval"]) == ("/a #b", "15")
    assert endpoint["authorization"]["credentials"]["name"] == "123"


def test_a_password_starts_the_pods_anew_and_cannot_be_tried_quickly() -> None:
    def annotations(kind: str, name: str, release: str = "jobs", **passwords: str) -> dict[str, str]:
        values = {**FULL, "passwords": {**FULL["passwords"], **passwords}, "podAnnotations": {}}
        pods = rendered(values, release)[kind, f"{release}-{name}"]["spec"]["template"]
        found: dict[str, str] = pods["metadata"]["annotations"]
        return found

    servers = annotations("StatefulSet", "jobboard", default="a")
    assert servers == annotations("StatefulSet", "jobboard", default="a")
    assert servers != annotations("StatefulSet", "jobboard", default="b")
    assert servers != annotations("StatefulSet", "jobboard", "other", default="a")
    console = annotations("Deployment", "jobboard-console", observer="a")
    assert console == annotations("Deployment", "jobboard-console", observer="a", default="b")
    assert console != annotations("Deployment", "jobboard-console", observer="b")
    text = json.dumps({**FULL["passwords"], "default": "a"}, separators=(",", ":"), sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() not in servers.values()
    own = rendered(OWN_SECRET)["StatefulSet", "jobs-jobboard"]["spec"]["template"]["metadata"]
    assert not own.get("annotations"), "of another's secret nothing is known"


def test_the_rules_are_those_of_the_examples() -> None:
    rules = rendered(FULL)["PrometheusRule", "jobs-jobboard"]
    assert rules["spec"] == yaml.safe_load((ROOT / "examples/alerts.yml").read_text())
    assert rules["metadata"]["labels"]["release"] == "prometheus"
    assert not [kind for kind, _ in rendered(LEAST) if kind == "PrometheusRule"]


def test_the_console_gets_its_options_and_the_servers_their_tls() -> None:
    found = rendered(FULL)
    pods = {
        kind: one["spec"]["template"]["spec"]
        for (kind, _), one in found.items()
        if kind in ("StatefulSet", "Deployment")
    }
    [console] = pods["Deployment"]["containers"]
    assert console["args"] == ["console", "--write", "--secure", "--history", "/history"]
    assert pods["Deployment"]["affinity"] == {"podAntiAffinity": {}}
    assert pods["StatefulSet"]["affinity"] == {"nodeAffinity": {}}
    for pod in pods.values():
        [container] = pod["containers"]
        assert {"name": "JOBBOARD_TLS", "value": "/run/secrets/tls"} in container["env"]
        assert {"name": "TZ", "value": "UTC"} in container["env"]
    secret = next(one for one in pods["Deployment"]["volumes"] if one["name"] == "secret")["secret"]
    assert secret["optional"] is True, "a secret need not have metrics-token"


@pytest.mark.parametrize(
    "values, said",
    [
        (IMAGE, "passwords.default is missing"),
        ({"passwords": {"default": "a"}, "console": {"enabled": False}}, "image.repository is missing"),
        ({**LEAST, "replicas": 0}, "'/replicas': minimum"),
        ({**LEAST, "replicas": 2, "primary": 2}, "primary is 2: with replicas=2 it is a number from 0 to 1"),
        ({**LEAST, "password": "a"}, "'password' not allowed"),
        ({**IMAGE, "passwords": {"default": "a"}}, "the console needs the role observer"),
        ({**OWN_SECRET, "existingSecretKeys": ["observer"]}, "`default` is missing"),
        ({**LEAST, "serviceMonitor": {"enabled": True}}, "serviceMonitor needs the console and a token"),
        ({**LEAST, "prometheusRule": {"enabled": True}}, "prometheusRule needs what it reads"),
        ({**LEAST, "server": {"port": "6379"}}, "'/server/port'"),
    ],
)
def test_what_is_missing_or_wrong_is_said(values: dict[str, Any], said: str) -> None:
    with pytest.raises(Exception, match=re.escape(said)):
        rendered(values)
