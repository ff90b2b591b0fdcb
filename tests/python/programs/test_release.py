"""`make release`, rehearsed in a copy of the repository: what compiles nothing is done, the rest is named."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib
import yaml
from daily import left_to_ci
from documents import ROOT

sys.path.append(str(ROOT / "packaging"))

import release
import versions

NOW = versions.agreed()
NEXT = "{}.{}.0".format(*(int(part) + n for n, part in enumerate(NOW.split(".")[:2])))
"""The next minor version."""
FIXTURES = ROOT / "tests" / "fixtures"
SOMETHING = "- Something new."


def run(folder: Path, *words: object) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of this tree, as they are, as the one commit of a repository."""
    for name, value in {"NAME": "a", "EMAIL": "a@example.com"}.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    folder = tmp_path / "repository"
    folder.mkdir()
    names = run(ROOT, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in names:
        if name and (ROOT / name).is_file() and not name.endswith(".png"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    changelog = folder / "CHANGELOG.md"
    if not release.section(changelog.read_text(), "Unreleased").strip():  # as it is after a release
        changelog.write_text(
            changelog.read_text().replace(release.UNRELEASED, f"{release.UNRELEASED}\n{SOMETHING}\n")
        )
    run(folder, "git", "init", "-q", "-b", "main")
    run(folder, "git", "add", "-A")
    run(folder, "git", "commit", "-q", "-m", "All")
    return folder


def rehearse(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "packaging/release.py", *words, "--dry-run"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def refused(folder: Path, *words: str) -> str:
    done = rehearse(folder, *words)
    assert done.returncode == 1 and not done.stdout and "Traceback" not in done.stderr
    assert not (folder / "target/release-dry").exists()
    return done.stderr


def test_a_rehearsal_sets_the_version_everywhere_and_tags_it(repository: Path) -> None:
    before = run(repository, "git", "rev-parse", "HEAD")
    done = rehearse(repository, NEXT)
    assert done.returncode == 0, done.stderr
    assert run(repository, "git", "rev-parse", "HEAD") == before and not run(repository, "git", "tag")
    assert not run(repository, "git", "status", "--porcelain"), "nothing is changed here"
    made = repository / "target" / "release-dry"
    assert run(made, "git", "log", "-1", "--format=%s", f"v{NEXT}") == f"Release {NEXT}\n"
    assert not run(made, "git", "status", "--porcelain"), "all is in the commit"
    would = re.findall(r"^release: would run: (.*)$", done.stdout, re.MULTILINE)
    assert would == [
        "make test-all",
        f"make fixtures VERSION={NEXT}",
        "make check",
        "make test-python K=test_release",
        "make test-dist MACHINES=all EVERY=1",
        f"set -- target/images/jobboard-{NEXT}-*; [ ! -e $1 ] || cp $* target/dist/",
    ]
    assert versions.agreed(made) == NEXT
    files = rf"jobboard[a-z_-]*[-_:]{re.escape(NOW)}"
    old = subprocess.run(
        ["git", "grep", "-nE", files, "--", ":!tests"], cwd=made, capture_output=True, text=True
    )
    assert old.stdout == "" and old.returncode == 1, "files of the version before are named"
    for name in ("Cargo.lock", "fuzz/Cargo.lock"):
        packages = tomllib.loads((made / name).read_text())["package"]
        own = {one["name"]: one["version"] for one in packages if "source" not in one}
        assert own["board"] == NEXT
        others = {(one["name"], one["version"]) for one in packages if "source" in one}
        packages = tomllib.loads((ROOT / name).read_text())["package"]
        assert others == {(one["name"], one["version"]) for one in packages if "source" in one}
    lock = json.loads((made / "clients/typescript/package-lock.json").read_text())
    assert (lock["version"], lock["packages"][""]["version"]) == (NEXT, NEXT)
    assert lock["packages"]["node_modules/yocto-queue"]["version"] == "0.1.0", "another's"
    changelog = (made / "CHANGELOG.md").read_text()
    own = (repository / "CHANGELOG.md").read_text()
    assert not release.section(changelog, "Unreleased").strip()
    assert release.section(changelog, NEXT).strip() == release.section(own, "Unreleased").strip()
    assert re.search(rf"^## \[{re.escape(NEXT)}\] - 20\d\d-\d\d-\d\d$", changelog, re.MULTILINE)
    text = (made / "target/dist/RELEASE.md").read_text()
    assert text.startswith(f"# jobboard {NEXT}\n") and "SHA256SUMS" in text
    first = release.section(own, "Unreleased").strip().splitlines()[0]
    assert f"## What is new\n\n{release.without_links(first)}" in text
    assert "](" not in text, "a link to a file leads nowhere from the page of a release"


def test_what_was_not_committed_by_a_release_has_no_other_version(repository: Path) -> None:
    left = run(repository, "git", "grep", "-lF", NOW).split()
    rehearse(repository, NEXT)
    made = repository / "target" / "release-dry"
    still = set(run(made, "git", "grep", "-lF", NOW).split()) & set(left)
    allowed = ("CHANGELOG.md", "scripts/rustc-with-profile", "packaging/release.py", "packaging/versions.py")
    allowed += ("clients/typescript/package-lock.json", "Makefile", "tests/", "docs/reports/")
    allowed += ("CONTRIBUTING.md", "README.md", "docs/compatibility.md")  # they speak of releases
    own = {name for name in still if not name.startswith(allowed)}
    text = {name: (made / name).read_text() for name in own}
    there = re.compile(rf"(?<![\d.]){re.escape(NOW)}(?![\d.])")
    assert not {name for name in own if there.search(strip_others(text[name]))}


def strip_others(text: str, version: str = NOW) -> str:
    """Without the crates and packages of others that have this version, and what was new in it."""
    version = re.escape(version)
    text = re.sub(rf'(\*\*Since\*\* |since: "){version}', "", text)
    text = re.sub(rf'name = "(?!board"|jobboard)[^"]+"\nversion = "{version}"', "", text)
    text = re.sub(rf"^(?!jobboard)[\w.-]+=={version}(?= )", "", text, flags=re.MULTILINE)
    return re.sub(rf'^ +"(?!jobboard|\w*[vV]ersion")[\w@/-]+": "{version}"', "", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ('name = "syn"\nversion = "1.2.3"', False),
        ("mkdocs-get-deps==1.2.3 \\", False),
        ('    "reflect-metadata": "1.2.3",', False),
        ("**Since** 1.2.3", False),
        ('name = "board"\nversion = "1.2.3"', True),
        ("jobboard==1.2.3 \\", True),
        ('  "version": "1.2.3",', True),
        ('  "appVersion": "1.2.3",', True),
        ("image: jobboard:1.2.3", True),
    ],
)
def test_versions_of_others_are_told_from_ours(text: str, ours: bool) -> None:
    assert ("1.2.3" in strip_others(text, "1.2.3")) == ours


@pytest.mark.parametrize(
    "version", ["0.2.0-rc1", *left_to_ci(["1", "0.2", "v0.2.0", "0.02.0", "0.2.100", ""])]
)
def test_a_version_has_three_numbers(repository: Path, version: str) -> None:
    assert "three numbers below 100, such as 0.2.0" in refused(repository, version)


def test_what_is_not_so_is_said(repository: Path) -> None:
    (repository / "new file").write_text("x")
    assert "the tree is not clean" in refused(repository, NEXT)
    (repository / "new file").unlink()
    assert f"0.0.9 is older than {NOW}" in refused(repository, "0.0.9")
    run(repository, "git", "tag", "v90.0.0")
    assert f"{NEXT} is older than 90.0.0" in refused(repository, NEXT)
    run(repository, "git", "commit", "-q", "--allow-empty", "-m", "More")
    assert "v90.0.0 is the tag of another commit" in refused(repository, "90.0.0")
    run(repository, "git", "tag", "-d", "v90.0.0")
    changelog = repository / "CHANGELOG.md"
    own = changelog.read_text()
    changelog.write_text(own.replace(release.UNRELEASED, f"{release.UNRELEASED}\n## [{NEXT}] - today\n", 1))
    run(repository, "git", "commit", "-qam", "Begin a release")
    assert f'take its commit "Release {NEXT}" back first' in refused(repository, NEXT)
    changelog.write_text(
        re.sub(r"(?s)(## \[Unreleased\]\n).*?(?=^## \[|\Z)", r"\1\n", own, flags=re.MULTILINE)
    )
    run(repository, "git", "commit", "-qam", "Say nothing")
    assert "says nothing under [Unreleased]" in refused(repository, NEXT)
    run(repository, "git", "checkout", "-q", "--detach")
    assert "HEAD is on no branch" in refused(repository, NEXT)
    run(repository, "git", "checkout", "-q", "main")
    (repository / "packaging/helm/jobboard/Chart.yaml").write_text("version: 0.1.1\n")
    run(repository, "git", "commit", "-qam", "Differ")
    assert f"Cargo.toml has {NOW}, packaging/helm/jobboard/Chart.yaml: 0.1.1" in refused(repository, NEXT)


def test_links_to_files_become_their_names() -> None:
    text = "[a.md](docs/a.md#b), [what](docs/a.md), [c.md](docs/c.md), [there](https://example.org/x)"
    named = "a.md (`docs/a.md#b`), what (`docs/a.md`), `docs/c.md`, [there](https://example.org/x)"
    assert release.without_links(text) == named


def test_documents_that_say_that_there_is_no_release_are_named(repository: Path) -> None:
    readme = repository / "README.md"
    readme.write_text(f"{readme.read_text()}\nNothing is published yet.\n")
    run(repository, "git", "commit", "-qam", "Say so")
    would = f'README.md still says "Nothing is published yet": say what is true of {NEXT}'
    assert f"release: would refuse: {would}" in rehearse(repository, NEXT).stdout
    with pytest.raises(SystemExit, match=re.escape(would)):
        next(release.Release(repository, NEXT, None).steps(dry=False))
    for name, words in release.NOT_YET.items():
        path = repository / name
        path.write_text(path.read_text().replace(words, "There is a release"))
    assert next(release.Release(repository, NEXT, None).steps(dry=False)) == "make test-all"


def test_it_continues_where_it_was_stopped(repository: Path) -> None:
    """On the commit of the version, and on its tag, where a forge calls it."""
    rehearse(repository, NEXT)
    made = repository / "target" / "release-dry"
    again = repository.with_name("again")
    shutil.copytree(made, again)
    shutil.rmtree(again / "target")
    run(again, "git", "tag", "-d", f"v{NEXT}")
    would = re.findall(r"would run: (.*)$", rehearse(again, NEXT).stdout, re.MULTILINE)
    assert would[:2] == ["make check", "make test-python K=test_release"]
    run(again, "git", "tag", f"v{NEXT}")
    run(again, "git", "checkout", "-q", "--detach")
    would = re.findall(r"would run: (.*)$", rehearse(again, NEXT).stdout, re.MULTILINE)
    assert would[0] == "make test-dist MACHINES=all EVERY=1"


def test_tests_that_have_passed_are_not_run_again(repository: Path) -> None:
    (repository / "target").mkdir()
    (repository / "target" / "green").write_text(run(repository, "git", "rev-parse", "HEAD"))
    here = release.Release(repository, NEXT, None)
    assert here.is_green()
    assert next(here.steps(dry=True)) == f"make fixtures VERSION={NEXT}"
    run(repository, "git", "checkout", "-q", ".")
    run(repository, "git", "commit", "-q", "--allow-empty", "-m", "More")
    assert not here.is_green()
    assert "rev-parse HEAD > target/green" in (ROOT / "Makefile").read_text()


@pytest.mark.skipif(not shutil.which("gpg"), reason="no GnuPG")
def test_tag_and_checksums_are_signed_where_a_key_is_given(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    request.addfinalizer(lambda: run(tmp_path, "gpgconf", "--homedir", home, "--kill", "gpg-agent"))
    monkeypatch.setenv("GNUPGHOME", str(home))
    words = [
        "gpg",
        "--batch",
        "--quick-gen-key",
        "--passphrase",
        "",
        "rel@example.com",
        "ed25519",
        "sign",
        "never",
    ]
    run(tmp_path, *words)
    here = release.Release(repository, NEXT, "rel@example.com")
    monkeypatch.setattr(release, "NOT_YET", {})
    here.check()
    for action in here.steps(dry=False):
        if action.startswith("gpg"):
            run(repository, "sh", "-c", action.replace("gpg --yes", "gpg --batch --yes"))
    run(repository, "git", "tag", "--verify", f"v{NEXT}")
    dist = repository / "target" / "dist"
    run(dist, "gpg", "--batch", "--verify", "SHA256SUMS.asc", "SHA256SUMS")
    assert "gpg --verify" in (dist / "RELEASE.md").read_text()
    with pytest.raises(SystemExit, match="gpg"):
        release.Release(repository, "0.3.0", "nobody@example.com").check()


def test_each_artefact_is_named_in_the_text(tmp_path: Path) -> None:
    made = [
        "jobboard-0.2.0-linux-x86_64.tar.gz",
        "jobboard-0.2.0-macos-arm64.tar.gz",
        "jobboard-0.2.0.tar.gz",
    ]
    made += ["jobboard_0.2.0-1_amd64.deb", "jobboard-0.2.0-1.x86_64.rpm", "jobboard-0.2.0.tgz"]
    made += ["jobboard-0.2.0-py3-none-any.whl", "jobboard_server-0.2.0-py3-none-macosx_11_0_arm64.whl"]
    made += [
        "jobboard-0.2.0-linux-arm64.tar",
        "jobboard-0.2.0-linux-arm64.cdx.json",
        "jobboard-0.2.0.cdx.json",
        "jobboard-chart-0.2.0.tgz",
    ]
    for name in made:
        (tmp_path / name).write_text(name)
    release.checksums(tmp_path)
    run(tmp_path, "sha256sum", "--check", "--strict", "SHA256SUMS")
    assert all(release.about(name) for name in made) and len({*map(release.about, made)}) == len(made)
    text = release.Release(ROOT, "9.9.9", None).text(tmp_path)
    assert all(f"| `{name}` |" in text for name in made)


def test_each_heading_of_the_changelog_stands_once_in_its_version() -> None:
    for version in (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]:
        headings = re.findall(r"^#{3,} .+$", version, re.MULTILINE)
        assert len(headings) == len(set(headings)), version.splitlines()[0]


# Formats


def changed(frozen: str, fixtures: Path) -> list[str]:
    """The files of a list of checksums that are no longer as it says."""
    rows = [line.split("  ", 1) for line in frozen.splitlines()]
    return [
        name
        for sum, name in rows
        if not (fixtures / name).exists() or hashlib.sha256((fixtures / name).read_bytes()).hexdigest() != sum
    ]


def lost(root: Path) -> set[str]:
    """What the lists of checksums of released versions say, and that of this tree does not."""
    frozen = root / release.FROZEN
    now = set(frozen.read_text().splitlines()) if frozen.exists() else set()
    tags = release.Release(root, NEXT, None).tags()
    name = release.FROZEN.as_posix()
    then = [
        subprocess.run(["git", "show", f"{tag}:{name}"], cwd=root, capture_output=True, text=True)
        for tag in tags
    ]
    return {line for done in then if not done.returncode for line in done.stdout.splitlines()} - now


def test_fixtures_of_released_versions_are_as_they_were() -> None:
    frozen = ROOT / release.FROZEN
    assert not changed(frozen.read_text() if frozen.exists() else "", FIXTURES)
    assert not lost(ROOT), "a list that was made anew is no excuse"


def test_every_change_of_frozen_fixtures_is_noticed(repository: Path) -> None:
    here = release.Release(repository, NEXT, None)
    folder = repository / release.FIXTURES / NEXT
    shutil.copytree(FIXTURES / NOW, folder)
    here.freeze()
    list_of = (repository / release.FROZEN).read_text()
    own = [line for line in list_of.splitlines() if f"  {NEXT}/" in line]
    assert len(own) == 5 and not changed(list_of, repository / release.FIXTURES)
    run(repository, "git", "add", "-A")
    run(repository, "git", "commit", "-q", "-m", "Freeze")
    run(repository, "git", "tag", f"v{NEXT}")
    with (folder / "facts").open("a") as file:
        file.write("x")
    (folder / "board.dump").unlink()
    assert changed(list_of, repository / release.FIXTURES) == [f"{NEXT}/board.dump", f"{NEXT}/facts"]
    assert not lost(repository)
    here.freeze()
    assert {line.partition("  ")[2] for line in lost(repository)} == {f"{NEXT}/board.dump", f"{NEXT}/facts"}
    (repository / release.FROZEN).unlink()
    assert len(lost(repository)) == len(list_of.splitlines())


def test_frozen_fixtures_are_neither_made_again_nor_removed(repository: Path) -> None:
    here = release.Release(repository, NEXT, None)
    folder = repository / release.FIXTURES / NEXT
    shutil.copytree(FIXTURES / NOW, folder)
    assert folder in here.unreleased_fixtures()
    here.freeze()
    assert folder not in here.unreleased_fixtures()
    command = [sys.executable, "tests/fixtures/make.py", NEXT]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True)
    assert done.returncode == 2 and f"the fixtures of {NEXT} are frozen" in done.stderr


def test_the_version_is_set_by_hand_too(repository: Path) -> None:
    script = repository / "packaging/versions.py"
    assert "Cargo.toml" in run(repository, sys.executable, script, NEXT)
    assert versions.agreed(repository) == NEXT
    done = subprocess.run([sys.executable, script, "next"], capture_output=True, text=True)
    assert done.returncode == 1 and "usage:" in done.stderr


def test_a_version_more_does_not_lose_the_profile() -> None:
    """It knows functions by symbols, which the wrapper keeps the same."""

    def symbols(package: str, version: str) -> str:
        names = {"CARGO_PKG_NAME": package, "CARGO_PKG_VERSION": version}
        words = [ROOT / "scripts/rustc-with-profile", "echo", "--crate-name", package, "-C", "metadata=x"]
        done = subprocess.run(words, env={**os.environ, **names}, capture_output=True, text=True, check=True)
        return re.search(r"metadata=(\S+)", done.stdout)[1]

    for package in ("board", "jobboard"):
        assert symbols(package, "0.1.0") == symbols(package, "9.9.9")
    assert symbols("syn", "1.0.0") != symbols("syn", "2.0.0")


def test_the_forge_builds_the_tag_and_publishes_a_draft_alone() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    steps = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert sum('make release VERSION="${GITHUB_REF_NAME#v}"' in step for step in steps) == 1
    [made] = [step for step in steps if "gh release create" in step]
    assert "--draft" in made and "--notes-file target/dist/RELEASE.md" in made
    assert all("environment" in job for name, job in jobs.items() if name != "build"), "a person is asked"
    assert re.search(r'^on:\n  push:\n    tags: \["v', text, re.MULTILINE)
