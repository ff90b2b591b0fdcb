"""Module and console of each kind of machine that `make dist` has made packages for.

Those for x86-64 run here, on the three servers; those for arm64 run under qemu, on Debian's Redis. Of those
for musl and macOS the symbols are checked, and a program of musl's loads the module; no server of theirs was
run.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import harness.server
import machines
import pytest
from harness import KINDS, Server
from machines import MACHINES, Machine

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "target" / "dist"
TOOLS = ROOT / "target" / "tools"
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
OWN = f"linux-{platform.machine()}"
QEMU = "qemu-aarch64-static"
ARM64 = TOOLS / "arm64"
GLIBC = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1"}
GLIBC |= {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
MUSL = {"libc.so", "libgcc_s.so.1"}
"""Libraries that every machine with that C library has; of musl those that Alpine's servers need."""


def run(*words: object, **options: object) -> str:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a machine's tarball."""
    unpacked: dict[str, Path] = {}

    def find(name: str) -> Path:
        archive = DIST / f"jobboard-{VERSION}-{name}.tar.gz"
        if not archive.exists():
            assert name != OWN, "run `make dist`"
            pytest.skip(f"no packages for {name}: make dist MACHINES=all")
        if name not in unpacked:
            folder = tmp_path_factory.mktemp(name)
            run("tar", "-xzf", archive, "-C", folder)
            [unpacked[name]] = folder.iterdir()
        return unpacked[name]

    return find


def needed(program: Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", "-W", program)))


def symbols(program: Path) -> list[tuple[str, str, str]]:
    """Those of the dynamic table: binding, where it is defined, name with its version."""
    lines = run("readelf", "--dyn-syms", "-W", program).splitlines()
    cells = [line.split() for line in lines if re.match(r" +\d+: ", line)]
    return [(one[4], one[6], one[7]) for one in cells if len(one) > 7]


@pytest.mark.parametrize("name", [name for name in MACHINES if "macos" not in name])
def test_it_is_stripped_and_for_its_processor(programs: Callable[[str], Path], name: str) -> None:
    machine = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}[name.rpartition("-")[2]]
    for program in ("libjobboard.so", "jobboard-console"):
        shown = run("readelf", "-h", "-S", "-W", programs(name) / program)
        assert re.search(rf"Machine: +{machine}\n", shown)
        assert ".debug_info" not in shown and ".symtab" not in shown
    exported = {one for _, place, one in symbols(programs(name) / "libjobboard.so") if place != "UND"}
    assert "RedisModule_OnLoad" in exported


@pytest.mark.parametrize("name", MACHINES)
def test_no_folder_of_the_building_machine_stands_in_it(programs: Callable[[str], Path], name: str) -> None:
    cargo = os.environ.get("CARGO_HOME", Path.home() / ".cargo")
    for program in ("libjobboard.so", "jobboard-console"):
        path = programs(name) / program
        if path.exists() or "macos" not in name:
            content = path.read_bytes()
            assert not [folder for folder in (ROOT, cargo, Path.home()) if f"{folder}/".encode() in content]


@pytest.mark.parametrize("name", ["linux-x86_64", "linux-aarch64"])
def test_any_glibc_from_2_17_on_has_all_that_the_module_needs(
    programs: Callable[[str], Path], name: str
) -> None:
    module = programs(name) / "libjobboard.so"
    assert "libc.so.6" in needed(module) and needed(module) <= GLIBC
    versions = {
        tuple(map(int, one.split("."))) for one in re.findall(r"@GLIBC_([\d.]+)", str(symbols(module)))
    }
    assert versions and max(versions) <= tuple(map(int, machines.GLIBC.split(".")))


@pytest.mark.parametrize("name", [name for name in MACHINES if "macos" not in name])
def test_the_console_needs_no_c_library(programs: Callable[[str], Path], name: str) -> None:
    console = programs(name) / "jobboard-console"
    shown = run("readelf", "-d", "-l", "-W", console)
    assert "(NEEDED)" not in shown and "INTERP" not in shown


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_the_consoles_comes_with_it(programs: Callable[[str], Path], name: str) -> None:
    there = (programs(name) / "jobboard-console").exists()
    for part in ("jobboard-console.service", "console.env", "jobboard-console.1.gz"):
        assert (programs(name) / part).exists() == there


