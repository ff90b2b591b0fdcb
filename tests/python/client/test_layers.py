"""Payloads and results that are compressed, encrypted or stored elsewhere."""

from __future__ import annotations

import io
import pickle
import re
import zlib
from pathlib import Path

import pytest
from jobboard import Board, Compressed, Encrypted, Files, Offloaded, PayloadError, Worker
from jobboard.layers import MARK

KEY, OTHER = b"k" * 32, b"o" * 32
LONG = {"text": "ab" * 5000}


class Memory:
    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        name = f"a/b c={len(self.data)}"
        self.data[name] = data
        return name

    def get(self, name: str) -> bytes:
        return self.data[name]


def all_three() -> Offloaded:
    return Offloaded(Encrypted(Compressed("json"), keys={"k 1": KEY}), Memory(), over=100)


LAYERS = {
    "compressed": lambda: Compressed("json"),
    "encrypted": lambda: Encrypted("msgpack", keys={"a": KEY}),
    "offloaded": lambda: Offloaded("json", Memory(), over=100),
    "all": all_three,
    "the other way round": lambda: Compressed(Encrypted(Offloaded("raw", Memory()), keys={"a": KEY})),
}


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize(
    "value", [LONG, {"a": 1}, "x", b"", MARK, MARK + b"zlib size=1\nx", MARK + b"stored name=a\n"]
)
def test_values_come_back(make, value) -> None:
    codec = make()
    if "raw" in codec.name:
        value = value if isinstance(value, (str, bytes)) else repr(value)
    elif isinstance(value, bytes):
        value = value.hex()
    found = codec.decode(codec.encode(value))
    assert found == (value.encode() if "raw" in codec.name and isinstance(value, str) else value)


def test_what_is_raw_and_looks_wrapped_is_not_taken_for_it() -> None:
    for layer in (
        Compressed("raw"),
        Offloaded("raw", Memory()),
        Encrypted("raw", keys={"a": KEY}, plain=True),
    ):
        data = layer.encode(b"x" * 5000)
        assert layer.decode(layer.encode(data)) == data


def test_each_has_its_line() -> None:
    data = Compressed("json").encode(LONG)
    line, _, body = data.partition(b"\n")
    assert line == b"\xc1zlib size=10011" and zlib.decompress(body) == b'{"text":"%s"}' % (b"ab" * 5000)
    assert Compressed("json").encode({"a": 1}) == b'{"a":1}', "short ones stay as they are"
    line, _, body = Encrypted("json", keys={"2026 a": KEY}).encode(1).partition(b"\n")
    assert line.startswith(b"\xc1aes-256-gcm key=2026%20a nonce=") and len(body) == 1 + 16
    store = Memory()
    data = Offloaded("json", store).encode({"a": "b" * 100_000})
    assert data.startswith(b"\xc1stored name=a/b%20c%3D0 size=100008 sha256=") and len(data) < 150
    assert len(store.data["a/b c=0"]) == 100_008


def test_a_layer_may_come_to_a_board_that_has_jobs() -> None:
    for layer in (
        Compressed("json"),
        Offloaded("json", Memory()),
        Encrypted("json", keys={"a": KEY}, plain=True),
    ):
        assert layer.decode(b'{"a":1}') == {"a": 1}
    with pytest.raises(PayloadError, match="it is not encrypted: .*plain=True"):
        Encrypted("json", keys={"a": KEY}).decode(b'{"a":1}')


def test_keys_change() -> None:
    old, new = Encrypted("json", keys={"1": KEY}), Encrypted("json", keys={"2": OTHER, "1": KEY})
    assert new.decode(old.encode(5)) == 5
    with pytest.raises(PayloadError, match="encrypted with the key '2', and keys has 1"):
        old.decode(new.encode(5))
    data = bytearray(old.encode(5))
    for at in (-1, data.index(b"nonce") + 7):
        changed = data.copy()
        changed[at] ^= 1
        with pytest.raises(PayloadError, match="was changed since"):
            old.decode(bytes(changed))
    with pytest.raises(PayloadError, match="not encrypted with this key"):
        Encrypted("json", keys={"1": OTHER}).decode(bytes(data))
    with pytest.raises(ValueError, match=r"the key '1' has 3 bytes, not 32: os.urandom\(32\)"):
        Encrypted("json", keys={"1": b"abc"})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xc1zlib\nx", "the line of zlib is wrong: KeyError.'size'"),
        (b"\xc1zlib size=x\nx", "the line of zlib is wrong: ValueError"),
        (b"\xc1zlib size=\xff\nx", "the line of zlib is wrong: Unicode"),
        (b"\xc1zlib size=5\nx", "no zlib"),
        (b"\xc1zlib size=5\n" + zlib.compress(b"123456"), "not the 5 bytes"),
        (b"\xc1zlib size=9\n" + zlib.compress(b"123456"), "not the 9 bytes"),
        (b"\xc1zlib size=9999\n" + zlib.compress(b"1" * 9999), "most=1000. allows no more"),
        (b"\xc1unknown\nx", "no JSON"),
        (b"\xc1", "no JSON"),
    ],
)
def test_broken_ones_are_refused(data, said) -> None:
    with pytest.raises(PayloadError, match=said):
        Compressed("json", most=1000).decode(data)


