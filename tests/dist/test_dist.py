"""What `make dist` has made is installed in a clean place and used.

The Debian package goes into an empty root by dpkg itself, so that this machine stays as it is; only the path
of the module in the installed snippet is then that of the root.
"""

from __future__ import annotations

import gzip
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest
from documents import README, blocks
from harness import KINDS, Server

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "target" / "dist"
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
DEBIANS = {"x86_64": "amd64", "aarch64": "arm64"}
FILES = {
    "usr/lib/redis/modules/libjobboard.so",
    "usr/bin/jobboard-console",
    "usr/bin/jobboard-exporter",
    "usr/lib/systemd/system/jobboard-console.service",
    "usr/lib/systemd/system/jobboard-exporter.service",
    "etc/redis/jobboard.conf",
    "etc/jobboard/console.env",
    "etc/jobboard/exporter.env",
    "usr/share/man/man1/jobboard-console.1.gz",
    "usr/share/man/man1/jobboard-exporter.1.gz",
    "usr/share/man/man7/jobboard.7.gz",
    "usr/share/doc/jobboard/copyright",
    "usr/share/doc/jobboard/changelog.Debian.gz",
    "usr/share/doc/jobboard/CHANGELOG.md.gz",
    "usr/share/doc/jobboard/examples/alerts.yml",
    "usr/share/doc/jobboard/examples/grafana-dashboard.json",
    "usr/share/doc/jobboard/examples/keda-worker.yaml",
    "usr/share/doc/jobboard/examples/redis.conf",
    "usr/share/doc/jobboard/examples/roles.conf",
}
DOCUMENTS = {"README.md", "SECURITY.md", "commands.md"} | {
    f"clients/{name}/README.md" for name in ("python", "typescript")
}
DOCUMENTS |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
EXAMPLES = {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")} - {"examples/exporter.py"}
FILES |= {f"usr/share/doc/jobboard/{name}" for name in DOCUMENTS | EXAMPLES}

MACHINE = platform.machine()
TARBALL = f"jobboard-{VERSION}-linux-{MACHINE}.tar.gz"
DEBIAN = f"*_{DEBIANS[MACHINE]}.deb"
"""The packages for this machine."""


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
    run("tar", "-xzf", one(TARBALL), "-C", folder)
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the Debian package."""
    folder = tmp_path_factory.mktemp("debian")
    run("dpkg-deb", "-x", one(DEBIAN), folder)
    return folder


def use(server: Server) -> None:
    """Posts, claims and consumes."""
    board = server.board()
    board.post("x", id_="a")
    [job] = board.claim("w")
    assert board.consume("w", "a", token=job["token"]) == "complete"


def url(server: Server) -> str:
    return f"redis://127.0.0.1:{server.port}"


def test_the_checksums_are_those_of_the_files() -> None:
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=DIST)
    named = {line.split()[1] for line in (DIST / "SHA256SUMS").read_text().splitlines()}
    assert named == {path.name for path in DIST.iterdir()} - {"SHA256SUMS"}
    assert len(named) >= 6


@pytest.mark.parametrize("kind", KINDS)
def test_the_tarball_serves_with_its_configuration(unpacked: Path, kind: str, programs) -> None:
    config = (unpacked / "redis.conf").read_text()
    assert "\nloadmodule ./libjobboard.so\n" in config
    config = config.replace("./libjobboard.so", str(unpacked / "libjobboard.so")).replace("port 6379\n", "")
    server = Server(kind, module=False, config=config.splitlines())
    try:
        use(server)
        programs.run(url(server))
        server.board("letters").post("x")
        words = [unpacked / "jobboard-console", "--redis", f"redis://127.0.0.1:{server.port}", "--port", 0]
        assert "letters" in page(words, dict(os.environ), "/")
        server.check_health()
    finally:
        server.close()


PROGRAMS = ("libjobboard.so", "jobboard-console")


def test_the_programs_are_stripped_and_their_notices_are_whole(unpacked: Path) -> None:
    for name in PROGRAMS:
        sections = run("readelf", "-S", "-W", unpacked / name)
        assert ".text" in sections and ".debug_info" not in sections and ".symtab" not in sections
    notices = (unpacked / "NOTICES").read_text()
    words = ["-e", "normal,no-proc-macro", "--prefix", "none", "-f", "{p}", "--locked"]
    lines = run("cargo", "tree", "-p", "jobboard", "-p", "jobboard-console", *words, cwd=ROOT).splitlines()
    own = {(name, f"v{VERSION}") for name in ("jobboard", "board", "jobboard-console")}
    crates = {tuple(line.split()[:2]) for line in lines if line} - own
    assert len(crates) > 100
    for name, version in crates:
        assert f"\n{name} {version[1:]}: " in notices
    for name in ("rust-std", "zig-compiler-rt", "musl", "llvm-libunwind"):
        assert f"\n{name} " in notices
    assert notices.count("Permission is hereby granted") > 20
    assert (unpacked / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    texts = ((folder / "commands.md").read_text() for folder in (ROOT, unpacked))
    whole, brought = (re.sub(r"!?\[([^\[\]]+)\]\([^()\s]*\)", r"\1", text) for text in texts)
    assert brought == whole


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty system."""
    if os.geteuid() != 0:
        pytest.skip("dpkg installs as root only")
    root = tmp_path / "root"
    for folder in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    return root


def dpkg_in(root: Path) -> tuple[str, ...]:
    """The empty root has no shell: the package's scripts run outside, and are told the root."""
    return ("dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless", "--force-confold")


def test_the_debian_package_is_installed_used_and_purged(root: Path, tmp_path: Path, programs) -> None:
    dpkg = dpkg_in(root)
    run(*dpkg, "--install", one(DEBIAN))
    assert all((root / name).stat().st_size for name in FILES)
    listed = {line[1:] for line in run(*dpkg, "--listfiles", "jobboard").splitlines()}
    assert {name for name in listed if name and (root / name).is_file()} == FILES
    shown = run(*dpkg, "--status", "jobboard")
    assert "\nStatus: install ok installed\n" in shown
    assert f"\nVersion: {VERSION}-1\n" in shown
    assert "\nDepends: libc6 (>=" in shown
    conffiles = shown.partition("\nConffiles:")[2]
    for name in ("redis/jobboard.conf", "jobboard/console.env", "jobboard/exporter.env"):
        assert f"\n /etc/{name} " in conffiles
        assert name.endswith(".conf") or (root / "etc" / name).stat().st_mode & 0o777 == 0o600

    snippet = (root / "etc/redis/jobboard.conf").read_text()
    [load] = re.findall(r"^#   (loadmodule .*)$", snippet, re.MULTILINE)
    load = load.replace(" /usr/lib/redis", f" {root}/usr/lib/redis")
    server = Server("redis70", module=False, config=[load, f"include {root}/etc/redis/jobboard.conf"])
    try:
        use(server)
        programs.run(url(server))
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


def test_an_upgrade_keeps_what_was_changed(root: Path, tmp_path: Path) -> None:
    """And is never refused: the module is needed before and after it."""
    dpkg = dpkg_in(root)
    run(*dpkg, "--install", one(DEBIAN))
    changed = {
        root / "etc/redis/jobboard.conf": "jobboard.lease 60000\n",
        root / "etc/jobboard/console.env": "REDIS_URL=redis://:secret@127.0.0.1\n",
    }
    for path, text in changed.items():
        path.write_text(text)
    (root / "etc/redis/redis.conf").write_text("include /etc/redis/jobboard.conf\n")
    run("dpkg-deb", "-R", one(DEBIAN), tmp_path / "next")
    control = tmp_path / "next/DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", "Version: 99.0.0-1", control.read_text(), flags=re.MULTILINE))
    (tmp_path / "next/usr/lib/redis/modules/libjobboard.so").write_bytes(b"another one")
    (tmp_path / "next/etc/redis/jobboard.conf").write_text("# another one\n")
    run("dpkg-deb", "-b", tmp_path / "next", tmp_path / "next.deb")
    run(*dpkg, "--install", tmp_path / "next.deb")
    assert "\nVersion: 99.0.0-1\n" in run(*dpkg, "--status", "jobboard")
    assert (root / "usr/lib/redis/modules/libjobboard.so").read_bytes() == b"another one"
    assert {path: path.read_text() for path in changed} == changed