def musl(name: str) -> tuple[Path, list[str]]:
    """musl's C library for this machine, and what runs a program that uses it."""
    processor = name.rpartition("-")[2]
    root = ARM64 if processor == "aarch64" else TOOLS / "debian"
    loader = root / f"lib/ld-musl-{processor}.so.1"
    if not loader.is_symlink() and not loader.exists():
        pytest.skip(f"{loader} is missing: scripts/dist-tests unpacks it")
    library = root / f"lib/{processor}-linux-musl/libc.so"
    if not library.exists():
        library = root / f"usr/lib/{processor}-linux-musl/libc.so"
    runner = [str(library)]
    if processor != platform.machine():
        if not shutil.which(QEMU):
            pytest.skip(f"{QEMU} is missing")
        runner = [QEMU, str(library)]
    return library, runner


LOADS = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
    void *module = dlopen(words[1], RTLD_NOW);
    if (!module) { puts(dlerror()); return 1; }
    puts(dlsym(module, "RedisModule_OnLoad") ? "loads" : "no entry");
    return 0;
}
"""


@pytest.mark.parametrize("name", [name for name in MACHINES if "musl" in name])
def test_musl_has_all_that_the_module_needs_and_loads_it(
    programs: Callable[[str], Path], name: str, tmp_path: Path
) -> None:
    module = programs(name) / "libjobboard.so"
    library, runner = musl(name)
    assert "libc.so" in needed(module) and needed(module) <= MUSL
    there = {one for _, place, one in symbols(library) if place != "UND"}
    wanted = {one for binding, place, one in symbols(module) if place == "UND" and binding == "GLOBAL"}
    assert "malloc" in wanted | there and not [one for one in wanted if "GLIBC" in one]
    assert wanted - there <= {one for one in wanted if one.startswith("_Unwind_")}
    (tmp_path / "loads.c").write_text(LOADS)
    target = MACHINES[name].zig_target
    words = ["cc", "-O2", "-fno-sanitize=all", "-target", target, "-dynamic"]
    run(*machines.ZIG, *words, "-o", tmp_path / "loads", tmp_path / "loads.c")
    assert run(*runner, tmp_path / "loads", module).strip() == "loads"


def test_the_module_for_macos_has_its_symbols_and_a_valid_signature(programs: Callable[[str], Path]) -> None:
    macho = pytest.importorskip("macholib.MachO", reason="scripts/dist-tests installs macholib")
    module = programs("macos-arm64") / "libjobboard.so"
    [header] = macho.MachO(str(module)).headers
    assert (header.header.cputype, header.header.filetype) == (0x0100000C, 6)  # arm64, a library
    found: dict[str, list[bytes]] = {}
    for command, about, data in header.commands:
        text = bytes(data).partition(b"\0")[0] if isinstance(data, bytes | bytearray) else b""
        found.setdefault(command.get_cmd_name(), []).append(text)
        if command.get_cmd_name() == "LC_BUILD_VERSION":
            assert (about.platform, about.minos >> 16) == (1, int(machines.MACOS.partition(".")[0]))
        if command.get_cmd_name() == "LC_CODE_SIGNATURE":
            place = about.dataoff
    assert set(found["LC_LOAD_DYLIB"]) <= {
        b"/usr/lib/libSystem.B.dylib",
        b"/usr/lib/libiconv.2.dylib",
        b"/usr/lib/libcharset.1.dylib",
    }
    assert found["LC_ID_DYLIB"] == [b"libjobboard.so"]
    content = module.read_bytes()
    assert b"_RedisModule_OnLoad" in content
    assert signed(content, place)


def signed(content: bytes, place: int) -> bool:
    """Whether the hash of each page is the one in the code directory: macOS on arm64 kills what is not so."""
    magic, _, count = struct.unpack_from(">III", content, place)
    assert magic == 0xFADE0CC0
    for number in range(count):
        kind, offset = struct.unpack_from(">II", content, place + 12 + 8 * number)
        if kind == 0:
            start = place + offset
    magic, _, _, _, hashes, _, _, slots, limit = struct.unpack_from(">9I", content, start)
    size, algorithm, _, page = struct.unpack_from(">4B", content, start + 36)
    assert (magic, algorithm, size) == (0xFADE0C02, 2, 32) and limit == place and slots > 10
    pages = [content[at : min(at + (1 << page), limit)] for at in range(0, limit, 1 << page)]
    there = [content[start + hashes + size * n : start + hashes + size * (n + 1)] for n in range(slots)]
    return there == [hashlib.sha256(one).digest() for one in pages]


def use(server: Server, module: Path) -> None:
    """A job's life, a delay, and a restart from the log."""
    board = server.board()
    board.post("x", id_="a")
    board.post("y", id_="b", delay=1)
    [job] = board.claim("w")
    assert board.heartbeat("w", job["id"], token=job["token"])["cancel"] == 0
    assert board.consume("w", job["id"], token=job["token"]) == "complete"
    [late] = board.claim("w", block=100_000)
    assert {job["id"], late["id"]} == {"a", "b"}
    server.restart()
    assert server.board().get(late["id"], fields=["state"])["state"] == "claimed"
    server.check_health()


