"""Files opened to be read once through: packed or not, broken or not, never more than they may give."""

from __future__ import annotations

import gzip
import os
import random
import zipfile
import zlib
from pathlib import Path

import artefacts
import pytest

from torchtriage.examine.artefact.crc import masked
from torchtriage.examine.artefact.opened import FROM, RATIO, Opened, Unreadable, archive, close_archives
from torchtriage.triage import read

NOISE = random.Random(1).randbytes(3_000_000)


def whole(path: Path | str) -> tuple[bytes, str]:
    """All that PATH gives, and why no more."""
    with Opened(str(path)) as file:
        return b"".join(file.chunks(100_003)), file.broken


@pytest.mark.parametrize(
    "data",
    [NOISE, gzip.compress(NOISE), gzip.compress(NOISE[:1_000_000]) + gzip.compress(NOISE[1_000_000:]),
     gzip.compress(NOISE) + b"\0" * 512],
    ids=["plain", "gzip", "two members", "padded"],
)  # fmt: skip
def test_what_is_packed_is_unpacked_on_the_way(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    assert whole(tmp_path / "x") == (NOISE, "")


def test_a_member_of_a_zip_file_is_read_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(artefacts.zipped(a__b=NOISE, packed=gzip.compress(NOISE)))
    for name in ("a/b", "packed"):
        assert whole(f"{tmp_path}/x.zip!/{name}") == (NOISE, "")
    with pytest.raises(Unreadable, match="cannot be taken out"):
        whole(f"{tmp_path}/x.zip!/nowhere")


@pytest.fixture
def directories(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The zip files whose directory was read, each time it was."""
    found: list[str] = []
    plain = zipfile.ZipFile.__init__

    def counted(self: zipfile.ZipFile, file: str, *args: object, **kwargs: object) -> None:
        found.append(str(file))
        plain(self, file, *args, **kwargs)

    close_archives()
    monkeypatch.setattr(zipfile.ZipFile, "__init__", counted)
    return found


@pytest.mark.parametrize("members", [3, 300])
def test_the_directory_of_a_zip_file_is_read_once_however_many_members_it_has(
    members: int, tmp_path: Path, directories: list[str]
) -> None:
    (tmp_path / "logs.zip").write_bytes(artefacts.zipped(**{f"rank{n}.log": artefacts.LOG for n in range(members)}))
    directories.clear()
    case = read([tmp_path / "logs.zip"])
    assert case.measurements["logs"]["files"] == members
    assert directories == [str(tmp_path / "logs.zip")]


def test_a_zip_file_that_has_changed_is_read_anew_and_so_it_is_in_another_process(
    tmp_path: Path, directories: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.zip"
    file.write_bytes(artefacts.zipped(one=b"1"))
    directories.clear()
    first = archive(str(file))
    assert archive(str(file)) is first
    monkeypatch.setattr(os, "getpid", lambda: -1)  # a child shares the position in the file with its parent
    assert archive(str(file)) is not first
    file.write_bytes(artefacts.zipped(one=b"1", two=b"22"))
    assert whole(f"{file}!/two") == (b"22", "")
    assert directories.count(str(file)) == 3


def test_a_file_that_breaks_off_gives_what_came_before_and_says_so(tmp_path: Path) -> None:
    packed = gzip.compress(NOISE)
    (tmp_path / "cut").write_bytes(packed[:2_000_000])
    given, why = whole(tmp_path / "cut")
    assert NOISE.startswith(given)
    assert len(given) > 1_900_000
    assert why == "the gzip stream ends before its end"
    (tmp_path / "hurt").write_bytes(packed[:-8] + b"\0" * 8)
    given, why = whole(tmp_path / "hurt")
    assert "damaged" in why


def test_a_gzip_bomb_ends_long_before_its_end(tmp_path: Path) -> None:
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = pack.compress(b"\0" * 2**20) * 1
    body = piece + b"".join(pack.compress(b"\0" * 2**20) for _ in range(200)) + pack.flush()
    (tmp_path / "bomb").write_bytes(body)
    with Opened(str(tmp_path / "bomb")) as file:
        given = sum(map(len, file.chunks()))
    assert f"more than {RATIO} times" in file.broken
    assert given <= max(FROM, RATIO * len(body)) + 2**20


def test_a_url_is_opened_by_fsspec() -> None:
    import fsspec

    fsspec.filesystem("memory").pipe("/x.gz", gzip.compress(NOISE))
    assert whole("memory://x.gz") == (NOISE, "")
    with pytest.raises(Unreadable, match="FileNotFoundError"):
        whole("memory://nowhere")


@pytest.mark.parametrize("path", ["nowhere", "", "a\0b"])
def test_what_cannot_be_opened_says_why(path: str, tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        whole(f"{tmp_path}/{path}")


def test_the_checksum_is_the_one_of_the_standard() -> None:
    value = (masked(b"123456789") - 0xA282EAD8) & 0xFFFFFFFF
    assert ((value << 15) | (value >> 17)) & 0xFFFFFFFF == 0xE3069283
