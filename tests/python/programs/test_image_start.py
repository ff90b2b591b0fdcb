"""What the image starts, `jobboard-start`: what it looks at before the server does, and two servers that it
starts.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from documents import ROOT, blocks
from harness import MODULE, executable, wait_until
from harness.server import free_port

FOLDER = ROOT / "packaging" / "image"
Start = Callable[..., subprocess.CompletedProcess[str]]
PASSWORD = "s p\"e\\c$%/@:'al"


def command(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


class Pod:
    """A server with a volume of its own, that the script starts. `name` is that of its host."""

    def __init__(self, folder: Path, name: str, kind: str = "valkey91") -> None:
        self.folder, self.name, self.port = folder, name, free_port()
        self.volume, self.log = folder / "volume", folder / "log"
        self.volume.mkdir(parents=True)
        (folder / "hostname").write_text(name.partition(".")[0] + "\n")
        text = (FOLDER / "jobboard-start").read_text()
        for here, there in (
            ("/data", self.volume),
            ("/etc/jobboard", FOLDER),
            ("/proc/sys/kernel/hostname", folder / "hostname"),
            ("sleep 5", "sleep 0.1"),
        ):
            text = text.replace(here, str(there))
        (folder / "jobboard-start").write_text(text)
        server = executable(kind)
        # Redis 7.0, of the kinds of the tests the one with TLS, does not know a right of the user metrics.
        change = f"s/ +client|setinfo//; s,/usr/lib/jobboard/libjobboard.so,{MODULE},"
        change += f"; s,^dir /data,dir {self.volume},"
        command(
            folder / "valkey-server",
            f'sed "{change}" > {folder}/conf\nexec {server} "$@" < {folder}/conf\n',
        )
        command(folder / "valkey-cli", 'exec redis-cli "$@"\n')
        name = "valkey-check-rdb" if kind == "valkey91" else "redis-check-rdb"
        (folder / name).symlink_to(server)
        if name != "valkey-check-rdb":
            command(folder / "valkey-check-rdb", f'exec {folder}/{name} "$@"\n')
        command(folder / "jobboard-healthy", (FOLDER / "jobboard-healthy").read_text())
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def place(self) -> str:
        return f"{self.name}:{self.port}"

    def environment(self, **variables: str) -> dict[str, str]:
        known = {"JOBBOARD_PASSWORD": PASSWORD, "JOBBOARD_CONSOLE": "no", "JOBBOARD_PORT": str(self.port)}
        return {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", **known, **variables}

    def start(self, *options: str, **variables: str) -> Pod:
        self.process = subprocess.Popen(
            ["/bin/sh", self.folder / "jobboard-start", *options],
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT,
        )
        return self

    def ready(self, **options: Any) -> redis.Redis:
        client = redis.Redis(port=self.port, password=PASSWORD, decode_responses=True, **options)

        def answers() -> bool:
            assert self.process and self.process.poll() is None, self.log.read_text()
            try:
                return bool(client.ping())
            except (redis.ConnectionError, redis.BusyLoadingError):
                return False

        wait_until(answers, what="the server")
        return client

    def refused(self) -> str:
        """What it says when it does not start."""
        assert self.process and self.process.wait(60) == 1
        return self.log.read_text()

    def healthy(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "jobboard-healthy", *words],
            capture_output=True,
            text=True,
            timeout=60,
            env=self.environment(**variables),
        )

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(60)

    def lose_volume(self) -> None:
        shutil.rmtree(self.volume)
        self.volume.mkdir()


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[tuple[Pod, Pod]]:
    """Two names of this machine, so that each server has one of its own."""
    found = Pod(tmp_path / "a", "localhost"), Pod(tmp_path / "b", "127.0.0.1")
    yield found
    for one in found:
        one.stop()


def pair(first: Pod, second: Pod, primary: Pod | None = None) -> dict[str, str]:
    """What the chart tells both."""
    return {
        "JOBBOARD_PRIMARY": (primary or first).place,
        "JOBBOARD_COPIES": f"{first.place} {second.place}",
    }


def copied(second: Pod) -> redis.Redis:
    client = second.ready()
    wait_until(lambda: client.info("replication").get("master_link_status") == "up", what="the link")
    wait_until(lambda: client.exists("mails") == 1, what="the copy")
    return client


def started(first: Pod, second: Pod) -> dict[str, str]:
    """Starts a primary with a job, and its copy. Returns what both were told."""
    told = pair(first, second)
    first.start(**told, JOBBOARD_ALLOW_EMPTY="yes")
    first.ready().execute_command("JOB.POST", "mails", "ann", "ID", "a")
    second.start(**told)
    copied(second)
    return told


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "volume").mkdir()
    return tmp_path / "volume"


@pytest.fixture
def start(tmp_path: Path, volume: Path) -> Start:
    """start(options …): the script with this volume, and a server that prints its options and its file."""
    script = tmp_path / "jobboard-start"
    text = (FOLDER / "jobboard-start").read_text()
    script.write_text(text.replace("/data", str(volume)).replace("/etc/jobboard", str(FOLDER)))
    command(tmp_path / "valkey-server", 'echo "$@"\ncat\n')
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    environment |= {"JOBBOARD_PASSWORD": "secret", "JOBBOARD_CONSOLE": "no"}

    def run(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", script, *options],
            capture_output=True,
            text=True,
            timeout=60,
            env={**environment, **variables},
        )

    return run


def test_an_empty_volume_and_one_of_its_own(start: Start, volume: Path) -> None:
    done = start("--maxmemory", "1gb")
    assert done.returncode == 0 and done.stdout.startswith("- --maxmemory 1gb\n")
    assert "appendonly yes" in done.stdout and "user default on #" in done.stdout
    (volume / "appendonlydir").mkdir()
    (volume / "appendonlydir/appendonly.aof.manifest").write_text("file a seq 1 type b\n")
    (volume / "dump.rdb").write_text("of a BGSAVE")
    assert start().returncode == 0


def test_a_snapshot_of_another_server_is_not_hidden(start: Start, volume: Path) -> None:
    (volume / "dump.rdb").write_text("REDIS0011 jobs")
    done = start()
    assert done.returncode == 1 and done.stdout == ""
    assert "no append-only file: this server would start without its jobs" in done.stderr
    assert "Start it once with --appendonly no" in done.stderr
    assert (volume / "dump.rdb").read_text() == "REDIS0011 jobs"
    assert start("--appendonly", "no").returncode == 0, "then the server reads it"


def test_a_snapshot_is_not_hidden_by_a_switch_that_was_cut_off(pods: tuple[Pod, Pod]) -> None:
    """It ends while CONFIG SET appendonly yes writes the file: the folder is there, and no manifest."""
    first, _ = pods
    first.start("--appendonly", "no", "--rdb-key-save-delay", "60000000")
    client = first.ready()
    client.execute_command("JOB.POST", "mails", "ann", "ID", "a")
    client.config_set("rdb-key-save-delay", 0)
    client.save()
    client.config_set("rdb-key-save-delay", 60_000_000)
    client.config_set("appendonly", "yes")
    wait_until(lambda: client.info("persistence")["aof_rewrite_in_progress"] == 1, what="the rewrite")
    assert first.process
    first.process.kill()
    first.process.wait(60)
    assert (first.volume / "appendonlydir").is_dir()
    assert "start without its jobs" in first.start().refused()
    first.start("--appendonly", "no")
    assert first.ready().exists("mails")


def test_files_without_their_manifest_are_not_taken_for_none(pods: tuple[Pod, Pod]) -> None:
    first, _ = pods
    first.start()
    first.ready().execute_command("JOB.POST", "mails", "ann", "ID", "a")
    first.stop()
    manifest = first.volume / "appendonlydir" / "appendonly.aof.manifest"
    content = manifest.read_text()
    manifest.unlink()
    assert "an append-only file without its manifest" in first.start().refused()
    manifest.write_text(content)
    first.start()
    client = first.ready()
    assert client.exists("mails")
    client.flushall()
    client.bgrewriteaof()
    wait_until(lambda: client.info("persistence")["aof_rewrite_in_progress"] == 0, what="the rewrite")
    first.stop()
    manifest.unlink()
    first.start()
    first.ready()


def test_a_primary_that_lost_its_volume_does_not_empty_its_copy(pods: tuple[Pod, Pod]) -> None:
    first, second = pods
    told = pair(first, second)
    first.start(**told | {"JOBBOARD_COPIES": f"{first.place} pod-1.not.there.invalid:6379"})
    first.ready().execute_command("JOB.POST", "mails", "ann", "ID", "a")
    second.start(**told)
    copy = copied(second)
    first.stop()
    first.lose_volume()
    said = first.start(**told).refused()
    assert said.startswith(
        f"jobboard: /data is empty, and the copy {second.place} has data".replace("/data", str(first.volume))
    )
    assert "REPLICAOF NO ONE" in said and said.count("\n") == 1
    assert copy.exists("mails")
    # As the page says: the copy becomes the primary, and the other one takes the data over.
    copy.execute_command("REPLICAOF", "NO", "ONE")
    now = pair(first, second, primary=second)
    first.start(**now)
    assert copied(first).info("replication")["role"] == "slave"
    second.stop()
    second.start(**now)
    assert second.ready().info("replication")["role"] == "master", "a restart leaves it the primary"
    assert second.ready().exists("mails")


def test_a_copy_with_data_does_not_follow_a_primary_without(pods: tuple[Pod, Pod]) -> None:
    """Both pods were away, so the primary had no copy to ask."""
    first, second = pods
    told = started(first, second)
    second.stop()
    first.stop()
    first.lose_volume()
    first.start(JOBBOARD_PRIMARY=first.place)
    first.ready()
    said = second.start(**told).refused()
    assert f"the primary {first.place} has none: this copy would lose its own" in said
    second.start(**pair(first, second, primary=second))
    assert second.ready().exists("mails")
    second.stop()
    second.start(**told, JOBBOARD_ALLOW_EMPTY="yes")
    wait_until(lambda: not second.ready().exists("mails"), what="the copy is as empty")


def test_a_copy_without_data_holds_nobody_up(pods: tuple[Pod, Pod]) -> None:
    first, second = pods
    told = pair(first, second)
    second.start(**told)
    second.ready()
    first.start(**told)
    first.ready()
    first.stop()
    first.start(**told)
    first.ready().execute_command("JOB.POST", "mails", "ann", "ID", "a")
    copied(second)
    first.stop()
    second.stop()
    first.start(**told)
    assert first.ready().exists("mails"), "one with data asks nobody"


def test_a_copy_that_does_not_say_what_it_has_is_waited_for(pods: tuple[Pod, Pod]) -> None:
    first, second = pods
    said = first.start(**pair(first, second)).refused()
    assert f"the copy {second.place} does not say whether it has data" in said
    first.start(**pair(first, second), JOBBOARD_ALLOW_EMPTY="yes")
    first.ready()


def test_a_primary_hands_over_to_its_copy(pods: tuple[Pod, Pod]) -> None:
    first, second = pods
    told = pair(first, second)
    first.start(**told, JOBBOARD_ALLOW_EMPTY="yes")
    client = first.ready()
    client.execute_command("JOB.POST", "mails", "ann", "ID", "a")
    second.start(**told)
    copy = copied(second)
    host, port = second.place.split(":")
    wait_until(lambda: client.info("replication")["slave0"]["state"] == "online", what="FAILOVER may begin")
    client.execute_command("FAILOVER", "TO", host, port)
    wait_until(lambda: copy.info("replication")["role"] == "master", what="the copy leads")
    wait_until(lambda: client.info("replication").get("master_link_status") == "up", what="the other follows")


def test_the_lines_of_the_page_hand_over_and_back(pods: tuple[Pod, Pod], tmp_path: Path) -> None:
    """With a kubectl that starts the command where that pod's programs are."""
    first, second = pods
    (tmp_path / "password").write_text(PASSWORD + "\n")
    cases = "".join(
        f"    jobs-jobboard-{number}) export JOBBOARD_PORT={pod.port} PATH={pod.folder}:$PATH ;;\n"
        for number, pod in enumerate(pods)
    )
    bin = tmp_path / "bin"
    bin.mkdir()
    command(
        bin / "kubectl",
        '[ "$1 $3 $4 $5" = "exec -c server --" ] || exit 2\n'
        f"export JOBBOARD_PASSWORD_FILE={tmp_path}/password\n"
        f'case $2 in\n{cases}esac\nshift 5\nexec "$@"\n',
    )
    page = (ROOT / "docs/operate/kubernetes.md").read_text()
    [function] = [one.text for one in blocks(page) if one.info == "sh server"]

    def run(words: str) -> str:
        assert f"`{words}`" in page or f"`{words.replace('-0', '-1')}`" in page, "the page has this line"
        script = f"{function}\n{words}\n"
        environment = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = started(first, second)
    assert run("server jobs-jobboard-0 FAILOVER") == "OK\n"
    wait_until(lambda: run("server jobs-jobboard-0 ROLE").startswith("slave"), what="it follows")
    copied(first)
    assert run("server jobs-jobboard-0 CLIENT KILL TYPE normal")
    assert "keys=1" in run("server jobs-jobboard-1 INFO keyspace")
    # FAILOVER tells the address, which another pod of that name has not; the page's next line tells the name.
    assert run("server jobs-jobboard-0 ROLE").split()[1] == "127.0.0.1"
    name = "server jobs-jobboard-0 REPLICAOF jobs-jobboard-1.jobs-jobboard-servers 6379"
    assert f"`{name}`" in page
    first.ready().execute_command("REPLICAOF", "localhost", second.port)
    copied(first)
    assert run("server jobs-jobboard-0 ROLE").split()[1] == "localhost"
    partial = "Primary accepted a Partial Resynchronization"
    wait_until(
        lambda: first.log.read_text().count(partial) == 2, what="the link, and no data is copied again"
    )
    # Then the new primary loses its volume, and the page's way goes back.
    copied(first)
    second.stop()
    second.lose_volume()
    now = pair(first, second, primary=second)
    assert "has data, which it would lose" in second.start(**now).refused()
    assert run("server jobs-jobboard-0 REPLICAOF NO ONE") == "OK\n"
    second.start(**told)
    assert copied(second).exists("mails")


