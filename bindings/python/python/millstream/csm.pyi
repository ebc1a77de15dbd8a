"""Decide with evidence: confidence sequences, exact tests and stopping rules whose errors are on the safe side."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, final

_Method = Literal["mixture", "balanced", "robbins", "centred", "one-sided", "sprt", "blend"]
_Outcomes = Iterable[bool | int | float] | Sequence[bool] | Any
"""Booleans, or numbers that are 0 or 1: an iterable, or any buffer such as a numpy array."""
_Numbers = Iterable[float] | Any
"""Numbers: an iterable, or any buffer such as a numpy array."""

class CsmError(ValueError):
    """A question without an answer: what was expected, what was found, and what to do."""

@final
class Bounds:
    """Two bounds around an exact value: `lower <= exact value <= upper`."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...

@final
class Interval:
    """An interval from `low` to `high`, both included."""

    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def width(self) -> float: ...
    def __contains__(self, x: float) -> bool: ...

@final
class BetaBound:
    """A bound on a quantile of a Beta distribution, and one minus the bound with all its digits."""

    @property
    def bound(self) -> float: ...
    @property
    def complement(self) -> float: ...

@final
class Stop:
    """Whether to stop observing, on which side of the threshold the rate lies, and the level of the evidence."""

    @property
    def stop(self) -> bool: ...
    @property
    def direction(self) -> Literal["above", "below"] | None: ...
    @property
    def level(self) -> float: ...
    def __bool__(self) -> bool: ...

@final
class Ranks:
    """Ranks in sorted data, counted from 1; 0 and one more than the number of values mean that there is no bound."""

    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...

@final
class Status:
    """The progress of a `Driver`."""

    @property
    def trials(self) -> int: ...
    @property
    def successes(self) -> int: ...
    @property
    def rate(self) -> float | None: ...
    @property
    def interval(self) -> Interval: ...
    @property
    def level(self) -> float: ...
    @property
    def log_eps(self) -> float: ...
    @property
    def verdict(self) -> bool | None: ...
    @property
    def at_limit(self) -> bool: ...

@final
class Driver:
    """Watches outcomes and reports when they decide a claim about the rate of success."""

    def __new__(
        cls,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        between: tuple[float, float] | None = None,
        error: float = 1e-6,
        method: _Method | None = None,
        limit: int | None = None,
        trials: int = 0,
        successes: int = 0,
    ) -> Driver: ...
    def observe(self, success: bool | int | float) -> bool | None: ...
    def observe_many(self, outcomes: _Outcomes) -> int: ...
    def observe_set(self, trials: int, successes: int) -> bool | None: ...
    def run(
        self, trial: Callable[[], bool | int | float], progress: Callable[[Status], object] | None = None
    ) -> Status: ...
    def status(self) -> Status: ...
    @property
    def verdict(self) -> bool | None: ...
    @property
    def trials(self) -> int: ...
    @property
    def successes(self) -> int: ...

@final
class MeanStatus:
    """The progress of a `MeanDriver`."""

    @property
    def trials(self) -> int: ...
    @property
    def mean(self) -> float | None: ...
    @property
    def interval(self) -> Interval: ...
    @property
    def verdict(self) -> bool | None: ...
    @property
    def at_limit(self) -> bool: ...

@final
class MeanDriver:
    """Watches numbers in [low, high] and reports when they decide a claim about their mean."""

    def __new__(
        cls,
        low: float,
        high: float,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        between: tuple[float, float] | None = None,
        error: float = 1e-6,
        limit: int | None = None,
    ) -> MeanDriver: ...
    def observe(self, value: float) -> bool | None: ...
    def observe_many(self, values: _Numbers) -> int: ...
    def run(
        self, measure: Callable[[], float], progress: Callable[[MeanStatus], object] | None = None
    ) -> MeanStatus: ...
    def status(self) -> MeanStatus: ...
    @property
    def verdict(self) -> bool | None: ...

@final
class Power:
    """The outcomes of a claim at a known rate of success."""

    @property
    def holds(self) -> float: ...
    @property
    def fails(self) -> float: ...
    @property
    def undecided(self) -> float: ...
    @property
    def mean_trials(self) -> float: ...
    @property
    def median_trials(self) -> int | None: ...
    @property
    def p90_trials(self) -> int | None: ...

@final
class Comparison:
    """Which of two samples is smaller, and the ratio between them."""

    @property
    def pairs(self) -> int: ...
    @property
    def smaller(self) -> Literal["first", "second"] | None: ...
    @property
    def ratio(self) -> float | None: ...
    @property
    def interval(self) -> Interval: ...
    @property
    def error(self) -> float: ...

def log_choose(n: int, k: int) -> Bounds:
    """Bounds the natural logarithm of the number of ways to choose k of n, from below and from above."""

def stop(trials: int, successes: int, threshold: float, log_eps: float, method: _Method = "robbins") -> Stop:
    """Decides whether the rate of success differs from a threshold."""

def beta_bound(a: float, b: float, eps: float, side: Literal["low", "high"]) -> BetaBound:
    """Computes a bound on a quantile of Beta(a, b), on the safe side."""

def interval(
    trials: int, successes: int, error: float, kind: Literal["watched", "fixed", "credible"] = "watched"
) -> Interval:
    """Computes an interval that contains the rate of success, except with probability `error`."""

def quantile_ranks(n: int, q: float, error: float) -> Ranks:
    """Computes the ranks among n sorted values that enclose the quantile q."""

def quantile_interval(values: _Numbers, q: float, error: float) -> Interval:
    """Computes an interval for the quantile q (0.5 is the median) of the values' distribution."""

def power(
    rate: float,
    limit: int,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    between: tuple[float, float] | None = None,
    error: float = 1e-6,
    method: _Method | None = None,
) -> Power:
    """Computes how likely a claim is decided within `limit` trials when the rate of success is `rate`."""

def compare(first: _Numbers, second: _Numbers, *, error: float = 1e-6, paired: bool = False) -> Comparison:
    """Decides which of two samples of positive numbers is smaller, by their medians."""

def permutation_test(
    first: _Numbers,
    second: _Numbers,
    statistic: Literal["mean", "median"] | Callable[[list[float], list[float]], float],
    *,
    tail: Literal["both", "two-sided", "greater", "less"] = "both",
    shift: float = 0.0,
    scale: float = 1.0,
    at_least: float | None = None,
    at_most: float | None = None,
    between: tuple[float, float] | None = None,
    error: float = 1e-6,
    method: _Method | None = None,
    limit: int | None = None,
    seed: int,
) -> Status:
    """Tests whether the difference between two samples is larger than chance explains."""
