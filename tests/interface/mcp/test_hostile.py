"""What a client must not get. Each call is refused, with words that say why."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import artefacts
import pytest
from sources import FAULTY
from talking import called, opening, server_on, text

from torchtriage.examine.confinement import within
from torchtriage.examine.source.linked import Links
from torchtriage.examine.source.script import Script
from torchtriage.interface.mcp.paths import Roots
from torchtriage.interface.mcp.tools import CASE, SOURCE


@pytest.fixture
def trap(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root with links that lead out, a pipe, a device's link, a socket, and files that are too large."""
    outside = home.parent
    (outside / "elsewhere").mkdir()
    (outside / "elsewhere" / "case.json").write_text("{}")
    (home / "link.py").symlink_to(outside / "secret.py")
    (home / "out").symlink_to(outside)
    (home / "loop").symlink_to("loop")
    (home / "zero.py").symlink_to("/dev/zero")
    os.mkfifo(home / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(home)  # a socket's name is short
        listening.bind("sock.py")
    for folder in ("linked", "record", "piped", "runs/torchtriage-runs", "plain"):
        (home / folder).mkdir(parents=True)
    (home / "linked" / "inner.py").symlink_to(outside / "secret.py")
    (home / "record" / "rank0.jsonl").symlink_to(outside / "secret.py")
    os.mkfifo(home / "piped" / "rank0.jsonl")
    (home / "runs" / "torchtriage-runs").rmdir()
    (home / "runs" / "torchtriage-runs").symlink_to(outside / "elsewhere")
    (home / "plain" / "case.json").symlink_to(outside / "elsewhere" / "case.json")
    for name, size in (("huge.py", SOURCE), ("huge.json", CASE)):
        with (home / name).open("wb") as file:
            file.truncate(size + 1)
    return home


LEADS_OUT = "a link that leads out of the folders of this server"
OUTSIDE = "outside the folders of this server"
SHELL = "nothing is run through a shell"

HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    ("check", {"paths": ["../secret.py"]}, "a path with .."),
    ("check", {"paths": ["plain/../../secret.py"]}, "a path with .."),
    ("check", {"paths": ["faulty.py", "../secret.py"]}, "a path with .."),
    ("check", {"paths": ["/etc/passwd"]}, OUTSIDE),
    ("check", {"paths": ["/"]}, OUTSIDE),
    ("check", {"paths": ["//etc/passwd"]}, OUTSIDE),
    ("check", {"paths": ["/proc/self/environ"]}, OUTSIDE),
    ("check", {"paths": ["link.py"]}, LEADS_OUT),
    ("check", {"paths": ["out/secret.py"]}, LEADS_OUT),
    ("check", {"paths": ["."]}, "larger than 8 MiB"),
    ("check", {"paths": ["loop"]}, "cannot be opened"),
    ("check", {"paths": ["zero.py"]}, LEADS_OUT),
    ("check", {"paths": ["pipe.py"]}, "devices, pipes and sockets are not opened"),
    ("check", {"paths": ["sock.py"]}, "devices, pipes and sockets are not opened"),
    ("check", {"paths": ["huge.py"]}, "larger than 8 MiB"),
    ("check", {"paths": ["~/secret.py"]}, "~ is not expanded"),
    ("check", {"paths": ["~root"]}, "~ is not expanded"),
    ("check", {"paths": ["faulty.py\0.txt"]}, "control characters"),
    ("check", {"paths": ["faulty.py\n"]}, "control characters"),
    ("check", {"paths": ["https://example.org/x.py"]}, "URLs and drives are not read through MCP"),
    ("check", {"paths": ["file:///etc/passwd"]}, "URLs and drives"),
    ("check", {"paths": ["C:\\Windows"]}, "URLs and drives"),
    ("check", {"paths": ["..\\secret.py"]}, "a backslash in a path"),
    ("check", {"paths": ["--fix"]}, "looks like an option"),
    ("check", {"paths": ["-"]}, "looks like an option"),
    ("check", {"paths": [""]}, "an empty path"),
    ("check", {"paths": ["a" * 5000]}, "more than 4096 characters"),
    ("check", {"paths": ["a" * 300]}, "cannot be opened"),
    ("check", {"paths": []}, "at least 1 item"),
    ("check", {"paths": ["faulty.py"] * 101}, "at most 100 items"),
    ("check", {"paths": ["faulty.py"], "select": ["x --fix"]}, "x --fix"),
    ("check", {"paths": ["faulty.py"], "select": ["zero\0"]}, "a null byte"),
    ("check", {"paths": ["faulty.py"], "persona": "root"}, "'default' or 'pedantic'"),
    ("check", {"paths": [{"path": "/etc/passwd"}]}, "valid string"),
    ("read", {"path": "s3://bucket/run"}, "URLs and drives"),
    ("read", {"path": "simplecache::s3://bucket/run"}, "URLs and drives"),
    ("read", {"path": "record"}, LEADS_OUT),
    ("read", {"path": "piped"}, "devices, pipes and sockets are not opened"),
    ("read", {"path": "/var/log"}, OUTSIDE),
    ("read", {"path": "nowhere"}, "cannot be opened"),
    ("read", {"path": "plain"}, LEADS_OUT),
    ("read", {"path": "faulty.py", "further": ["s3://bucket/run"]}, "URLs and drives"),
    ("read", {"path": "faulty.py", "further": ["plain"]}, LEADS_OUT),
    ("next_step", {"case": "../elsewhere/case.json"}, "a path with .."),
    ("next_step", {"case": "plain"}, LEADS_OUT),
    ("next_step", {"case": "huge.json"}, "larger than 64 MiB"),
    ("next_step", {"case": "faulty.py"}, "not a case that can be read"),
    ("next_step", {"case": "memory://case.json"}, "URLs and drives"),
    ("ask", {"text": "NaN", "sources": ["/etc"]}, OUTSIDE),
    ("ask", {"text": "NaN", "sources": ["link.py"]}, LEADS_OUT),
    ("ask", {"text": "x" * 200_001}, "at most 200000 characters"),
    ("explain", {"name": "../../../etc/passwd"}, "nothing is called"),
    ("explain", {"name": "a" * 201}, "at most 200 characters"),
    ("run", {"command": "train.py; rm -rf ~"}, "valid list"),
    ("run", {"command": []}, "at least 1 item"),
    ("run", {"command": [" "]}, "there is no command"),
    ("run", {"command": ["bash", "-c", "touch owned"]}, SHELL),
    ("run", {"command": ["/bin/sh", "-c", "touch owned"]}, SHELL),
    ("run", {"command": ["env", "sh", "-c", "touch owned"]}, SHELL),
    ("run", {"command": ["touch owned"]}, "a program with blanks in its name"),
    ("run", {"command": ["python", "../secret.py"]}, "a path with .."),
    ("run", {"command": ["python", "/etc/passwd"]}, OUTSIDE),
    ("run", {"command": ["python3", "-X", "dev", "-u", "/etc/evil.PY"]}, OUTSIDE),
    ("run", {"command": ["python", "-u", "out/secret"]}, LEADS_OUT),
    ("run", {"command": ["/etc/init.py"]}, OUTSIDE),
    ("run", {"command": ["link.py"]}, LEADS_OUT),
    ("run", {"command": ["out/secret"]}, LEADS_OUT),
    ("run", {"command": ["--out=/tmp/owned", "x.py"]}, "looks like an option"),
    ("run", {"command": ["faulty.py", "a\0b"]}, "null bytes"),
    ("run", {"command": ["faulty.py", "a" * 40_000]}, "more than 32,768 characters"),
    ("run", {"command": ["faulty.py"], "folder": "../"}, "a path with .."),
    ("run", {"command": ["faulty.py"], "folder": "/tmp"}, OUTSIDE),
    ("run", {"command": ["faulty.py"], "folder": "out"}, LEADS_OUT),
    ("run", {"command": ["faulty.py"], "folder": "faulty.py"}, "not a folder"),
    ("run", {"command": ["tree.py"], "folder": "runs"}, "cannot be opened"),
    ("run", {"command": ["true"], "folder": "runs"}, LEADS_OUT),
    ("run", {"command": ["faulty.py"], "time_limit": 0}, "greater than or equal to 1"),
    ("run", {"command": ["faulty.py"], "symptom": "nan\0"}, "a null byte"),
    ("run", {"command": ["no-such-program-here"]}, "there is no such command"),
    ("no_such_tool", {}, "Unknown tool"),
]


