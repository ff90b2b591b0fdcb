"""Makes target/dist: for each kind of machine module and console in a tarball, a .deb, an .rpm and a wheel;
the wheel and the sdist of the Python package; the package for Node; the chart for Helm; a bill of materials;
and checksums.

    make dist                                         for machines like this one
    make dist MACHINES='linux-aarch64 macos-arm64'    for these too
    make dist MACHINES=all
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import machines
import manual
import notices
import pages
import release
import rpm
import snippets
import versions
from machines import Machine, Programs

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "target" / "dist"
STAGE = ROOT / "target" / "stage"
TOOLS = ROOT / "target" / "tools"
PYTHON = TOOLS / "venv" / "bin" / "python"
MODULE, CONSOLE = "libjobboard.so", "jobboard-console"


def main() -> None:
    version = versions.agreed()
    wanted, skipped = machines.obtainable(machines.chosen(" ".join(sys.argv[1:])))
    made = [(machine, machines.compile_for(machine)) for machine in wanted]
    for folder in (DIST, STAGE):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    stage_programs(made[0][1])
    stage_texts(version)
    for machine, programs in reversed(made):  # that of this machine stays in target/stage
        stage_programs(programs)
        tarball(version, machine)
        if machine.debian:
            debian_package(machine)
        if machine.rpm:
            rpm.package(version, DIST, STAGE, machine.rpm)
        server_wheel(machine)
    python_package()
    run(ROOT / "scripts" / "typescript", "pack", JOBBOARD_DIST=str(DIST))
    chart(version)
    bill_of_materials(version)
    release.checksums(DIST)
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size:>12,}  target/dist/{path.name}")
    for name, why in skipped.items():
        print(f"packaging: NOT MADE for {name}: {why}", file=sys.stderr)


def stage_programs(programs: Programs) -> None:
    """Puts them where the packages take them from, under the same names for all machines."""
    (STAGE / CONSOLE).unlink(missing_ok=True)
    for path, name in ((programs.module, MODULE), (programs.console, CONSOLE)):
        if path:
            shutil.copy(path, STAGE / name)
            (STAGE / name).chmod(0o755)  # Redis loads no module that is not executable


def stage_texts(version: str) -> None:
    """Writes the rest of what the packages hold. The console that is staged has to run here."""
    redis_conf = (ROOT / "redis.conf").read_text()
    linked = notices.linked(machines.targets())
    write("NOTICES", notices.plain(linked))
    write("copyright", notices.debian(linked))
    for name in pages.brought():
        (STAGE / name).parent.mkdir(parents=True, exist_ok=True)
        write(name, pages.page(name))
    write("jobboard.conf", snippets.settings(redis_conf))
    write("roles.conf", snippets.roles(redis_conf))
    write("redis.conf", snippets.beside_module(redis_conf))
    write("redis-debian.conf", snippets.installed(redis_conf))
    exporter = "#!/usr/bin/python3\n" + (ROOT / "examples" / "exporter.py").read_text()
    write("jobboard-exporter", exporter)
    (STAGE / "jobboard-exporter").chmod(0o755)
    write_packed("jobboard.7.gz", manual.page((ROOT / "commands.md").read_text(), version))
    shown = run(STAGE / CONSOLE, "--help")
    about = "console for the job boards of a Redis or Valkey server"
    write_packed("jobboard-console.1.gz", manual.program("jobboard-console", about, shown, version))
    shown = run(sys.executable, ROOT / "examples" / "exporter.py", "--help")
    about = "numbers of job boards for Prometheus"
    write_packed("jobboard-exporter.1.gz", manual.program("jobboard-exporter", about, shown, version))
    changes = f"jobboard ({version}-1) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n"
    changes += f" -- {MAINTAINER}  {run('git', 'log', '-1', '--format=%cD').strip()}\n"
    write_packed("changelog.gz", changes)
    write_packed("CHANGELOG.md.gz", (STAGE / "CHANGELOG.md").read_text())


MAINTAINER = re.search(r'^maintainer = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def write(name: str, text: str) -> None:
    (STAGE / name).write_text(text)


def write_packed(name: str, text: str) -> None:
    (STAGE / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


EXAMPLES = ("alerts.yml", "grafana-dashboard.json", "keda-worker.yaml")
MANUALS = ("jobboard.7.gz", "jobboard-console.1.gz", "jobboard-exporter.1.gz")


def tarball(version: str, machine: Machine) -> None:
    name = f"jobboard-{version}-{machine.name}"
    staged = (MODULE, CONSOLE, "jobboard-exporter", *MANUALS, "NOTICES", "redis.conf", "roles.conf")
    paths = [path for path in (STAGE / each for each in staged) if path.exists()]
    paths += [ROOT / "LICENSE"]
    paths += [ROOT / "examples" / each for each in EXAMPLES]
    paths += (ROOT / "packaging" / "services").iterdir()
    if not (STAGE / CONSOLE).exists():
        paths = [path for path in paths if "console" not in path.name]
    members = {path.name: path for path in paths} | {each: STAGE / each for each in pages.brought()}
    pack(DIST / f"{name}.tar.gz", {f"{name}/{place}": path for place, path in members.items()})


def chart(version: str) -> None:
    """The chart for Helm, in the form that `helm install` takes."""
    folder = ROOT / "packaging" / "helm"
    members = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    pack(DIST / f"jobboard-chart-{version}.tgz", members)


def pack(archive: Path, members: dict[str, Path]) -> None:
    """Packs files under the places given, with the time of the commit: equal files give equal bytes."""
    when = int(run("git", "log", "-1", "--format=%ct"))
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for place, path in sorted(members.items()):
            member = tarfile.TarInfo(place)
            member.size, member.mtime = path.stat().st_size, when
            member.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            with path.open("rb") as file:
                tar.addfile(member, file)
    archive.write_bytes(gzip.compress(raw.getvalue(), 9, mtime=0))


def debian_package(machine: Machine) -> None:
    words = ["--no-build", "--no-strip", "--locked", "-q", "-p", "jobboard", "--target", machine.target]
    run(TOOLS / "bin" / "cargo-deb", *words, "-o", f"{DIST}/")


def server_wheel(machine: Machine) -> None:
    words = ["-m", "build", "--no-isolation", "--wheel", "-o", DIST, ROOT / "packaging" / "server"]
    run(PYTHON, *words, JOBBOARD_WHEEL=machine.wheel)


def python_package() -> None:
    """Its README becomes what a package index shows, where no link leads into the repository."""
    folder = STAGE / "python"
    without = shutil.ignore_patterns("__pycache__", "*.egg-info", "dist", ".*")
    shutil.copytree(ROOT / "clients" / "python", folder, ignore=without)
    (folder / "README.md").write_text(pages.alone("clients/python/README.md"))
    run(PYTHON, "-m", "build", "--no-isolation", "-o", DIST, folder)
    shutil.rmtree(folder)


def bill_of_materials(version: str) -> None:
    """What is linked into module and console, for those who have to look for known faults."""
    when = run("git", "log", "-1", "--format=%cI").strip()
    run(PYTHON, ROOT / "packaging" / "sbom.py", "packages", version, when, DIST)


def run(*words: object, **variables: str) -> str:
    """What the command prints; shows all of it when it fails."""
    environment = {**os.environ, "PATH": f"{TOOLS / 'bin'}:{os.environ['PATH']}", **variables}
    done = subprocess.run(
        [str(word) for word in words], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"packaging: {words[0]} failed\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
