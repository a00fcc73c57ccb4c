"""What a path is, told from its content: every kind, every wrapping, and what is none of them."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import socket
from pathlib import Path

import artefacts
import pytest

from torchtriage.core.errors import TriageError
from torchtriage.examine.artefact.kinds import found
from torchtriage.examine.artefact.places import DEEP, ENTRIES

KINDS: list[tuple[str, bytes]] = [
    ("trace", artefacts.TRACE),
    ("trace", b"\xef\xbb\xbf" + artefacts.TRACE),
    ("trace", b' \n[ {"name": "a", "ph": "X", "ts": 1}]'),
    ("trace", b'{"traceEvents": [{"ph": "X", "na'),
    ("snapshot", artefacts.SNAPSHOT),
    ("flight", artefacts.FLIGHT),
    ("flight", json.dumps(pickle.loads(artefacts.FLIGHT)).encode()),
    ("logs", artefacts.LOG),
    ("logs", b"Traceback (most recent call last):\n"),
    ("logs", b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n'),
    ("logs", b'{"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "", "timestamp": "1"}}}'),
    ("logs", "Größe 1, Verlust 2\n".encode("latin-1")),
    ("curves", artefacts.CURVES),
    ("curves", artefacts.TABLE),
    ("checkpoint", artefacts.CHECKPOINT),
    ("checkpoint", artefacts.SAFETENSORS),
    ("checkpoint", pickle.dumps({"state_dict": {}})),
    ("checkpoint", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."),
]
NONE: list[tuple[bytes, str]] = [
    (b"", "the file is empty"),
    (b"\x7fELF\x02\x01\x01\x00" * 99, "not text, and none of the formats that are read; it begins with '\\x7fELF"),
    (b"import torch\nmodel = torch.nn.Linear(1, 1)\n", "Python source"),
    (b'{"a": 1}', "JSON without traceEvents"),
    (b'{"kind": "case", "schema": 1}', "`torchtriage report` shows it"),
    (b'{"kind":"start","step":0,"pid":1}\n{"kind":"step"}\n', "the record of one rank"),
    (pickle.dumps([1, 2]), "a pickle that holds neither"),
    (gzip.compress(b"", mtime=0), "the file is empty"),
    (gzip.compress(artefacts.LOG, mtime=0)[:11], "nothing can be read: the gzip stream ends before its end"),
    (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff", "the gzip stream is damaged"),
    (artefacts.zipped(a=b"")[:40], "a zip file that cannot be read"),
]


def kinds(*paths: Path) -> list[str]:
    """The kinds of what is found at PATHS."""
    return [each.kind for each in found([str(path) for path in paths])[0]]


@pytest.mark.parametrize(("kind", "data"), KINDS)
@pytest.mark.parametrize("name", ["x", "rank0.pt", "x.json", "x.png"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_kind_is_told_by_content_whatever_its_name(
    kind: str, data: bytes, name: str, is_packed: bool, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(gzip.compress(data) if is_packed else data)
    if is_packed and kind == "checkpoint" and data.startswith(b"PK"):
        return  # nobody packs a zip file again
    assert kinds(tmp_path / name) == [kind]


@pytest.mark.parametrize(("data", "said"), NONE)
def test_what_is_none_of_the_kinds_is_told_with_what_was_expected(data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(TriageError) as told:
        kinds(tmp_path / "x")
    assert told.value.code == 3
    assert said in told.value.what


def test_the_files_of_a_folder_are_one_artefact_for_each_kind_and_the_rest_is_told_in_one_sentence(
    tmp_path: Path,
) -> None:
    for name, data in (("1/r1.json", artefacts.TRACE), ("0/r0.json", artefacts.TRACE), ("0/out", artefacts.LOG)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    for number in range(9):
        (tmp_path / f"{number}.py").write_text("import torch\n")
    (tmp_path / "notes.md").write_text("What we tried.\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/rank0.jsonl").write_text("{}\n")
    made, unseen = found([str(tmp_path)])
    assert [(each.kind, [Path(path).name for path in each.paths]) for each in made] == [
        ("run", ["run"]),
        ("trace", ["r0.json", "r1.json"]),
        ("logs", ["out"]),
    ]
    assert len(unseen) == 1
    assert "and 7 more" in unseen[0].why


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(artefacts.LOG)
    made, _ = found([str(tmp_path / "a.log"), str(tmp_path), str(tmp_path / "a.log")])
    assert made[0].paths == (str(tmp_path / "a.log"),)


def test_what_lies_in_a_zip_file_is_told_by_its_path_in_it(tmp_path: Path) -> None:
    data = artefacts.zipped(
        ranks__0__stderr=artefacts.LOG, trace=gzip.compress(artefacts.TRACE), inner=artefacts.CHECKPOINT
    )
    (tmp_path / "all.zip").write_bytes(data)
    made, _ = found([str(tmp_path / "all.zip")])
    assert [(each.kind, each.paths) for each in made] == [
        ("trace", (f"{tmp_path}/all.zip!/trace",)),
        ("logs", (f"{tmp_path}/all.zip!/ranks/0/stderr",)),
        ("checkpoint", (f"{tmp_path}/all.zip!/inner",)),
    ]


def test_links_in_circles_pipes_and_what_cannot_be_read_are_told_and_never_opened(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(artefacts.LOG)
    (tmp_path / "circle").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "door"))
        made, unseen = found([str(tmp_path)])
    assert [each.kind for each in made] == ["logs"]
    told = "\n".join(item.why for item in unseen)
    for said in ("circle: links to folders", "self: cannot be read", "gone: cannot be read", "pipe: devices", "door: "):
        assert said in told


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "pipe"])
def test_a_device_that_is_named_is_never_opened(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TriageError, match="devices, pipes and sockets"):
        found([str(tmp_path / path)])


@pytest.mark.parametrize(
    ("name", "levels", "said"), [("d", 8, "more than 5 folders within each other"), ("d" * 250, 18, "name too long")]
)
def test_folders_that_go_too_deep_are_told_and_the_rest_is_read(
    name: str, levels: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DEEP == 200
    monkeypatch.setattr("torchtriage.examine.artefact.places.DEEP", 5 if levels == 8 else DEEP)
    (tmp_path / "a.log").write_bytes(artefacts.LOG)
    monkeypatch.chdir(tmp_path)
    for _ in range(levels):
        Path(name).mkdir()
        os.chdir(name)
    os.chdir(tmp_path)  # no folder has a name that is as long as where we are
    made, unseen = found([str(tmp_path)])
    assert [each.kind for each in made] == ["logs"]
    assert [said in item.why for item in unseen] == [True]


def test_a_pipe_by_the_name_of_a_record_makes_no_run_and_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(artefacts.LOG)
    os.mkfifo(tmp_path / "rank0.jsonl")
    made, unseen = found([str(tmp_path)])
    assert [each.kind for each in made] == ["logs"]
    assert "rank0.jsonl: devices, pipes" in unseen[0].why


def test_an_empty_name_is_a_path_that_is_not_there() -> None:
    with pytest.raises(TriageError, match="No such file"):
        found([""])


@pytest.mark.parametrize("path", ["nowhere", "no\0where", "a" * 300, "nowhere.zip!/x"])
def test_a_path_that_is_not_there_is_an_error(path: str, tmp_path: Path) -> None:
    with pytest.raises(TriageError):
        found([f"{tmp_path}/{path}"])


def test_a_folder_of_far_too_many_files_is_left_at_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ENTRIES == 100_000
    monkeypatch.setattr("torchtriage.examine.artefact.places.ENTRIES", 3)
    for number in range(5):
        (tmp_path / f"{number}.log").write_bytes(artefacts.LOG)
    made, unseen = found([str(tmp_path)])
    assert len(made[0].paths) == 3
    assert "more than 3 files" in unseen[0].why


def test_urls_are_listed_and_read_by_fsspec() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/run/r0.log", artefacts.LOG)
    memory.pipe("/bucket/run/deep/trace.json.gz", gzip.compress(artefacts.TRACE))
    made, _ = found(["memory://bucket/run"])
    assert [(each.kind, each.paths) for each in made] == [
        ("trace", ("memory:///bucket/run/deep/trace.json.gz",)),
        ("logs", ("memory:///bucket/run/r0.log",)),
    ]
    assert kinds_of_url("memory://bucket/run/r0.log") == ["logs"]


def kinds_of_url(url: str) -> list[str]:
    """The kinds of what is found at URL."""
    return [each.kind for each in found([url])[0]]


@pytest.mark.parametrize("url", ["memory://nowhere", "nosuch://bucket/x", "s3://bucket/x"])
def test_a_url_that_nothing_can_read_is_an_error_in_words(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(TriageError) as told:
        found([url])
    assert told.value.where == url


def test_a_zip_file_that_would_fill_the_disk_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "bomb.zip").write_bytes(artefacts.zipped(a=b"\0" * 2**27))
    with pytest.raises(TriageError, match="would unpack to 134,217,728 bytes"):
        kinds(tmp_path / "bomb.zip")


def test_a_member_without_a_name_ends_nothing(tmp_path: Path) -> None:
    data = artefacts.zipped(a=artefacts.LOG, bb=b"")
    hollow = data.replace(b"bb", b"\0\0")
    (tmp_path / "x.zip").write_bytes(hollow)
    assert kinds(tmp_path / "x.zip") == ["logs"]
