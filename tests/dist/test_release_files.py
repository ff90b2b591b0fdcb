"""What a release has beside the packages: the bill of materials; and that all of it can be made again."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

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
    [found] = DIST.glob("*.cdx.json")
    return found


def test_the_bill_of_materials_is_valid_and_names_all_that_is_linked(bill: Path) -> None:
    done = subprocess.run([build.PYTHON, "-c", VALIDATE, bill], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    found = json.loads(bill.read_text())
    assert found["metadata"]["component"]["version"] == versions.agreed()
    components = {(one["name"], one["version"]): one for one in found["components"]}
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
    assert not [name for name, path in made.items() if path.read_bytes() != (DIST / name).read_bytes()]
