"""docs/guides/console.md, the make target and the workspace say what is so."""

from __future__ import annotations

import configparser
import json
import re
import subprocess

import yaml
from harness.server import ROOT

from .process import BINARY

PAGE = (ROOT / "docs" / "guides" / "console.md").read_text()


def told(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout


def test_options_of_the_page_are_those_of_the_program():
    known = set(re.findall(r"--[a-z-]+", told(str(BINARY), "--help")))
    others = {"--release", "--help"}
    assert set(re.findall(r"--[a-z]+[a-z-]*", PAGE)) - others == known - {"--help", "--version"}


def test_the_pictures_are_there():
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", PAGE):
        file = ROOT / "docs" / "guides" / picture
        assert file.read_bytes()[:4] == b"\x89PNG" and file.stat().st_size < 200_000


def test_the_unit_and_the_scrape_configuration_can_be_read():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(ROOT / "packaging" / "services" / "jobboard-console.service")
    assert set(unit.sections()) == {"Unit", "Service", "Install"}
    [block] = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.S)
    assert yaml.safe_load(block)["rule_files"] == ["alerts.yml"]


def test_the_make_target_passes_its_words_on():
    told_by = told("make", "-n", "console", "REDIS=redis://example:7", "PORT=1234", "WRITE=1")
    assert "REDIS_URL='redis://example:7'" in told_by and "--port 1234 --write" in told_by
    plain = told("make", "-n", "console")
    assert "--port 8379" in plain and "--write" not in plain


def test_building_the_module_builds_no_console():
    whole = json.loads(told("cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"))
    names = {package["id"]: package["name"] for package in whole["packages"]}
    assert "jobboard-console" in names.values()
    assert [names[id] for id in whole["workspace_default_members"]] == ["jobboard"]
