"""The machines that module and console are made for, all of them on one: Zig links what cargo compiles.

    .venv/bin/python packaging/machines.py        lists them

What comes out depends on the sources, packaging/jobboard.profdata, the compiler and
packaging/requirements.txt alone: two builds in two folders give equal bytes.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "target" / "tools"
GLIBC = "2.17"
"""The C library of 2012: every Linux with glibc that is still kept up has it or a newer one."""
MACOS = "11.0"
"""The first one for this processor."""


class Machine(NamedTuple):
    """A kind of machine. `console` is the target of its console, None where it has none.

    On Linux the console is one static program for all C libraries. The module cannot be: a server loads it.
    """

    name: str
    target: str
    console: str | None
    wheel: str
    debian: str | None = None
    rpm: str | None = None

    @property
    def module_file(self) -> str:
        return "libjobboard.dylib" if "apple" in self.target else "libjobboard.so"

    @property
    def zig_target(self) -> str:
        """As Zig calls it."""
        return self.target.replace("-unknown", "").replace("-apple-darwin", "-macos") + self.glibc

    @property
    def glibc(self) -> str:
        return f".{GLIBC}" if self.target.endswith("-gnu") else ""


MACHINES = {
    machine.name: machine
    for machine in [
        Machine(
            "linux-x86_64",
            "x86_64-unknown-linux-gnu",
            "x86_64-unknown-linux-musl",
            "manylinux_2_17_x86_64.manylinux2014_x86_64",
            "amd64",
            "x86_64",
        ),
        Machine(
            "linux-aarch64",
            "aarch64-unknown-linux-gnu",
            "aarch64-unknown-linux-musl",
            "manylinux_2_17_aarch64.manylinux2014_aarch64",
            "arm64",
            "aarch64",
        ),
        Machine(
            "linux-musl-x86_64",
            "x86_64-unknown-linux-musl",
            "x86_64-unknown-linux-musl",
            "musllinux_1_2_x86_64",
        ),
        Machine(
            "linux-musl-aarch64",
            "aarch64-unknown-linux-musl",
            "aarch64-unknown-linux-musl",
            "musllinux_1_2_aarch64",
        ),
        Machine("macos-arm64", "aarch64-apple-darwin", None, "macosx_11_0_arm64"),
    ]
}


class Programs(NamedTuple):
    module: Path
    console: Path | None


def targets() -> dict[str, list[str]]:
    """The crates, each with the targets that it is compiled for."""
    consoles = {machine.console for machine in MACHINES.values() if machine.console}
    return {
        "jobboard": [machine.target for machine in MACHINES.values()],
        "jobboard-console": sorted(consoles),
    }


def own() -> Machine:
    """The kind of this machine."""
    name = f"linux-{platform.machine()}"
    if platform.system() != "Linux" or name not in MACHINES:
        raise SystemExit(
            f"packaging: there are no packages for {platform.system()} on {platform.machine()}, only for "
            f"{', '.join(MACHINES)}: compile the module with `make build`"
        )
    return MACHINES[name]


def chosen(names: str) -> list[Machine]:
    """What `MACHINES=` names: `all`, or some, and always that of this machine, which comes first."""
    wanted = list(MACHINES) if names.strip() == "all" else names.split()
    for name in wanted:
        if name not in MACHINES:
            raise SystemExit(f"packaging: MACHINES: {name!r} must be `all` or of {', '.join(MACHINES)}")
    first = own()
    return [first, *(MACHINES[name] for name in wanted if name != first.name)]


def obtainable(machines: list[Machine]) -> tuple[list[Machine], dict[str, str]]:
    """Those that can be compiled for here, and why the others cannot."""
    found, skipped = [], {}
    for machine in machines:
        targets = {machine.target, machine.console or machine.target}
        missing = [target for target in sorted(targets) if not has_standard_library(target)]
        if missing:
            skipped[machine.name] = f"rustup target add {' '.join(missing)} did not work here"
        else:
            found.append(machine)
    return found, skipped


def has_standard_library(target: str) -> bool:
    """Rust's for this target; it is fetched when there is a rustup that can."""
    words = ["rustc", "--print", "target-libdir", "--target", target]
    done = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    folder = Path(done.stdout.strip())
    if not list(folder.glob("libstd-*")):
        try:
            subprocess.run(["rustup", "target", "add", target], cwd=ROOT, timeout=300, capture_output=True)
        except (OSError, subprocess.TimeoutExpired):
            return False
    return bool(list(folder.glob("libstd-*")))


