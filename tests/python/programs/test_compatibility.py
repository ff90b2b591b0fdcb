"""docs/compatibility.md names the versions that are tested, and those that the packages ask for; and the next
version, to which `make test-upgrade` takes servers, can be made of these sources.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import redis
from documents import ROOT, table
from harness.kinds import VERSIONS

PAGE = (ROOT / "docs/compatibility.md").read_text()
TESTED = {row[""]: row for row in table(PAGE, "What it is tested with")}


def test_the_servers_are_those_of_the_suite() -> None:
    names = {"redis": "Redis", "valkey": "Valkey"}
    kinds = {
        f"{names[re.sub('[0-9]', '', kind)]} {said.removeprefix('v=').strip('.')}"
        for kind, said in VERSIONS.items()
    }
    assert set(TESTED["servers"]["tested"].split(", ")) == kinds


def test_python_and_its_needs_are_those_of_the_package() -> None:
    told = TESTED["Python"]
    project = (ROOT / "clients/python/pyproject.toml").read_text()
    needs = [re.search(r'requires-python = ">=([\d.]+)"', project)[1]]
    needs += re.search(r'dependencies = \["redis>=([\d.]+)", "msgspec>=([\d.]+)"\]', project).groups()
    assert re.findall(r"([\d.]+\d) and newer", told["expected to work"]) == needs
    major = redis.__version__.partition(".")[0]
    assert told["tested"] == f"{sys.version_info.major}.{sys.version_info.minor}, on redis-py {major}"


def test_node_is_that_of_the_package() -> None:
    package = json.loads((ROOT / "clients/typescript/package.json").read_text())
    assert package["engines"]["node"] == ">=" + TESTED["Node"]["expected to work"].split()[0]
    major = package["dependencies"]["@redis/client"].strip("^").partition(".")[0]
    assert TESTED["Node"]["tested"].endswith(f"@redis/client {major}")


def test_extras_are_those_of_the_package() -> None:
    project = (ROOT / "clients/python/pyproject.toml").read_text()
    told = TESTED["Celery, Django, TaskFlow"]["expected to work"]
    for name, version in re.findall(r"(Celery|Django) ([\d.]+\d)", told):
        assert f'"{name.lower()}>={version}"' in project


def test_the_pretended_next_version_can_be_made_of_the_sources(tmp_path: Path) -> None:
    """Without compiling it: what it changes is there, once."""
    place = importlib.util.spec_from_file_location("next_version", ROOT / "tests/upgrade/next_version.py")
    maker = importlib.util.module_from_spec(place)
    place.loader.exec_module(maker)
    maker.SOURCE = tmp_path
    maker.copy()
    maker.change()
    assert f'"{maker.SETTING}"' in (tmp_path / "board/src/settings.rs").read_text()
