"""The version, which the package and its saved draws name."""

__version__ = "0.2.0"
