"""``python -m numpyro_rankings``."""

from numpyro_rankings.cli.program import run_program

if __name__ == "__main__":
    run_program()
