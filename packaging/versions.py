"""Where the one version of the project stands, to be compared and to be set.

.venv/bin/python packaging/versions.py 0.3.0       sets it, as `make release` does
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


def plain(version: str) -> str:
    return version


def two_digits(version: str) -> str:
    """As a server has a module's version: 0.2.1 is 201."""
    major, minor, patch = map(int, version.split("."))
    return str(major * 10_000 + minor * 100 + patch)


def minor(version: str) -> str:
    return version.rpartition(".")[0]


class Place(NamedTuple):
    """Its one group is the version, as `spelled` writes it; wherever the pattern is found."""

    path: str
    pattern: str
    spelled: Callable[[str], str] = plain


FILES = r"jobboard(?:_server|-chart)?[-_:](\d+\.\d+\.\d+)"
"""In the names of packages and images that documents show."""

PLACES = [
    Place("Cargo.toml", r'^version = "(.+)"'),
    Place("Cargo.lock", r'^name = "(?:board|jobboard|jobboard-console)"\nversion = "(.+)"'),
    Place("fuzz/Cargo.lock", r'^name = "board"\nversion = "(.+)"'),
    Place("src/module/load.rs", r"^/// Version (\d+\.\d+\.\d+), two digits"),
    Place("src/module/load.rs", r"^const VERSION: c_int = (\d+);", two_digits),
    Place("commands.md", r"^Every command of jobboard (\d+\.\d+),", minor),
    Place("packaging/server/pyproject.toml", r'^version = "(.+)"'),
    Place("clients/python/pyproject.toml", r'^version = "(.+)"'),
    Place("clients/python/pyproject.toml", r'"jobboard-server==(.+?)"'),
    Place("clients/python/src/jobboard/__init__.py", r'^__version__ = "(.+)"'),
    Place("clients/typescript/package.json", r'^  "version": "(.+)",'),
    Place("clients/typescript/src/generated.ts", r"^export const REFERENCE = '(.+)';", minor),
    Place("clients/typescript/package-lock.json", r'"name": "jobboard",\n +"version": "(.+)",'),
    Place("packaging/helm/jobboard/Chart.yaml", r"^version: (.+)$"),
    Place("packaging/helm/jobboard/Chart.yaml", r'^appVersion: "(.+)"'),
    Place("packaging/containers/compose.yaml", r"^    image: jobboard:(.+)$"),
    Place("packaging/containers/Dockerfile", FILES),
    Place("docs/guides/first-job.md", FILES),
    Place("docs/guides/install.md", FILES),
    Place("docs/operate/kubernetes.md", FILES),
]


def agreed(root: Path = ROOT) -> str:
    """The version that stands everywhere; SystemExit names the places where another does."""
    version = re.search(PLACES[0].pattern, (root / PLACES[0].path).read_text(), re.MULTILINE)[1]
    wrong = []
    for place in PLACES:
        found = re.findall(place.pattern, (root / place.path).read_text(), re.MULTILINE)
        if set(found) != {place.spelled(version)}:
            wrong.append(f"{place.path}: {', '.join(sorted(set(found))) or 'none'}")
    if wrong:
        raise SystemExit(f"packaging: the versions differ: Cargo.toml has {version}, {'; '.join(wrong)}")
    return version


def write(version: str, root: Path = ROOT) -> list[str]:
    """Sets it everywhere; the files that were changed."""
    changed = []
    for place in PLACES:
        path = root / place.path
        text = path.read_text()

        def put(found: re.Match[str], place: Place = place) -> str:
            begin, end = found.span(1)
            whole, at = found[0], found.start()
            return whole[: begin - at] + place.spelled(version) + whole[end - at :]

        written = re.sub(place.pattern, put, text, flags=re.MULTILINE)
        if written != text:
            path.write_text(written)
            changed.append(place.path)
    return list(dict.fromkeys(changed))


def main() -> None:
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]):
        raise SystemExit("usage: packaging/versions.py VERSION, such as 0.3.0")
    print("\n".join(write(sys.argv[1])))


if __name__ == "__main__":
    main()
