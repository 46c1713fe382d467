"""Ballots of the slate-Plackett–Luce model of VoteKit: two blocs, each with a slate of three."""

import numpy as np

ITEMS = ["a1", "a2", "a3", "b1", "b2", "b3"]
SLATES = {item: item[0].upper() for item in ITEMS}
SHARE, OWN = 0.65, (0.85, 0.9)  # share of the first bloc, and the cohesion of each
PREFERENCE = np.array([[0.6, 0.3, 0.1, 0.5, 0.3, 0.2], [0.2, 0.3, 0.5, 0.1, 0.3, 0.6]])


def slate_ballots(rng, number):
    """Ballots, (number, 6), and the bloc of each; the blocs are drawn."""
    blocs = (rng.random(number) >= SHARE).astype(int)
    ballots = np.zeros((number, 6), int)
    for ballot, bloc in zip(ballots, blocs, strict=True):
        slates = [
            3 * slate + np.argsort(rng.exponential(size=3) / of_bloc)
            for slate, of_bloc in enumerate(PREFERENCE[bloc].reshape(2, 3))
        ]
        left = [list(x) for x in slates]
        for place in range(6):
            own = rng.random() < OWN[bloc]
            slate = bloc if own else 1 - bloc
            slate = slate if left[slate] else 1 - slate
            ballot[place] = left[slate].pop(0)
    return ballots, blocs
