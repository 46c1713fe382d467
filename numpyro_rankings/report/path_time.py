"""Whether there is time for a further number of components, from how long the others took."""

from numpyro_rankings._system import clock

_FIRST_GROWTH, _MOST_GROWTH = 1.5, 2.0  # of the time from one number to the next


class PathTime:
    """The time of a path, and of a fit that is to follow it.

    A number takes longer than the one before it by as much as that one did, and a program as long
    to compile as the first one. Where other programs have a part of the machine, so they had then.

    :param minutes: for all of it, None without an end.
    :param fit: ladders of the fit, as a multiple of those of the path; 0 if none follows.
    """

    def __init__(self, minutes: float | None, fit: float = 0.0) -> None:
        self._start = self._began = clock.now()
        self._end = None if minutes is None else self._start + 60 * minutes
        self._fit = fit
        self._compilation: float | None = None
        self._took = list[float]()

    def begin(self) -> None:
        """Take note that the sweeps of a number begin."""
        self._began = clock.now()

    def sweep(self) -> None:
        """Take note of sweeps, before the first of which the program was compiled."""
        if self._compilation is None:
            self._compilation = clock.now() - self._start
            self.begin()

    def end(self) -> None:
        """Take note that the sweeps of a number have ended."""
        self._took.append(clock.now() - self._began)

    def is_over(self) -> bool:
        """Whether the first number has no time left, or a further one would take that of the fit.

        A fit of a further number takes as long as its ladders have taken so far, or longer.
        """
        if self._end is None:
            return False
        time = clock.now()
        if not self._took:
            return time > self._end
        return time + self._time_of_fit(max(time - self._began, self._took[-1])) > self._end

    def suffices(self, compiles: bool, numbers: int = 1) -> bool:
        """Whether one or more further numbers, and a fit of the last, would end in time.

        :param compiles: whether they need a program that is not there yet.
        """
        if self._end is None:
            return True
        takes = self._next(numbers)
        program = (self._compilation or 0.0) * compiles
        return clock.now() + program + sum(takes) + self._time_of_fit(takes[-1]) <= self._end

    def _next(self, numbers: int) -> list[float]:
        """Return how long the next numbers will take."""
        if not self._took:
            return [0.0] * numbers
        growth = _FIRST_GROWTH
        if len(self._took) > 1 and self._took[-2] > 0:
            growth = min(max(self._took[-1] / self._took[-2], 1.0), _MOST_GROWTH)
        return [growth ** (k + 1) * self._took[-1] for k in range(numbers)]

    def _time_of_fit(self, of_number: float) -> float:
        """Return how long the fit takes, given how long the ladders of its number do."""
        return ((self._compilation or 0.0) + self._fit * of_number) if self._fit else 0.0
