"""Logs as torchrun, schedulers and kernels left them: what came first, on which rank, in which line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import torchtriage
from torchtriage.core.case import Case
from torchtriage.examine.artefact.logs import Logs, measurements, read
from torchtriage.triage.messages import decoded

REAL = Path(__file__).parents[3] / "cases/artefacts"
TRACE = """Traceback (most recent call last):
  File "/job/train.py", line 27, in step
    loss = criterion(model(x), y)
  File "/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x9 and 8x16)
"""
PEER = "RuntimeError: [/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:12192."

PEER_TRACE = (
    f'Traceback (most recent call last):\n  File "/job/train.py", line 29, in step\n    loss.backward()\n{PEER}\n'
)


@pytest.fixture
def logs(tmp_path: Path):
    """The logs whose texts are given, each as a file of that name."""

    def made(**files: str) -> Logs:
        paths = []
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            paths.append(str(path))
        return read(paths, decoded)

    return made


def found(case: Case) -> dict[str, tuple[int | None, int | None]]:
    """The faults that CASE shows, each with the line and rank of its first evidence."""
    first = {finding.fault.slug: finding.evidence[0].place for finding in case.findings}
    return {slug: (place.line, place.rank) for slug, place in first.items()}


@pytest.mark.parametrize(
    ("name", "faults", "end"),
    [
        ("error", {"shape-mismatch": (45, 1)}, "rank 1 ended"),
        ("tee", {"shape-mismatch": (45, 1)}, "rank 1 ended"),
        ("kill", {}, "the process was ended by SIGKILL"),
        ("segv", {"native-crash": (58, 1)}, "the process was ended by SIGSEGV"),
        ("timeout", {"collective-timeout": (21, 0)}, "Timed out waiting 8000ms"),
        ("nan", {"non-finite-origin": (3, None)}, ""),
    ],
)
def test_what_torchrun_wrote_tells_what_came_first(name: str, faults: dict[str, tuple[int, int]], end: str) -> None:
    case = torchtriage.read([REAL / f"{name}.log"])
    assert found(case) == faults
    ends = [item.why for item in case.inconclusive if item.detector == "log/end"]
    assert len(ends) == bool(end)
    assert all(end in why for why in ends)


def test_a_rank_that_raised_is_the_cause_and_its_peers_errors_follow(logs) -> None:
    peers = "".join(f"[rank{rank}]: {PEER}\n" for rank in (0, 1, 3))
    own = "".join(f"[rank2]: {line}\n" for line in TRACE.splitlines())
    for text in (peers + own, own + peers):
        told = logs(log=text)
        assert told.cause is not None
        assert (told.cause.rank, str(told.cause.frame)) == (2, "/job/train.py:27")
        assert told.followed == 3
        assert told.ranks == (0, 1, 2, 3)


def test_lines_of_two_ranks_that_write_at_once_are_put_together(logs) -> None:
    lines = TRACE.splitlines()
    both = "".join(f"[rank{rank}]: {line}\n" for line in lines for rank in (0, 1))
    told = logs(log=both)
    assert [(each.rank, each.line, str(each.frame)) for each in told.said] == [
        (0, 11, "/job/train.py:27"),
        (1, 12, "/job/train.py:27"),
    ]
    case = torchtriage.read([told.paths[0]])
    assert "on ranks 0, 1" in case.findings[0].evidence[0].fact


@pytest.mark.parametrize(
    ("name", "text", "rank"),
    [
        ("log", "[rank3]: {}", 3),
        ("log", "[default1]:{}", 1),
        ("log", "[default2]:[rank10]: {}", 10),
        ("log", "[1,4]<stderr>: {}", 4),
        ("rank7.log", "{}", 7),
        ("job-12_rank_3.err", "{}", 3),
        ("attempt_0__5__stderr.log", "{}", 5),
        ("node3.log", "{}", None),
        ("franklin2.log", "{}", None),
        ("log", "\x1b[31m[rank6]: {}\x1b[0m", 6),
    ],
)
def test_the_rank_stands_before_the_line_or_in_the_files_name(name: str, text: str, rank: int | None, logs) -> None:
    told = logs(**{name: "".join(f"{text.format(line)}\n" for line in TRACE.splitlines())})
    assert told.cause is not None
    assert told.cause.rank == rank


def test_the_labels_of_srun_are_ranks_only_where_all_lines_have_them(logs) -> None:
    labelled = "".join(f"{rank}: step {step}\n" for step in range(9) for rank in (0, 1))
    told = logs(a=labelled + "".join(f"1: {line}\n" for line in TRACE.splitlines()))
    assert told.cause is not None
    assert told.cause.rank == 1
    assert logs(b="0: a\n" + TRACE).ranks == ()


KILLS = [
    ("[12.3] Out of memory: Killed process 17881 (python3) total-vm:9kB", "rank 1", "Out of memory: Killed process"),
    ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.", "the job", "oom_kill"),
    ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***", "the job", "TIME LIMIT"),
    ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***", "the job", "PREEMPTION"),
    ("NVRM: Xid (PCI:0000:3b:00): 79, pid=17881, GPU has fallen off the bus.", "the job", "Xid"),
    ("Fatal Python error: Segmentation fault", "the job", "Segmentation fault"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "who", "said"), KILLS)
def test_the_words_of_kernel_and_scheduler_explain_a_kill(line: str, who: str, said: str, logs) -> None:
    told = logs(job=(REAL / "kill.log").read_text().replace("(pid: 17881)", "(pid: 17881)"), dmesg=f"{line}\n")
    (end,) = (item for item in told.inconclusive if item.detector == "log/end")
    assert end.why.startswith(who) or said in end.why
    assert said in end.why


def test_a_kill_is_explained_by_the_kernels_line_of_the_same_process(logs) -> None:
    text = (REAL / "kill.log").read_text()
    pid = text.split("exitcode  : -9 (pid: ")[1].split(")")[0]
    told = logs(job=text, dmesg=f"[1.0] Memory cgroup out of memory: Killed process {pid} (python3)\n")
    (kill,) = (each for each in told.said if each.text.startswith("the process was ended"))
    assert "Memory cgroup out of memory" in kill.text
    assert kill.rank == 1


def test_the_error_file_of_torchelastic_and_lines_of_json_are_unwrapped(logs) -> None:
    error = {"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": TRACE, "timestamp": "1"}}}
    docker = "".join(json.dumps({"log": f"{line}\n", "stream": "stderr"}) + "\n" for line in TRACE.splitlines())
    for text in (json.dumps(error), docker):
        told = logs(attempt_0__1__error=text)
        assert told.cause is not None
        assert "mat1 and mat2" in told.cause.text


def test_an_error_that_python_ignored_or_another_explains_is_not_the_cause(logs) -> None:
    ignored = "Exception ignored in: <function X.__del__>\n" + TRACE
    assert logs(a=ignored).cause is None
    chained = TRACE + "\nThe above exception was the direct cause of the following exception:\n\n"
    chained += (
        'Traceback (most recent call last):\n  File "/job/a.py", line 3, in f\n    raise E\nRuntimeError: step 7\n'
    )
    told = logs(b=chained)
    assert told.cause is not None
    assert "mat1" in told.cause.text
    handling = chained.replace(
        "The above exception was the direct cause of the following", "During handling of the above"
    )
    handling = handling.replace("exception:\n\nTrace", "exception, another exception occurred:\n\nTrace")
    told = logs(c=handling)
    assert told.cause is not None
    assert told.cause.text == "RuntimeError: step 7"


def test_a_worker_of_a_loader_tells_its_own_error(logs) -> None:
    text = 'Traceback (most recent call last):\n  File "/job/a.py", line 3, in <module>\n    for x in loader:\n'
    text += "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal " + TRACE
    told = logs(a=text)
    assert [len(each.decoded) > 0 for each in told.said] == [True]
    assert {each.signature for each in told.said[0].decoded} >= {"matmul-shapes"}


def test_a_worker_that_was_killed_is_told_at_the_loop_that_waited_for_it(logs) -> None:
    """The error is raised in a signal handler within torch; what the loader raises from it holds the user's frames."""
    text = (
        'Traceback (most recent call last):\n  File "/x/site-packages/torch/utils/data/dataloader.py", line 9, in get\n'
    )
    text += "    s.connect()\nRuntimeError: DataLoader worker (pid 31) is killed by signal: Killed. \n\nThe above exception "
    text += "was the direct cause of the following exception:\n\nTraceback (most recent call last):\n"
    text += '  File "/job/train.py", line 33, in main\n    for clips, y in loader:\n'
    text += "RuntimeError: DataLoader worker (pid(s) 31) exited unexpectedly\n"
    told = logs(a=text)
    assert told.cause is not None
    assert told.cause.text.strip().endswith("(pid 31) is killed by signal: Killed.")
    assert (told.cause.frame.path, told.cause.frame.line) == ("/job/train.py", 33)


