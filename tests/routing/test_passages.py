"""What of a text is listened to: prose in full, code and settings for subjects, frames and the middle of a log not."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.routing.hear import hear
from torchtriage.routing.listen import listen
from torchtriage.routing.passages import BLOCK, LIMIT, REPEATS, passages


def parts(text: str) -> list[tuple[str, str]]:
    """The passages of TEXT as (kind, words)."""
    return [(each.kind, text[each.start : each.end]) for each in passages(text)]


def symptoms(text: str) -> set[str]:
    return {each.symptom for each in listen(text).symptoms}


CODE = [
    "import torch",
    "import torch.nn as nn",
    "from torch import nn",
    "from torch.cuda.amp import autocast",
    "def train(model):",
    "class Net(nn.Module):",
    "@torch.no_grad()",
    "for batch in loader:",
    "with autocast():  # half",
    "    x = torch.isnan(x)",
    "loss += criterion(out, y)",
    "    loss.backward()",
    ">>> import torch",
    "return self.fc(x)",
    "optimizer.zero_grad()  # each step",
]
PROSE = [
    "for some reason it is slow",
    "while training I get NaN",
    "The loss is NaN: why does this happen, and where?",
    "import errors are gone now",
    "from the start it was slow",
    "I return to the old version",
    "with AMP it diverges",
    "step 100 loss 0.5 lr 0.01",
    "RuntimeError: CUDA out of memory",
    "",
]
SETTINGS = ["epochs: 3", "batch_size=64", "  lr: 1e-3", "- optimizer: AdamW", '"amp": true,', "PyTorch version: 2.4.1"]
OUTCOMES = ["loss: nan", "error: none", "GPU memory: full", "speed = 3 it/s", "accuracy: 0.1", "status: killed"]


@pytest.mark.parametrize("line", CODE)
def test_a_line_of_code_is_code(line: str) -> None:
    assert parts(f"It fails.\n{line}\nWhat now?") == [
        ("prose", "It fails.\n"),
        ("code", f"{line}\n"),
        ("prose", "What now?"),
    ]


@pytest.mark.parametrize("line", PROSE)
def test_a_line_of_prose_is_prose(line: str) -> None:
    text = f"It fails.\n{line}\nWhat now?"
    assert parts(text) == [("prose", text)]


@pytest.mark.parametrize("line", [*CODE, *PROSE, *SETTINGS])
def test_a_text_of_one_line_is_heard_in_full_whatever_it_looks_like(line: str) -> None:
    assert parts(line) == [("prose", line)]


@pytest.mark.parametrize("count", range(1, len(SETTINGS) + 1))
def test_a_few_lines_with_a_colon_are_prose_and_a_block_of_them_is_settings(count: int) -> None:
    block = "".join(f"{line}\n" for line in SETTINGS[:count])
    text = f"My run.\n{block}It is slow."
    if count < BLOCK:
        assert parts(text) == [("prose", text)]
    else:
        assert parts(text) == [("prose", "My run.\n"), ("setting", block), ("prose", "It is slow.")]


@pytest.mark.parametrize("line", OUTCOMES)
def test_an_outcome_between_settings_is_no_setting(line: str) -> None:
    block = "".join(f"{each}\n" for each in SETTINGS[:BLOCK])
    assert parts(f"{block}{line}\n{block}") == [
        ("setting", block),
        ("prose", f"{line}\n"),
        ("setting", block),
    ]


def test_settings_at_the_end_of_a_text_are_told_apart_too() -> None:
    settings = "\n".join(SETTINGS)
    assert parts(f"It is slow.\n{settings}") == [("prose", "It is slow.\n"), ("setting", settings)]


TRACEBACK = """\
Traceback (most recent call last):
  File "/home/me/nan/checkpoint/train.py", line 3, in slow_training
    check(loss_is_nan, "CUDA out of memory")
    ~~~~~^^^^^^^^^^^
  File "/home/me/oom/ddp.py", line 9, in nan_loss
