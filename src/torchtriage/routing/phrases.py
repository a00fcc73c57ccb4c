"""Phrases as a trie over words, matched in one pass however many there are.

A phrase is written as people say it. `a|b` is either word, `word?` may be missing, `..` stands for up to four
words, `#` for a number, `<name>` for any word of a named class, `=word` for that very form. Words that carry no
meaning of their own (light words) are left out of phrases and passed over in texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import TypeAlias

import msgspec
from msgspec import Struct

from torchtriage.routing.words import NUMBER, PAUSE, Token, fold, stem, tokens

GAP = ".."
REACH = 4
MEMORY = 50_000


class Vocabulary(Struct, frozen=True):
    """How single words are read.

    light: forms that are passed over. spellings: form → the form it is another spelling of.
    classes: stem → the classes ("<slow>") that it belongs to.
    """

    light: frozenset[str] = frozenset()
    spellings: dict[str, str] = {}
    classes: dict[str, tuple[str, ...]] = {}

    def symbols(self, form: str) -> tuple[str, ...]:
        """Everything a trie may call this word: its stem, its very form, its classes."""
        form = self.spellings.get(form, form)
        root = stem(form)
        return (root, f"={form}", *self.classes.get(root, ()))


class Branch(Struct, frozen=True, array_like=True):
    """All phrases that begin with one symbol: edges[state][symbol] → state, from state 0, where that symbol is behind.

    ends: state → the numbers of the meanings that end there.
    """

    edges: tuple[dict[str, int], ...]
    ends: dict[int, tuple[int, ...]]


class Trie(Struct, frozen=True):
    """Every branch by its first symbol, still encoded: a query meets few of them. symbols: all of all branches."""

    branches: dict[str, bytes]
    symbols: frozenset[str]


class Node(Struct, eq=False):
    """A state of a branch, ready to walk: symbol → the next one, the meanings that end here, what follows a gap."""

    edges: dict[str, Node]
    ends: tuple[int, ...]
    gap: Node | None


@cache
def _grown(encoded: bytes) -> Node:
    """The first state of a branch; a state's number is smaller than those of the states behind it."""
    branch = msgspec.json.decode(encoded, type=Branch)
    nodes: dict[int, Node] = {}
    for state in reversed(range(len(branch.edges))):
        edges = {symbol: nodes[behind] for symbol, behind in branch.edges[state].items()}
        nodes[state] = Node(edges, branch.ends.get(state, ()), edges.get(GAP))
    return nodes[0]


class Hit(Struct, frozen=True, gc=False):
    """A phrase heard: the number of its meaning and the positions of the words that made it up."""

    meaning: int
    words: tuple[int, ...]


def compile_phrases(meanings: Iterable[Iterable[str]], vocabulary: Vocabulary) -> Trie:
    """The trie of all phrases of all meanings, numbered as they come; raises ValueError for an empty phrase."""
    growing: dict[str, tuple[list[dict[str, int]], dict[int, set[int]]]] = {}
    symbols: set[str] = set()
    for number, phrases in enumerate(meanings):
        for phrase in phrases:
            for first, *rest in _spelled(phrase, vocabulary):
                symbols.update((first, *rest))
                edges, ends = growing.setdefault(first, ([{}], {}))
                ends.setdefault(_grow(edges, rest), set()).add(number)
    branches = {first: _encoded(edges, ends) for first, (edges, ends) in growing.items()}
    return Trie(branches, frozenset(symbols))


def _grow(edges: list[dict[str, int]], symbols: Iterable[str]) -> int:
    """The state that SYMBOLS lead to; what is missing on the way is added."""
    state = 0
    for symbol in symbols:
        if symbol not in edges[state]:
            edges.append({})
            edges[state][symbol] = len(edges) - 1
        state = edges[state][symbol]
    return state


def _encoded(edges: list[dict[str, int]], ends: dict[int, set[int]]) -> bytes:
    branch = Branch(tuple(edges), {state: tuple(sorted(found)) for state, found in sorted(ends.items())})
    return msgspec.json.encode(branch)


