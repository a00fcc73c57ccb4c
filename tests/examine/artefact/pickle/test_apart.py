from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from mutated import mutations

from torchtriage.examine.artefact.pickle.apart import Answer, Limits, answers

SMALL = Limits(memory=2**29, times=4, seconds=1, packed=2**23)
Write = Callable[[str, bytes], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(name: str, data: bytes) -> str:
        (tmp_path / name).write_bytes(data)
        return str(tmp_path / name)

    return put


def one(path: str, look: str = "whole", limits: Limits = SMALL) -> Answer:
    (answer,) = answers(f"looks:{look}", [path], limits)
    return answer


class Payload:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.path}",)


PLAIN = {"a": [1, 2.5, None, True], "b": {"c": "d"}}
LARGE = {"list": ["x" * 100] * 3, "bytes": "y" * 2**22}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_come_back_as_they_are(write: Write, protocol: int) -> None:
    assert one(write("plain", pickle.dumps(PLAIN, protocol))).value == PLAIN


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["as it is", "gzip"])
def test_a_large_file_comes_back_whole(write: Write, pack: Callable[[bytes], bytes]) -> None:
    assert one(write("large", pack(pickle.dumps(LARGE)))).value == LARGE


def test_what_a_file_would_execute_is_named_and_not_executed(tmp_path: Path, write: Write) -> None:
    answer = one(write("hostile", pickle.dumps([1, Payload(tmp_path / "harm")], 2)))
    assert answer.value is None
    assert "posix.system" in answer.why
    assert "at byte" in answer.why
    assert not (tmp_path / "harm").exists()


def test_files_after_a_hostile_one_are_read(write: Write) -> None:
    good, bad = write("good", pickle.dumps(PLAIN)), write("bad", b"\x80\x02}N" + b"\x85" * 400_000 + b"Ns.")
    told = [*answers("looks:whole", [good, bad, good, "/no/such/file", good], SMALL)]
    assert [each.value == PLAIN for each in told] == [True, False, True, False, True]
    assert "containers within each other" in told[1].why
    assert "cannot be opened" in told[3].why


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"\x80\x02K\x01Q.", "persistent id", id="a persistent id"),
        pytest.param(b"\x80\x02}}b.", "__dict__", id="BUILD on plain data"),
        pytest.param(b"\x80\x02X\x01\x00\x00\x00a)R.", "not callable", id="REDUCE of plain data"),
        pytest.param(b"\x80\x02X\x01\x00\x00\x00a)\x81.", "must be a type", id="NEWOBJ of plain data"),
        pytest.param(b"\x80\x02\x82\x01.", "extension 1 at byte 2", id="an extension"),
        pytest.param(b"\x80\x02]r\xff\xff\xff\x7f.", "GiB of memory (memo slot 2,147,483,647", id="a memo slot"),
        pytest.param(b"\x80\x05\x96\xff\xff\xff\xff\x7f\0\0\0abc", "bytes follow", id="bytes that do not follow"),
        pytest.param(pickle.dumps(PLAIN)[:-9], "the file ends at byte", id="a cut"),
        pytest.param(b"\x80\x02(" + b"]" * 2**24 + b"l.", "GiB of memory", id="lists by the million"),
        pytest.param(b"", "ends at byte 0", id="nothing"),
    ],
)
def test_what_is_no_plain_data_is_refused_with_a_reason(write: Write, data: bytes, why: str) -> None:
    answer = one(write("refused", data), "kind")
    assert answer.value is None
    assert why in answer.why


def test_hashing_without_end_is_cut_short(write: Write) -> None:
    key = b")q\x00" + b"".join(b"h%ch%c\x86q%c" % (i, i, i + 1) for i in range(60))
    answer = one(write("laughs", b"\x80\x02}(" + key + b"Nu."))
    assert "s of CPU time (a walk would meet 1,000,000,000 values" in answer.why


def test_a_packed_file_gives_no_more_than_its_limit(write: Write) -> None:
    answer = one(write("bomb.gz", gzip.compress(pickle.dumps(b"\0" * 2**24))))
    assert answer.why == "it unpacks to more than 0 GiB"


def test_a_broken_gzip_is_told_before_what_it_made_of_the_pickle(write: Write) -> None:
    answer = one(write("cut.gz", gzip.compress(pickle.dumps([*range(10_000)]))[:-3000]))
    assert answer.why.startswith("the gzip stream ends before its end; ")


@pytest.mark.parametrize(
    ("look", "why"),
    [
        ("strange", "not what is wanted"),
        ("circular", "Circular"),
        ("writes", "it tried to do what reading data never does"),
        ("starts", "it tried to do what reading data never does"),
        ("connects", "it tried to do what reading data never does"),
        ("dies", "ended with code 3"),
    ],
)
def test_what_looks_at_the_data_can_do_no_harm_either(write: Write, look: str, why: str) -> None:
    answer = one(write("plain", pickle.dumps([1])), look)
    assert answer.value is None
    assert why in answer.why


def test_mutated_pickles_are_read_or_refused_and_nothing_runs(tmp_path: Path, write: Write) -> None:
    harm = tmp_path / "harm"
    seeds = [pickle.dumps([PLAIN, Payload(harm)], protocol) for protocol in (0, 2, 4)] + [pickle.dumps(PLAIN, 4)]
    paths = [write(f"{n}", data) for n, data in enumerate(mutations(seeds, 2000))]
    told = [*answers("looks:kind", paths, SMALL)]
    assert len(told) == len(paths)
    assert all(each.value is not None or each.why for each in told)
    assert not harm.exists()