def test_the_package_stays_while_a_server_down_has_boards(root: Path) -> None:
    dpkg = dpkg_in(root)
    run(*dpkg, "--install", one(DEBIAN))
    module = root / "usr/lib/redis/modules/libjobboard.so"
    server = Server("redis70", module=False, config=[f"loadmodule {module}"])
    try:
        server.board().post("x")
        server.client().save()
        (root / "var/lib/redis").mkdir()
        shutil.copy(server.folder / "dump.rdb", root / "var/lib/redis")
    finally:
        server.close()
    refused = subprocess.run([*dpkg, "--remove", "jobboard"], capture_output=True, text=True)
    assert refused.returncode and "var/lib/redis/dump.rdb" in refused.stderr
    assert module.exists()
    (root / "var/lib/redis/dump.rdb").unlink()
    run(*dpkg, "--remove", "jobboard")
    assert not module.exists()


@pytest.mark.parametrize("script", ["postinst configure 0.1.0", "postinst 2", "postinst 1", "postrm remove"])
def test_a_unit_that_cannot_be_restarted_stops_no_package(tmp_path: Path, script: str) -> None:
    """With systemd, which refuses: a unit is masked, or its bus cannot be reached."""
    if os.geteuid() != 0:
        pytest.skip("only root makes this namespace")
    (tmp_path / "systemctl").write_text('#!/bin/sh\necho asked: "$@"\nexit 1\n')
    (tmp_path / "systemctl").chmod(0o755)
    script = f"mkdir -p /run/systemd/system; exec sh {ROOT}/packaging/debian/{script}"
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    words = ["unshare", "--mount", "sh", "-ec", f"mount -t tmpfs none /run; {script}"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert "asked: daemon-reload" in done.stdout
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["console", "exporter"])
def test_a_unit_starts_what_it_names_with_its_settings(installed: Path, tmp_path: Path, name: str) -> None:
    unit = (installed / f"usr/lib/systemd/system/jobboard-{name}.service").read_text()
    [settings] = re.findall(r"^EnvironmentFile=-(.*)$", unit, re.MULTILINE)
    [command] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    program, options = command.split()
    assert options == "$OPTIONS" and os.access(f"{installed}{program}", os.X_OK)
    here = tmp_path / f"jobboard-{name}.service"
    here.write_text(unit.replace(f"ExecStart={program}", f"ExecStart={installed}{program}"))
    if shutil.which("systemd-analyze"):
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", here], capture_output=True, text=True)
        assert done.returncode == 0 and str(here) not in done.stderr, done.stderr
    server = Server("redis70", module=False, config=[f"loadmodule {one_of(installed, '*.so')}"])
    try:
        server.board().post("x")
        lines = Path(f"{installed}{settings}").read_text().splitlines()
        given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        assert given == {"REDIS_URL": "redis://127.0.0.1:6379", "OPTIONS": ""}
        given["REDIS_URL"] = given["REDIS_URL"].replace("6379", str(server.port))
        port = ["--port", "0"] if name == "console" else ["--listen", "0"]
        words = [f"{installed}{program}", *port]
        if name == "exporter":  # Debian's python3 has redis-py by a package; here it is in the environment
            words = [sys.executable, *words]
        environment = {**os.environ, **given, "PYTHONUNBUFFERED": "1"}
        assert 'board="board"' in page(words, environment, "/metrics")
    finally:
        server.close()