def _spelled(phrase: str, vocabulary: Vocabulary) -> Iterator[tuple[str, ...]]:
    """Every sequence of symbols that PHRASE stands for."""
    choices = [_choices(part, vocabulary) for part in phrase.split()]
    for combination in product(*choices):
        symbols = tuple(symbol for part in combination for symbol in part)
        if not symbols or GAP in (symbols[0], symbols[-1]):
            raise ValueError(f"phrase {phrase!r}: it must begin and end with a word that means something")
        yield symbols


def _choices(part: str, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    if part == GAP:
        return [(GAP,)]
    options = [_symbols(word, vocabulary) for word in part.removesuffix("?").split("|")]
    return [*options, ()] if part.endswith("?") else options


def _symbols(word: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The symbols of one written word; several for one that the ear takes apart (zero_grad → zero grad)."""
    if word[0] == "<" and word[-1] == ">":
        if not any(word in names for names in vocabulary.classes.values()):
            raise ValueError(f"no class of words is called {word}")
        return (word,)
    if word[0] == "=":
        return (f"={fold(word[1:])}",)
    forms = [form for form, *_ in tokens(word.replace(NUMBER, "0"))]
    return tuple(vocabulary.symbols(form)[0] for form in forms if form not in vocabulary.light)


Spelling: TypeAlias = tuple[str, ...] | None


def spell(
    text: Iterable[Token], trie: Trie, vocabulary: Vocabulary, known: dict[str, Spelling] | None = None
) -> list[Spelling]:
    """For every token the symbols by which TRIE can know it; None for a light word, (PAUSE,) for a pause.

    KNOWN: what was spelled before with this trie and vocabulary; it is added to.
    """
    heard = {} if known is None else known
    if len(heard) > MEMORY:
        heard.clear()
    spelled = []
    for form, *_ in text:
        if form not in heard:
            heard[form] = _spelling(form, trie, vocabulary)
        spelled.append(heard[form])
    return spelled


def _spelling(form: str, trie: Trie, vocabulary: Vocabulary) -> Spelling:
    if form == PAUSE:
        return (PAUSE,)
    if form in vocabulary.light:
        return None
    return tuple(symbol for symbol in vocabulary.symbols(form) if symbol in trie.symbols)


_Threads: TypeAlias = dict[Node, tuple[tuple[int, ...], int]]


def match(spelled: Iterable[Spelling], trie: Trie) -> list[Hit]:
    """Every phrase in the text, in the order in which they end; linear in the text.

    One thread per state is kept, the one that began last: the tightest match.
    """
    hits: list[Hit] = []
    threads: _Threads = {}
    branches = trie.branches
    for at, symbols in enumerate(spelled):
        if symbols is None or not (symbols or threads):
            continue
        if symbols == (PAUSE,):
            threads = {}
            continue
        alive: _Threads = {}
        for node, (words, left) in threads.items():
            if left and node not in alive:
                alive[node] = (words, left - 1)
            for symbol in symbols:
                if (arrived := node.edges.get(symbol)) is not None:
                    _arrive(arrived, (*words, at), alive, hits)
        for symbol in symbols:
            if (encoded := branches.get(symbol)) is not None:
                _arrive(_grown(encoded), (at,), alive, hits)
        threads = alive
    return hits


def _arrive(node: Node, words: tuple[int, ...], alive: _Threads, hits: list[Hit]) -> None:
    if node.ends:
        hits.extend([Hit(meaning, words) for meaning in node.ends])
    if node.edges:
        alive[node] = (words, 0)
        if node.gap is not None:
            alive[node.gap] = (words, REACH)


def longest(hits: Iterable[Hit], swallows: Sequence[bool]) -> list[Hit]:
    """HITS without those whose words are all part of a longer one: "memory" in "memory network" is not memory.

    swallows: by meaning, whether it takes part in this at all; those that do not are kept as they are.
    """
    found = list(dict.fromkeys(hits))
    above: dict[int, list[frozenset[int]]] = {}
    for hit in found:
        if swallows[hit.meaning]:
            whole = frozenset(hit.words)
            for word in hit.words:
                above.setdefault(word, []).append(whole)
    return [
        hit
        for hit in found
        if not swallows[hit.meaning] or not any(frozenset(hit.words) < other for other in above[hit.words[0]])
    ]
