"""The error that says what is wrong with data."""


class RankingsError(ValueError):
    """Invalid data. The message is one line that names the row, the item and what was expected."""
