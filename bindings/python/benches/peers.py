"""Compares millstream.csm with scipy, statsmodels and confseq: time for a decision, accuracy, observations needed.

    pip install ./bindings/python scipy statsmodels mpmath numpy
    python bindings/python/benches/peers.py [REFERENCE.csv]

Peers that are not installed are skipped. (confseq 0.0.11 builds on Python 3.10 and earlier, which `millstream` does not
support: run this once with each.) The reference defaults to crates/csm/tests/reference.csv.
"""

import csv
import importlib
import math
import statistics
import sys
import time
from pathlib import Path


def module(name):
    """Returns the module, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


csm = module("millstream.csm")
stats = module("scipy.stats")
special = module("scipy.special")
proportion = module("statsmodels.stats.proportion")
boundaries = module("confseq.boundaries")
mpmath = module("mpmath")
numpy = module("numpy")


def microseconds(call, least=0.1):
    """Returns the median time of a call over five runs that take at least this many seconds together."""
    calls = 1
    while True:
        start = time.perf_counter()
        for i in range(calls):
            call(i)
        if time.perf_counter() - start > least / 5:
            break
        calls *= 2
    runs = []
    for _ in range(5):
        start = time.perf_counter()
        for i in range(calls):
            call(i)
        runs.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(runs)


def decisions():
    """Yields calls that make one decision on 4000 observations, which shows the cost of a call from Python."""
    n, p = 4000, 0.98
    if csm:
        for method in ("robbins", "balanced"):
            test = lambda i, method=method: csm.stop(n, 3900 + i % 90, p, -6.9, method)
            yield f"millstream csm.stop, {method}", test
        yield "millstream csm.interval, watched", lambda i: csm.interval(n, 3900 + i % 90, 1e-3)
        yield "millstream csm.interval, fixed", lambda i: csm.interval(n, 3900 + i % 90, 1e-3, kind="fixed")
        yield "millstream csm.beta_bound", lambda i: csm.beta_bound(3900.0 + i % 90, 28.0, 1e-3, "low")
        driver = csm.Driver(at_least=0.99, error=1e-6)
        # The driver never decides: 99 % of the outcomes are successes.
        yield "millstream Driver.observe", lambda i: driver.observe(i % 100 != 0)
    if stats:
        yield "scipy binomtest", lambda i: stats.binomtest(3900 + i % 90, n, p).pvalue
        yield "scipy binomtest, interval", lambda i: stats.binomtest(3900 + i % 90, n, p).proportion_ci(0.999)
        yield "scipy betaincinv", lambda i: special.betaincinv(3900.0 + i % 90, 28.0, 1e-3)
    if proportion:
        yield "statsmodels binom_test", lambda i: proportion.binom_test(3900 + i % 90, n, p)
        yield "statsmodels proportion_confint", lambda i: proportion.proportion_confint(3900 + i % 90, n, 1e-3, "beta")
    if boundaries:
        interval = boundaries.bernoulli_confidence_interval
        yield "confseq bernoulli_confidence_interval", lambda i: interval(3900 + i % 90, n, 1e-3, 1000.0)


def beta_rows(path):
    """Yields the Beta quantiles of the reference: shapes, error, side, and the quantile in 55 digits."""
    with open(path, newline="") as file:
        for row in csv.reader(file):
            if row[0] == "beta_icdf":
                yield float(row[1]), float(row[2]), float.fromhex(row[3]), row[6], row[7]


def accuracy(path):
    """Yields the worst distance from the reference's Beta quantiles, and how many values are on their wrong side."""
    peers = {}
    if csm:
        peers["millstream csm.beta_bound"] = lambda a, b, eps, side: csm.beta_bound(a, b, eps, {"lo": "low", "hi": "high"}[side]).bound
    if special:
        peers["scipy betaincinv"] = lambda a, b, eps, side: (special.betaincinv if side == "lo" else special.betainccinv)(a, b, eps)
        peers["scipy beta.ppf, beta.isf"] = lambda a, b, eps, side: (stats.beta.ppf if side == "lo" else stats.beta.isf)(eps, a, b)
    with mpmath.workdps(60):
        for name, quantile in peers.items():
            worst, wrong, rows = mpmath.mpf(0), 0, 0
            for a, b, eps, side, digits in beta_rows(path):
                truth, found = mpmath.mpf(digits), mpmath.mpf(float(quantile(a, b, eps, side)))
                rows += 1
                if mpmath.isnan(found):
                    worst, wrong = mpmath.inf, wrong + 1
                    continue
                if truth != 0:
                    worst = max(worst, abs(found / truth - 1))
                wrong += found > truth if side == "lo" else found < truth
            yield name, float(worst), wrong, rows