RuntimeError: no luck
"""


def test_the_frames_of_a_traceback_are_passed_over_and_its_message_is_heard() -> None:
    assert parts(TRACEBACK) == [
        ("prose", "Traceback (most recent call last):\n"),
        ("prose", "RuntimeError: no luck\n"),
    ]


@pytest.mark.parametrize(
    "path", ["/data/nan_loss/train.py", "/home/oom/checkpoint/slow training.py", "C:\\memory leak\\loss is NaN.py"]
)
def test_the_words_in_a_path_and_in_the_line_of_a_frame_are_not_the_users(path: str) -> None:
    frame = f'  File "{path}", line 7, in loss_is_nan\n    print("the loss is NaN, training is slow")\n'
    text = f"Traceback (most recent call last):\n{frame}ValueError: no luck\n"
    assert symptoms(text) == set()
    assert not {"nan", "slow", "checkpoint", "oom"} & {form for form, *_ in (*hear(text).prose, *hear(text).code)}


def test_nothing_is_left_of_a_text_that_is_all_frames() -> None:
    assert passages('  File "a.py", line 1\n    the loss is NaN') == []


def test_an_indented_line_without_a_frame_is_heard() -> None:
    assert symptoms("It says:\n    the loss is NaN\n") == {"nan-loss"}


@pytest.mark.parametrize(
    "code",
    ["x = torch.isnan(y)", "torch.isnan(x)", "if torch.isnan(loss):", "def loss_is_nan(x):", "for loss in nan_losses:"],
)
def test_code_that_looks_for_nan_is_no_nan(code: str) -> None:
    assert symptoms(f"What does this do?\n{code}\n") == set()


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Is this right?\nmodel = DistributedDataParallel(model)\n", "distributed-setup"),
        ("Is this right?\nwith autocast():\n    loss.backward()\n", "mixed-precision-use"),
        ("Mine\namp: true\nepochs: 3\nworkers: 4\n", "mixed-precision-use"),
        ("Mine\nepochs: 3\nstrategy: ddp\nworkers: 4\n", "distributed-setup"),
    ],
)
def test_code_and_settings_name_subjects(text: str, subject: str) -> None:
    assert symptoms(text) == {subject}


def test_settings_are_heard_for_subjects_only() -> None:
    trouble = "mode: training is slow"
    assert symptoms(trouble) == {"training-slow"}
    assert symptoms(f"Mine\nepochs: 3\n{trouble}\nworkers: 4\n") == set()


LINES = st.sampled_from([*CODE, *PROSE, *SETTINGS, *OUTCOMES, *TRACEBACK.splitlines()]) | st.text(max_size=30)


@given(st.lists(LINES, max_size=40).map("\n".join))
def test_passages_stand_in_order_without_overlap_and_leave_out_frames_only(text: str) -> None:
    found = passages(text)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(0 <= each.start <= each.end <= len(text) for each in found)
    left = "".join(text[each.start : each.end] for each in found)
    if 'File "' not in text:
        assert left == text


@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=200), min_size=1, max_size=30).map("\n".join),
    st.integers(1, 60),
)
def test_of_a_long_text_no_more_than_the_limit_is_heard(text: str, times: int) -> None:
    long = text * times + "x" * LIMIT
    found = passages(long)
    assert sum(each.end - each.start for each in found) <= LIMIT
    assert all(one.end <= other.start for one, other in pairwise(found))


def log(lines: int, line: str = "worker {0} said {1}") -> str:
    """LINES different lines: letters make them unlike, not figures."""
    names = ("".join(chr(97 + at // 26**place % 26) for place in range(5)) for at in range(lines))
    return "".join(line.format(name, name[::-1]) + "\n" for name in names)


def test_a_million_characters_are_heard_at_both_ends() -> None:
    text = f"My GPU utilization is low.\n{log(60_000)[:1_000_000]}\nThe loss is NaN."
    query = listen(text)
    assert len(text) > 1_000_000
    assert query.passed_over >= len(text) - LIMIT
    assert {each.symptom for each in query.symptoms} == {"utilisation-low", "nan-loss"}
    assert all(text[each.start : each.end] == each.text for each in query.symptoms)


def test_a_million_characters_on_one_line_are_heard_at_both_ends() -> None:
    text = "My GPU utilization is low. " + "so it goes, " * 90_000 + "The loss is NaN."
    query = listen(text)
    assert query.passed_over == len(text) - LIMIT
    assert {each.symptom for each in query.symptoms} == {"utilisation-low", "nan-loss"}


def test_an_error_message_in_the_middle_of_a_long_text_is_decoded() -> None:
    message = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 7x3)"
    noise = log(20_000)
    query = listen(f"{noise}{message}\n{noise}")
    assert [each.signature for each in query.decoded] == ["matmul-shapes"]
    assert query.decoded[0].text == message
    assert "training-crash" in {each.symptom for each in query.symptoms}


def test_lines_that_differ_in_their_numbers_only_are_heard_a_few_times_and_hide_nothing() -> None:
    steps = [f"step {at} of 20000, loss 0.{at}\n" for at in range(20_000)]
    text = "".join([*steps[:10_000], "then my GPU utilization is low.\n", *steps[10_000:]])
    heard = [text[each.start : each.end] for each in passages(text)]
    assert "".join(heard).count("step") == REPEATS
    assert symptoms(text) == {"utilisation-low"}
    assert listen(text).passed_over == len(text) - sum(map(len, heard))


def test_a_text_within_the_limit_is_passed_over_nowhere() -> None:
    assert listen("the loss is NaN\n" * (LIMIT // 16)).passed_over == 0


@pytest.mark.parametrize(
    "sign", [" ", "\t", "\n", "- ", ": ", "= ", ".a", "if :", "(", "[", '"', "a: ", "x = ", "\u3000"]
)
@pytest.mark.parametrize("ends", ["", "!", "x: 1"])
def test_a_line_that_never_ends_is_told_apart_in_one_pass(sign: str, ends: str) -> None:
    """A pattern that backtracks over it would take minutes at this length."""
    line = sign * (LIMIT // 12 // len(sign)) + ends
    assert passages(f"It fails.\n{line}\n")


def test_a_progress_bar_that_draws_itself_anew_is_heard_a_few_times_only() -> None:
    bar = "".join(f"{step}%|##| {step}/100 [1.2it/s, loss=0.5]\r" for step in range(200))
    text = f"{bar}\nRuntimeError: CUDA out of memory.\n"
    heard = "".join(text[each.start : each.end] for each in passages(text))
    assert heard.count("it/s") == REPEATS
    assert "CUDA out of memory" in heard
