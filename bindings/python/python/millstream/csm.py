"""Decide with evidence: confidence sequences, exact tests and stopping rules whose errors are on the safe side.

Which one do I want?

- to decide whether a rate of successes is above or below a threshold as outcomes come in: `Driver`
- to decide about the mean of bounded numbers: `MeanDriver`
- to know beforehand how many observations that takes: `power`
- to decide which of two samples, or of two programs, is smaller: `compare`
- to know whether two samples differ, by any statistic: `permutation_test`
- to show where a rate or a quantile lies: `interval`, `quantile_interval`
- to call the low-level functions: `log_choose`, `beta_bound`, `stop`

Functions of many outcomes or numbers accept numpy arrays, `array.array`, lists and all other iterables.
"""

from ._native import (
    BetaBound,
    Bounds,
    Comparison,
    CsmError,
    Driver,
    Interval,
    MeanDriver,
    MeanStatus,
    Power,
    Ranks,
    Status,
    Stop,
    __version__ as __version__,
    beta_bound,
    compare,
    interval,
    log_choose,
    permutation_test,
    power,
    quantile_interval,
    quantile_ranks,
    stop,
)

__all__ = [
    "BetaBound",
    "Bounds",
    "Comparison",
    "CsmError",
    "Driver",
    "Interval",
    "MeanDriver",
    "MeanStatus",
    "Power",
    "Ranks",
    "Status",
    "Stop",
    "beta_bound",
    "compare",
    "interval",
    "log_choose",
    "permutation_test",
    "power",
    "quantile_interval",
    "quantile_ranks",
    "stop",
]
