"""Makes target/dist: the module in a tarball and a Debian package, the Python wheel and sdist, and checksums.

    make dist

Takes the module from target/release and compiles nothing of it again.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import manual
import notices
import snippets

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "target" / "dist"
STAGE = ROOT / "target" / "stage"
TOOLS = ROOT / "target" / "tools"


def main() -> None:
    version = agreed_version()
    for folder in (DIST, STAGE):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    stage(version)
    tarball(version)
    debian_package()
    python_package()
    checksums()
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size:>12,}  target/dist/{path.name}")


def agreed_version() -> str:
    """The version of the module, which that of the Python package has to equal."""
    versions = {
        path: re.search(r'^(?:__)?version(?:__)? = "(.+)"', (ROOT / path).read_text(), re.MULTILINE)[1]
        for path in ("Cargo.toml", "clients/python/pyproject.toml", "clients/python/src/jobboard/__init__.py")
    }
    if len(set(versions.values())) > 1:
        raise SystemExit(f"packaging: the versions differ: {versions}")
    return versions["Cargo.toml"]


def stage(version: str) -> None:
    """Writes what both the tarball and the Debian package hold."""
    redis_conf = (ROOT / "redis.conf").read_text()
    module = ROOT / "target" / "release" / "libjobboard.so"
    run("strip", "--strip-unneeded", "-o", STAGE / "libjobboard.so", module)
    (STAGE / "libjobboard.so").chmod(0o755)  # Redis loads no module that is not executable
    linked = notices.linked()
    write("NOTICES", notices.plain(linked))
    write("copyright", notices.debian(linked))
    write("jobboard.conf", snippets.settings(redis_conf))
    write("roles.conf", snippets.roles(redis_conf))
    write("redis.conf", snippets.beside_module(redis_conf))
    write("redis-debian.conf", snippets.installed(redis_conf))
    page = manual.page((ROOT / "commands.md").read_text(), version)
    (STAGE / "jobboard.7.gz").write_bytes(gzip.compress(page.encode(), 9, mtime=0))
    changes = f"jobboard ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n"
    changes += f" -- {MAINTAINER}  {run('git', 'log', '-1', '--format=%cD').strip()}\n"
    (STAGE / "changelog.gz").write_bytes(gzip.compress(changes.encode(), 9, mtime=0))
    log = (ROOT / "CHANGELOG.md").read_bytes()
    (STAGE / "CHANGELOG.md.gz").write_bytes(gzip.compress(log, 9, mtime=0))


MAINTAINER = re.search(r'^maintainer = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def write(name: str, text: str) -> None:
    (STAGE / name).write_text(text)


def tarball(version: str) -> None:
    name = f"jobboard-{version}-linux-{platform.machine()}"
    members = [STAGE / each for each in ("libjobboard.so", "NOTICES", "redis.conf", "roles.conf")]
    members += [ROOT / each for each in ("LICENSE", "commands.md", "CHANGELOG.md")]
    when = int(run("git", "log", "-1", "--format=%ct"))
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path in sorted(members, key=lambda path: path.name):
            member = tarfile.TarInfo(f"{name}/{path.name}")
            member.size, member.mtime = path.stat().st_size, when
            member.mode = 0o755 if path.suffix == ".so" else 0o644
            with path.open("rb") as file:
                archive.addfile(member, file)
    (DIST / f"{name}.tar.gz").write_bytes(gzip.compress(raw.getvalue(), 9, mtime=0))


def debian_package() -> None:
    tool = TOOLS / "bin" / "cargo-deb"
    run(tool, "--no-build", "--no-strip", "--locked", "-q", "-p", "jobboard", "-o", f"{DIST}/")


def python_package() -> None:
    python = TOOLS / "venv" / "bin" / "python"
    run(python, "-m", "build", "--no-isolation", "-o", DIST, ROOT / "clients" / "python")


def checksums() -> None:
    """In the format of `sha256sum --check`."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(DIST.iterdir())
    ]
    (DIST / "SHA256SUMS").write_text("".join(lines))


def run(*words: object) -> str:
    """What the command prints; shows all of it when it fails."""
    environment = {**os.environ, "PATH": f"{TOOLS / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        [str(word) for word in words], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"packaging: {words[0]} failed\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