@pytest.mark.parametrize(
    "variables, said",
    [
        ({"JOBBOARD_ALLOW_EMPTY": "maybe"}, "JOBBOARD_ALLOW_EMPTY: 'maybe' must be yes or no"),
        ({"JOBBOARD_COPIES": "other"}, "JOBBOARD_COPIES: 'other' must be host:port"),
        ({"JOBBOARD_PRIMARY": "other"}, "JOBBOARD_PRIMARY: 'other' must be host:port"),
    ],
)
def test_what_is_wrong_is_said(start: Start, variables: dict[str, str], said: str) -> None:
    done = start(**variables)
    assert done.returncode == 1 and done.stderr == f"jobboard: {said}\n"


@pytest.mark.parametrize("here, named", [("jobs.site.test", ""), ("jobs.site.test", "jobs"), ("jobs", "")])
def test_a_primary_knows_its_own_name(pods: tuple[Pod, Pod], here: str, named: str) -> None:
    first, _ = pods
    (first.folder / "hostname").write_text(here + "\n")
    first.start(JOBBOARD_PRIMARY=f"{named or 'jobs.site.test'}:{first.port}")
    assert first.ready().info("replication")["role"] == "master"
    first.stop()
    (first.folder / "hostname").write_text("jobs.other.test\n")
    first.start(JOBBOARD_PRIMARY=f"jobs.site.test:{first.port}")
    assert first.ready().info("replication")["role"] == "slave"


