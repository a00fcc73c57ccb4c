"""What a checkpoint survives: kills at each change of the disk, power cuts, errors of the disk, bits that flip.

    python bench/crash.py [kills|ranks|power|errors|flips] [--many N]

Without a word all of them: at least 1,000 kills over one and two processes, every prefix of a save's changes with what
a power cut may leave of them, an error at each change, 10,000 flipped bits, zeroed pages, truncations, swapped files.
Every change that a save makes to a disk goes through one module, whose journal is what is cut and replayed here.
"""

from __future__ import annotations

import argparse
import errno
import itertools
import json
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from torchtriage.core.errors import TriageError
from torchtriage.toolkit import TrainingState
from torchtriage.toolkit.state import disk
from torchtriage.toolkit.state.disk import Change
from torchtriage.toolkit.state.manifest import Damaged
from torchtriage.toolkit.state.opening import Opened

ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS)
LOSSES = ("whole", "empty", "zeros", "half")
PAGE = 4096


def must(holds: bool, said: str) -> None:
    if not holds:
        raise AssertionError(said)


class Small:
    """A training all of whose values are the number of its save, so that two saves mixed can be seen."""

    def __init__(self, folder: Path, **options: Any) -> None:
        import torch

        self.model = torch.nn.Sequential(torch.nn.Linear(40, 30), torch.nn.BatchNorm1d(30), torch.nn.Linear(30, 8))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        for each in self.model.parameters():
            each.grad = torch.zeros_like(each)
        self.optimizer.step()
        self.state = TrainingState(folder, model=self.model, optimizer=self.optimizer, **options)

    def save(self, number: int) -> None:
        import torch

        with torch.no_grad():
            for each in self._tensors():
                each.fill_(number)
        self.state.values["number"] = number
        self.state.save(number)

    def number(self) -> int:
        """The save that all values are of; raises AssertionError where they are of several."""
        found = {float(value) for each in self._tensors() for value in each.unique()}
        found |= {float(self.state.step), float(self.state.values["number"])}
        must(len(found) == 1, f"values of several saves: {sorted(found)}")
        return int(found.pop())

    def _tensors(self) -> list[Any]:
        held = [value for each in self.optimizer.state.values() for value in each.values()]
        return [*self.model.state_dict().values(), *held]


def loaded(folder: Path) -> int:
    """The save that a new process would go on from; -1 where it would begin anew."""
    made = Small(folder)
    try:
        return made.number() if made.state.load() else -1
    finally:
        made.state.close()


def journal(work: Callable[[], object]) -> list[Change]:
    """The changes that WORK asks the disk for, with a copy of what it writes."""
    made: list[Change] = []

    def note(change: Change) -> None:
        made.append(change._replace(data=tuple(memoryview(bytes(each)) for each in change.data)))

    disk.before = note
    try:
        work()
    finally:
        disk.before = None
    return made


