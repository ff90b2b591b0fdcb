"""Makes the images of containers, of Debian's Valkey with the module and the console, without a registry.

    make image                           for machines like this one
    make image MACHINES=linux-aarch64    for these too

target/images has an archive for each, which `podman load` and `docker load` take, and a bill of materials.
Nothing of an image is run while it is made, so that one for another processor is made in the same way. Times
in it are those of the commit, but it has Debian's packages of the day, so its bytes are not promised.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import machines
import notices
import snippets
from machines import Machine, Programs

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "packaging" / "image"
IMAGES = ROOT / "target" / "images"
STAGE = ROOT / "target" / "image"
PYTHON = ROOT / "target" / "tools" / "venv" / "bin" / "python"
SUITE = "trixie"
"""Of Debian: the first with Valkey."""
PACKAGES = (
    "base-files ca-certificates coreutils dash grep libc-bin netbase sed tzdata valkey-server valkey-tools"
)
USER = 10001
"""The number of the user in the image, whom no machine has by chance."""
UNUSED = "usr/share/man usr/share/locale usr/share/info usr/share/lintian etc/init.d etc/rc?.d"


def main() -> None:
    if os.geteuid() != 0:
        raise SystemExit("image: only root can make it, for its files have owners: sudo make image")
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    asked = [machine for machine in machines.chosen(" ".join(sys.argv[1:])) if machine.debian]
    wanted, skipped = machines.obtainable(asked)
    IMAGES.mkdir(parents=True, exist_ok=True)
    for machine in wanted:
        for path in image(version, machine, machines.compile_for(machine)):
            print(f"{path.stat().st_size:>12,}  target/images/{path.name}")
    for name, why in skipped.items():
        print(f"image: NOT MADE for {name}: {why}", file=sys.stderr)


def image(version: str, machine: Machine, programs: Programs) -> list[Path]:
    archive = files(machine, programs)
    bill = IMAGES / f"jobboard-{version}-linux-{machine.debian}.cdx.json"
    run(PYTHON, ROOT / "packaging" / "sbom.py", "image", version, commit_date(), bill, STAGE / machine.name)
    container = buildah("from", "--arch", machine.debian, "scratch").strip()
    try:
        buildah("add", container, archive, "/")
        buildah("config", *settings(version), container)
        path = IMAGES / f"jobboard-{version}-linux-{machine.debian}.tar"
        path.unlink(missing_ok=True)
        when = ("--timestamp", commit_time())
        name = buildah("commit", *when, "--format", "docker", "--rm", container).strip()
        container = ""
        buildah("push", name, f"docker-archive:{path}:jobboard:{version}")
        buildah("rmi", name)
    finally:
        if container:
            buildah("rm", container)
    return [path, bill]


def files(machine: Machine, programs: Programs) -> Path:
    """An archive of all that is in the image."""
    root, archive = STAGE / machine.name, STAGE / f"{machine.name}.tar"
    if not root.exists():
        unpacked = root.with_suffix(".part")
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        words = [
            "--variant=extract",
            f"--architectures={machine.debian}",
            f"--include={','.join(PACKAGES.split())}",
            "--skip=cleanup/apt/cache",
        ]
        run("mmdebstrap", "--quiet", *words, SUITE, unpacked)
        register(unpacked)
        unpacked.rename(root)
    for pattern in UNUSED.split():
        for folder in root.glob(pattern):
            shutil.rmtree(folder)
    put(root / "etc/passwd", f"root:x:0:0:root:/root:/bin/sh\njobboard:x:{USER}:{USER}::/data:/bin/sh\n")
    put(root / "etc/group", f"root:x:0:\njobboard:x:{USER}:\n")
    put(root / "etc/nsswitch.conf", "hosts: files dns\n")
    certificates = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    put(root / "etc/ssl/certs/ca-certificates.crt", "".join(path.read_text() for path in certificates))
    redis_conf = (ROOT / "redis.conf").read_text()
    roles = re.findall(r"^# (user \w+ on .*)$", snippets.roles(redis_conf), re.MULTILINE)
    put(root / "etc/jobboard/roles", "\n".join(roles) + "\n")
    put(root / "etc/jobboard/server.conf", (HERE / "server.conf").read_text())
    put(root / "usr/share/doc/jobboard/copyright", (ROOT / "LICENSE").read_text())
    put(root / "usr/share/doc/jobboard/NOTICES", notices.plain(notices.linked(machines.targets())))
    put(root / "usr/lib/jobboard/libjobboard.so", programs.module.read_bytes(), 0o755)
    put(root / "usr/bin/jobboard-console", programs.console.read_bytes(), 0o755)
    for name in ("jobboard-start", "jobboard-healthy"):
        put(root / "usr/bin" / name, (HERE / name).read_bytes(), 0o755)
    strip_privileges(root)
    (root / "data").mkdir(exist_ok=True)
    os.chown(root / "data", USER, USER)
    words = [
        "--sort=name",
        "--numeric-owner",
        f"--mtime=@{commit_time()}",
        "--exclude=./dev/*",
        "--exclude=./etc/resolv.conf",
        "--exclude=./etc/hostname",
    ]
    run("tar", "-C", root, *words, "-cf", archive, ".")
    return archive


def register(root: Path) -> None:
    """Writes dpkg's database of what was unpacked: scanners look for known faults of what it names."""
    cache, status = root / "var/cache/apt/archives", root / "var/lib/dpkg/status"
    packages = [run("dpkg-deb", "--field", archive) for archive in sorted(cache.glob("*.deb"))]
    put(status, "\n".join(f"{package}Status: install ok installed\n" for package in packages))
    shutil.rmtree(cache)


def strip_privileges(root: Path) -> None:
    """Nobody changes a password or a shell in the image: its programs run with the rights of their user."""
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
            path.chmod(stat.S_IMODE(mode) & 0o777)


def commit_time() -> int:
    return int(run("git", "-C", ROOT, "log", "-1", "--format=%ct"))


def commit_date() -> str:
    return datetime.fromtimestamp(commit_time(), timezone.utc).isoformat()


def put(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def settings(version: str) -> list[str]:
    labels = {
        "org.opencontainers.image.title": "jobboard",
        "org.opencontainers.image.description": "Valkey with job boards, and their console",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": run("git", "-C", ROOT, "rev-parse", "HEAD").strip(),
        "org.opencontainers.image.created": commit_date(),
        "org.opencontainers.image.licenses": "BSD-3-Clause",
    }
    words = [
        "--user",
        f"{USER}:{USER}",
        "--workingdir",
        "/data",
        "--volume",
        "/data",
        "--stop-signal",
        "SIGTERM",
    ]
    words += ["--port", "6379", "--port", "8379", "--entrypoint", '["/usr/bin/jobboard-start"]', "--cmd", ""]
    words += ["--healthcheck", "CMD /usr/bin/jobboard-healthy", "--healthcheck-interval", "10s"]
    words += ["--healthcheck-timeout", "5s", "--healthcheck-start-period", "60s"]
    words += ["--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    return words + [word for name, value in labels.items() for word in ("--label", f"{name}={value}")]


def buildah(*words: object) -> str:
    place = STAGE / "storage"
    options = ["--root", place / "root", "--runroot", place / "run", "--storage-driver", "vfs"]
    return run("buildah", *options, *words)


def run(*words: object) -> str:
    """What the command prints; shows all of it when it fails."""
    environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"image: {words[0]} failed\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