def test_a_password_of_two_lines_is_not_shown(start: Start) -> None:
    """It would stand in the server's error, and its second line would be a setting."""
    for name in ("JOBBOARD_PASSWORD", "JOBBOARD_WORKER_PASSWORD"):
        done = start(**{name: "first\nsecond"})
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr == f"jobboard: {name}: it has more than one line\n"
    kept = hashlib.sha256(b"secret").hexdigest()
    assert f"user default on #{kept} " in start(JOBBOARD_PASSWORD="secret\n").stdout, "an end of line is none"


def test_a_copy_is_healthy_when_it_follows(pods: tuple[Pod, Pod]) -> None:
    first, second = pods
    told = pair(first, second)
    second.start(**told)
    second.ready()
    sick = second.healthy()
    assert sick.returncode == 1 and f"the copy does not follow localhost:{first.port} yet" in sick.stderr
    assert second.healthy("alive").returncode == 0
    first.start(**told)
    first.ready()
    wait_until(lambda: second.healthy().returncode == 0, what="it follows")
    assert first.healthy().returncode == 0
    first.stop()
    assert first.healthy("alive").returncode == 1
    second.stop()
    second.start(JOBBOARD_PRIMARY="pod-0.not.there.invalid:6379")
    second.ready()
    assert second.healthy().returncode == 0, "a pod that is not made yet is not waited for"