def test_what_the_store_has_lost_fails_for_good_and_what_it_cannot_say_does_not(server) -> None:
    store = Memory()
    board = Board("board", server.client(decode_responses=False), codec=Offloaded("json", store, over=10))

    @board.task(retries=5, backoff="1h")
    def read(text: str) -> None: ...

    gone, away = read.post("a" * 20), read.post("b" * 20)
    names = [*store.data]
    del store.data[names[0]]
    store.get = lambda name: store.data[name] if name != names[1] else 1 / 0  # type: ignore[method-assign]
    Worker(board, concurrency=1).run(burst=True)
    fields = ["state", "kind", "message"]
    assert board.get(gone, fields=fields).state == "failed"
    assert "the store has no a/b c=0 any more" in board.get(gone, fields=fields).message
    job = board.get(away, fields=fields)
    assert (job.state, job.kind) == ("scheduled", "ZeroDivisionError")


def test_files(tmp_path: Path) -> None:
    codec = Offloaded("json", Files(tmp_path), over=10)
    data = codec.encode(LONG)
    assert codec.encode(LONG) == data and len([*tmp_path.iterdir()]) == 1
    assert codec.decode(data) == LONG
    [file] = tmp_path.iterdir()
    file.write_bytes(b"other")
    with pytest.raises(PayloadError, match="is not what was put there"):
        codec.decode(data)
    file.unlink()
    with pytest.raises(PayloadError, match="has no"):
        codec.decode(data)
    with pytest.raises(PayloadError, match="has no"):
        codec.decode(b"\xc1stored name=../../etc/passwd size=1 sha256=0\n")


def test_workers_and_their_children_use_them(server, tmp_path, process, told, monkeypatch) -> None:
    codec = Offloaded(Encrypted(Compressed("json"), keys={"a": KEY}), Files(tmp_path), over=1)
    board = Board("board", server.client(decode_responses=False), codec=codec)

    @board.task()
    def echo(text: str) -> str:
        return text

    id = echo.post("abc" * 1000)
    assert board.get(id).payload_bytes.startswith(b"\xc1stored ")
    Worker(board).run(burst=True)
    assert echo.result(id) == "abc" * 1000
    assert board.get(id).result_bytes.startswith(b"\xc1stored ")
    again = pickle.loads(pickle.dumps(codec))
    assert again.decode(codec.encode(LONG)) == LONG


def test_the_guide(server, capsys, monkeypatch) -> None:
    """Its examples run, and what they print stands beside them; its table has the lines that are written."""
    monkeypatch.setenv("JOBBOARD_URL", f"redis://127.0.0.1:{server.port}")
    guide = (Path(__file__).resolve().parents[3] / "docs/guides/payloads.md").read_text()
    names: dict = {"__name__": "guide"}
    for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL):
        exec(compile(block, "payloads.md", "exec", dont_inherit=True), names)
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print.*  # (.*)$", guide, re.MULTILINE)
    assert names["codec"].decode(names["codec"].encode(LONG)) == LONG
    bucket = names["Bucket"](FakeS3(), "b")
    codec = Offloaded("json", bucket, over=10)
    assert codec.decode(codec.encode(LONG)) == LONG
    with pytest.raises(PayloadError, match="has no"):
        codec.decode(b"\xc1stored name=a size=1 sha256=0\n")
    told = {
        row[0]: re.findall(r"`(\w+)`:", row[1])
        for row in re.findall(r"^\| `([a-z0-9-]+)` \| (`.*)$", guide, re.M)
    }
    store = Memory()
    lines = (
        Compressed("json").encode(LONG),
        Encrypted("json", keys={"a": KEY}).encode(1),
        Offloaded("json", store, over=1).encode(LONG),
    )
    written = {}
    for data in lines:
        name, *fields = data[1 : data.index(b"\n")].decode().split(" ")
        written[name] = [field.split("=")[0] for field in fields]
    assert told == written


class FakeS3:
    class exceptions:
        NoSuchKey = KeyError

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}

    def put_object(self, Bucket, Key, Body) -> None:
        self.data[Key] = Body

    def get_object(self, Bucket, Key):
        return {"Body": io.BytesIO(self.data[Key])}
