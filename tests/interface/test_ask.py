from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NAN = "The loss becomes NaN after 200 steps"


@pytest.mark.parametrize("words", [NAN, "How do I deploy to a phone?", "It does not work", ""])
def test_any_answer_ends_with_0(words: str, call: Any) -> None:
    assert call("ask", "--", words).code == 0


def test_a_query_leads_to_a_plan_as_text_and_as_json(call: Any) -> None:
    text, answer = call("ask", NAN).out, json.loads(call("ask", NAN, "--json").out)
    assert answer["kind"] == "plan"
    assert answer["route"][0] == "debugging-techniques"
    assert all(name in text for name in answer["route"])
    assert call("ask", "--format", "json", NAN).out == call("ask", "--json", NAN).out


@pytest.mark.parametrize("words", [["ask"], ["ask", "-"]])
def test_text_comes_from_stdin_where_none_is_given(words: list[str], call: Any) -> None:
    assert call(*words, stdin=NAN.encode()).out == call("ask", NAN).out


def test_bytes_that_are_no_text_are_read_all_the_same(call: Any) -> None:
    assert call("ask", "-", "--json", stdin=NAN.encode() + b" \xff\xfe").code == 0


def test_a_batch_answers_every_line_in_order_with_its_id(call: Any) -> None:
    lines = [
        json.dumps({"id": "b", "text": NAN}),
        json.dumps({"id": 7, "text": "CUDA out of memory"}),
        "",
        "no json",
        json.dumps({"id": "lost"}),
        json.dumps([1, 2]),
        json.dumps({"id": {"any": "value"}, "text": "slow training", "more": 1}),
    ]
    said = call("ask", "--batch", stdin="\n".join(lines).encode())
    answers = [json.loads(line) for line in said.out.splitlines()]
    assert said.code == 0
    assert [answer["id"] for answer in answers] == ["b", 7, None, "lost", None, {"any": "value"}]
    assert ["error" in answer for answer in answers] == [False, False, True, True, True, False]
    one = json.loads(call("ask", "--json", NAN).out)
    assert answers[0] == {"id": "b", **one}


def test_a_batch_may_begin_with_a_byte_order_mark(call: Any) -> None:
    said = call("ask", "--batch", stdin=b"\xef\xbb\xbf" + json.dumps({"id": 1, "text": NAN}).encode())
    assert json.loads(said.out)["kind"] == "plan"


@pytest.mark.parametrize(("stdin", "code"), [(b"", 0), (b"no json\n{}\n", 2), (b"\xff\xfe\n", 2)])
def test_a_batch_ends_with_2_only_when_it_had_lines_and_none_could_be_read(stdin: bytes, code: int, call: Any) -> None:
    assert call("ask", "--batch", stdin=stdin).code == code


def test_a_draft_shows_its_red_flags(call: Any) -> None:
    draft = "Your loss is NaN, so try a smaller learning rate. No time to profile, just use DDP."
    flags = json.loads(call("ask", "--draft", "--json", draft).out)["flags"]
    assert flags
    assert all(draft[flag["start"] : flag["end"]] == flag["text"] for flag in flags)
    text = call("ask", "--draft", "-", stdin=draft.encode()).out
    assert text.startswith(f"{len(flags)} red flag")
    assert all(flag["name"] in text for flag in flags)


def test_a_long_query_does_not_change_what_was_asked(call: Any) -> None:
    log = ("INFO step 1\n" * 2000) + NAN
    assert call("ask", "-", stdin=log.encode()).code == 0


UNUSED = b"""RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.
Parameter indices which did not receive grad for rank 0: 2 3
"""
NET = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.aux = {aux}
"""


def test_source_names_what_a_message_numbers_and_may_be_given_more_than_once(call: Any, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET.format(aux="part.Aux()").replace("from", "import part\nfrom", 1))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "part.py").write_text(NET.format(aux="nn.ReLU()").replace("Net", "Aux").replace("body", "out"))
    said = call("ask", "-", "--source", "net.py", "--source", "more", stdin=UNUSED)
    assert said.code == 0
    assert "aux.out.weight (2), aux.out.bias (3) in Net" in " ".join(said.out.split())
    answer = json.loads(call("ask", "-", "--json", "--source", "net.py", "--source", "more", stdin=UNUSED).out)
    assert answer["decoded"][0]["fields"]["names"] == "aux.out.weight, aux.out.bias"


def test_source_is_never_run(call: Any, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET.format(aux="nn.Linear(4, 4)") + "\nraise SystemExit(9)\n")
    said = call("ask", "-", "--source", "net.py", stdin=UNUSED)
    assert said.code == 0
    assert "aux.weight (2)" in said.out


@pytest.mark.parametrize("text", [UNUSED, NAN.encode()])
def test_a_source_that_cannot_be_read_or_parsed_is_named_and_ends_with_2(
    text: bytes, call: Any, tmp_path: Path
) -> None:
    (tmp_path / "bad.py").write_text("def (:\n")
    (tmp_path / "book.ipynb").write_text("{}")
    (tmp_path / "empty").mkdir()
    for name in ("missing.py", "bad.py", "book.ipynb", "empty"):
        said = call("ask", "-", "--source", name, stdin=text)
        assert said.code == 2
        assert name in said.err
        assert said.out == ""


@pytest.mark.parametrize("option", ["--batch", "--draft"])
def test_source_goes_with_one_text(option: str, call: Any) -> None:
    assert call("ask", option, "--source", "net.py", stdin=b"").code == 2


def test_without_source_nothing_that_reads_source_is_imported() -> None:
    code = (
        "import sys\nfrom torchtriage.triage import heard\n"
        f"heard({UNUSED.decode()!r})\n"
        "print([name for name in sys.modules if name.startswith('torchtriage.examine')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