@pytest.mark.parametrize("kind", KINDS)
def test_the_module_works_on_each_server(programs: Callable[[str], Path], kind: str) -> None:
    module = programs(OWN) / "libjobboard.so"
    server = Server(kind, module=False, appendonly=True, config=[f"loadmodule {module}"])
    try:
        use(server, module)
    finally:
        server.close()


@pytest.mark.timeout(900)
def test_module_and_console_for_arm64_work_on_debians_redis(
    programs: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which(QEMU) or not (ARM64 / "usr/bin/redis-server").exists():
        pytest.skip("no qemu-aarch64-static, or no target/tools/arm64: scripts/dist-tests installs them")
    folder = programs("linux-aarch64")
    module = folder / "libjobboard.so"
    monkeypatch.setattr(harness.server, "WRAP", [QEMU, "-L", str(ARM64)])
    monkeypatch.setattr(harness.server, "executable", lambda kind: ARM64 / "usr/bin/redis-server")
    server = Server("redis70", module=False, appendonly=True, config=[f"loadmodule {module}"])
    try:
        use(server, module)
        shown = run(QEMU, folder / "jobboard-console", "--version")
        assert shown.strip() == f"jobboard-console {VERSION}"
    finally:
        server.close()


def wheels(machine: Machine) -> list[Path]:
    return list(DIST.glob(f"jobboard_server-{VERSION}-py3-none-{machine.wheel}.whl"))


@pytest.mark.parametrize("name", MACHINES)
def test_its_wheel_has_what_the_tarball_has(programs: Callable[[str], Path], name: str) -> None:
    folder = programs(name)
    [wheel] = wheels(MACHINES[name])
    with zipfile.ZipFile(wheel) as archive:
        files = {one.filename.partition("/")[2]: one for one in archive.infolist()}
        for program in ("libjobboard.so", "jobboard-console"):
            assert (program in files) == (folder / program).exists()
            if program in files:
                assert archive.read(files[program]) == (folder / program).read_bytes()
                assert files[program].external_attr >> 16 & 0o111 == 0o111
    assert (folder / "jobboard-console").exists() == ("macos" not in name)


def test_a_wheel_is_made_for_nothing_else() -> None:
    found = set(DIST.glob("jobboard_server-*.whl"))
    assert found == {wheel for machine in MACHINES.values() for wheel in wheels(machine)}


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("package", ["jobboard", "jobboard-console"])
def test_two_builds_in_two_folders_give_equal_bytes(package: str, tmp_path: Path) -> None:
    """With nothing of the first one's; the module of this machine, and with EVERY=1 the console too."""
    if package == "jobboard-console" and not os.environ.get("JOBBOARD_EVERY"):
        pytest.skip("some minutes: make test-dist EVERY=1")
    copy = tmp_path / "another" / "folder"
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    compile_again = {"jobboard": machines.compile_module, "jobboard-console": machines.compile_console}[
        package
    ]
    again = compile_again(MACHINES[OWN], copy)
    assert again.is_relative_to(copy)
    assert again.read_bytes() == (ROOT / again.relative_to(copy)).read_bytes()
    shutil.rmtree(copy)


SAID = {
    "linux-aarch64": "was built for another CPU (arm64)",
    "linux-musl-x86_64": "the module is for musl, and this Valkey",
    "macos-arm64": "is no module for this system",
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the sentences are those of x86-64")
@pytest.mark.parametrize("name", SAID)
def test_a_module_of_another_machine_is_refused_with_a_sentence(
    programs: Callable[[str], Path], name: str
) -> None:
    module = programs(name) / "libjobboard.so"
    words = ["-m", "jobboard", "serve", "--temporary", "--port", "0", "--no-console", "--module", module]
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and not done.stdout
    assert SAID[name] in done.stderr and done.stderr.count("\n") == 1


def test_a_machine_that_is_not_known_is_said() -> None:
    words = [sys.executable, ROOT / "packaging" / "build.py", "linux-m68k"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("packaging: MACHINES: 'linux-m68k' must be `all` or of linux-x86_64, ")
    assert (DIST / "SHA256SUMS").exists()


def test_a_machine_whose_library_cannot_be_had_is_skipped_aloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "has_standard_library", lambda target: "apple" not in target)
    found, skipped = machines.obtainable(list(MACHINES.values()))
    assert [machine.name for machine in found] == [name for name in MACHINES if "macos" not in name]
    assert skipped == {"macos-arm64": "rustup target add aarch64-apple-darwin did not work here"}
