from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.end import End
from torchtriage.core.evidence import Evidence, Inconclusive, Observed, Place
from torchtriage.core.fault import Fault, FaultClass
from torchtriage.core.finding import Finding
from torchtriage.core.plain import plain
from torchtriage.report.console import render
from torchtriage.report.ending import SHOWN
from torchtriage.report.markdown import render as markdown
from torchtriage.report.outline import outline
from torchtriage.triage.ending import led

AT = Place("model.py", 41, step=12, module="head", anchor="return self.head(x)")
WRONG = End("exception", "ValueError", "heads 3 do not divide 64", AT, 1, is_trained=True)
BEFORE = replace(WRONG, type="KeyError", message="'lr'", place=Place("config.py", 7), is_trained=False)


def ended(end: End, **rest: Any) -> Case:
    return Case(measurements={"end": plain(end), "steps": 12}, **rest)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (WRONG, "The job ended with ValueError at model.py:41, module head, at step 12: heads 3 do not divide 64."),
        (BEFORE, "The job ended with KeyError at config.py:7, before its first training step: 'lr'."),
        (replace(BEFORE, is_trained=None), "The job ended with KeyError at config.py:7: 'lr'."),
        (replace(WRONG, message="\n  first line.\nsecond"), "The job ended with ValueError at model.py:41, module head, at step 12: first line."),
        (End("exception", "", "terminate called"), "The job ended with an error: terminate called."),
        (End("signal", "SIGKILL", code=137, place=Place(step=30), is_trained=True), "The job was ended by SIGKILL (exit code 137), at step 30."),
        (End("signal", "", "Killed"), "The job was ended from outside: Killed."),
        (End("exit", code=3, place=Place("train.py", 9), is_trained=False), "The job ended itself with exit code 3 at train.py:9, before its first training step."),
        (replace(WRONG, place=Place("t.py", 1, rank=3)), "The job ended with ValueError at t.py:1, rank 3: heads 3 do not divide 64."),
    ],
)  # fmt: skip
def test_the_verdict_names_what_ended_the_job_where_and_when(end: End, said: str) -> None:
    story = outline(ended(end))
    assert (story.tone, story.verdict) == ("error", said)


def test_the_fault_that_the_message_means_comes_first_with_the_message(clip: Fault) -> None:
    fault = replace(clip, signs=(replace(clip.signs[0], detector="log/example-clip"),))
    finding = Finding(fault, (Evidence("log/example-clip", AT, "clipped"),))
    case = ended(replace(WRONG, cause="example-clip", found_at=AT), findings=(finding,))
    story = outline(case)
    assert story.verdict.startswith(
        f"{fault.title} (example-clip): model.py:41, module head, at step 12. ValueError: heads 3"
    )
    assert story.ending is None
    lines = "\n".join(["Missing:", *"abcdefghijklmnop"])
    long = outline(ended(replace(WRONG, message=lines, cause="example-clip", found_at=AT), findings=(finding,))).ending
    assert long is not None
    assert (len(long.message), long.message[-1], long.do) == (SHOWN + 1, "and 5 more lines", "")


def test_a_fault_that_made_the_values_comes_before_the_error_that_they_raised(clip: Fault) -> None:
    made = Finding(clip, (Evidence("source/example-clip", Place("train.py", 5, step=9), "nan"),))
    story = outline(ended(replace(WRONG, cause="example-clip"), findings=(made, made)))
    assert story.verdict == (
        f"{clip.title} (example-clip): train.py:5, step 9. The job ended with ValueError at model.py:41, module head, "
        "at step 12: heads 3 do not divide 64. 1 other finding below."
    )


@pytest.mark.parametrize(
    ("end", "advice"),
    [
        (WRONG, "No fault page describes this message"),
        (replace(WRONG, do="Give it memory."), "Give it memory."),
        (End("signal", "SIGKILL", code=137), "what sent SIGKILL"),
        (End("signal", "SIGUSR1", code=138), "what sent SIGUSR1"),
        (End("exit", code=3), "The program chose to end"),
    ],
)
def test_where_no_finding_has_a_remedy_the_next_step_is_said(end: End, advice: str) -> None:
    case = ended(end)
    story = outline(case)
    assert story.ending is not None
    assert advice in story.ending.do
    assert advice.split()[0] in render(case).split("\nNext\n")[1]
    assert advice.split()[0] in markdown(case).split("## Next")[1]


def test_what_the_verdict_says_of_the_end_is_not_said_again_below() -> None:
    unseen = (Inconclusive("run/end", "rank 0 ended", "Ask."), Inconclusive("run/steps", "no step", "Run it."))
    story = outline(ended(WRONG, outcomes=(*unseen, Observed("run/x"))))
    assert [blind.detectors for blind in story.blind] == ["run/steps"]
    assert [blind.detectors for blind in outline(Case(outcomes=unseen)).blind] == ["run/end", "run/steps"]


def test_many_checks_that_lacked_the_same_are_counted_not_listed() -> None:
    case = Case(outcomes=tuple(Inconclusive(f"run/check-{number}", "no step", "Run it.") for number in range(86)))
    (blind,) = outline(case).blind
    assert blind.detectors == "run/check-0 and 85 more checks"


