"""The texts of the packages as they are made: test_dist.py reads those of the packages themselves."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import PurePosixPath

import pytest
import tomllib
from harness.server import ROOT

sys.path.insert(0, str(ROOT / "packaging"))
import pages


@pytest.mark.parametrize("name", pages.brought())
def test_each_link_leads_to_what_the_packages_bring(name: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^()#\s]+)", pages.page(name)):
        there = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        assert there in pages.brought()


def test_the_packages_of_debian_and_fedora_take_all_texts_as_they_were_staged() -> None:
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["metadata"]["deb"]
    taken = {(PurePosixPath(source), place) for source, place, _ in manifest["assets"]}
    for name in {*pages.brought()} - {"CHANGELOG.md"}:  # which is packed
        staged, folder = PurePosixPath("target/stage", name), posixpath.dirname(name)
        place = posixpath.join("usr/share/doc/jobboard", folder, "")
        assert any(staged.match(str(source)) and to == place for source, to in taken), name


def test_what_the_text_of_a_release_names_is_in_the_packages() -> None:
    text = (ROOT / "packaging/release.py").read_text()
    named = set(re.findall(r"\b(?:docs/[\w/-]+|README|commands)\.md\b", text))
    assert len(named) > 3 and named <= set(pages.brought())
