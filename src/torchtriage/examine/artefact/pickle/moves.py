"""What each opcode of a pickle does to the stack of the machine; of the whole protocol, from the oldest text on."""

from __future__ import annotations

import struct
from codecs import raw_unicode_escape_decode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchtriage.examine.artefact.pickle.nodes import Called

if TYPE_CHECKING:
    from torchtriage.examine.artefact.pickle.machine import Machine

DIGITS = 4000
"""Of a number in the text protocol; Python itself refuses more than 4300."""
SLOTS = 2**32
_U2, _U4, _I4, _U8 = (struct.Struct(form).unpack_from for form in ("<H", "<I", "<i", "<Q"))
_F8 = struct.Struct(">d").unpack_from


def _text(text: bytes) -> str:
    return str(text, "utf-8", "surrogatepass")


def _global(m: Machine) -> None:
    module = m.line()
    m.stack.append(m.named(f"{_text(module)}.{_text(m.line())}"))


def _stack_global(m: Machine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise m.broken("a global whose name is no text")
    m.stack.append(m.named(f"{module}.{name}"))


def _reduce(m: Machine) -> None:
    args = m.stack.pop()
    m.stack[-1] = m.call(m.stack[-1], args)


def _newobj_ex(m: Machine) -> None:
    m.stack.pop()
    _reduce(m)


def _inst(m: Machine) -> None:
    module = m.line()
    what = m.named(f"{_text(module)}.{_text(m.line())}")
    m.stack.append(m.call(what, tuple(m.marked())))


def _obj(m: Machine) -> None:
    what, *args = m.marked()
    m.stack.append(m.call(what, tuple(args)))


def _build(m: Machine) -> None:
    state = m.stack.pop()
    m.fill(m.stack[-1], state)


def _setitem(m: Machine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    m.put(m.stack[-1], [key, value])


def _setitems(m: Machine) -> None:
    pairs = m.marked()
    m.put(m.stack[-1], pairs)


def _append(m: Machine) -> None:
    item = m.stack.pop()
    m.add(m.stack[-1], [item])


def _appends(m: Machine) -> None:
    items = m.marked()
    m.add(m.stack[-1], items)


def _additems(m: Machine) -> None:
    items = m.marked()
    m.stack[-1].items.extend(items)


def _set(items: list[Any]) -> Called:
    made = Called("builtins.set", ())
    made.items = items
    return made


def _dict(m: Machine) -> None:
    pairs = m.marked()
    made: dict[Any, Any] = {}
    m.put(made, pairs)
    m.stack.append(made)


def _tuple(size: int) -> Callable[[Machine], None]:
    def make(m: Machine) -> None:
        items = tuple(m.stack[-size:])
        if len(items) < size:
            raise IndexError
        m.stack[-size:] = [items]

    return make


def _push(read: Callable[[Machine], Any]) -> Callable[[Machine], None]:
    return lambda m: m.stack.append(read(m))


def _pop(m: Machine) -> None:
    if m.marks and m.marks[-1] == len(m.stack):
        m.marks.pop()
    else:
        m.stack.pop()


def _memoize(slot: Callable[[Machine], int]) -> Callable[[Machine], None]:
    def keep(m: Machine) -> None:
        m.memo[slot(m)] = m.stack[-1]

    return keep


def _remembered(slot: Callable[[Machine], int]) -> Callable[[Machine], None]:
    def get(m: Machine) -> None:
        m.stack.append(m.memo[slot(m)])

    return get


def _decimal(line: bytes) -> int | bool:
    if line in (b"00", b"01"):
        return line == b"01"
    return int(line.rstrip(b"L")[:DIGITS])


def _slot(m: Machine) -> int:
    slot = int(m.line()[:20])
    if not 0 <= slot < SLOTS:
        raise m.broken(f"memo slot {slot:,}")
    return slot


def _u1(m: Machine) -> int:
    value = m.data[m.at]
    m.at += 1
    return value


def _u2(m: Machine) -> int:
    return int(m.number(_U2, 2))


def _u4(m: Machine) -> int:
    return int(m.number(_U4, 4))


def _i4(m: Machine) -> int:
    return int(m.number(_I4, 4))


def _u8(m: Machine) -> int:
    return int(m.number(_U8, 8))


def _whole(data: bytes) -> int:
    return int.from_bytes(data[:DIGITS], "little", signed=True)


def _protocol(m: Machine) -> None:
    if (said := _u1(m)) > 5:
        raise m.broken(f"protocol {said}")


def _frame(m: Machine) -> None:
    m.take(8)


def _refused(m: Machine) -> None:
    m.at -= 1
    raise m.broken(f"there is no opcode {bytes([m.data[m.at]])!r}")


def _counted(size: Callable[[Machine], int], made: Callable[[bytes], Any]) -> Callable[[Machine], None]:
    return lambda m: m.stack.append(made(m.take(size(m))))


def _latin(data: bytes) -> str:
    return str(data, "latin-1")


STOP = ord(".")
_CODES: dict[bytes, Callable[[Machine], None]] = {
    b"q": _memoize(_u1), b"r": _memoize(_u4), b"p": _memoize(_slot), b"\x94": _memoize(lambda m: len(m.memo)),
    b"h": _remembered(_u1), b"j": _remembered(_u4), b"g": _remembered(_slot),
    b"X": _counted(_u4, _text), b"\x8c": _counted(_u1, _text), b"\x8d": _counted(_u8, _text),
    b"T": _counted(_i4, _latin), b"U": _counted(_u1, _latin),
    b"B": _counted(_u4, bytes), b"C": _counted(_u1, bytes), b"\x8e": _counted(_u8, bytes),
    b"\x96": _counted(_u8, bytes),
    b"\x8a": _counted(_u1, _whole), b"\x8b": _counted(_i4, _whole),
    b"K": _push(_u1), b"M": _push(_u2), b"J": _push(_i4), b"G": _push(lambda m: m.number(_F8, 8)),
    b"I": _push(lambda m: _decimal(m.line())), b"L": _push(lambda m: _decimal(m.line())),
    b"F": _push(lambda m: float(m.line())), b"S": _push(lambda m: _latin(m.line()[1:-1])),
    b"V": _push(lambda m: raw_unicode_escape_decode(m.line())[0]),
    b"N": lambda m: m.stack.append(None), b"\x88": lambda m: m.stack.append(True),
    b"\x89": lambda m: m.stack.append(False),
    b"(": lambda m: m.marks.append(len(m.stack)), b"0": _pop, b"1": lambda m: m.marked().clear(),
    b"2": lambda m: m.stack.append(m.stack[-1]),
    b")": lambda m: m.stack.append(()), b"}": lambda m: m.stack.append({}), b"]": lambda m: m.stack.append([]),
    b"\x8f": lambda m: m.stack.append(_set([])),
    b"t": _push(lambda m: tuple(m.marked())), b"\x85": _tuple(1), b"\x86": _tuple(2), b"\x87": _tuple(3),
    b"l": _push(lambda m: m.marked()), b"d": _dict, b"\x91": _push(lambda m: _set(m.marked())),
    b"s": _setitem, b"u": _setitems, b"a": _append, b"e": _appends, b"\x90": _additems,
    b"c": _global, b"\x93": _stack_global, b"R": _reduce, b"\x81": _reduce, b"\x92": _newobj_ex, b"i": _inst,
    b"o": _obj,
    b"b": _build, b"P": _push(lambda m: m.pid(_latin(m.line()))), b"Q": lambda m: m.stack.append(m.pid(m.stack.pop())),
    b"\x80": _protocol, b"\x95": _frame,
    b"\x82": _push(lambda m: m.named(f"extension {_u1(m)}")), b"\x83": _push(lambda m: m.named(f"extension {_u2(m)}")),
    b"\x84": _push(lambda m: m.named(f"extension {_i4(m)}")), b"\x98": lambda _: None,
}  # fmt: skip
TABLE: list[Callable[[Machine], None]] = [_CODES.get(bytes([code]), _refused) for code in range(256)]