@pytest.mark.parametrize(("tool", "arguments", "says"), HOSTILE, ids=lambda each: repr(each)[:60])
def test_a_hostile_call_is_refused_and_told_why(trap: Path, tool: str, arguments: dict[str, Any], says: str) -> None:
    before = sorted(trap.rglob("*"))
    answer = called(server_on(trap, allow_run=True), tool, arguments)
    assert answer.is_error
    assert says in text(answer)
    assert "hunter2" not in text(answer)
    assert answer.structured_content is None
    assert [each for each in sorted(trap.rglob("*")) if each != trap / "torchtriage-runs"] == before
    assert sorted(each.name for each in (trap.parent / "elsewhere").iterdir()) == ["case.json"]


OUT = "a link that leads out of the folders of this server: it is not followed"


def unseen(answer: Any) -> list[str]:
    return [each["why"] for each in answer.structured_content["inconclusive"]]


def test_one_link_that_leads_out_is_skipped_and_told_and_the_folder_is_checked(home: Path, era: str) -> None:
    (home / "secret.py").symlink_to(home.parent / "secret.py")
    (home / "elsewhere").symlink_to(home.parent)
    answer = called(server_on(home), "check", {"paths": ["."]}, mode=era)
    assert not answer.is_error
    assert [each["fault"] for each in answer.structured_content["findings"]] == ["gradients-not-zeroed"]
    assert [why for why in unseen(answer) if OUT in why] == [f"secret.py:1: {OUT}"]
    assert "hunter2" not in text(answer)


