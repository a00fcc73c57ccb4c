from __future__ import annotations

import pytest

from torchtriage.examine.run.job.record import redaction

SECRET = "hf_abcdefghijklmnop"  # only looks like one


@pytest.mark.parametrize(
    "words",
    [
        ["--token", "abc123"],
        ["--token=abc123"],
        ["--hf-token", "abc123"],
        ["--api_key", "abc123"],
        ["api_key=abc123"],
        ["--wandb.api-key=abc123"],
        ["--password", "abc123"],
        ["--db-passwd=abc123"],
        ["--client-secret", "abc123"],
        ["hf_abc123abc123abc123"],
        ["--model", "sk-abc123abc123"],
        ["--auth-header=abc123"],
        ["s3://user:abc123@host/bucket"],
        ["ghp_abc123abc123"],
    ],
    ids=" ".join,
)
def test_what_looks_like_a_secret_is_redacted(words: list[str]) -> None:
    shown = " ".join(redaction.arguments(["train.py", *words]))

    assert "abc123" not in shown
    assert redaction.REDACTED in shown


@pytest.mark.parametrize(
    "words",
    [
        ["--lr", "1e-3"],
        ["--tokenizer-path", "tokens/bpe.json"],
        ["--max_tokens=512"],
        ["model.hidden_size=64"],
        ["--steps", "100", "-m", "pkg.train"],
    ],
    ids=" ".join,
)
def test_ordinary_arguments_are_kept(words: list[str]) -> None:
    assert redaction.arguments(["train.py", *words]) == ["train.py", *words]


def test_an_option_after_a_secret_option_is_not_its_value() -> None:
    assert redaction.arguments(["--token", "--lr", "0.1"]) == ["--token", "--lr", "0.1"]


def test_only_variables_that_matter_to_training_are_written_down() -> None:
    outer = {
        "RANK": "1",
        "NCCL_DEBUG": "INFO",
        "TORCH_LOGS": "all",
        "HOME": "h",
        "HF_TOKEN": SECRET,
        "TORCH_TOKEN": "x",
    }

    assert redaction.environment(outer) == {"NCCL_DEBUG": "INFO", "RANK": "1", "TORCH_LOGS": "all"}


def test_a_secret_inside_an_allowed_variable_is_redacted() -> None:
    assert redaction.environment({"TORCH_HOME": f"cache/{SECRET}"}) == {"TORCH_HOME": f"cache/{redaction.REDACTED}"}