def page(words: list[object], environment: dict[str, str], path: str) -> str:
    """What a program that says where it listens serves there."""
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True, env=environment)
    try:
        address = urllib.parse.urlsplit(process.stdout.readline().strip())
        with urllib.request.urlopen(f"http://{address.netloc}{path}", timeout=30) as reply:
            return reply.read().decode()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def one_of(folder: Path, pattern: str) -> Path:
    [found] = folder.rglob(pattern)
    return found


def test_the_tarball_has_all_that_the_debian_package_has(unpacked: Path, installed: Path) -> None:
    """But what is Debian's alone; with the same content."""
    debians = {
        "copyright",
        "changelog.Debian.gz",
        "CHANGELOG.md.gz",
        "jobboard.conf",
        "redis.conf",
    }
    documents = installed / "usr/share/doc/jobboard"
    files = {path.name: path for path in installed.rglob("*") if path.is_file() and path.name not in debians}
    texts = [path for path in documents.rglob("*") if path.suffix in {".md", ".py"}]
    pages = {path.relative_to(documents).as_posix(): path for path in texts}
    files = {name: path for name, path in files.items() if path not in pages.values()} | pages
    assert len(files) > 90
    for name, path in files.items():
        assert (unpacked / name).read_bytes() == path.read_bytes(), name


