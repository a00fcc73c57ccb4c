"""The edits of the mixed-precision rules: each mends its finding, makes no new one, and is held back where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtriage import triage
from torchtriage.catalog import walk
from torchtriage.catalog.page import read

CASES = Path(__file__).parents[1] / "cases" / "mixed_precision_and_optimization"


def edits(path: Path, slug: str):
    found = (finding for finding in triage.check([path]).findings if finding.fault.slug == slug)
    return {edit for finding in found for item in finding.evidence for edit in item.edits}


def mend(path: Path, slug: str) -> str:
    data = path.read_bytes()
    for edit in sorted(edits(path, slug), key=lambda edit: (-edit.start, -edit.end)):
        data = data[: edit.start] + edit.text.encode() + data[edit.end :]
    path.write_bytes(data)
    compile(data, str(path), "exec")
    return data.decode()


def lines(path: Path, slug: str) -> list[int | None]:
    return [f.evidence[0].place.line for f in triage.check([path]).findings if f.fault.slug == slug]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("slug", ["scaler-bypassed", "amp-api-deprecated"])
def test_the_bad_block_of_the_page_is_mended_whole(tmp_path: Path, slug: str, newline: str) -> None:
    path = tmp_path / "train.py"
    bad = "größe = 'ä'\n" + read(walk.pages()[slug]).snippet("Bad")
    path.write_bytes(bad.replace("\n", newline).encode())
    mend(path, slug)
    assert triage.check([path]).findings == ()


def test_a_step_past_the_scaler_becomes_the_good_block(tmp_path: Path) -> None:
    page, path = read(walk.pages()["scaler-bypassed"]), tmp_path / "train.py"
    path.write_text(page.snippet("Bad"))
    assert mend(path, "scaler-bypassed") == page.snippet("Good")


@pytest.mark.parametrize(
    ("case", "slug"), [("old_names", "amp-api-deprecated"), ("compositions", "unstable-composition")]
)
def test_every_edit_of_a_case_mends_its_finding_and_makes_no_other(tmp_path: Path, case: str, slug: str) -> None:
    path = tmp_path / "train.py"
    path.write_bytes((CASES / f"{case}.py").read_bytes())
    before = triage.check([path]).findings
    mended = {f.evidence[0].place.line for f in before if f.fault.slug == slug and f.evidence[0].edits}
    assert mended
    mend(path, slug)
    assert set(lines(path, slug)) == {f.evidence[0].place.line for f in before if f.fault.slug == slug} - mended
    assert len(triage.check([path]).findings) == len(before) - len(mended)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.log(F.softmax(x, dim=-1))", "F.log_softmax(x, dim=-1)"),
        ("F.softmax(x, -1).log()", "F.log_softmax(x, -1)"),
        ("x.softmax(-1).log()", "x.log_softmax(-1)"),
        ("torch.log(torch.sigmoid(x))", "torch.nn.functional.logsigmoid(x)"),
        ("torch.log(1 + torch.exp(x - 1))", "torch.nn.functional.softplus(x - 1)"),
        ("torch.log(torch.exp(x).sum(1, keepdim=True))", "torch.logsumexp(x, 1, keepdim=True)"),
        ("torch.log(1 + eps * x)", "torch.log1p(eps * x)"),
        ("2 * (torch.exp(eps) - 1)", "2 * (torch.expm1(eps))"),
    ],
)
def test_an_exact_pair_becomes_one_operation(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "loss.py"
    form = "import torch\nimport torch.nn.functional as F\n\n\ndef f(x, eps):\n    return {}\n"
    path.write_text(form.format(old))
    assert mend(path, "unstable-composition") == form.format(new)


@pytest.mark.parametrize(
    "line",
    [
        "torch.log(torch.exp(x).sum())",
        "torch.log(probabilities)",
        "torch.log(torch.softmax(x, dim=1)[0])",
        "x.sigmoid().log()",
    ],
)
def test_no_edit_is_handed_out_for_what_is_no_exact_pair(tmp_path: Path, line: str) -> None:
    path = tmp_path / "loss.py"
    path.write_text(f"import torch\n\n\ndef f(x):\n    probabilities = torch.softmax(x, 1)\n    return {line}\n")
    assert lines(path, "unstable-composition") == [6]
    assert edits(path, "unstable-composition") == set()


def test_no_edit_names_a_torch_that_is_not_imported(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("from torch.cuda.amp import GradScaler\n\nscaler = GradScaler()\n")
    assert lines(path, "amp-api-deprecated") == [3]
    assert edits(path, "amp-api-deprecated") == set()