def test_a_server_that_cannot_write_or_is_full_of_clients_is_alive(pods: tuple[Pod, Pod]) -> None:
    """Whoever kills it then, as Kubernetes does by this probe, loses what could not be written."""
    first, _ = pods
    first.start()
    client = first.ready()
    client.execute_command("JOB.POST", "mails", "ann", "ID", "a")
    (first.volume / "dump.rdb").mkdir()
    client.config_set("save", "3600 1")
    client.bgsave()
    wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err", what="it fails")
    sick = first.healthy()
    assert sick.returncode == 1 and "MISCONF" in sick.stderr
    assert first.healthy("alive").returncode == 0
    client.config_set("save", "")
    assert first.healthy().returncode == 0
    client.config_set("maxclients", 1)
    sick = first.healthy()
    assert sick.returncode == 1 and "max number of clients" in sick.stderr
    assert first.healthy("alive").returncode == 0


def test_a_copy_with_a_new_password_holds_its_primary_up_no_longer(
    pods: tuple[Pod, Pod], tmp_path: Path
) -> None:
    """A StatefulSet starts the copy anew first, and the primary when that is ready."""
    first, second = pods
    told = started(first, second)
    second.stop()
    (tmp_path / "password").write_text("new")
    new = {**told, "JOBBOARD_PASSWORD_FILE": str(tmp_path / "password")}
    second.start(**new)
    wait_until(lambda: second.healthy("alive", **new).returncode == 0, what="it answers")
    wait_until(lambda: "WRONGPASS" in second.log.read_text(), what="the primary refuses it")
    done = second.healthy(**new)
    assert done.returncode == 0, done.stderr
    first.stop()
    assert second.healthy(**new).returncode == 1, "a primary that is away is waited for"
    first.start(**new)
    wait_until(lambda: second.healthy(**new).returncode == 0, what="it follows")
    copy = redis.Redis(port=second.port, password="new", decode_responses=True)
    wait_until(lambda: copy.info("replication")["master_link_status"] == "up", what="the link")
    assert copy.exists("mails")


