"""Reading long logs and long curves against the least that a reader in Python could do with the same bytes.

    python bench/logs.py [--megabytes N] [--points N] [--rounds N]

A log of 64 ranks in one file, in which one rank's traceback stands far before the errors of all others: the planted
cause must be found at its line. The floor reads the file line by line and searches each with one regular expression.
A TensorBoard file of so many points, whose loss turns nan at a planted step; the floor goes from record to record and
takes each step and value by a struct at a fixed place. Seconds of CPU of a process of its own, in turns, least of the
rounds; the peak of memory of that process.
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from torchtriage.examine.artefact.crc import masked

RANKS, AT_LEAST = 64, 0.6
MOST = {"log": 7.0, "curves": 7.0}
"""Times the floor, which judges nothing: some forty words are looked for in each byte of a log, where it has one
expression; of curves, a third of the time goes into what becomes of the points."""
TIMED = """
import sys, time
begun = time.process_time()
{work}
spent = time.process_time() - begun
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("timed", spent, int(peak.split()[1]) / 1024)
"""
READ = "from torchtriage.triage import read; case = read(sys.argv[1:])"
FLOORS = {
    "log": """
import re
look = re.compile(rb"Traceback|Error|Killed|Exception")
found = 0
with open(sys.argv[1], "rb") as file:
    for line in file:
        if look.search(line):
            found += 1
""",
    "curves": """
import struct
told = []
with open(sys.argv[1], "rb") as file:
    while head := file.read(12):
        data = file.read(int.from_bytes(head[:8], "little") + 4)
        told.append((data[10:20], struct.unpack("<f", data[-8:-4])))
""",
}
CAUSE = """[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/job/train.py", line 27, in step
[rank{rank}]:     loss = criterion(model(x), y)
[rank{rank}]: RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x9 and 8x16)
"""
PEER = """[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/job/train.py", line 29, in step
[rank{rank}]:     loss.backward()
[rank{rank}]: RuntimeError: [/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.{rank}]:12192.
"""


def log(path: Path, megabytes: int) -> int:
    """A log of so many MB; the line at which the planted cause is."""
    chance, lines, written, cause = Random(7), 0, 0, 0  # noqa: S311
    with path.open("w") as file:
        step = 0
        while written < megabytes * 1_000_000:
            step += 1
            loss, pace = 3 + chance.random(), chance.random() * 1e5
            rows = [
                f"[rank{rank}]: 2026-01-01 12:00:{step % 60:02d},{rank:03d} INFO train step {step} "
                f"loss {loss:.4f} lr 1.0e-04 grad_norm {loss / 3:.3f} tokens/s {pace:.0f}\n"
                for rank in range(RANKS)
            ]
            if not cause and written > AT_LEAST * megabytes * 1_000_000:
                rows.append(CAUSE.format(rank=RANKS // 2))
                cause = lines + RANKS + 4
            text = "".join(rows)
            file.write(text)
            written, lines = written + len(text), lines + text.count("\n")
        file.write("".join(PEER.format(rank=rank) for rank in range(RANKS) if rank != RANKS // 2))
    return cause


def curves(path: Path, points: int) -> int:
    """A file of TensorBoard with so many points; the step from which on they are nan."""
    gone = int(0.9 * points)
    with path.open("wb") as file:
        file.write(record(b"\x09" + struct.pack("<d", 1.0) + b"\x1a\x0dbrain.Event:2"))
        for step in range(points):
            value = float("nan") if step >= gone else 2.0 + (step % 100) / 100
            scalar = b"\x0a\x0atrain/loss\x15" + struct.pack("<f", value)
            summary = b"\x0a" + bytes([len(scalar)]) + scalar
            event = (
                b"\x09"
                + struct.pack("<d", 1.0 + step)
                + b"\x10"
                + varint(step)
                + b"\x2a"
                + bytes([len(summary)])
                + summary
            )
            file.write(record(event))
    return gone


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + b"\0\0\0\0"


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def timed(work: str, path: Path) -> tuple[float, float]:
    """Seconds of CPU, and MB at most."""
    done = subprocess.run(
        [sys.executable, "-c", TIMED.format(work=work), str(path)], check=True, capture_output=True, text=True
    )
    seconds, peak = done.stdout.split("timed")[1].split()
    return float(seconds), float(peak)


def measure(name: str, path: Path, rounds: int) -> bool:
    """In turns; whether reading takes at most so many times the floor."""
    told = [(timed(READ, path), timed(FLOORS[name], path)) for _ in range(rounds)]
    (ours, peak), (floor, least) = min(each[0] for each in told), min(each[1] for each in told)
    size = path.stat().st_size / 1e6
    print(f"{name}: {size:.0f} MB, read and judged in {ours:.2f} s and {peak:.0f} MB")
    print(f"    floor {floor:.2f} s and {least:.0f} MB: {ours / floor:.2f} times it, at most {MOST[name]:g}")
    return ours <= MOST[name] * floor


def found(path: Path) -> dict[str, dict[str, Any]]:
    """The place of the first evidence of each fault."""
    from torchtriage.triage import read

    case = json.loads(read([path]).encode())
    return {each["fault"]: each["evidence"][0]["place"] for each in case["findings"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        long, drawn = Path(folder, "job.log"), Path(folder, "events.out.tfevents.1")
        line, step = log(long, given.megabytes), curves(drawn, given.points)
        planted = found(long).get("shape-mismatch", {}), found(drawn).get("non-finite-origin", {})
        print(f"planted cause at line {line}, found at {planted[0].get('line')}")
        print(f"planted nan at step {step}, found at {planted[1].get('step')}")
        told = [measure("log", long, given.rounds), measure("curves", drawn, given.rounds)]
    right = [
        place.get(what) == wanted for place, what, wanted in zip(planted, ("line", "step"), (line, step), strict=True)
    ]
    sys.exit(0 if all((*told, *right)) else 1)


if __name__ == "__main__":
    main()