def fixed_size(threshold, rate, error, power):
    """Returns the number of observations that a one-sided binomial test of a fixed size needs for the same power."""
    n = 1
    while True:
        # The smallest number of successes whose probability at the threshold is at most the error.
        least = stats.binom.isf(error, n, threshold) + 1
        if stats.binom.sf(least - 1, n, rate) >= power:
            return n
        n = math.ceil(n * 1.01)


def peeking(threshold, error, limit):
    """Returns how often a binomial test at the same error, watched after each trial, refutes the truth (simulated)."""
    random = numpy.random.default_rng(1)
    n = numpy.arange(1, limit + 1)
    low, high = stats.binom.isf(error / 2, n, threshold), stats.binom.ppf(error / 2, n, threshold)
    runs = [random.random(limit) < threshold for _ in range(2000)]
    sums = (numpy.cumsum(run) for run in runs)
    return sum(bool(((s > low) | (s < high)).any()) for s in sums) / len(runs)


def confseq_mean(threshold, rate, error, limit, runs=400):
    """Returns the mean number of observations until confseq's mixture decides (simulated).

    The mixture is tuned as its authors advise: to the error, and to its own number of observations.
    """
    expected = 1000.0
    for _ in range(3):
        expected, off = confseq_run(threshold, rate, error, limit, expected, runs)
    return expected, off


def confseq_run(threshold, rate, error, limit, expected, runs):
    """Returns the mean number of observations, with its standard error, for a mixture tuned to an expected number."""
    random = numpy.random.default_rng(1)
    n = numpy.arange(1, limit + 1)
    variance = threshold * (1 - threshold)
    used = []
    for _ in range(runs):
        excess = numpy.cumsum(random.random(limit) < rate) - n * threshold
        mixture = boundaries.beta_binomial_log_mixture(excess, n * variance, expected * variance, threshold, 1 - threshold, error, False)
        crossed = numpy.nonzero(mixture >= -math.log(error))[0]
        used.append(crossed[0] + 1 if len(crossed) else limit)
    return statistics.mean(used), statistics.stdev(used) / math.sqrt(runs)


QUESTIONS = [
    (0.98, 0.993, 1e-3),
    (0.99, 0.999, 1e-3),
    (0.99, 0.999, 1e-6),
    (0.95, 0.97, 0.05),
    (0.98, 0.83, 0.05),
    (0.95, 0.99, 1e-6),
    (0.9, 0.99, 0.05),
]


def samples():
    """Yields mean numbers of observations until a decision; those of millstream are exact, by dynamic programming."""
    for threshold, rate, error in QUESTIONS:
        name = f"{threshold}, {rate}, {error}"
        if csm:
            for method in ("mixture", "balanced", "robbins"):
                # The plan counts the observations of a driver, whose interval shares its error.
                plan = csm.power(rate, 40_000, at_least=threshold, error=error, method=method)
                yield name, f"millstream {method}", f"{plan.mean_trials:.1f}"
        if stats:
            yield name, "binomial test of a fixed size, power 0.99", str(fixed_size(threshold, rate, error, 0.99))
            wrong = peeking(threshold, error, 4000)
            yield name, "the same test, watched: share of errors within 4000", f"{wrong:.3f}"
        if boundaries:
            mean, off = confseq_mean(threshold, rate, error, 8000)
            yield name, "confseq beta-binomial mixture", f"{mean:.0f} ± {2 * off:.0f}"


def main():
    here = Path(__file__).resolve()
    reference = sys.argv[1] if len(sys.argv) > 1 else here.parents[3] / "crates/csm/tests/reference.csv"
    print("time for a decision from Python, µs")
    for name, call in decisions():
        print(f"  {name:<55} {microseconds(call):10.2f}")
    if mpmath:
        print("Beta quantiles of the reference: worst relative error, count on the wrong side, count of all")
        for name, worst, wrong, rows in accuracy(reference):
            print(f"  {name:<55} {worst:10.1e} {wrong:4} {rows:4}")
    print("observations until a decision (threshold, rate, error)")
    for question, name, found in samples():
        print(f"  {question:<20} {name:<55} {found:>10}")


if __name__ == "__main__":
    main()