def compile_for(machine: Machine) -> Programs:
    """Compiles what has changed, and says where it lies. Both are stripped."""
    return Programs(
        compile_module(machine, ROOT), compile_console(machine, ROOT) if machine.console else None
    )


def compile_module(machine: Machine, root: Path) -> Path:
    """Of the sources in `root`."""
    output = output_of(root) / machine.name
    cargo(machine.target + machine.glibc, "jobboard", module_flags(machine), machine, root, output)
    return output / machine.target / "release" / machine.module_file


def compile_console(machine: Machine, root: Path) -> Path:
    """Of the sources in `root`; the same one for all machines that name its target."""
    output = output_of(root) / "console"
    cargo(machine.console, "jobboard-console", [], machine, root, output)
    return output / machine.console / "release" / "jobboard-console"


def output_of(root: Path) -> Path:
    """A folder for each module: cargo keeps no two of them apart that differ in flags or linker alone."""
    return root / "target" / "machines"


def module_flags(machine: Machine) -> list[str]:
    if "musl" in machine.target:
        return ["-C", "target-feature=-crt-static"]  # it uses the server's C library
    if "apple" in machine.target:
        return ["-C", "link-arg=-Wl,-install_name,libjobboard.so"]  # else the path where it was linked
    return []


def cargo(target: str, package: str, flags: list[str], machine: Machine, root: Path, output: Path) -> None:
    words = ["cargo", "zigbuild", "--release", "--locked", "-q", "--target", target]
    words += ["--target-dir", str(output), "-p", package]
    done = subprocess.run(words, cwd=root, env=environment(machine, flags, root))
    if done.returncode:
        raise SystemExit(f"packaging: compiling {package} for {target} failed")


def environment(machine: Machine, flags: list[str], root: Path) -> dict[str, str]:
    """No folder of the machine that builds stands in what it builds."""
    places = {os.environ.get("CARGO_HOME", str(Path.home() / ".cargo")): "/cargo", str(root): "/jobboard"}
    rust = [f"--remap-path-prefix={here}={there}" for here, there in places.items()] + flags
    c = [f"-ffile-prefix-map={here}={there}" for here, there in places.items()]
    bindgen = [word for folder in include_folders(machine) for word in ("-isystem", folder)]
    return {
        **os.environ,
        "PATH": f"{TOOLS / 'venv' / 'bin'}:{os.environ['PATH']}",
        "RUSTC_WRAPPER": str(root / "scripts" / "rustc-with-profile"),
        "RUSTFLAGS": " ".join(rust),
        "CFLAGS": " ".join(c),
        "BINDGEN_EXTRA_CLANG_ARGS": " ".join(bindgen),
        "CARGO_PROFILE_RELEASE_DEBUG": "0",
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
        "CARGO_ZIGBUILD_PYTHON_PATH": str(TOOLS / "venv" / "bin" / "python"),
        "CARGO_ZIGBUILD_CACHE_DIR": str(TOOLS / "zigbuild"),
        "ZIG_GLOBAL_CACHE_DIR": str(TOOLS / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(TOOLS / "zig"),
        "MACOSX_DEPLOYMENT_TARGET": MACOS,
    }


def include_folders(machine: Machine) -> list[str]:
    """Zig's headers of that machine's C library: libclang reads them for the module's bindings.

    cargo-zigbuild names them too, but as Zig does, relative to the folder in which it is called.
    """
    words = [*ZIG, "cc", "-target", machine.zig_target, "-E", "-v", "-x", "c", os.devnull]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    listed = re.search(r"<\.\.\.> search starts here:\n(.*?)End of search list", done.stderr, re.DOTALL)
    return [str(ROOT / line.strip()) for line in listed[1].splitlines() if "(framework" not in line]


ZIG = [str(TOOLS / "venv" / "bin" / "python"), "-m", "ziglang"]


def main() -> None:
    for machine in MACHINES.values():
        print(f"{machine.name:20} {machine.target + machine.glibc:32} console: {machine.console}")


if __name__ == "__main__":
    main()
