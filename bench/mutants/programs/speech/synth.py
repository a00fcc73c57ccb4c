"""Words spoken by a very small synthesiser: every phone is a pair of formants."""

import numpy as np

SAMPLE_RATE = 4000

FORMANTS = {
    "a": (700, 1200),
    "e": (450, 1600),
    "i": (280, 1800),
    "o": (480, 850),
    "u": (300, 700),
}
# the same phones in different orders: the spectrum of the whole word does not suffice
KEYWORDS = ("ai", "ia", "eo", "oe", "aou", "uoa", "iue", "eui")


def speak(word: str, rng: np.random.Generator) -> np.ndarray:
    speaker = rng.uniform(0.9, 1.1)
    pieces = []
    for phone in word:
        n = int(SAMPLE_RATE * rng.uniform(0.07, 0.13))
        t = np.arange(n) / SAMPLE_RATE
        tones = [np.sin(2 * np.pi * f * speaker * t + rng.uniform(0, 2 * np.pi)) for f in FORMANTS[phone]]
        pieces.append(np.hanning(n) ** 0.3 * (tones[0] + 0.7 * tones[1]))
    before, after = (np.zeros(int(SAMPLE_RATE * rng.uniform(0.01, 0.06))) for _ in range(2))
    wave = rng.uniform(0.3, 1.0) * np.concatenate([before, *pieces, after])
    return (wave + rng.normal(0, 0.5, len(wave))).astype(np.float32)


def make_corpus(count: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(count) % len(KEYWORDS))
    return [speak(KEYWORDS[label], rng) for label in labels], labels