def test_a_worker_that_exits_follows_from_its_own_error_where_that_was_printed(logs) -> None:
    own = 'Traceback (most recent call last):\n  File "/job/toy.py", line 4, in load\n    int("x")\nValueError: no number\n'
    main = 'Traceback (most recent call last):\n  File "/job/train.py", line 27, in <module>\n    for x in loader:\n'
    main += "RuntimeError: DataLoader worker (pid 31) exited unexpectedly with exit code 1. Details are lost due to multiprocessing.\n"
    for text in (own + main, main + own):
        told = logs(a=text)
        assert told.cause is not None
        assert told.cause.text == "ValueError: no number"
    alone = logs(b=main)
    assert alone.cause is not None
    assert "exited unexpectedly" in alone.cause.text


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("torch.save(model, path)", "whole-object-saved"),
        ("accelerator.save_state(out)", "whole-object-saved"),
        ("pickle.dump(model, file)", "whole-object-saved"),
        ("for x, y in loader:", "loader-workers-failed"),
        ("mp.spawn(work, nprocs=2)", "loader-workers-failed"),
    ],
)
def test_what_cannot_be_pickled_was_on_its_way_to_a_file_or_to_a_worker(line: str, fault: str, tmp_path: Path) -> None:
    text = f'Traceback (most recent call last):\n  File "/job/a.py", line 3, in <module>\n    {line}\n'
    (tmp_path / "a.log").write_text(f"{text}AttributeError: Can't pickle local object 'build.<locals>.<lambda>'\n")
    assert found(torchtriage.read([tmp_path / "a.log"])) == {fault: (2 + 2, None)}


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ('state = torch.load(path, map_location="cpu")', {"checkpoint-corrupt"}),
        ('state = self.load_checkpoint("last.pt")', {"checkpoint-corrupt"}),
        ("file.seek(-4)", set()),
    ],
)
def test_a_cut_file_that_the_system_refuses_is_a_checkpoint_where_one_is_loaded(
    line: str, faults: set[str], tmp_path: Path
) -> None:
    text = f'Traceback (most recent call last):\n  File "/job/a.py", line 3, in <module>\n    {line}\n'
    (tmp_path / "a.log").write_text(f"{text}OSError: [Errno 22] Invalid argument\n")
    assert set(found(torchtriage.read([tmp_path / "a.log"]))) == faults


