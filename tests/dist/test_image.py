"""The images that `make image` has made, run without a container engine: their files are unpacked, and what
their configuration names is started in a root, a process namespace and a mount namespace of its own.

The one for another processor runs under qemu, in a user namespace that has its own binfmt_misc.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import socket
import stat
import subprocess
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import jobboard
import pytest
import redis
import yaml
from harness import wait_until
from harness.server import free_port

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "target" / "images"
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
OWN = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
PASSWORD = "s p\"e\\c$%/@:'al"
QEMU = Path("/usr/bin/qemu-aarch64-static")
ARM64 = r":arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:" + (
    r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:" + f"{QEMU}:F"
)
"""How the kernel learns that qemu runs programs for arm64."""


class Image:
    """An image, unpacked to `root`; `config` is what its configuration says."""

    def __init__(self, architecture: str, folder: Path) -> None:
        self.architecture, self.root = architecture, folder / "root"
        archive = IMAGES / f"jobboard-{VERSION}-linux-{architecture}.tar"
        if not archive.exists():
            assert architecture != OWN, "run `make image`"
            pytest.skip(f"no image for {architecture}: make image MACHINES=all")
        self.root.mkdir()
        with tarfile.open(archive) as whole:
            [about] = json.load(whole.extractfile("manifest.json"))
            described = json.load(whole.extractfile(about["Config"]))
            assert described["architecture"] == architecture
            self.config = described["config"]
            for layer in about["Layers"]:
                whole.extract(layer, folder)
                subprocess.run(
                    ["tar", "-C", self.root, "--numeric-owner", "-xpf", folder / layer], check=True
                )
                (folder / layer).unlink()


class Container:
    """What the image's configuration starts, with a volume, until `kill` or its own end."""

    def __init__(
        self, image: Image, volume: Path, *words: str, hostname: str = "jobboard", **variables: str
    ) -> None:
        self.port, self.console_port = free_port(), free_port()
        self.image, self.log, self.hostname = image, volume.with_suffix(".log"), hostname
        ports = {"JOBBOARD_PORT": str(self.port), "JOBBOARD_CONSOLE_PORT": str(self.console_port)}
        given = dict(one.split("=", 1) for one in image.config["Env"])
        self.environment = {**given, **variables, **ports}
        self.process = subprocess.Popen(
            self._inside(volume, *image.config["Entrypoint"], *(image.config["Cmd"] or ()), *words),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT,
        )

    def _inside(self, volume: Path, *command: str) -> list[str]:
        """The words that run a command in the image; its only writable folder is the volume."""
        [place] = self.image.config["Volumes"]
        root = self.image.root
        script = f"mount --bind {root} {root}"
        for device in ("null", "urandom"):
            script += f"; touch {root}/dev/{device}; mount --bind /dev/{device} {root}/dev/{device}"
        script += f"; mount --bind {volume} {root}{place}; mount -t proc none {root}/proc"
        script += f"; echo {self.hostname} > /proc/sys/kernel/hostname"
        script += f"; mount -o remount,bind,ro {root}"
        user = f"--userspec={self.image.config['User']}"
        unshare = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child"]
        if self.image.architecture != OWN:
            binfmt = "/proc/sys/fs/binfmt_misc"
            script += f"; mount -t binfmt_misc none {binfmt}; printf %s '{ARM64}' > {binfmt}/register"
            unshare += ["--user", "--map-root-user"]
            user = ""  # the namespace has no other one than root
        folder = f'cd "{self.image.config["WorkingDir"]}"; exec "$@"'
        script += f"; exec chroot {user} {root} /bin/sh -c '{folder}' sh \"$@\""
        return [*unshare, "sh", "-ec", script, "sh", *command]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command in another container of the same image, as a probe."""
        words = self._inside(self.log.with_suffix(""), *command)
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=120)

    def wait(self) -> Container:
        def answers() -> bool:
            assert self.process.poll() is None, self.text
            try:
                return bool(self.client().ping())
            except (redis.ConnectionError, redis.BusyLoadingError):
                return False

        wait_until(answers, what="the server")
        return self

    def client(self, user: str = "default", password: str = PASSWORD) -> redis.Redis:
        return redis.Redis(port=self.port, username=user, password=password, decode_responses=True)

    def board(self, user: str = "default", password: str = PASSWORD) -> jobboard.Board:
        return jobboard.Board("mails", self.client(user, password))

    def page(self, path: str, **headers: str) -> str:
        request = urllib.request.Request(f"http://127.0.0.1:{self.console_port}{path}", headers=headers)
        return urllib.request.urlopen(request, timeout=60).read().decode()

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def inner(self) -> int:
        """The first process inside, as this side numbers it. All end with it."""
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text())

    def kill(self) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ValueError, ProcessLookupError):
                os.kill(self.inner(), signal.SIGKILL)
            self.process.wait(60)


def make_volume(image: Image, volume: Path) -> None:
    """As an engine does: it belongs to the user of the image."""
    volume.mkdir()
    if image.architecture == OWN:
        os.chown(volume, *map(int, image.config["User"].split(":")))


@pytest.fixture(scope="module", params=["amd64", "arm64"])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if os.geteuid() != 0:
        pytest.skip("only root makes these namespaces")
    if request.param != OWN and not QEMU.exists():
        pytest.skip(f"{QEMU} is missing: it runs the other processor's programs")
    folder = tmp_path_factory.mktemp(request.param)
    yield Image(request.param, folder)
    shutil.rmtree(folder)


@pytest.fixture
def start(image: Image, tmp_path: Path) -> Iterator[Callable[..., Container]]:
    started: list[Container] = []
    volume = tmp_path / "volume"

    def start(*words: str, **variables: str) -> Container:
        if not volume.exists():
            make_volume(image, volume)
        started.append(Container(image, volume, *words, **{"JOBBOARD_PASSWORD": PASSWORD, **variables}))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def test_a_killed_server_finds_its_jobs_on_the_volume(start: Callable[..., Container]) -> None:
    first = start().wait()
    board = first.board()
    board.post("ann", id="a")
    board.post("bob", id="b")
    [job] = board.claim("w", count=1)
    board.consume("w", job.id, token=job.token, result="done")
    # The container dies, not the machine: what is written stays. A slow disk has it written after the reply.
    wait_until(lambda: first.client().info("persistence")["aof_buffer_length"] == 0, what="it is written")
    first.kill()
    second = start().wait()
    assert second.board().get("b").state == "ready"
    assert second.board().get("a").result == "done"
    [again] = second.board().claim("w")
    assert again.id == "b" and again.token > job.token


def test_both_programs_run_on_it(start: Callable[..., Container], programs) -> None:
    container = start().wait()
    password = urllib.parse.quote(PASSWORD, safe="")
    programs.run(f"redis://:{password}@127.0.0.1:{container.port}")


def test_it_ends_by_the_signal_of_the_image(image: Image, start: Callable[..., Container]) -> None:
    assert image.config["StopSignal"] == "SIGTERM"
    container = start().wait()
    container.board().post("ann", id="a")
    os.kill(container.inner(), signal.SIGTERM)
    container.process.wait(120)
    assert "User requested shutdown" in container.text
    assert start().wait().board().get("a").state == "ready"


def test_it_ends_by_the_signal_also_while_it_asks_its_copies(start: Callable[..., Container]) -> None:
    """One that takes the connection and says nothing: before that, the script may not have begun."""
    with socket.create_server(("127.0.0.1", 0)) as copy:
        copy.settimeout(120)
        address = f"127.0.0.1:{copy.getsockname()[1]}"
        container = start(JOBBOARD_CONSOLE="no", JOBBOARD_COPIES=address)
        asked, _ = copy.accept()
        with asked:
            os.kill(container.inner(), signal.SIGTERM)
            assert container.process.wait(120) == 143
    assert not container.text


def test_it_runs_as_an_ordinary_user(image: Image, start: Callable[..., Container]) -> None:
    user, group = image.config["User"].split(":")
    assert int(user) > 1000
    assert f"jobboard:x:{user}:{group}:" in (image.root / "etc/passwd").read_text()
    container = start().wait()
    if image.architecture == OWN:
        about = Path(f"/proc/{container.inner()}/status").read_text()
        assert f"\nUid:\t{user}\t{user}\t{user}\t{user}\n" in about


def test_no_program_has_more_rights_than_its_user(image: Image) -> None:
    modes = {path: path.lstat().st_mode for path in image.root.rglob("*") if path.is_file()}
    assert not [path for path, mode in modes.items() if mode & (stat.S_ISUID | stat.S_ISGID)]


def test_it_says_what_it_was_made_of(image: Image) -> None:
    labels = {name.rpartition(".")[2]: value for name, value in image.config["Labels"].items()}
    assert labels["version"] == VERSION and re.fullmatch("[0-9a-f]{40}", labels["revision"])
    assert datetime.fromisoformat(labels["created"]).tzinfo
    assert "source" not in labels, "there is no address yet"


def test_its_health_is_that_of_the_server(image: Image, start: Callable[..., Container]) -> None:
    kind, *check = image.config["Healthcheck"]["Test"]
    assert kind == "CMD"
    container = start().wait()
    assert container.run(*check).returncode == 0
    assert container.run(*check, "alive").returncode == 0
    container.kill()
    sick = container.run(*check)
    assert sick.returncode == 1 and "the server does not answer" in sick.stderr


def test_users_come_from_the_environment_and_from_secret_files(
    image: Image, start: Callable[..., Container]
) -> None:
    secret = image.root / "run" / "secrets"
    secret.mkdir(parents=True, exist_ok=True)
    (secret / "worker").write_text("a word of it\n")
    container = start(
        JOBBOARD_PRODUCER_PASSWORD="p&/\\",
        JOBBOARD_WORKER_PASSWORD_FILE="/run/secrets/worker",
        JOBBOARD_KEYS="mails*",
    ).wait()
    container.board("producer", "p&/\\").post("ann", id="a")
    [job] = container.board("worker", "a word of it").claim("w")
    assert job.id == "a"
    with pytest.raises(redis.exceptions.NoPermissionError):
        container.board("worker", "a word of it").post("ann")
    with pytest.raises(redis.exceptions.NoPermissionError):
        jobboard.Board("letters", container.client("producer", "p&/\\")).post("ann")
    with pytest.raises(redis.AuthenticationError):
        container.client("operator", "").ping()
    with pytest.raises(redis.AuthenticationError):
        container.client("default", "").ping()
    with pytest.raises(redis.exceptions.NoPermissionError):
        container.client("health", "any").info()
    assert container.client("health", "any").ping()
    assert container.client("health", "any").execute_command("ROLE")[0] == "master"


def test_the_console_and_its_numbers_are_seen(start: Callable[..., Container]) -> None:
    container = start(JOBBOARD_METRICS_TOKEN="tick", JOBBOARD_CONSOLE_HOST="board.test other.test").wait()
    container.board().post("ann", id="a")
    wait_until(lambda: "8379" in container.text or "http://" in container.text, what="the console")
    assert "password" in container.page("/sign-in", Host="board.test")
    with pytest.raises(urllib.error.HTTPError):
        container.page("/sign-in", Host="foreign.test")
    with pytest.raises(urllib.error.HTTPError):
        container.page("/metrics")
    numbers = container.page("/metrics", Authorization="Bearer tick")
    assert 'jobboard_jobs{board="mails",queue="default",state="ready"} 1' in numbers


def test_it_has_the_settings_of_a_server_that_loses_nothing(start: Callable[..., Container]) -> None:
    container = start("--maxmemory", "64mb", JOBBOARD_CONSOLE="no").wait()
    settings = container.client().config_get("*")
    assert settings["appendonly"] == "yes" and settings["maxmemory-policy"] == "noeviction"
    assert settings["maxmemory"] == str(64 << 20) and settings["dir"] == "/data"
    assert "http://" not in container.text
    process = Path(f"/proc/{container.inner()}")
    assert not (process / "task" / process.name / "children").read_text()
    for file in ("cmdline", "environ"):
        assert PASSWORD.encode() not in (process / file).read_bytes()


def test_a_second_server_copies_the_first(
    start: Callable[..., Container], image: Image, tmp_path: Path
) -> None:
    first = start().wait()
    first.board().post("ann", id="a")
    volume = tmp_path / "second"
    make_volume(image, volume)
    second = Container(
        image,
        volume,
        JOBBOARD_PASSWORD=PASSWORD,
        JOBBOARD_PRIMARY=f"127.0.0.1:{first.port}",
        JOBBOARD_CONSOLE="no",
    )
    try:
        second.wait()
        wait_until(lambda: second.client().exists("mails"), what="the copy")
        assert second.client().info("replication")["role"] == "slave"
        wait_until(lambda: second.run("jobboard-healthy").returncode == 0, what="it follows")
        first.kill()
        wait_until(lambda: second.run("jobboard-healthy").returncode == 1, what="it follows nobody")
        assert second.run("jobboard-healthy", "alive").returncode == 0
        shutil.rmtree(tmp_path / "volume")
        again = start(JOBBOARD_COPIES=f"127.0.0.1:{second.port}")
        assert again.process.wait(120) == 1
        assert "/data is empty, and the copy" in again.text and "REPLICAOF NO ONE" in again.text
        assert second.client().exists("mails")
    finally:
        second.kill()


def test_the_pods_of_the_chart_run(image: Image, tmp_path: Path) -> None:
    """With what Helm renders, but for the ports: a cluster gives each pod an address of its own."""
    helm = pytest.importorskip("helm_python.chart", reason="scripts/dist-tests installs Helm")
    secrets = {"default": PASSWORD, "worker": "w", "observer": PASSWORD + "o"}
    values = {"image": {"repository": "jobboard"}, "replicas": 2, "passwords": secrets, "metricsToken": "t"}
    with helm.Chart.load(ROOT / "packaging/helm/jobboard") as chart:
        texts = chart.render(values, name="jobs", namespace="work")
    folder = image.root / "run/secrets/jobboard"
    folder.mkdir(parents=True, exist_ok=True)
    for key, value in {**secrets, "metrics-token": "t"}.items():
        (folder / key).write_text(value)
    (image.root / "etc/hosts").write_text("127.0.0.1 jobs-jobboard jobs-jobboard-0.jobs-jobboard-servers\n")
    started: list[Container] = []

    def start(template: str, name: str, primary: int | None = None) -> Container:
        document = yaml.safe_load(texts[f"jobboard/templates/{template}.yaml"])
        [container] = document["spec"]["template"]["spec"]["containers"]
        variables = {one["name"]: one["value"] for one in container["env"]}
        if "envFrom" in container:
            variables |= yaml.safe_load(texts["jobboard/templates/pods.yaml"])["data"]
            del variables["JOBBOARD_COPIES"]  # a port for each, and the others are not there yet
        for given in ("JOBBOARD_PRIMARY", "JOBBOARD_SERVER"):
            if primary and given in variables:
                variables[given] = variables[given].replace(":6379", f":{primary}")
        make_volume(image, tmp_path / name)
        one = Container(image, tmp_path / name, *container.get("args", ()), hostname=name, **variables)
        started.append(one)
        return one

    try:
        first = start("servers", "jobs-jobboard-0").wait()
        first.board().post("ann", id="a")
        assert first.client().info("replication")["role"] == "master"
        assert first.client().config_get("maxmemory")["maxmemory"] == str(512 << 20)
        second = start("servers", "jobs-jobboard-1", first.port).wait()
        wait_until(lambda: second.client().exists("mails"), what="the copy")
        assert second.client().info("replication")["role"] == "slave"
        console = start("console", "jobs-jobboard-console-x", first.port)
        wait_until(lambda: "http://" in console.text, what="the console")
        assert 'board="mails"' in console.page("/metrics", Authorization="Bearer t")
        assert "password" in console.page("/sign-in", Host="jobs-jobboard-console")
    finally:
        for one in started:
            one.kill()


@pytest.mark.parametrize(
    "variables, said",
    [
        ({"JOBBOARD_PASSWORD": ""}, "JOBBOARD_PASSWORD, or JOBBOARD_PASSWORD_FILE, must be set"),
        ({"JOBBOARD_PASSWORD_FILE": "/nowhere"}, "JOBBOARD_PASSWORD_FILE: /nowhere cannot be read by user"),
        ({"JOBBOARD_CONSOLE": "maybe"}, "JOBBOARD_CONSOLE: 'maybe' must be yes, no or write"),
        ({"JOBBOARD_PRIMARY": "other"}, "JOBBOARD_PRIMARY: 'other' must be host:port"),
    ],
)
def test_what_is_missing_or_wrong_is_said(
    start: Callable[..., Container], variables: dict[str, str], said: str
) -> None:
    container = start(**variables)
    assert container.process.wait(120) == 1
    assert container.text.startswith(f"jobboard: {said}") and container.text.count("\n") == 1


def test_a_volume_that_cannot_be_written_is_said(image: Image, tmp_path: Path) -> None:
    if image.architecture != OWN:
        pytest.skip("root may write everywhere, and the other processor's runs as root")
    volume = tmp_path / "volume"
    volume.mkdir(mode=0o755)
    container = Container(image, volume, JOBBOARD_PASSWORD=PASSWORD)
    assert container.process.wait(120) == 1
    assert container.text.startswith("jobboard: /data cannot be written by user")


@pytest.mark.parametrize("by_url", [False, True])
def test_the_console_runs_by_itself_for_another_server(start: Callable[..., Container], by_url: bool) -> None:
    password = "plain" if by_url else PASSWORD
    server = start(JOBBOARD_CONSOLE="no", JOBBOARD_OBSERVER_PASSWORD=password).wait()
    server.board().post("ann", id="a")
    place = f"127.0.0.1:{server.port}"
    asked = {"JOBBOARD_SERVER": place, "JOBBOARD_OBSERVER_PASSWORD": password}
    if by_url:
        asked = {"REDIS_URL": f"redis://observer:{password}@{place}"}
    console = start("console", JOBBOARD_METRICS_TOKEN="t", **asked)
    wait_until(lambda: "http://" in console.text, what="the console")
    assert 'board="mails"' in console.page("/metrics", Authorization="Bearer t")


REQUEST = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"


def test_servers_probe_and_console_speak_tls_alone(
    image: Image, start: Callable[..., Container], tmp_path: Path
) -> None:
    folder = image.root / "run" / "secrets" / "tls"
    folder.mkdir(parents=True, exist_ok=True)
    for command in (
        f"{REQUEST} -x509 -keyout {tmp_path}/ca.key -out ca.crt -days 2 -subj /CN=ours",
        f"{REQUEST} -keyout tls.key -out {tmp_path}/csr -subj /CN=jobs",
        f"printf 'subjectAltName=IP:127.0.0.1,DNS:localhost' > {tmp_path}/ext",
        f"openssl x509 -req -in {tmp_path}/csr -CA ca.crt -CAkey {tmp_path}/ca.key -CAcreateserial"
        f" -CAserial {tmp_path}/serial -out tls.crt -days 2 -extfile {tmp_path}/ext",
        "chmod 644 tls.key",
    ):
        subprocess.run(command, shell=True, check=True, cwd=folder, capture_output=True)
    told = {"JOBBOARD_TLS": "/run/secrets/tls", "JOBBOARD_OBSERVER_PASSWORD": PASSWORD}
    server = start(JOBBOARD_CONSOLE="no", **told)
    secure = redis.Redis(port=server.port, password=PASSWORD, ssl=True, ssl_ca_certs=str(folder / "ca.crt"))

    def answers() -> bool:
        assert server.process.poll() is None, server.text
        try:
            return bool(secure.ping())
        except redis.ConnectionError:
            return False

    wait_until(answers, what="the server")
    jobboard.Board("mails", secure).post("ann", id="a")
    with pytest.raises(redis.ConnectionError):
        server.client().ping()
    probe = server.run("jobboard-healthy")
    assert probe.returncode == 0, probe.stderr
    console = start("console", JOBBOARD_METRICS_TOKEN="t", JOBBOARD_SERVER=f"127.0.0.1:{server.port}", **told)
    wait_until(lambda: "http://" in console.text, what="the console")
    assert 'board="mails"' in console.page("/metrics", Authorization="Bearer t")


def test_all_programs_are_for_the_processor_of_the_image(image: Image) -> None:
    machine = {"amd64": 62, "arm64": 183}[image.architecture]
    for name in ("usr/lib/jobboard/libjobboard.so", "usr/bin/jobboard-console", "usr/bin/valkey-server"):
        head = (image.root / name).read_bytes()[:20]
        assert head[:4] == b"\x7fELF" and int.from_bytes(head[18:20], "little") == machine