def test_what_is_imported_through_a_link_that_leads_out_is_not_read(home: Path) -> None:
    (home / "helper.py").symlink_to(home.parent / "secret.py")
    (home / "train.py").write_text(f"import helper\n{FAULTY}\n\nPASSWORD = helper.secret()\n")
    (home.parent / "secret.py").write_text("def secret():\n    return 'hunter2'\n")
    path = (home / "train.py").as_posix()
    script = Script(path, (home / "train.py").read_bytes())
    for folder, is_read in ((home, False), (home.parent, True)):
        with within([folder]):
            links = Links(path, script.facts, trains=True)
            assert (links.definition("helper.secret", script.facts.scopes[0]) is not None) is is_read


def test_a_folder_that_a_job_left_is_read_without_the_links_that_lead_out(home: Path, era: str) -> None:
    (home / "logs").mkdir()
    (home / "logs" / "train.log").write_bytes(artefacts.LOG)
    (home / "logs" / "old.log").symlink_to(home.parent / "secret.py")
    answer = called(server_on(home), "read", {"path": "logs"}, mode=era)
    assert not answer.is_error
    assert [why for why in unseen(answer) if OUT in why] == [f"logs/old.log: {OUT}"]
    assert answer.structured_content["measurements"]["logs"]["files"] == 1
    assert "hunter2" not in text(answer)


def test_a_record_with_a_link_that_leads_out_is_left_out_as_a_whole(home: Path) -> None:
    (home / "logs" / "run").mkdir(parents=True)
    (home / "logs" / "train.log").write_bytes(artefacts.LOG)
    (home / "logs" / "run" / "rank0.jsonl").write_text("")
    (home / "logs" / "run" / "rank1.jsonl").symlink_to(home.parent / "secret.py")
    answer = called(server_on(home), "read", {"path": "logs"})
    assert not answer.is_error
    assert any(OUT in why and "read as a whole" in why for why in unseen(answer))
    assert "hunter2" not in text(answer)


def test_names_that_a_message_numbers_are_not_taken_through_a_link_that_leads_out(home: Path) -> None:
    (home.parent / "secret.py").write_text("import torch\npassword = 'hunter2'\n")
    (home / "secret.py").symlink_to(home.parent / "secret.py")
    answer = called(server_on(home), "ask", {"text": "NaN", "sources": ["."]})
    assert not answer.is_error
    assert "hunter2" not in text(answer)


def test_no_job_is_started_unless_the_server_was_told_so(home: Path, era: str) -> None:
    answer = called(server_on(home), "run", {"command": ["faulty.py"]}, mode=era)
    assert answer.is_error
    assert "this server starts no jobs" in text(answer)
    assert "--allow-run" in text(answer)


def test_a_clients_roots_narrow_what_is_open(home: Path, era: str) -> None:
    (home / "inner").mkdir()
    (home / "inner" / "own.py").write_text("import torch\n")
    server, options = server_on(home), {"mode": era, **opening(home / "inner")}
    assert not called(server, "check", {"paths": ["own.py"]}, **options).is_error
    answer = called(server, "check", {"paths": [str(home / "faulty.py")]}, **options)
    assert "outside the folders of this server" in text(answer)


@pytest.mark.parametrize("theirs", [["elsewhere"], []])
def test_a_clients_roots_open_nothing_that_the_server_does_not(home: Path, era: str, theirs: list[str]) -> None:
    for name in theirs:
        (home.parent / name).mkdir()
    options = {"mode": era, **opening(*(home.parent / name for name in theirs))}
    for path in ("faulty.py", str(home.parent / "secret.py")):
        answer = called(server_on(home), "check", {"paths": [path]}, **options)
        assert "the client opens no folder of this server" in text(answer)


def test_a_client_whose_root_is_above_the_servers_gets_the_servers(home: Path, era: str) -> None:
    options = {"mode": era, **opening(home.parent)}
    assert not called(server_on(home), "check", {"paths": ["faulty.py"]}, **options).is_error
    assert called(server_on(home), "check", {"paths": [str(home.parent / "secret.py")]}, **options).is_error


@pytest.mark.parametrize(
    ("uri", "opened"),
    [
        ("file://{home}", ["{home}"]),
        ("file://localhost{home}", ["{home}"]),
        ("file://{home}/inner%20one", ["{home}/inner one"]),
        ("file:///", ["{home}"]),
        ("file://{home}/..", ["{home}"]),
        ("file://{home}/out", ["{home}"]),
        ("file://{home}x", []),
        ("file://elsewhere{home}", []),
        ("file://{home}/%00", []),
        ("https://{home}", []),
        ("file:", []),
        ("", []),
    ],
)
def test_a_root_that_a_client_names_is_never_more_than_the_servers(home: Path, uri: str, opened: list[str]) -> None:
    (home / "out").symlink_to(home.parent)
    narrowed = Roots.of([home]).narrowed([uri.format(home=home)])
    assert [str(each) for each in narrowed.folders] == [each.format(home=home) for each in opened]
