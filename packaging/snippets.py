"""Parts of redis.conf for those who have a configuration already."""

from __future__ import annotations

import re

MODULE = "/usr/lib/redis/modules/libjobboard.so"

HEAD = f"""\
# The settings of the module jobboard. The server's main configuration file loads it, and includes this file:
#
#   loadmodule {MODULE}
#   include /etc/redis/jobboard.conf
#
# Do not put `loadmodule` or `user` into an included file. CONFIG REWRITE, which Sentinel sends, writes both
# to the main file, and a server that finds one of them twice does not start.
#
# Each line below shows the default of a setting. Take away the `# ` to change it.
"""


REWRITE = "CONFIG REWRITE writes it here."
REWRITE_INCLUDED = """\
CONFIG REWRITE, which Sentinel sends,
# writes it to the main file, below the include: there it wins over this file from then on."""


def section(redis_conf: str, title: str) -> str:
    """What stands in redis.conf under that title."""
    found = re.search(rf"^#+ {title} #+\n(.*?)(?=^####|\Z)", redis_conf, re.MULTILINE | re.DOTALL)
    assert found, f"redis.conf has no section {title}"
    return found[1].strip("\n") + "\n"


def settings(redis_conf: str) -> str:
    """/etc/redis/jobboard.conf: the settings of the module."""
    text = section(redis_conf, "Settings")
    text = "# " + text[text.index("CONFIG SET") :]
    assert REWRITE in text
    text = text.replace(REWRITE, REWRITE_INCLUDED)
    return HEAD + re.sub(r"^jobboard\.", "# jobboard.", text, flags=re.MULTILINE)


def roles(redis_conf: str) -> str:
    return section(redis_conf, "Access")


def installed(redis_conf: str) -> str:
    """redis.conf with the module where the Debian package puts it."""
    return redis_conf.replace("      (from the top of this repository)", "").replace(
        "loadmodule target/release/libjobboard.so", f"loadmodule {MODULE}"
    )


def beside_module(redis_conf: str) -> str:
    """redis.conf for a folder in which the module lies."""
    return redis_conf.replace("(from the top of this repository)", "(from this folder)").replace(
        "loadmodule target/release/libjobboard.so", "loadmodule ./libjobboard.so"
    )
