"""What `make dist` has made is installed in a clean place and used.

The Debian package goes into an empty root by dpkg itself, so that this machine stays as it is; only the path
of the module in the installed snippet is then that of the root.
"""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from harness import KINDS, Server

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "target" / "dist"
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
FILES = {
    "usr/lib/redis/modules/libjobboard.so",
    "etc/redis/jobboard.conf",
    "usr/share/man/man7/jobboard.7.gz",
    "usr/share/doc/jobboard/copyright",
    "usr/share/doc/jobboard/changelog.Debian.gz",
    "usr/share/doc/jobboard/CHANGELOG.md.gz",
    "usr/share/doc/jobboard/commands.md",
    "usr/share/doc/jobboard/examples/redis.conf",
    "usr/share/doc/jobboard/examples/roles.conf",
}


def one(pattern: str) -> Path:
    found = list(DIST.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}; run `make dist`"
    return found[0]


def run(*words: object, **keywords: object) -> str:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=300, **keywords
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that is in the tarball."""
    folder = tmp_path_factory.mktemp("tarball")
    run("tar", "-xzf", one(f"jobboard-{VERSION}-linux-*.tar.gz"), "-C", folder)
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the Debian package."""
    folder = tmp_path_factory.mktemp("debian")
    run("dpkg-deb", "-x", one("*.deb"), folder)
    return folder


def use(server: Server) -> None:
    """Posts, claims and consumes."""
    board = server.board()
    board.post("x", id_="a")
    [job] = board.claim("w")
    assert board.consume("w", "a", token=job["token"]) == "complete"


def test_the_checksums_are_those_of_the_files() -> None:
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=DIST)
    named = {line.split()[1] for line in (DIST / "SHA256SUMS").read_text().splitlines()}
    assert named == {path.name for path in DIST.iterdir()} - {"SHA256SUMS"}
    assert len(named) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_the_tarball_serves_with_its_configuration(unpacked: Path, kind: str) -> None:
    config = (unpacked / "redis.conf").read_text()
    assert "\nloadmodule ./libjobboard.so\n" in config
    config = config.replace("./libjobboard.so", str(unpacked / "libjobboard.so")).replace("port 6379\n", "")
    server = Server(kind, module=False, config=config.splitlines())
    try:
        use(server)
        server.check_health()
    finally:
        server.close()


