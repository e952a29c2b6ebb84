"""Texts of somebody else's (names, overrides, log lines) as a terminal may show them."""


def make_plain(text: str) -> str:
    """The text on one line; what would steer a terminal or turn its writing around is spelt out as in Python."""
    return "".join(letter if letter.isprintable() else _spell(letter) for letter in " ".join(text.split()))


def _spell(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
