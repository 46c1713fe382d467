"""How messages show lists of names, and how options name marks."""

from collections.abc import Sequence

# names of separators that are hard to type
MARK_WORDS = {"newline": "\n", "space": " ", "tab": "\t", "comma": ",", "semicolon": ";"}
SHOWN = 5  # rows or items in a message


def names_shown(names: Sequence[str], most: int = SHOWN) -> str:
    """Return the first names, with ``…`` if there are more."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def names_counted(names: Sequence[str], most: int = SHOWN) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")