def test_settings_and_users_are_those_of_the_start(pods: tuple[Pod, Pod]) -> None:
    first, _ = pods
    first.start("--jobboard.lease", "60000")
    client = first.ready()
    assert client.config_get("jobboard.lease") == {"jobboard.lease": "60000"}
    client.config_set("jobboard.lease", 50000)
    client.execute_command("ACL", "SETUSER", "ann", "on")
    with pytest.raises(redis.ResponseError, match="without a config file"):
        client.config_rewrite()
    with pytest.raises(redis.ResponseError, match="not configured to use an ACL file"):
        client.execute_command("ACL", "SAVE")


def test_a_console_that_ended_is_seen(pods: tuple[Pod, Pod]) -> None:
    first, _ = pods
    first.start()
    first.ready()
    with socket.socket() as console:
        console.bind(("127.0.0.1", 0))  # nobody else gets the port
        places = {"JOBBOARD_CONSOLE": "yes", "JOBBOARD_CONSOLE_PORT": str(console.getsockname()[1])}
        sick = first.healthy(**places)
        assert sick.returncode == 1 and "the console does not run" in sick.stderr
        assert first.healthy("alive", **places).returncode == 0
        console.listen()
        assert first.healthy(**places).returncode == 0


def test_the_server_speaks_tls_alone(tmp_path: Path) -> None:
    first, second = (
        Pod(tmp_path / name, host, "redis70") for name, host in (("c", "localhost"), ("d", "127.0.0.1"))
    )
    folder = tmp_path / "tls"
    folder.mkdir()
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", folder / "tls.key", "-out", folder / "tls.crt"]
    subprocess.run([*make.split(), *files], check=True, capture_output=True)
    shutil.copy(folder / "tls.crt", folder / "ca.crt")
    told = {**pair(first, second), "JOBBOARD_TLS": str(folder)}
    try:
        first.start(**told, JOBBOARD_ALLOW_EMPTY="yes")
        secure = {"ssl": True, "ssl_ca_certs": str(folder / "ca.crt"), "ssl_check_hostname": False}
        first.ready(**secure).execute_command("JOB.POST", "mails", "ann", "ID", "a")
        with pytest.raises(redis.ConnectionError):
            redis.Redis(port=first.port).ping()
        second.start(**told)
        wait_until(lambda: second.ready(**secure).exists("mails"), what="the copy")
        assert second.healthy(**told).returncode == 0
        first.stop()
        first.lose_volume()
        assert "has data, which it would lose" in first.start(**told).refused()
    finally:
        first.stop()
        second.stop()


