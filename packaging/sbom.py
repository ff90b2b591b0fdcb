"""The bills of materials, in CycloneDX.

    target/tools/venv/bin/python packaging/sbom.py packages VERSION TIME FOLDER
    target/tools/venv/bin/python packaging/sbom.py image VERSION TIME FILE ROOT

`packages` writes that of the packages in FOLDER: their checksums, what is linked into the module and the
console, and what the packages for Python and Node ask for. `image` writes that of an image, into FILE: the
packages of Debian that are installed in ROOT, the module and the console. Equal inputs give equal bytes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from datetime import datetime
from pathlib import Path

import image
import machines
import notices
import release
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
PARTS = {"jobboard": "libjobboard", "jobboard-console": "jobboard-console"}
"""Our crates, and what each becomes."""


def main() -> None:
    what, version, when, place, *rest = sys.argv[1:]
    if what == "image":
        bom = of_image(version, datetime.fromisoformat(when), Path(*rest))
        file = Path(place)
    else:
        bom = of_packages(version, datetime.fromisoformat(when), Path(place))
        file = Path(place) / f"jobboard-{version}.cdx.json"
    file.write_text(JsonV1Dot6(bom).output_as_string(indent=1) + "\n")


def of_packages(version: str, when: datetime, folder: Path) -> Bom:
    bom, whole = begun("jobboard", version, when, ComponentType.APPLICATION)
    parts = add_programs(bom, version)
    for name, needs in packages():
        part = own(name, version, ComponentType.LIBRARY)
        bom.components.add(part)
        for needed in needs:
            bom.components.add(needed)
        bom.register_dependency(part, needs)
        parts.append(part)
    for path in sorted(folder.iterdir()):
        bom.components.add(released(path))
    bom.register_dependency(whole, parts)
    return bom


def of_image(version: str, when: datetime, root: Path) -> Bom:
    bom, whole = begun("jobboard image", version, when, ComponentType.CONTAINER)
    parts = add_programs(bom, version)
    columns = "${Package} ${Version} ${Architecture}\n"
    query = ["dpkg-query", f"--admindir={root / 'var/lib/dpkg'}", "--show", f"--showformat={columns}"]
    for line in subprocess.check_output(query, text=True).splitlines():
        parts.append(installed(*line.split()))
        bom.components.add(parts[-1])
    bom.register_dependency(whole, parts)
    return bom


def begun(name: str, version: str, when: datetime, kind: ComponentType) -> tuple[Bom, Component]:
    """A bill without parts, and the whole that it is about."""
    whole = own(name, version, kind)
    whole.supplier = OrganizationalEntity(name="The jobboard authors")
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{name} {version} {when.isoformat()}"))
    bom.metadata.timestamp = when
    bom.metadata.component = whole
    return bom, whole


def add_programs(bom: Bom, version: str) -> list[Component]:
    """The module and the console, with all that is linked into them."""
    components: dict[tuple[str, str], Component] = {}
    parts = []
    for crate, targets in machines.targets().items():
        part = own(
            PARTS[crate], version, ComponentType.LIBRARY if crate == "jobboard" else ComponentType.APPLICATION
        )
        linked = []
        for notice in notices.linked({crate: targets}):
            if crate == "jobboard" and notice.name == "musl":
                continue  # the module uses the C library of its server
            key = (notice.name, notice.version)
            components.setdefault(key, component(notice))
            linked.append(components[key])
        bom.components.add(part)
        bom.register_dependency(part, linked)
        parts.append(part)
    for each in components.values():
        bom.components.add(each)
    return parts


def own(name: str, version: str, kind: ComponentType) -> Component:
    licence = LicenseFactory().make_from_string("BSD-3-Clause")
    return Component(name=name, version=version, type=kind, bom_ref=f"own:{name}", licenses=[licence])


def component(notice: notices.Notice) -> Component:
    """A crate, or what the compilers add."""
    checksum = checksums().get((notice.name, notice.version))
    kind = "cargo" if checksum else "generic"
    purl = PackageURL(kind, None, notice.name, notice.version)
    return Component(
        name=notice.name,
        version=notice.version,
        type=ComponentType.LIBRARY,
        bom_ref=purl.to_string(),
        purl=purl,
        scope=ComponentScope.REQUIRED,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=checksum)] if checksum else None,
        licenses=[LicenseFactory().make_from_string(notice.licence.replace("/", " OR "))],
    )


def checksums() -> dict[tuple[str, str], str]:
    """Those of Cargo.lock."""
    lock = (ROOT / "Cargo.lock").read_text()
    pattern = r'^name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "(.+)"'
    return {(name, version): sum for name, version, sum in re.findall(pattern, lock, re.MULTILINE)}


def packages() -> list[tuple[str, list[Component]]]:
    """The packages for Python and Node, with what they always ask for: it is not in them."""
    project = (ROOT / "clients/python/pyproject.toml").read_text()
    python = re.findall(
        r'"([\w.-]+)([^"]*)"', re.search(r"^dependencies = \[(.+)\]", project, re.MULTILINE)[1]
    )
    node = json.loads((ROOT / "clients/typescript/package.json").read_text())["dependencies"].items()
    return [
        ("jobboard for Python", [asked("pypi", *one) for one in python]),
        ("jobboard for Node", [asked("npm", *one) for one in node]),
    ]


def asked(kind: str, name: str, range: str) -> Component:
    """What is not contained: the installation brings some version of the range."""
    group, _, last = name.rpartition("/")
    purl = PackageURL(kind, group or None, last)
    return Component(
        name=name,
        type=ComponentType.LIBRARY,
        bom_ref=purl.to_string(),
        purl=purl,
        scope=ComponentScope.OPTIONAL,
        description="asked for at installation; not contained",
        properties=[Property(name="jobboard:range", value=range)],
    )


def released(path: Path) -> Component:
    return Component(
        name=path.name,
        type=ComponentType.FILE,
        bom_ref=f"file:{path.name}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=release.sum_of(path))],
    )


def installed(name: str, version: str, architecture: str) -> Component:
    """A package of Debian. Its licences are in the image, in /usr/share/doc."""
    purl = PackageURL("deb", "debian", name, version, {"arch": architecture, "distro": image.SUITE})
    return Component(
        name=name, version=version, type=ComponentType.LIBRARY, bom_ref=purl.to_string(), purl=purl
    )


if __name__ == "__main__":
    main()
