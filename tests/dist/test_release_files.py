"""What a release has beside the packages: the bill of materials; and that all of it can be made again."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import build
import machines
import pytest
import versions

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "target" / "dist"
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))
"""


@pytest.fixture
def bill() -> Path:
    return DIST / f"jobboard-{versions.agreed()}.cdx.json"


def validated(bill: Path) -> dict[str, Any]:
    done = subprocess.run([build.PYTHON, "-c", VALIDATE, bill], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    found: dict[str, Any] = json.loads(bill.read_text())
    assert found["metadata"]["component"]["version"] == versions.agreed()
    return found


def test_the_bill_of_materials_is_valid_and_names_all_that_is_linked(bill: Path) -> None:
    found = validated(bill)
    components = {(one["name"], one.get("version")): one for one in found["components"]}
    words = ["-e", "normal,no-proc-macro", "--prefix", "none", "-f", "{p}", "--locked"]
    linked = set()
    for crate in ("jobboard", "jobboard-console"):
        lines = subprocess.check_output(["cargo", "tree", "-p", crate, *words], cwd=ROOT, text=True)
        linked |= {tuple(line.split()[:2]) for line in lines.splitlines() if line and "(/" not in line}
    assert len(linked) > 100
    for name, version in linked:
        one = components[name, version.removeprefix("v")]
        assert one["purl"] == f"pkg:cargo/{name}@{version.removeprefix('v')}" and one["licenses"]
        assert re.fullmatch(r"[0-9a-f]{64}", one["hashes"][0]["content"])
    needs = {one["ref"]: set(one.get("dependsOn", ())) for one in found["dependencies"]}
    assert len(needs["own:jobboard"]) == 4
    assert not any("/axum@" in one for one in needs["own:libjobboard"])
    assert any("/axum@" in one for one in needs["own:jobboard-console"])
    assert {"pkg:pypi/redis", "pkg:pypi/msgspec"} == needs["own:jobboard for Python"]
    assert needs["own:jobboard for Node"] == {"pkg:npm/%40redis/client"}
    ranges = components["msgspec", None]["properties"]
    assert [one["value"][:2] for one in ranges] == [">="]


def test_the_bill_of_materials_has_the_checksums_of_the_packages(bill: Path) -> None:
    files = [one for one in json.loads(bill.read_text())["components"] if one["type"] == "file"]
    assert {one["name"] for one in files} >= {path.name for path in DIST.glob("*.whl")}
    for one in files:
        checksum = hashlib.sha256((DIST / one["name"]).read_bytes()).hexdigest()
        assert [each["content"] for each in one["hashes"]] == [checksum]


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_that_of_an_image_names_the_packages_of_debian(architecture: str) -> None:
    bill = ROOT / "target" / "images" / f"jobboard-{versions.agreed()}-linux-{architecture}.cdx.json"
    if not bill.exists():
        pytest.skip(f"no image for {architecture}: make image MACHINES=all")
    purls = [one.get("purl", "") for one in validated(bill)["components"]]
    for name in ("valkey-server", "libc6", "libssl3t64"):
        pattern = rf"pkg:deb/debian/{name}@[^?]+\?arch={architecture}&distro=trixie"
        assert [purl for purl in purls if re.fullmatch(pattern, purl)], name
    assert [purl for purl in purls if purl.startswith("pkg:cargo/axum@")]


@pytest.mark.timeout(1800)
def test_packages_that_are_made_again_have_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later, and in another folder, of what was compiled."""
    monkeypatch.setattr(build, "DIST", tmp_path / "dist")
    monkeypatch.setattr(sys, "argv", ["build.py"])
    build.main()
    made = {path.name: path for path in build.DIST.iterdir() if path.name != "SHA256SUMS"}
    assert len(made) == 9 and any(machines.own().name in name for name in made)
    [bill] = [name for name in made if name.endswith(".cdx.json")]
    assert but_files(made.pop(bill)) == but_files(DIST / bill)
    assert not [name for name, path in made.items() if path.read_bytes() != (DIST / name).read_bytes()]


def but_files(bill: Path) -> dict[str, Any]:
    """A bill of materials without the packages that were made: here they are those of one machine."""
    found: dict[str, Any] = json.loads(bill.read_text())
    for key, name in (("components", "bom-ref"), ("dependencies", "ref")):
        found[key] = [one for one in found[key] if not one[name].startswith("file:")]
    return found