@pytest.mark.parametrize("kind", ["tarball", "debian"])
def test_what_a_package_brings_names_only_pages_that_it_brings(
    kind: str, unpacked: Path, installed: Path
) -> None:
    """In links of its pages, and by their places in its examples."""
    folder = unpacked if kind == "tarball" else installed / "usr/share/doc/jobboard"
    texts = [path for path in folder.rglob("*") if path.suffix in {".md", ".yml", ".conf"}]
    named = 0
    for path in texts:
        text = path.read_text()
        if path.suffix == ".md":
            for target in re.findall(r"\]\((?!https?:)([^()#\s]+)", text):
                assert (path.parent / target).resolve().is_file(), f"{path}: {target}"
                named += 1
        else:
            for target in re.findall(r"\bdocs/[\w/-]+\.md", text):
                assert (folder / target).is_file(), f"{path}: {target}"
                named += 1
    assert named > 30


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
    done = shown_by_man(page)
    for name in re.findall(r"^### (JOB\.\w+)$", (ROOT / "commands.md").read_text(), re.MULTILINE):
        assert re.search(rf"^ +{re.escape(name)}$", done, re.MULTILINE), name
    assert f'"jobboard {VERSION}"' in gzip.decompress(page.read_bytes()).decode()


def shown_by_man(page: Path) -> str:
    environment = {**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}
    done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["jobboard-console", "jobboard-exporter"])
def test_the_man_page_of_a_program_has_all_options(installed: Path, name: str) -> None:
    program = installed / "usr/bin" / name
    words = [program] if name == "jobboard-console" else [sys.executable, program]
    options = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", run(*words, "--help"), re.MULTILINE))
    assert len(options) > 4
    shown = shown_by_man(installed / f"usr/share/man/man1/{name}.1.gz")
    assert options == set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", shown, re.MULTILINE))


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


def interpreter(version: str) -> str | None:
    """One of this machine that works: of the system, or of pyenv."""
    found = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    for one in filter(None, found):
        shown = subprocess.run([one, "--version"], capture_output=True, text=True)
        if shown.returncode == 0 and shown.stdout.startswith(f"Python {version}."):
            return str(one)
    return None


@pytest.mark.parametrize("version", PYTHONS)
def test_the_python_package_works_on_each_python(version: str, unpacked: Path, tmp_path: Path) -> None:
    """README's program; the suite runs on one of them."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    run(python, "-m", "venv", tmp_path / "venv")
    commands = tmp_path / "venv" / "bin"
    words = ["-m", "pip", "install", "-q", "--disable-pip-version-check"]
    run(commands / "python", *words, one(f"jobboard-{VERSION}-py3-none-any.whl"))
    [program] = [block for block in blocks(README) if block.info == "python"]
    server = Server("redis70", module=False, config=[f"loadmodule {unpacked / 'libjobboard.so'}"])
    try:
        environment = {**os.environ, "JOBBOARD_URL": url(server)}
        environment.pop("PYTHONPATH", None)
        assert run(commands / "python", "-c", program.text, env=environment) == "Hello ann\n"
        assert run(commands / "jobboard", "queues", "mails", env=environment).startswith("QUEUE")
    finally:
        server.close()


def test_the_python_packages_have_the_licence() -> None:
    text = (ROOT / "LICENSE").read_bytes()
    for pattern in (f"jobboard-{VERSION}-*.whl", f"jobboard_server-*manylinux*{MACHINE}.whl"):
        with zipfile.ZipFile(one(pattern)) as wheel:
            [name] = [name for name in wheel.namelist() if name.endswith("/LICENSE")]
            assert wheel.read(name) == text
    with tarfile.open(one(f"jobboard-{VERSION}.tar.gz")) as sdist:
        assert sdist.extractfile(f"jobboard-{VERSION}/LICENSE").read() == text


def test_the_readme_in_the_wheel_has_no_link_into_the_repository() -> None:
    with zipfile.ZipFile(one("jobboard-*-py3-none-any.whl")) as archive:
        about = archive.read(f"jobboard-{VERSION}.dist-info/METADATA").decode()
    assert "jobboard serve" in about
    assert re.findall(r"\]\((?!https?:|#)[^)]+\)", about) == []