def killed_at(number: int, *, half: bool = False) -> Callable[[Change], None]:
    """Kills this process before its change NUMBER; HALF: after the first half of it, where it is a write."""
    seen = itertools.count()

    def maybe(change: Change) -> None:
        if next(seen) == number:
            if half and change.kind == "write":
                whole = b"".join(change.data)
                file = os.open(change.path, os.O_WRONLY | os.O_APPEND)
                os.write(file, whole[: len(whole) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

    return maybe


def failing_at(number: int, code: int, *, for_good: bool) -> Callable[[Change], None]:
    """An error of the disk at change NUMBER; FOR_GOOD: at all that follow too."""
    seen = itertools.count()

    def maybe(change: Change) -> None:
        now = next(seen)
        if now == number or (for_good and now > number):
            raise OSError(code, os.strerror(code), change.path)

    return maybe


def warmed(folder: Path) -> None:
    """What a training imports is there before the first fork."""
    import torch.distributed.tensor  # noqa: F401

    Small(folder / "warm").state.close()


def forked(work: Callable[[], object]) -> int:
    """How a child ends that does WORK: 0 well, 1 with an error, else minus its signal."""
    child = os.fork()
    if child == 0:
        try:
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kills(folder: Path, many: int) -> Counter[str]:
    """MANY processes, each killed at a change of its save; the next must find the old step or the new one, whole."""
    warmed(folder)
    found: Counter[str] = Counter()
    options: list[dict[str, Any]] = [{}, {"keep": 1}, {"keep": 1, "async_": True}]
    number = 0
    while sum(found.values()) < many:
        for chosen, half in itertools.product(options, (False, True)):
            for at in itertools.count():
                root = folder / f"kill{number}"
                number += 1
                code = forked(lambda: _killed(root, chosen, at, half))  # noqa: B023
                if code == 0:
                    shutil.rmtree(root)
                    break
                must(code == -signal.SIGKILL, f"a save ended with {code}")
                found[_told(loaded(root), 1, 2)] += 1
                shutil.rmtree(root)
    return found


def _killed(root: Path, options: dict[str, Any], at: int, half: bool) -> None:
    made = Small(root, **options)
    made.save(1)
    made.state.wait()
    disk.before = killed_at(at, half=half)
    made.save(2)
    made.state.close()


def ranks(folder: Path, many: int) -> Counter[str]:
    """As `kills`, with two ranks of which one is killed: what counts must be of one save on both."""
    warmed(folder)
    found: Counter[str] = Counter()
    number = 0
    while sum(found.values()) < many:
        for victim, half in itertools.product((0, 1), (False, True)):
            for at in itertools.count():
                root = folder / f"ranks{number}"
                number += 1
                if _pair(root, victim, at, half) == 0:
                    break
                found[_told(_loaded_by_two(root), 1, 2)] += 1
                shutil.rmtree(root)
    return found


def _pair(root: Path, victim: int, at: int, half: bool) -> int:
    """How the rank VICTIM of two has ended, which is killed at its change AT of the second save."""
    root.mkdir()
    pids = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            try:
                sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
                made = _joined(root, rank)
                made.save(1)
                disk.before = killed_at(at, half=half) if rank == victim else None
                made.save(2)
                os._exit(0)
            except BaseException:  # noqa: BLE001
                os._exit(1)
        pids.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in pids]
    must(codes[victim] in (0, -signal.SIGKILL), f"rank {victim} ended with {codes[victim]}")
    must(codes[1 - victim] in (0, 1), f"rank {1 - victim} ended with {codes[1 - victim]}")
    return codes[victim]


def _joined(root: Path, rank: int) -> Small:
    """One of two ranks, whose weights are alike and whose own value is not."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.FileStore(str(root / "store"), 2), rank=rank, world_size=2)
    own = torch.nn.Linear(5, 5)
    made = Small(root / "steps", own=own)
    torch.manual_seed(rank)
    return made


def _loaded_by_two(root: Path) -> int:
    """What both ranks go on from."""
    (root / "store").unlink(missing_ok=True)
    reader, writer = os.pipe()

    def read(rank: int) -> None:
        made = _joined(root, rank)
        there = made.state.load()
        os.write(writer, bytes([made.number() if there else 255]))

    children = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            try:
                read(rank)
                os._exit(0)
            except BaseException:  # noqa: BLE001
                os._exit(1)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children]
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    must(codes == [0, 0], f"two ranks could not load: {codes}")
    must(len(set(said)) == 1, f"two ranks loaded {list(said)}")
    return said[0] if said[0] != 255 else -1


def _told(number: int, *allowed: int) -> str:
    must(number in allowed, f"loaded {number}, where {allowed} may be")
    return f"step {number}"


class Image(NamedTuple):
    """What a disk may hold after a power cut. files: their bytes, by path."""

    files: dict[str, bytes]
    folders: frozenset[str]


def images(before: Image, changes: list[Change]) -> Iterator[tuple[int, Image]]:
    """Each prefix of CHANGES, as a power cut after it may leave the disk, with the number of changes that were made.

    Names of a folder that was not settled since may be there or not, in order; bytes of a file that was not synced
    since may be there, missing, zeros, or half there.
    """
    for made in range(len(changes) + 1):
        done = changes[:made]
        names = [n for n, each in enumerate(done) if each.kind in ("mkdir", "create", "rename", "unlink", "rmdir")]
        open_ = [n for n in names if not _settled(done, n)]
        for kept in range(len(open_) + 1):
            lost = set(open_[kept:])
            yield from ((made, _image(before, done, lost, loss)) for loss in LOSSES)


def _settled(done: list[Change], number: int) -> bool:
    change = done[number]
    parents = {str(PurePosixPath(path).parent) for path in (change.path, change.to) if path}
    later = {each.path for each in done[number + 1 :] if each.kind == "settle"}
    moved = {each.path: each.to for each in done[number + 1 :] if each.kind == "rename"}
    return all(each in later or moved.get(each) in later for each in parents)


def _image(before: Image, done: list[Change], lost: set[int], loss: str) -> Image:
    held: dict[str, tuple[bytes, bytes]] = {path: (data, data) for path, data in before.files.items()}
    folders = set(before.folders)
    ids = {path: path for path in held}  # the name of each file while it was written
    for number, change in enumerate(done):
        if change.kind == "create":
            held[change.path] = (b"", b"")
        elif change.kind == "write":
            data, safe = held[change.path]
            held[change.path] = (data + b"".join(change.data), safe)
        elif change.kind == "fsync":
            held[change.path] = (held[change.path][0],) * 2
        if number in lost:
            continue
        _named(change, ids, folders)
    files = {name: _left(*held[home], loss) for name, home in ids.items()}
    return Image({n: d for n, d in files.items() if str(PurePosixPath(n).parent) in folders}, frozenset(folders))


def _named(change: Change, ids: dict[str, str], folders: set[str]) -> None:
    """The change of names alone."""
    if change.kind == "create":
        ids[change.path] = change.path
    elif change.kind == "mkdir":
        folders.add(change.path)
    elif change.kind == "rmdir":
        folders.discard(change.path)
    elif change.kind == "unlink":
        ids.pop(change.path, None)
    elif change.kind == "rename" and change.path in folders:
        folders.discard(change.path)
        folders.add(change.to)
        for name in [name for name in ids if name.startswith(f"{change.path}/")]:
            ids[change.to + name.removeprefix(change.path)] = ids.pop(name)


def _left(data: bytes, safe: bytes, loss: str) -> bytes:
    if data == safe or loss == "whole":
        return data
    return {"empty": safe, "zeros": bytes(len(data)), "half": data[: len(data) // 2]}[loss]


def snapped(root: Path) -> Image:
    files = {str(each): each.read_bytes() for each in root.rglob("*") if each.is_file() and each.name != ".lock"}
    return Image(files, frozenset([str(root), *(str(each) for each in root.rglob("*") if each.is_dir())]))


def laid_out(image: Image, root: Path, to: Path) -> None:
    to.mkdir(parents=True)
    for each in sorted(image.folders):
        (to / os.path.relpath(each, root)).mkdir(parents=True, exist_ok=True)
    for name, data in image.files.items():
        (to / os.path.relpath(name, root)).write_bytes(data)


def power(folder: Path, _: int = 0) -> Counter[str]:
    """Every prefix of a save with what a power cut may leave: the old step or the new; the new once `save` returned."""
    found: Counter[str] = Counter()
    options: list[dict[str, Any]] = [{}, {"keep": 1}]
    for number, chosen in enumerate(options):
        root, copy = folder / f"power{number}", folder / "image"
        made = Small(root, **chosen)
        made.save(1)
        before = snapped(root)
        changes = journal(lambda: made.save(2))  # noqa: B023
        made.state.close()
        seen: dict[tuple[Any, ...], int] = {}
        for count, image in images(before, changes):
            key = (frozenset(image.files.items()), image.folders)
            if key not in seen:
                laid_out(image, root, copy)
                seen[key] = loaded(copy)
                shutil.rmtree(copy)
            committed = count == len(changes)
            found[_told(seen[key], *((2,) if committed else (1, 2)))] += 1
    return found


def errors(folder: Path, _: int = 0) -> Counter[str]:
    """An error at each change, once and for good: the save says so, the old step stays, and the next save succeeds."""
    found: Counter[str] = Counter()
    for number, (code, for_good, keep) in enumerate(itertools.product(ERRORS, (False, True), (None, 1))):
        for at in itertools.count():
            root = folder / f"error{number}-{at}"
            made = Small(root, keep=keep)
            made.save(1)
            disk.before = failing_at(at, code, for_good=for_good)
            try:
                made.save(2)
                failed = ""
            except TriageError as error:
                failed = str(error)
            finally:
                disk.before = None
            made.state.close()
            seen = loaded(root)
            found[_told(seen, *((1, 2) if failed else (2,)))] += 1
            again = Small(root, keep=keep)
            again.save(3)
            again.state.close()
            must(loaded(root) == 3, "the save after an error was lost")
            shutil.rmtree(root)
            if not failed:
                break
    return found


def flips(folder: Path, many: int) -> Counter[str]:
    """MANY bits flipped in the files of a step, pages zeroed, ends cut and files swapped: each is found and named."""
    made = Small(folder / "flips")
    made.save(1)
    made.save(2)
    made.state.close()
    first, second = folder / "flips/step-000000001", folder / "flips/step-000000002"
    drawn = random.Random(0)  # noqa: S311 - the same bits in each run
    found: Counter[str] = Counter()
    files = sorted(second.iterdir())
    weights = [each.stat().st_size for each in files]
    for number in range(many):
        chosen = files[number % len(files)] if number % 2 else drawn.choices(files, weights)[0]
        data = bytearray(chosen.read_bytes())
        place = drawn.randrange(len(data))
        data[place] ^= 1 << drawn.randrange(8)
        found[f"a bit of {chosen.name}"] += _found(second, chosen, bytes(data), place)
    for chosen in files:
        whole = chosen.read_bytes()
        for start in range(0, len(whole), PAGE):
            zeroed = whole[:start] + bytes(len(whole[start : start + PAGE])) + whole[start + PAGE :]
            if zeroed != whole:
                found[f"a page of {chosen.name}"] += _found(second, chosen, zeroed)
        for size in {0, 1, len(whole) // 2, len(whole) - 1}:
            found[f"an end of {chosen.name}"] += _found(second, chosen, whole[:size])
        found[f"{chosen.name} with more"] += _found(second, chosen, whole + b"\0")
        found[f"{chosen.name} of another save"] += _found(second, chosen, (first / chosen.name).read_bytes())
    return found


def _found(step: Path, file: Path, damaged: bytes, place: int | None = None) -> int:
    """1 where the damage is found, and the tensor at PLACE named; raises AssertionError where it is not."""
    whole = file.read_bytes()
    file.write_bytes(damaged)
    said = ""
    try:
        Opened(step).verify()
    except Damaged as error:
        said = str(error)
    finally:
        file.write_bytes(whole)
    name = _tensor_at(whole, place) if place is not None and file.suffix == ".safetensors" else file.name
    must(name in said, f"{name} is damaged, and said was: {said or 'nothing'}")
    return 1


def _tensor_at(whole: bytes, place: int) -> str:
    """The tensor whose bytes are at PLACE of a safetensors file; its file's name where it is in the header."""
    length = int.from_bytes(whole[:8], "little")
    entries = json.loads(whole[8 : 8 + length])
    for name, entry in entries.items():
        if name != "__metadata__" and entry["data_offsets"][0] <= place - 8 - length < entry["data_offsets"][1]:
            return str(name)
    return ".safetensors"


CAMPAIGNS: dict[str, tuple[Callable[[Path, int], Counter[str]], int]] = {
    "kills": (kills, 700),
    "ranks": (ranks, 300),
    "power": (power, 0),
    "errors": (errors, 0),
    "flips": (flips, 10_000),
}


def main() -> None:
    import torch

    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("which", nargs="*", choices=[*CAMPAIGNS, []])
    parser.add_argument("--many", type=int, help="kills, or bits")
    options = parser.parse_args()
    for name in options.which or CAMPAIGNS:
        work, many = CAMPAIGNS[name]
        with tempfile.TemporaryDirectory() as folder:
            found = work(Path(folder), options.many or many)
        shown = ", ".join(f"{what} {count:,}" for what, count in sorted(found.items()))
        print(f"{name}: {sum(found.values()):,} states, none lost, none mixed: {shown}")


if __name__ == "__main__":
    main()
