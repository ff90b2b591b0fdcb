"""The .rpm: the same files as the Debian package, in the same places, as Cargo.toml lists them.

The same commit gives the same bytes: the package and its files have the time of the commit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "packaging" / "debian"
DEBIANS = "changelog.Debian.gz"

SPEC = """%global debug_package %{{nil}}
%global __os_install_post %{{nil}}
%global _build_id_links none
# The exporter alone is in Python.
%global __requires_exclude ^/usr/bin/python3$
Name: jobboard
Version: {version}
Release: 1
Summary: Native job boards for Redis and Valkey
License: BSD-3-Clause
Packager: {maintainer}
Recommends: (valkey >= 8 or redis >= 7)
Suggests: python3-redis

%description
{description}

%install
cp -a {tree}/. %{{buildroot}}

%files
{files}

%preun
{removed}

%post
{installed}

%postun
{gone}
"""


def package(version: str, dist: Path, stage: Path, arch: str) -> None:
    """Writes jobboard-VERSION-1.ARCH.rpm to `dist`, by way of `stage`."""
    debian, when = metadata(), time_of_commit()
    tree = stage / "rpm"
    shutil.rmtree(tree, ignore_errors=True)
    lines = []
    for source, target, mode in debian["assets"]:
        for path in sorted(ROOT.glob(source)):
            place = f"{target}{path.name}" if target.endswith("/") else target
            if place.endswith(DEBIANS):
                continue
            (tree / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tree / place)
            os.utime(tree / place, (int(when), int(when)))
            kind = "%config(noreplace) " if f"/{place}" in debian["conf-files"] else ""
            lines.append(f"%attr({mode}, root, root) {kind}/{place}")
    text = SPEC.format(
        version=version,
        maintainer=debian["maintainer"],
        description=debian["extended-description"],
        tree=tree,
        files="\n".join(lines),
        removed=script("prerm"),
        installed=script("postinst"),
        gone=script("postrm"),
    )
    spec = stage / "jobboard.spec"
    spec.write_text(text)
    defined = {
        "_topdir": stage / "rpmbuild",
        "_rpmdir": dist,
        "_rpmfilename": "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm",
        "_tmppath": stage,
        "_buildhost": "localhost",
        "use_source_date_epoch_as_buildtime": 1,
    }
    words = [word for name, value in defined.items() for word in ("--define", f"{name} {value}")]
    done = subprocess.run(
        ["rpmbuild", "-bb", "--quiet", "--target", arch, *words, spec],
        capture_output=True,
        text=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": when},
    )
    if done.returncode:
        raise SystemExit(f"packaging: rpmbuild failed\n{done.stdout}{done.stderr}")


def time_of_commit() -> str:
    words = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def metadata() -> dict[str, Any]:
    """What Cargo.toml says of the Debian package."""
    words = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"]
    done = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    [own] = [one for one in json.loads(done.stdout)["packages"] if one["name"] == "jobboard"]
    found: dict[str, Any] = own["metadata"]["deb"]
    return found


def script(name: str) -> str:
    """A script of the package: rpm takes % for its own."""
    return (SCRIPTS / name).read_text().replace("%", "%%")