@pytest.mark.parametrize(
    ("line", "key", "faults"),
    [
        ('self.scheduler.load_state_dict(ckpt["scheduler"])', "scheduler", {"checkpoint-incomplete"}),
        ('start = checkpoint["epoch"] + 1', "epoch", {"checkpoint-incomplete"}),
        ('self.model.load_state_dict(saved["model"])', "model", {"keys-mismatched"}),
        ('weights = ckpt["state_dict"]', "state_dict", {"keys-mismatched"}),
        ('labels = batch["labels"]', "labels", set()),
        ('lr = config["optimizer"]["lr"]', "lr", set()),
    ],
)
def test_a_key_that_is_asked_of_a_checkpoint_in_vain_is_named(
    line: str, key: str, faults: set[str], tmp_path: Path
) -> None:
    text = f'Traceback (most recent call last):\n  File "/job/a.py", line 3, in <module>\n    {line}\n'
    (tmp_path / "a.log").write_text(f"{text}KeyError: '{key}'\n")
    assert set(found(torchtriage.read([tmp_path / "a.log"]))) == faults


GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/job/train.py", line 32, in <module>
  |     Runner(Settings()).run()
  |   File "/job/settings.py", line 20, in __init__
  |     raise ExceptionGroup("bad settings", errors)
  | ExceptionGroup: bad settings (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/job/settings.py", line 15, in __init__
    |     setattr(self, key, cast(raw))
    | ValueError: invalid literal for int() with base 10: '1e3'
    | while reading STEPS
    +---------------- 2 ----------------
    | ValueError: could not convert string to float: 'x'
    +------------------------------------
"""


def test_of_a_group_of_errors_the_first_part_is_told(logs) -> None:
    told = logs(a=GROUP)
    assert [(each.text.split(":")[0], each.tier) for each in told.said] == [
        ("ExceptionGroup", 5), ("ValueError", 0), ("ValueError", 0)
    ]  # fmt: skip
    assert told.end is not None
    assert (told.end.type, told.end.place.path, told.end.place.line) == ("ValueError", "/job/settings.py", 15)
    assert told.end.message == "invalid literal for int() with base 10: '1e3'\nwhile reading STEPS"


def test_an_assertion_without_words_says_what_it_checks(tmp_path: Path) -> None:
    text = 'Traceback (most recent call last):\n  File "/job/losses.py", line 2, in mse\n'
    (tmp_path / "a.log").write_text(f"{text}    assert pred.shape == target.shape\nAssertionError\n")
    case = torchtriage.read([tmp_path / "a.log"])
    assert set(found(case)) == {"shape-mismatch"}
    assert case.measurements["end"]["message"] == "assert pred.shape == target.shape"


LOOKALIKES = [
    "INFO no errors so far\nerror: 0.12 val_error=0.3\n",
    "UserWarning: something that nobody knows\n",
    "retrying after RuntimeError was caught before\n",
    "loss: nan\nloss: 0.5\nloss: 0.4\n",
    "step 1 loss 0.5\nstep 2 loss inf\nstep 3 loss 0.4\nbest val_loss: inf\n",
    "train_loss: 0.5 best loss: inf\ntrain_loss: 0.4 best loss: inf\n",
    "train loss 0.5 val loss nan\ntrain loss 0.4 val loss nan\nvalid_loss: nan\nvalid_loss: nan\n",
    "lowest validation loss: inf\nlowest validation loss: inf\n",
    "loss scale: inf\nloss_scale: nan\nlossless: nan\n",
    "step 1 loss 0.1 name nancy info\n",
    "0: 1\n",
    "Killed time: 3 s\nthe kill switch\n",
    "[INFO] saved to /tmp/Error/x\n",
    "received SIGUSR1, saving\n" + "".join(f"step {step} loss 1.{step}\n" for step in range(9)),
    "handlers of SIGTERM and SIGUSR1 are set\n",
    "mean: error: 0.1\n",
]


@pytest.mark.parametrize("text", LOOKALIKES)
def test_what_only_looks_like_an_end_is_not_one(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(text)
    case = torchtriage.read([tmp_path / "a.log"])
    assert found(case) == {}
    assert [item for item in case.inconclusive if item.detector == "log/end"] == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("step 10 loss 0.5\nstep 11 loss nan\nstep 12 loss nan\n", (2, 11, None)),
        ("{'loss': 0.5, 'step': 3}\n{'loss': nan, 'step': 4}\n{'loss': nan, 'step': 5}\n", (2, 4, None)),
        ("[rank1]: iter 5: train_loss=tensor(inf)\n[rank1]: iter 6: train_loss=tensor(nan)\n", (1, 5, 1)),
        (" 1%| it [00:01, loss=0.3]\r 2%| it [00:02, loss=nan]\r 3%| it [00:03, loss=nan]\n", (1, None, None)),
        ("Epoch 1 | lm loss: 1.2E+00 | loss scale: 8.0\n" + "Epoch 2 | lm loss: NAN | loss scale: 8.0\n" * 3, (2, None, None)),
    ],
)  # fmt: skip
def test_the_first_step_of_a_loss_that_stays_nan_is_named(
    text: str, place: tuple[int, int | None, int | None], tmp_path: Path
) -> None:
    (tmp_path / "a.log").write_text(text)
    (finding,) = torchtriage.read([tmp_path / "a.log"]).findings
    at = finding.evidence[0].place
    assert finding.fault.slug == "non-finite-origin"
    assert (at.line, at.step, at.rank) == place


def test_what_nccl_tells_of_itself_stands_in_the_measurements(logs) -> None:
    lines = (
        "n1:1:1 [0] NCCL INFO NCCL version 2.27.5+cuda12.9\n"
        "n1:1:1 [0] NCCL INFO NET/IB : No device found.\n"
        "n1:1:1 [0] NCCL INFO Using network Socket\n"
        "n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"
        "n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
    )
    assert measurements(logs(a=lines))["nccl"] == {
        "version": "2.27.5+cuda12.9",
        "networks": {"Socket": 1},
        "connections": {"NET/Socket": 1, "P2P": 1},
        "missing": ["NET/IB : No device found"],
    }


def test_a_log_that_repeats_itself_is_kept_within_bounds(logs) -> None:
    text = "".join(f"[rank0]: ValueError: number {number}\n\n" for number in range(2000))
    told = logs(a=text)
    assert len(told.said) <= 40
    assert any("further messages" in item.why for item in told.inconclusive)


def test_an_unfinished_traceback_is_no_error(logs) -> None:
    assert logs(a="".join(TRACE.splitlines(keepends=True)[:3])).cause is None


def test_ends_of_lines_and_odd_bytes_change_nothing(logs, tmp_path: Path) -> None:
    (tmp_path / "dos.log").write_bytes(TRACE.replace("\n", "\r\n").encode() + b"\xff\xfe\x00 \n" + b"x" * 9_000_000)
    told = read([str(tmp_path / "dos.log")], decoded)
    assert told.cause is not None
    assert (told.cause.line, told.cause.headline) == (6, TRACE.splitlines()[-1])


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 7 has a total capacity of 79.15 GiB of "
    "which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.00 GiB memory in use. Of the allocated "
    "memory 76.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
)
WATCHDOG = (
    "[rank{}]:[E1122 10:10:00.1 ProcessGroupNCCL.cpp:632] [Rank {}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before "
    "timing out.\n"
)
STORIES: list[tuple[str, int | None, str]] = [
    ("".join(WATCHDOG.format(rank, rank) for rank in range(7)) + f"[rank7]: {OOM}\n", 7, "tensors hold 76.00 GiB"),
    ("".join(WATCHDOG.format(rank, rank) for rank in (3, 1)), 3, "Watchdog caught"),
    (
        f"[rank0]: {PEER}\n[rank: 1] Child process with PID 77 terminated with code -9. Forcefully terminating all other\n",
        1,
        "terminated with code -9",
    ),
    (f"{PEER}\nsrun: error: n1: task 5: Out Of Memory\nsrun: error: n1: task 4: Terminated\n", 5, "Out Of Memory"),
    ("[INFO] [launch.py:351:main] Process 77 exits with return code = -9\n" + PEER, None, "return code = -9"),
    (
        "subprocess.CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.\n",
        None,
        "SIGKILL",
    ),
    (
        "ProcessRaisedException: \n-- Process 1 terminated with the following error:\n" + TRACE,
        None,
        "mat1 and mat2",
    ),
    ("[rank0]: KeyboardInterrupt\n[rank1]: KeyboardInterrupt\n", 0, "stopped by hand"),
    ("[1.0] Out of memory: Killed process 77 (python3) total-vm:9kB\n", None, "the words of the host"),
    ("terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [PG ID 0 Rank 3] Watchdog\n"
     f"[rank2]: {TRACE.splitlines()[-1]}\n", 2, "mat1"),
    (f"[rank0]: {TRACE.splitlines()[-1]}\n[rank1]: received SIGTERM, saving\n", 0, "mat1"),
    ("WARNING received SIGTERM at step 45, leaving\n", None, "received SIGTERM"),
    ("Caught signal SIGUSR1: checkpointing\nwrote last.pt\n", None, "Caught signal SIGUSR1"),
    ("usage: t.py [-h] [--epochs N]\nt.py: error: argument --epochs: invalid int value: 'ten'\n", None, "--epochs"),
    ("Usage: t.py [OPTIONS]\n\nError: No such option: --epoch\n", None, "No such option"),
    ("╭──── Traceback (most recent call last) ────╮\n│ a.py:3 │\n╰────╯\nValueError: too few\n", None, "too few"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rank", "said"), STORIES)
def test_the_end_of_a_story_is_told_by_what_began_it(text: str, rank: int | None, said: str, logs) -> None:
    told = logs(a=f"step 1 loss 0.5\n{text}")
    assert told.cause is not None
    assert told.cause.rank == rank
    (end,) = (item for item in told.inconclusive if item.detector == "log/end")
    assert said in end.why + told.cause.text


def test_a_process_that_has_nothing_to_do_with_training_is_passed_over(logs) -> None:
    assert logs(dmesg="[1.0] Out of memory: Killed process 77 (mysqld) total-vm:9kB\n").cause is None


def test_an_error_after_which_the_log_goes_on_is_not_the_end(logs) -> None:
    told = logs(a=TRACE + "".join(f"step {step} loss 0.1\n" for step in range(500)))
    (item,) = told.inconclusive
    assert item.detector == "logs"
    assert "goes on for 500 lines" in item.why


def test_an_explained_kill_is_told_of_its_rank(logs) -> None:
    text = (REAL / "kill.log").read_text()
    pid = text.split("exitcode  : -9 (pid: ")[1].split(")")[0]
    told = logs(dmesg=f"[1.0] Memory cgroup out of memory: Killed process {pid} (python3)\n", job=text)
    assert told.cause is not None
    assert told.cause.rank == 1
    assert "Memory cgroup out of memory" in told.cause.text


def test_a_norm_that_stays_nan_beside_a_loss_of_zero_is_told(logs) -> None:
    row = "{{'loss': {}, 'grad_norm': {}, 'learning_rate': 1e-05, 'epoch': 0.1}}\n"
    text = row.format(1.2, 3.4) + row.format(0.0, "nan") * 12
    assert {(each.name, each.line) for each in logs(a=text).lost} == {("loss", 2), ("grad_norm", 2)}
    assert [(each.name, each.bad) for each in logs(d=row.format(0.0, "nan") * 2).lost] == [("loss", 2)]
    assert logs(e=row.format(0.0, 0.0) * 12).lost == ()
    assert logs(b=row.format(1.2, "inf") * 5 + row.format(1.1, 2.0)).lost == ()
    assert logs(c=row.format(1.2, "inf") * 5).lost == ()


def test_among_a_thousand_ranks_that_lost_their_peer_the_one_that_raised_is_found(logs) -> None:
    lost = "".join(f"[rank{rank}]: {line}\n" for rank in range(1000) if rank != 617 for line in PEER_TRACE.splitlines())
    own = "".join(f"[rank617]: {line}\n" for line in TRACE.splitlines())
    told = logs(log=lost + own)
    assert told.cause is not None
    assert told.cause.rank == 617
    assert len(told.ranks) == 1000
    assert len(told.said) < 100
    both = zip(lost.splitlines(), (own * 700).splitlines(), strict=False)
    assert logs(mixed="".join(f"{one}\n{other}\n" for one, other in both)).cause is not None


MEGATRON = (
    " iteration {0:8d}/    9000 | consumed samples: {0:9d} | elapsed time per iteration (ms): 301.2 | learning rate: "
    "1.500E-04 | global batch size:    16 |{1} loss scale: 1.0 | grad norm: {2} | number of skipped iterations:   0 | "
    "number of nan iterations:   {3} |\n"
)


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("".join(MEGATRON.format(at, " lm loss: NAN |", "nan", 0) for at in (1, 2, 3)), {("lm loss", 1)}),
        ("".join(MEGATRON.format(at, "", "2.1", 1) for at in (4, 5)), {("lm loss", 1)}),
        ("".join(MEGATRON.format(at, " lm loss: 1.03E+01 |", "2.1", 0) for at in (1, 2, 3)), set()),
        ('| INFO | train_inner | {"epoch": 1, "loss": "nan", "gnorm": "nan"}\n' * 2, {("loss", 1)}),
        ("epoch 001: 20 / 90 loss=2.5, nll_loss=2.4\n" + "epoch 001: 40 / 90 loss=nan, nll_loss=nan\n", {("loss", 2)}),
        ("Epoch 0: 1/9, train_loss_step=2.31]\r" + "Epoch 0: 2/9, train_loss_step=nan.0]\r" * 2, {("train_loss", 1)}),
        ("[10/90] loss: 3.1\nLoss is nan, stopping training\n", {("loss", 2)}),
        ("loss_cls: 0.3 loss_box: 0.2\n" + "loss_cls: nan loss_box: 0.1\n" * 2, {("loss_cls", 2)}),
        ("step 1 loss 0.5 loss_scale: inf loss_weight: nan\n" * 3, set()),
        ("".join(f"OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2**at}, reducing to {2 ** (at - 1)}\n" for at in range(16, 0, -1)), {("loss_scale", 1)}),
        ("".join(f"OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2**at}, reducing to {2 ** (at - 1)}\n" for at in range(32, 16, -1)), set()),
        ("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 1024.0\n" * 40, {("loss_scale", 1)}),
    ],
)  # fmt: skip
def test_the_losses_of_other_libraries_are_read(logs, text: str, lost: set[tuple[str, int]]) -> None:
    assert {(each.name, each.line) for each in logs(log=text).lost} == lost


def test_an_error_that_was_caught_is_no_end(logs) -> None:
    caught = "RuntimeError: CUDA out of memory. Tried to allocate 3.00 GiB\n"
    later = "".join(f"step {step} loss 0.{step}\n" for step in range(1, 9))
    assert logs(log=f"{caught}trying a batch of 8\n{later}").cause is None
    assert logs(log=f"{later}{caught}").cause is not None
    assert logs(log=f"{caught}step 1 loss 0.5\n").cause is not None


@pytest.mark.parametrize("after", ["ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 7)", "wandb: Waiting for W&B process to finish"])  # fmt: skip
def test_what_a_launcher_says_next_is_no_part_of_a_message(logs, after: str) -> None:
    told = logs(log=f"{TRACE}{after}\n")
    assert told.cause is not None
    assert told.cause.text == TRACE.splitlines()[-1]


def test_a_message_of_several_paragraphs_is_read_to_its_end(logs) -> None:
    text = "_pickle.UnpicklingError: Weights only load failed. Do this.\nWeightsUnpickler error: \n\nUnsupported operand 118\n"
    told = logs(log=f"{text}\nstep 1 loss 0.5\n")
    assert "Unsupported operand 118" in told.cause.text


@pytest.mark.parametrize(
    "line",
    [
        "2031-01-02 03:04:05,678 - ERROR - ValueError: Attempting to unscale FP16 gradients.",
        "> ValueError: Attempting to unscale FP16 gradients.",
        "E   ValueError: Attempting to unscale FP16 gradients.",
        "**ValueError: Attempting to unscale FP16 gradients.**",
    ],
)
def test_an_error_is_read_behind_what_a_logger_or_a_quotation_puts_before_it(logs, line: str) -> None:
    assert [said.kind for said in logs(log=f"{line}\n").said] == ["raised"]


def test_a_class_with_a_private_name_is_an_error_too(logs) -> None:
    text = TRACE.replace("RuntimeError: mat1", "numpy.core._exceptions._ArrayMemoryError: mat1")
    told = logs(log=text)
    assert told.cause is not None
    assert str(told.cause.frame) == "/job/train.py:27"


def test_the_watchdog_that_says_what_failed_on_the_device_is_nearer_to_the_cause_than_lost_peers(logs) -> None:
    error = (
        "Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered"
    )
    told = logs(log=f"[rank0]: {PEER}\n[rank3]:[E1127 10:00:00.1 ProcessGroupNCCL.cpp:1414] [PG 0 Rank 3] {error}\n")
    assert told.cause is not None
    assert told.cause.rank == 3
