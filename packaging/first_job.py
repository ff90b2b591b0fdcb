"""How long it takes from an empty virtual environment to the first job done, with what `make dist` has made.

    make first-job

Neither a compiler nor anything else of this machine is on the PATH, and where this is root, all of it is done
as another user. The wheels come from target/dist; what they depend on comes from where pip finds it, into an
empty cache.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

DIST = Path(__file__).resolve().parents[1] / "target" / "dist"
USER = "nobody"
"""Does it where this is root."""
AIM = 30
"""Seconds."""

APP = """
from jobboard import Board

board = Board("mails")


@board.handler("welcome")
def welcome(context, payload):
    return f"Hello {payload['to']}"
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="jobboard-first-") as folder:
        place = Place(Path(folder))
        place.make()
        begin = last = time.monotonic()
        try:
            for step in (place.install, place.serve, place.post, place.work, place.look):
                step()
                now = time.monotonic()
                print(f"{now - last:6.1f} s  {step.__doc__}", flush=True)
                last = now
        finally:
            place.stop()
    total = last - begin
    print(f"{total:6.1f} s  from an empty virtual environment to the first job done and the console seen")
    print(f"{'':9}(aim: {AIM} s)")


class Place:
    """A virtual environment and a home of its own, with nothing else on the PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "venv" / "bin"
        self.server: subprocess.Popen[str] | None = None
        self.user = USER if os.geteuid() == 0 else None
        self.environment = {"PATH": str(self.bin), "HOME": str(folder), "TMPDIR": str(folder / "tmp")}
        # Where pip finds packages is this machine's business.
        kept = ("PIP_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT", "REQUESTS_CA")
        self.environment.update({k: v for k, v in os.environ.items() if k.upper().startswith(kept)})

    def make(self) -> None:
        (self.folder / "tmp").mkdir()
        (self.folder / "app.py").write_text(APP)
        for wheel in DIST.glob("*.whl"):
            shutil.copy(wheel, self.folder)
        if self.user:
            owner = pwd.getpwnam(self.user)
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        python = getattr(sys, "_base_executable", sys.executable)
        self.run(python, "-m", "venv", self.folder / "venv")

    def install(self) -> None:
        """pip install 'jobboard[server]'"""
        words = ["--disable-pip-version-check", "--find-links", self.folder]
        self.run("python", "-m", "pip", "install", "-q", *words, "jobboard[server]")

    def serve(self) -> None:
        """jobboard serve"""
        self.server = self.start("jobboard", "serve", "--port", 0, "--console-port", 0)
        text = ""
        assert self.server.stdout is not None
        for line in self.server.stdout:
            text += line
            if "saves and ends" in line:
                break
        found = re.search(r"console +(http://\S+).*JOBBOARD_URL=\$\(cat (\S+)\)", text, re.DOTALL)
        if not found:
            raise SystemExit(f"jobboard serve did not start:\n{text}")
        self.console = found[1]
        self.environment["JOBBOARD_URL"] = Path(found[2]).read_text().strip()

    def post(self) -> None:
        """jobboard post mails '{"to": "ann"}' --name welcome"""
        self.run("jobboard", "post", "mails", '{"to": "ann"}', "--name", "welcome", "--id", "first")

    def work(self) -> None:
        """jobboard worker app:board --burst"""
        self.run("jobboard", "worker", "app:board", "--burst")
        job = json.loads(self.run("jobboard", "get", "mails", "first", "--json"))
        if (job["state"], job["result"]) != ("complete", "Hello ann"):
            raise SystemExit(f"the job was not done: {job}")

    def look(self) -> None:
        """the console's page"""
        page = urllib.request.urlopen(self.console, timeout=30).read().decode()
        if "<html" not in page or "password" not in page:
            raise SystemExit(f"this is not the console's page:\n{page[:1000]}")

    def stop(self) -> None:
        if self.server is None:
            return
        self.server.terminate()
        if self.server.wait(60):
            raise SystemExit(f"jobboard serve ended with {self.server.returncode}")

    def run(self, *words: object) -> str:
        process = self.start(*words)
        text, _ = process.communicate()
        if process.returncode:
            raise SystemExit(f"this failed: {' '.join(map(str, words))}\n{text}")
        return text

    def start(self, *words: object) -> subprocess.Popen[str]:
        program, *rest = map(str, words)
        return subprocess.Popen(
            [shutil.which(program, path=str(self.bin)) or program, *rest],
            cwd=self.folder,
            env=self.environment,
            user=self.user,
            group=self.user and pwd.getpwnam(self.user).pw_gid,
            extra_groups=[] if self.user else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


if __name__ == "__main__":
    main()