def test_tls_lacks_a_file_or_has_the_console_beside_it(start: Start, tmp_path: Path) -> None:
    said = start(JOBBOARD_TLS=str(tmp_path)).stderr
    assert said.startswith(f"jobboard: JOBBOARD_TLS: {tmp_path}/tls.crt cannot be read by user")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (tmp_path / name).write_text("")
    assert "set JOBBOARD_CONSOLE=no" in start(JOBBOARD_TLS=str(tmp_path), JOBBOARD_CONSOLE="yes").stderr


def test_a_secret_need_not_have_the_token(start: Start, tmp_path: Path) -> None:
    done = start(JOBBOARD_METRICS_TOKEN_FILE=str(tmp_path / "metrics-token"))
    assert done.returncode == 0 and "so there is no /metrics" in done.stderr


def test_the_console_alone_gets_its_options(start: Start, tmp_path: Path) -> None:
    command(tmp_path / "jobboard-console", 'echo "$REDIS_URL $@"\n')
    told = {"JOBBOARD_SERVER": "jobs:6379", "JOBBOARD_OBSERVER_PASSWORD": "o"}
    plain = start("console", "--secure", **told).stdout
    assert plain == "redis://observer:%6f@jobs:6379 --bind 0.0.0.0 --port 8379 --secure\n"
    secure = start("console", "--secure", **told, JOBBOARD_TLS="/tls").stdout
    assert secure == (
        "rediss://observer:%6f@jobs:6379 --bind 0.0.0.0 --port 8379 --cacert /tls/ca.crt --secure\n"
    )
