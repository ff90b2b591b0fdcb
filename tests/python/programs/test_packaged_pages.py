"""The texts of the packages as they are made: test_dist.py reads those of the packages themselves."""

from __future__ import annotations

import posixpath
import re
import sys

import pytest
from harness.server import ROOT

sys.path.insert(0, str(ROOT / "packaging"))
import pages


@pytest.mark.parametrize("name", pages.brought())
def test_each_link_leads_to_what_the_packages_bring(name: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^()#\s]+)", pages.page(name)):
        assert posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) in pages.brought()


def test_the_debian_package_takes_the_reference_as_it_was_staged() -> None:
    assert '"target/stage/commands.md", "usr/share/doc' in (ROOT / "Cargo.toml").read_text()