def test_operands_stand_under_the_line_that_met_them() -> None:
    case = ended(replace(WRONG, operands="`x` is (4, 16) float32 on cpu"))
    assert "│ return self.head(x)\n    heads 3 do not divide 64\n    `x` is (4, 16) float32 on cpu" in render(case)
    assert "4, 16" in markdown(case)


def test_a_special_case_of_what_the_message_means_is_told_instead_of_it(clip: Fault) -> None:
    line = Place("job.log", 4)
    general = replace(clip, slug="out", signs=(replace(clip.signs[0], detector="log/out"),))
    special = replace(
        clip,
        slug="pieces",
        signs=(replace(clip.signs[0], detector="log/pieces"),),
        kind=FaultClass.WASTE,
        refines=("out",),
    )
    said, found = (
        Finding(general, (Evidence("log/out", line, "no room"),)),
        Finding(special, (Evidence("log/pieces", line, "small"),)),
    )
    other = Finding(clip, (Evidence(clip.signs[0].detector, Place("train.py", 3), "clipped"),))
    end = End("exception", "OutOfMemoryError", "no room", faults=("out",), found_at=line)
    case = led(ended(end, findings=(other, said, found)), end)
    assert [(each.fault.slug) for each in case.findings] == ["pieces", "example-clip"]
    assert outline(case).verdict.startswith(f"{special.title} (pieces): job.log:4. OutOfMemoryError: no room. 1 other")
    alone = led(ended(end, findings=(other, said)), end)
    assert [(each.fault.slug) for each in alone.findings] == ["out", "example-clip"]
    elsewhere = led(ended(end, findings=(said, found)), replace(end, faults=(), found_at=Place("job.log", 9)))
    assert [(each.fault.slug) for each in elsewhere.findings] == ["out", "pieces"]


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (f"short. {'word ' * 40}", "short."),
        (f"{'word ' * 25}end. {'word ' * 40}", f"{'word ' * 25}end."),
        ("word " * 40, f"{'word ' * 31}word …"),
        ("w" * 200, f"{'w' * 160} …"),
    ],
)
def test_of_a_paragraph_the_verdict_takes_the_first_sentences_and_the_block_the_whole(
    message: str, kept: str, clip: Fault
) -> None:
    fault = replace(clip, signs=(replace(clip.signs[0], detector="log/example-clip"),))
    finding = Finding(fault, (Evidence("log/example-clip", AT, "clipped"),))
    end = replace(WRONG, type="", message=message, cause="example-clip", found_at=AT)
    story = outline(ended(end, findings=(finding,)))
    assert story.verdict.endswith(f"at step 12. {kept}")
    assert story.ending is not None
    assert story.ending.message == (message.strip(),)


@pytest.mark.parametrize(
    ("signal", "unit", "cause"),
    [("SIGKILL", "KiB per step", "grown"), ("SIGKILL", None, ""), ("SIGSEGV", "KiB per step", "")],
)
def test_memory_that_grew_to_the_end_leads_where_the_job_was_killed(
    signal: str, unit: str | None, cause: str, clip: Fault
) -> None:
    grown = replace(clip, slug="grown", kind=FaultClass.WASTE, explains=("out-of-memory",))
    finding = Finding(grown, (Evidence(clip.signs[1].detector, Place("train.py", 3), "it grows", 20.0, unit),))
    end = End("signal", signal, code=137, place=Place(step=60))
    assert led(ended(end, findings=(finding,)), end).measurements["end"]["cause"] == cause


WAITING = "Timed out waiting 5000ms for recv operation to complete"


@pytest.mark.parametrize(
    ("message", "step", "cause"), [(WAITING, 5, "apart"), (WAITING, 2, ""), ("sizes do not fit", 5, "")]
)
def test_an_error_of_waiting_is_explained_by_what_the_ranks_did_in_that_step(
    message: str, step: int, cause: str, clip: Fault
) -> None:
    apart = replace(clip, slug="apart", kind=FaultClass.ERROR, explains=("distributed-failing",))
    finding = Finding(
        apart, (Evidence(clip.signs[1].detector, Place("evaluate.py", 11, rank=0, step=step), "other", 1.0),)
    )
    end = End("exception", "RuntimeError", message, code=1, place=Place("evaluate.py", 11, rank=0, step=5))
    assert led(ended(end, findings=(finding,)), end).measurements["end"]["cause"] == cause


@pytest.mark.parametrize(("rank", "cause"), [(0, "apart"), (1, "")])
def test_what_the_ranks_did_explains_the_signal_that_ended_one_of_them(rank: int, cause: str, clip: Fault) -> None:
    apart = replace(clip, slug="apart", kind=FaultClass.ERROR, explains=("distributed-failing",))
    finding = Finding(apart, (Evidence(clip.signs[1].detector, Place("evaluate.py", 11, rank=0), "other sizes"),))
    end = End("signal", "SIGABRT", code=1, place=Place(rank=rank))
    assert led(ended(end, findings=(finding,)), end).measurements["end"]["cause"] == cause
