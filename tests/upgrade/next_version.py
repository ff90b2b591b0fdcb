"""The pretended next version: the module with a setting, a field of an effect and a part of a snapshot more.

    .venv/bin/python tests/upgrade/next_version.py        builds target/next/libjobboard.so

It is made of a copy of the sources, so that nothing of it stands in the module. What it knows more is written
only where the setting is used: until then the two versions read each other's bytes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "target" / "next"
SOURCE, TARGET = PLACE / "source", PLACE / "target"
MODULE = PLACE / "libjobboard.so"
COPIED = (
    "Cargo.toml Cargo.lock build.rs commands.md rust-toolchain.toml board/Cargo.toml board/src board/benches "
    "src console/Cargo.toml console/src"
).split()
SETTING = "next-setting"
VERSION = 9900
"""What MODULE LIST says of it."""

PART = """//! What only the next version knows of a board.

use crate::board::Board;
use crate::item::{Item, Loading, SnapshotError};

written! {
    pub(super) struct NextImage {
        1 next: i64,
    }
}

impl<'a> Item<'a> for NextImage {
    fn each(board: &'a Board, mut put: impl FnMut(&Self)) {
        if board.next != 0 {
            put(&NextImage { next: board.next });
        }
    }

    fn load(self, board: &mut Board, _loading: &mut Loading) -> Result<(), SnapshotError> {
        board.next = self.next;
        Ok(())
    }
}
"""


def main() -> None:
    if MODULE.exists() and newest(ROOT, [*COPIED, "tests/upgrade/next_version.py"]) < MODULE.stat().st_mtime:
        return
    copy()
    change()
    seed()
    words = ["cargo", "build", "--workspace", "--lib", "--profile", "checked", "--locked", "-q"]
    done = subprocess.run([*words, "--target-dir", str(TARGET)], cwd=SOURCE)
    if done.returncode:
        raise SystemExit(
            "upgrade: the pretended next version does not compile: mend tests/upgrade/next_version.py"
        )
    shutil.copy(TARGET / "checked" / MODULE.name, MODULE)


def newest(root: Path, names: list[str]) -> float:
    files = [file for name in names for file in ([root / name, *(root / name).rglob("*")])]
    return max(file.stat().st_mtime for file in files if file.is_file())


def copy() -> None:
    """Files that are unchanged keep their times, by which cargo knows what to compile."""
    for name in COPIED:
        there, here = ROOT / name, SOURCE / name
        here.parent.mkdir(parents=True, exist_ok=True)
        if there.is_dir():
            shutil.rmtree(here, ignore_errors=True)
            shutil.copytree(there, here)
        else:
            shutil.copy2(there, here)


def change() -> None:
    """Each change fails when what it changes is no longer there."""
    settings = (ROOT / "board/src/settings.rs").read_text()
    number = int(re.search(r"SPECS: \[Spec; (\d+)\]", settings)[1])
    replace(
        "board/src/settings.rs", f" = {number - 1},\n}}", f" = {number - 1},\n    NextSetting = {number},\n}}"
    )
    replace("board/src/settings.rs", f"SPECS: [Spec; {number}]", f"SPECS: [Spec; {number + 1}]")
    row = f'        board_only(spec(NextSetting, "{SETTING}", 0, (0, 1000))),\n'
    replace("board/src/settings.rs", "    ]\n};\n\nimpl Setting {", f"{row}    ]\n}};\n\nimpl Setting {{")
    replace(
        "board/src/board.rs",
        "    pub(crate) local: Local,\n}",
        "    pub(crate) local: Local,\n    pub(crate) next: i64,\n}",
    )
    pause = "board/src/verbs/pause.rs"
    replace(
        pause,
        "        5 limit: Option<&'a [u8]>,\n",
        "        5 limit: Option<&'a [u8]>,\n        6 next: i64,\n",
    )
    replace(
        pause,
        "then_some(Paused { queue, until, release, group, limit })",
        "then_some(Paused { queue, until, release, group, limit, "
        "next: self.own(crate::settings::Setting::NextSetting) })",
    )
    replace(
        pause,
        "        board.emit_pause(&place, self.until);\n        // If",
        "        board.next = self.next;\n        board.emit_pause(&place, self.until);\n        // If",
    )
    replace(
        "board/src/snapshot/head.rs",
        "            local: _,\n",
        "            local: _,\n            next: _,\n",
    )
    replace("board/src/snapshot/mod.rs", "mod load;\n", "mod load;\nmod next;\n")
    replace("board/src/snapshot/mod.rs", "use write::Writer;\n", "use next::NextImage;\nuse write::Writer;\n")
    replace(
        "board/src/snapshot/mod.rs",
        '    8 Gone: "a removed record",\n',
        '    8 Gone: "a removed record",\n    99 NextImage: "of the next version",\n',
    )
    (SOURCE / "board/src/snapshot/next.rs").write_text(PART)
    load = SOURCE / "src/module/load.rs"
    load.write_text(
        re.sub(r"const VERSION: c_int = .*;", f"const VERSION: c_int = {VERSION};", load.read_text())
    )


def replace(name: str, old: str, new: str) -> None:
    path = SOURCE / name
    text = path.read_text()
    if text.count(old) != 1:
        raise SystemExit(f"upgrade: {name} has {text.count(old)} times, and not once: {old!r}")
    path.write_text(text.replace(old, new))


def seed() -> None:
    """The crates of others, as `make checked` has compiled them: nothing else is taken."""
    compiled = ROOT / "target" / "checked"
    if TARGET.exists() or not (compiled / "deps").exists():
        return
    TARGET.mkdir(parents=True)
    subprocess.run(["cp", "-al", compiled, TARGET / "checked"], check=True)
    for path in [*(TARGET / "checked").rglob("*jobboard*"), *(TARGET / "checked").rglob("*board-*")]:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
