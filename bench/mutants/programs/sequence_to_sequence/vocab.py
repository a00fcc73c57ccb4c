"""Tokens: padding, begin, end and the ten digits. The size is filled up to a multiple of eight."""

PAD, BOS, EOS = 0, 1, 2
FIRST_DIGIT = 3
VOCAB_SIZE = 16


def encode_digits(digits: tuple[int, ...]) -> list[int]:
    return [FIRST_DIGIT + d for d in digits]


def render(tokens: list[int]) -> str:
    """Digits up to the first end token."""
    text = ""
    for token in tokens:
        if token == EOS:
            break
        text += str(token - FIRST_DIGIT) if FIRST_DIGIT <= token < FIRST_DIGIT + 10 else "?"
    return text
