"""What docs/guides/install.md shows can be used as it stands."""

from __future__ import annotations

import re

import pytest
import redis
from documents import REDIS_CONF, ROOT, blocks
from harness import MODULE

GUIDE = (ROOT / "docs/guides/install.md").read_text()
ROLES = re.findall(r"^# (user \w+ on .*)$", REDIS_CONF, re.MULTILINE)


@pytest.mark.every_server
def test_a_small_server_beside_a_managed_cache(fresh_server, tmp_path) -> None:
    [block] = [one for one in blocks(GUIDE) if (one.heading, one.info) == ("Beside a managed cache", "conf")]
    users = tmp_path / "users.acl"
    users.write_text(
        "\n".join(["user default off", *ROLES, "user health on nopass +ping +hello +info"]) + "\n"
    )
    config = re.sub(r"^(port|dir) .*\n", "", block.text, flags=re.MULTILINE)
    config = config.replace("/usr/lib/redis/modules/libjobboard.so", str(MODULE))
    config = config.replace("/etc/redis/jobboard-users.acl", str(users))
    assert config.count(str(tmp_path)) == 1 and config.count(str(MODULE)) == 1
    server = fresh_server(module=False, config=config.splitlines(), wait=False)
    health = {"username": "health", "password": "x"}
    connect = server.connect
    server.connect = lambda **arguments: connect(**{**health, **arguments})
    server.wait_ready()
    with pytest.raises(redis.AuthenticationError):
        connect().ping()
    producer = connect(username="producer", password="choose-a-password")
    worker = connect(username="worker", password="choose-a-password")
    assert producer.execute_command("JOB.POST", "jobs:mails", "x", "ID", "a") == "a"
    [job] = worker.execute_command("JOB.CLAIM", "jobs:mails", "w")
    assert worker.execute_command("JOB.CONSUME", "jobs:mails", "w", "a", "TOKEN", job["token"]) == "complete"


def test_links_within_the_documents_lead_to_headings() -> None:
    """Of the guide, and to it from the README."""
    headings = {
        path: {anchor(line) for line in (ROOT / path).read_text().splitlines() if line.startswith("#")}
        for path in (
            "docs/guides/install.md",
            "docs/operate/sizing.md",
            "docs/operate/upgrade.md",
            "docs/guides/console.md",
        )
    }
    for source in ("docs/guides/install.md", "README.md", "clients/python/README.md"):
        for target, name in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", (ROOT / source).read_text()):
            path = ((ROOT / source).parent / target).resolve() if target else ROOT / source
            known = headings.get(str(path.relative_to(ROOT)))
            assert known is None or name in known, f"{source}: {target}#{name}"


def anchor(heading: str) -> str:
    text = re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower())
    return text.replace(" ", "-")