def test_the_module_is_stripped_and_its_notices_are_whole(unpacked: Path) -> None:
    sections = run("readelf", "-S", "-W", unpacked / "libjobboard.so")
    assert ".dynsym" in sections and ".debug_" not in sections and ".symtab" not in sections
    notices = (unpacked / "NOTICES").read_text()
    words = ["-e", "normal,no-proc-macro", "--prefix", "none", "-f", "{p}", "--locked"]
    lines = run("cargo", "tree", "-p", "jobboard", *words, cwd=ROOT).splitlines()
    crates = {tuple(line.split()[:2]) for line in lines} - {
        ("jobboard", f"v{VERSION}"),
        ("board", f"v{VERSION}"),
    }
    assert len(crates) > 20
    for name, version in crates:
        assert f"\n{name} {version[1:]}: " in notices
    assert notices.count("Permission is hereby granted") > 20
    assert (unpacked / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert (unpacked / "commands.md").read_text() == (ROOT / "commands.md").read_text()


def test_no_folder_of_the_building_machine_stands_in_the_module(unpacked: Path) -> None:
    """Nor in what was built, before it is stripped."""
    cargo = os.environ.get("CARGO_HOME", Path.home() / ".cargo")
    for module in (unpacked / "libjobboard.so", ROOT / "target" / "release" / "libjobboard.so"):
        content = module.read_bytes()
        assert not [folder for folder in (ROOT, cargo, Path.home()) if f"{folder}/".encode() in content]


@pytest.mark.skipif(os.geteuid() != 0, reason="dpkg installs as root only")
def test_the_debian_package_is_installed_used_and_purged(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for folder in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    # The empty root has no shell: the package's script runs outside, and is told the root.
    dpkg = ("dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless")
    run(*dpkg, "--install", one("*.deb"))
    assert all((root / name).stat().st_size for name in FILES)
    listed = {line[1:] for line in run(*dpkg, "--listfiles", "jobboard").splitlines()}
    assert {name for name in listed if name and (root / name).is_file()} == FILES
    shown = run(*dpkg, "--status", "jobboard")
    assert "\nStatus: install ok installed\n" in shown
    assert f"\nVersion: {VERSION}-1\n" in shown
    assert "\nDepends: libc6 (>=" in shown
    assert "\nConffiles:\n /etc/redis/jobboard.conf " in shown

    snippet = (root / "etc/redis/jobboard.conf").read_text()
    assert "\nloadmodule /usr/lib/redis/modules/libjobboard.so\n" in snippet
    config = tmp_path / "jobboard.conf"
    config.write_text(snippet.replace(" /usr/lib/redis", f" {root}/usr/lib/redis"))
    server = Server("redis70", module=False, config=[f"include {config}"])
    try:
        use(server)
        server.check_health()
    finally:
        server.close()

    including = root / "etc/redis/redis.conf"
    including.write_text("include /etc/redis/jobboard.conf\n")
    refused = subprocess.run([*dpkg, "--purge", "jobboard"], capture_output=True, text=True)
    assert refused.returncode and str(including) in refused.stderr
    including.unlink()
    run(*dpkg, "--purge", "jobboard")
    left = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert not {name for name in left if not name.startswith("var/")}


def test_the_settings_and_roles_of_the_debian_package_can_be_used(installed: Path) -> None:
    snippet = (installed / "etc/redis/jobboard.conf").read_text()
    settings = re.findall(r"^# (jobboard\.[a-z-]+ \S+)$", snippet, re.MULTILINE)
    shown = re.findall(r"^(jobboard\.[a-z-]+ \S+)$", (ROOT / "redis.conf").read_text(), re.MULTILINE)
    assert settings == shown and len(settings) > 20
    roles = (installed / "usr/share/doc/jobboard/examples/roles.conf").read_text()
    users = re.findall(r"^# (user \w+ on .*)$", roles, re.MULTILINE)
    module = installed / "usr/lib/redis/modules/libjobboard.so"
    server = Server("redis70", module=False, config=[f"loadmodule {module}", *settings, *users])
    try:
        assert {"producer", "worker", "operator", "observer"} < set(server.client().acl_users())
    finally:
        server.close()


def test_the_man_page_has_every_command_and_no_warning(installed: Path) -> None:
    page = installed / "usr/share/man/man7/jobboard.7.gz"
    environment = {**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}
    done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and not done.stderr, done.stderr
    for name in re.findall(r"^### (JOB\.\w+)$", (ROOT / "commands.md").read_text(), re.MULTILINE):
        assert re.search(rf"^ +{re.escape(name)}$", done.stdout, re.MULTILINE), name
    assert f'"jobboard {VERSION}"' in gzip.decompress(page.read_bytes()).decode()


def test_the_copyright_file_is_in_debians_format(installed: Path) -> None:
    text = (installed / "usr/share/doc/jobboard/copyright").read_text()
    head, *paragraphs = text.strip().split("\n\n")
    assert head.startswith("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n")
    for paragraph in paragraphs:
        fields = re.findall(r"^(\S+?):", paragraph, re.MULTILINE)
        assert fields == ["Files", "Copyright", "License"], paragraph[:200]
        assert len(paragraph.splitlines()) > 10


PROGRAM = """
import os, jobboard, redis

board = jobboard.Board("board", redis.Redis.from_url(os.environ["JOBBOARD_URL"]))

@board.handler("double")
def double(context, payload):
    return 2 * payload
"""


@pytest.mark.parametrize("pattern", [f"jobboard-{VERSION}-py3-none-any.whl", f"jobboard-{VERSION}.tar.gz"])
def test_the_python_package_works_in_a_venv(pattern: str, unpacked: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    commands = tmp_path / "venv" / "bin"
    run(commands / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", one(pattern))
    jobboard = commands / "jobboard"
    assert "usage: jobboard" in run(jobboard, "--help")
    assert run(jobboard, "--version").strip() == f"jobboard {VERSION}"
    (tmp_path / "app.py").write_text(PROGRAM)
    server = Server("redis70", module=False, config=[f"loadmodule {unpacked / 'libjobboard.so'}"])
    try:
        place = {"cwd": tmp_path, "env": {**os.environ, "JOBBOARD_URL": f"redis://127.0.0.1:{server.port}"}}
        run(jobboard, "post", "board", "21", "--name", "double", "--id", "a", **place)
        run(jobboard, "worker", "app:board", "--burst", **place)
        assert server.board().get("a", fields=["state", "result"]) == {"state": "complete", "result": "42"}
        server.check_health()
    finally:
        server.close()


def test_the_python_packages_have_the_licence() -> None:
    text = (ROOT / "LICENSE").read_bytes()
    with zipfile.ZipFile(one("*.whl")) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith("/LICENSE")]
        assert wheel.read(name) == text
    with tarfile.open(one(f"jobboard-{VERSION}.tar.gz")) as sdist:
        assert sdist.extractfile(f"jobboard-{VERSION}/LICENSE").read() == text
