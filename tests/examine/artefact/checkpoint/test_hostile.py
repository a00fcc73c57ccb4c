"""Files that attack whoever reads them: nothing is run, none is called clean, none takes long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from stored.hostile import FOLDERS, HOSTILE

from torchtriage import triage
from torchtriage.core.case import Case

BENCH = Path(__file__).parents[4] / "bench/checkpoints.py"


def told(case: Case) -> str:
    """All that is said, in one text."""
    return " ".join(
        [*(item.fact for found in case.findings for item in found.evidence), *(item.why for item in case.inconclusive)]
    )


def read(folder: Path, data: bytes) -> Case:
    (folder / "model.pt").write_bytes(data)
    return triage.read([folder / "model.pt"])


def slugs(case: Case) -> set[str]:
    return {found.fault.slug for found in case.findings}


def test_a_hundred_files_and_more_and_thousands_of_broken_pickles_execute_nothing_and_none_is_called_clean() -> None:
    done = subprocess.run([sys.executable, str(BENCH), "--fuzz", "3000"], capture_output=True, text=True)
    figures = {line[:28].strip(): line[28:].strip() for line in done.stdout.splitlines()}
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(figures["hostile files"]) >= 100
    assert (figures["executed"], figures["executed of them"]) == ("0", "0")
    assert (figures["called clean"], figures["clean of them"]) == ("[]", "0")


def test_the_hook_that_shows_this_would_see_it() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from reading import Watch; watch = Watch(); watch.on = True; "
        "import pickle; pickle.loads(b'cos\\nsystem\\n(S\"true\"\\ntR.'); watch.on = False; print(watch.seen)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(BENCH.parent)], capture_output=True, text=True, check=True)
    assert "os.system" in done.stdout


@pytest.mark.parametrize(
    ("name", "slug", "said"),
    [
        ("os.system-reduced-zipped", "pickle-trusted", "it calls for os.system"),
        ("os.system-stacked-legacy", "pickle-trusted", "it calls for os.system"),
        ("os.system-instanced-bytes", "pickle-trusted", "it calls for os.system"),
        ("a result is called", "pickle-trusted", "(…)"),
        ("attributes of a module are set", "pickle-trusted", "torch.nn"),
        ("called before the pickle breaks", "pickle-trusted", "it calls for os.system"),
        ("in constants.pkl", "pickle-trusted", "it calls for os.system"),
        ("after the first pickle of a legacy file", "pickle-trusted", "it calls for os.system"),
        ("two data.pkl", "checkpoint-corrupt", "two entries have one name"),
        ("a tensor beyond its storage", "checkpoint-corrupt", "into a storage of 40"),
        (
            "a storage that is shorter",
            "checkpoint-corrupt",
            "the pickle says 40 bytes of float32, and the file holds 20",
        ),
        ("a storage that is not there", "checkpoint-corrupt", "the numbers of w are not in the file"),
        ("a zip bomb", "checkpoint-corrupt", "would unpack to 50,000,000 bytes, more than 500 times its size"),
        ("lists within lists", "checkpoint-corrupt", "more than 100 times"),
        ("a memo slot of 2^31", "", "no checkpoint"),
        ("zeros", "checkpoint-corrupt", "zeros: they never reached the disk"),
        ("nothing", "checkpoint-corrupt", "the file is empty: 0 bytes"),
        ("a pointer", "checkpoint-corrupt", "git lfs pull"),
        ("a page", "checkpoint-corrupt", "a download that was refused"),
        ("a header beyond the end", "checkpoint-corrupt", "its header should have 10,000,000 bytes"),
        ("tensors that overlap", "checkpoint-corrupt", "a and b overlap"),
        ("data behind the last tensor", "checkpoint-corrupt", "bytes follow that nothing tells of"),
    ],
)
def test_what_is_wrong_is_said(name: str, slug: str, said: str, tmp_path: Path) -> None:
    case = read(tmp_path, HOSTILE[name])
    assert slugs(case) - _BESIDE.get(name, set()) == ({slug} if slug else set())
    assert said in told(case)


_BESIDE = {
    "called before the pickle breaks": {"checkpoint-corrupt"},
    "after the first pickle of a legacy file": {"checkpoint-corrupt"},
    "two data.pkl": {"pickle-trusted"},
}


def test_what_leads_out_of_its_folder_is_not_followed(tmp_path: Path) -> None:
    case = triage.read([FOLDERS["leads out"](tmp_path)])
    assert slugs(case) == {"checkpoint-corrupt"}
    assert "which leads out of the folder: not read" in told(case)


def test_half_a_save_says_what_is_missing(tmp_path: Path) -> None:
    case = triage.read([FOLDERS["half a save"](tmp_path)])
    assert slugs(case) == {"checkpoint-corrupt"}
    assert "1 data files, and no whole .metadata, which a save writes last" in told(case)
