"""Tests of millstream.csm: arguments, results, exceptions, threads."""

import array
import copy
import ctypes
import inspect
import itertools
import math
import pickle
import threading
import time
import unittest

from interrupts import interrupted
from millstream import csm

try:
    import numpy
except ImportError:
    numpy = None


class Numbers(unittest.TestCase):
    def test_log_choose_encloses_the_logarithm(self):
        bounds = csm.log_choose(10, 5)
        self.assertLessEqual(bounds.lower, bounds.upper)
        self.assertAlmostEqual(bounds.lower, math.log(252), delta=1e-14)
        self.assertAlmostEqual(bounds.upper, math.log(252), delta=1e-14)

    def test_stop_has_the_published_levels(self):
        # Paul Khuong's article: 10, 100 and 4000 trials at a threshold of 0.98.
        log_eps = math.log(0.001)
        self.assertAlmostEqual(csm.stop(10, 10, 0.98, log_eps).level, 2.195868199623178, delta=1e-12)
        self.assertAlmostEqual(csm.stop(100, 100, 0.98, log_eps).level, 2.594849785089313, delta=1e-12)
        last = csm.stop(4000, 3972, 0.98, log_eps)
        self.assertTrue(last)
        self.assertEqual(last.direction, "above")
        self.assertAlmostEqual(last.level, -17.238568532412955, delta=1e-9)

    def test_beta_bounds_of_a_uniform_distribution(self):
        low, high = csm.beta_bound(1, 1, 0.25, "low"), csm.beta_bound(1, 1, 0.25, "high")
        self.assertAlmostEqual(low.bound, 0.25, delta=1e-12)
        self.assertAlmostEqual(high.bound, 0.75, delta=1e-12)
        self.assertAlmostEqual(high.complement, 0.25, delta=1e-12)

    def test_a_watched_interval_is_wider_than_a_fixed_one(self):
        watched, fixed = csm.interval(1000, 900, 0.05), csm.interval(1000, 900, 0.05, "fixed")
        self.assertLess(watched.low, fixed.low)
        self.assertGreater(watched.high, fixed.high)
        self.assertIn(0.9, fixed)
        self.assertNotIn(0.8, fixed)
        self.assertAlmostEqual(fixed.width, fixed.high - fixed.low)

    def test_quantiles(self):
        ranks = csm.quantile_ranks(1000, 0.5, 0.05)
        self.assertTrue(400 < ranks.low < 500 < ranks.high < 600)
        values = [float(i * 7 % 1000) for i in range(1000)]
        found = csm.quantile_interval(values, 0.5, 0.05)
        self.assertEqual((found.low, found.high), (ranks.low - 1, ranks.high - 1))

    def test_bad_questions_raise_csm_errors(self):
        for question in [
            lambda: csm.log_choose(5, 10),
            lambda: csm.stop(10, 11, 0.5, -1.0),
            lambda: csm.stop(10, 5, math.nan, -1.0),
            lambda: csm.stop(10, 5, 0.5, -1.0, "guess"),
            lambda: csm.beta_bound(1, 1, 2, "low"),
            lambda: csm.interval(10, 5, math.inf),
            lambda: csm.Driver(at_least=2),
            lambda: csm.Driver(at_least=0.5, method="sprt"),
            lambda: csm.Driver(between=(0.6, 0.4)),
            lambda: csm.MeanDriver(1, 0, at_least=0.5),
            lambda: csm.compare([], [1.0]),
            lambda: csm.compare([-1.0], [1.0]),
            lambda: csm.permutation_test([], [1.0], "mean", seed=1),
            lambda: csm.quantile_interval([math.nan, 1.0], 0.5, 0.1),
        ]:
            with self.subTest(inspect.getsource(question)), self.assertRaises(csm.CsmError):
                question()

    def test_bad_arguments_raise_the_usual_python_errors(self):
        for question, error in [
            (lambda: csm.log_choose(-1, 0), OverflowError),
            (lambda: csm.log_choose("x", 0), TypeError),
            (lambda: csm.Driver(), TypeError),
            (lambda: csm.Driver(at_least=0.5, between=(0.1, 0.2)), TypeError),
            (lambda: csm.beta_bound(1, 1, 0.5, "middle"), ValueError),
            (lambda: csm.interval(1, 1, 0.5, "best"), ValueError),
            (lambda: csm.compare([1.0], [1.0, 2.0], paired=True), ValueError),
            (lambda: csm.permutation_test([1], [2], "mode", seed=1), ValueError),
            (lambda: csm.permutation_test([1], [2], "mean", tail="left", seed=1), ValueError),
        ]:
            with self.subTest(inspect.getsource(question)), self.assertRaises(error):
                question()


class Driving(unittest.TestCase):
    def test_one_by_one_and_all_at_once_agree(self):
        outcomes = [i % 20 != 0 for i in range(20_000)]
        one, all_at_once = csm.Driver(at_least=0.9), csm.Driver(at_least=0.9)
        used = all_at_once.observe_many(outcomes)
        for outcome in outcomes:
            if one.observe(outcome) is not None:
                break
        self.assertEqual(one.trials, used)
        self.assertEqual(one.status(), all_at_once.status())
        self.assertTrue(one.verdict)

    def test_run_reports_progress_and_returns_the_last_status(self):
        seen = []
        driver = csm.Driver(between=(0.4, 0.6), error=1e-3)
        status = driver.run(lambda: len(seen) >= 0 and True, seen.append)
        self.assertIs(status.verdict, True)
        self.assertEqual(seen[0].trials, 1)
        self.assertEqual(seen[-1], status)
        self.assertEqual(status.trials, status.successes)
        self.assertEqual(driver.trials, status.trials)

    def test_a_trial_may_look_at_the_driver_and_may_raise(self):
        driver = csm.Driver(at_most=0.5, limit=100)
        with self.assertRaises(ZeroDivisionError):
            driver.run(lambda: 1 // (3 - driver.trials))
        self.assertEqual(driver.trials, 3)

    def test_a_driver_resumes_from_earlier_evidence(self):
        whole, first = csm.Driver(at_least=0.5, error=1e-9), csm.Driver(at_least=0.5, error=1e-9)
        whole.observe_many([True] * 15)
        first.observe_many([True] * 10)
        second = csm.Driver(at_least=0.5, error=1e-9, trials=first.trials, successes=first.successes)
        second.observe_many([True] * 5)
        self.assertEqual(second.status(), whole.status())

    def test_a_limit_ends_undecided(self):
        driver = csm.Driver(at_least=0.5, limit=10)
        status = driver.run(lambda: driver.trials % 2)
        self.assertIsNone(status.verdict)
        self.assertTrue(status.at_limit)
        self.assertEqual(status.trials, 10)

    def test_the_evidence_of_a_set_is_evaluated_once(self):
        driver = csm.Driver(at_least=0.5)
        self.assertIs(driver.observe_set(1000, 900), True)
        with self.assertRaises(csm.CsmError):
            csm.Driver(at_least=0.5).observe_set(1, 2)

    def test_means_are_decided(self):
        driver = csm.MeanDriver(0.0, 1.0, at_most=0.5, error=1e-3)
        status = driver.run(lambda: 0.25)
        self.assertIs(status.verdict, True)
        self.assertIn(0.25, status.interval)
        self.assertEqual(status.mean, 0.25)
        with self.assertRaises(csm.CsmError):
            csm.MeanDriver(0, 1, at_least=0.5).observe(1.5)

    def test_power_predicts_decisions(self):
        power = csm.power(0.993, 10_000, at_least=0.98, error=1e-3)
        self.assertAlmostEqual(power.holds + power.fails + power.undecided, 1, delta=1e-9)
        self.assertGreater(power.holds, 0.99)
        self.assertLess(power.median_trials, power.p90_trials)


class Samples(unittest.TestCase):
    before = [10.0 + 0.01 * (i * 7 % 100) for i in range(1000)]
    after = [8.0 + 0.01 * (i * 3 % 100) for i in range(1000)]

    def test_the_smaller_one_is_found(self):
        for paired in [False, True]:
            found = csm.compare(self.before, self.after, paired=paired)
            self.assertEqual(found.smaller, "second")
            self.assertIn(found.ratio, found.interval)
            self.assertEqual(csm.compare(self.after, self.before, paired=paired).smaller, "first")
        self.assertIsNone(csm.compare(self.before, self.before).smaller)

    def test_a_permutation_test_takes_any_statistic(self):
        spread = lambda first, second: max(second) - max(first)
        for statistic in ["mean", "median", spread]:
            status = csm.permutation_test(self.after, self.before, statistic, seed=1)
            self.assertIs(status.verdict, True, statistic)
        same = csm.permutation_test(self.after, self.before, "mean", tail="both", shift=2.0, at_most=0.05, seed=1)
        self.assertIs(same.verdict, False)

    def test_a_permutation_test_has_the_directions_of_scipy_and_both_by_default(self):
        test = lambda **tail: csm.permutation_test(self.after, self.before, "mean", seed=1, limit=20_000, **tail).successes
        self.assertEqual(test(), test(tail="both"))
        self.assertEqual(test(), test(tail="two-sided"))
        larger, smaller = sorted([self.after, self.before], key=sum, reverse=True)
        status = lambda first, second: csm.permutation_test(first, second, "mean", tail="greater", seed=1)
        self.assertIs(status(larger, smaller).verdict, True)
        self.assertIs(status(smaller, larger).verdict, False)

    def test_exceptions_of_a_statistic_are_passed_on(self):
        with self.assertRaises(ZeroDivisionError):
            csm.permutation_test([1.0], [2.0], lambda first, second: 1 / 0, seed=1)


class Objects(unittest.TestCase):
    """What Python expects of any object: equality, hashes, copies and pickles."""

    @staticmethod
    def values():
        driver = csm.Driver(at_least=0.5, limit=100)
        driver.observe_many([True, False, True])
        means = csm.MeanDriver(0, 1, at_least=0.5)
        fresh = means.status()
        means.observe(0.25)
        first, second = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]
        return [
            csm.log_choose(10, 5),
            csm.interval(10, 5, 0.1),
            csm.beta_bound(1, 2, 0.1, "low"),
            csm.stop(10, 10, 0.5, -1.0),
            csm.stop(1, 1, 0.5, -1.0),
            csm.quantile_ranks(100, 0.5, 0.1),
            driver.status(),
            csm.Driver(at_least=0.5).status(),
            fresh,
            means.status(),
            csm.power(0.9, 100, at_least=0.5),
            csm.compare(first, second, error=0.1),
            csm.compare(first * 100, second * 100, error=0.1),
        ]

    def test_results_compare_hash_copy_and_pickle_as_their_members(self):
        twins = self.values()
        for value, twin in zip(self.values(), twins):
            again = [copy.copy(value), copy.deepcopy(value), type(value)(*value.__getnewargs__())]
            again += [pickle.loads(pickle.dumps(value, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
            for other in [twin, *again]:
                self.assertEqual(other, value)
                self.assertEqual(hash(other), hash(value))
                self.assertEqual(repr(other), repr(value))
            self.assertIs(value == object(), False)
            self.assertIs(value != object(), True)
        self.assertEqual(len(set(twins)), len(twins))
        with self.assertRaises(ValueError):
            csm.Stop(True, "sideways", 0.0)

    @staticmethod
    def drivers():
        claims = [{"at_least": 0.4}, {"at_most": 0.6}, {"at_least": 0.2, "at_most": 0.8}, {"between": (0.4, 0.6)}]
        for claim in claims:
            for limit in [None, 40]:
                yield csm.Driver(**claim, error=0.01, limit=limit)
                yield csm.MeanDriver(-1, 3, **claim, error=0.01, limit=limit)
        yield csm.Driver(at_least=0.4, method="robbins")

    def test_drivers_compare_copy_and_pickle_as_their_claim_and_evidence(self):
        outcomes = [True] * 40 + [False] * 30 + [True] * 60
        for driver in self.drivers():
            twin = next(twin for twin in self.drivers() if twin == driver)
            for outcome in outcomes:
                driver.observe(outcome)
                twin.observe(outcome)
                for again in [twin, copy.copy(driver), copy.deepcopy(driver), pickle.loads(pickle.dumps(driver))]:
                    self.assertEqual(again, driver)
                    self.assertEqual(again.verdict, driver.verdict)
                    self.assertEqual(again.status(), driver.status())
                    self.assertEqual(repr(again), repr(driver))
            self.assertEqual(eval(repr(driver), vars(csm).copy()).trials, driver.trials)
            with self.assertRaises(TypeError):
                hash(driver)

    def test_drivers_of_other_claims_or_evidence_differ(self):
        drivers = list(self.drivers())
        for one, other in itertools.combinations(drivers, 2):
            self.assertNotEqual(one, other)
        changed = copy.copy(drivers[0])
        changed.observe(True)
        self.assertNotEqual(changed, drivers[0])
        self.assertEqual((changed.trials, drivers[0].trials), (1, 0))

    def test_a_restored_driver_has_forgotten_no_half_of_its_claim(self):
        claim = {"at_least": 0.4, "at_most": 0.8, "error": 0.01}
        driver = csm.Driver(**claim)
        forgotten = 0
        for outcome in [True, True, True, False, False] * 50:
            driver.observe(outcome)
            again = pickle.loads(pickle.dumps(driver))
            self.assertEqual(again, driver)
            plain = csm.Driver(**claim, trials=driver.trials, successes=driver.successes)
            forgotten += plain != driver
        self.assertGreater(forgotten, 0)

    def test_a_mean_driver_resumes_and_tells_its_trials(self):
        whole, first = csm.MeanDriver(0, 10, at_most=5), csm.MeanDriver(0, 10, at_most=5)
        values = [0.1 * i for i in range(30)]
        whole.observe_many(values)
        first.observe_many(values[:10])
        self.assertEqual(first.trials, 10)
        second = csm.MeanDriver(0, 10, at_most=5, state=first.state)
        second.observe_many(values[10:])
        self.assertEqual((second.trials, second.status()), (whole.trials, whole.status()))
        for state in [(1, 2.0, 0.0, 0.0), (1, math.nan, 0.0, 0.0), (2**63, 1.0, 0.0, 0.0)]:
            with self.assertRaises(csm.CsmError):
                csm.MeanDriver(0, 10, at_most=5, state=state)

    def test_pickles_that_make_no_sense_are_refused(self):
        driver = csm.Driver(at_least=0.5)
        for state in [(1, 2, [None, None]), (-1, 0, [None, None]), (1, 1), None]:
            with self.assertRaises((ValueError, TypeError, OverflowError)):
                driver.__setstate__(state)
        self.assertEqual(driver, csm.Driver(at_least=0.5))


class Threads(unittest.TestCase):
    def test_threads_share_a_driver_and_lose_no_outcome(self):
        drivers = [csm.Driver(at_least=0.5, error=1e-300), csm.MeanDriver(0, 1, at_least=0.5, error=1e-300)]
        for driver in drivers:
            blocks = array.array("d", [0.0, 1.0] * 500)

            def work():
                for _ in range(20):
                    driver.observe_many(blocks)
                    driver.observe_many(iter([0, 1] * 50))
                    driver.status()

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(driver.trials, 4 * 20 * 1100)

    def test_callbacks_and_outcomes_may_use_the_driver(self):
        driver = csm.Driver(at_least=0.5, limit=50)

        class Odd:
            def __float__(self):
                driver.observe(True)
                return 1.0

        driver.observe(Odd())
        driver.run(lambda: True, lambda status: driver.observe(True))
        driver.observe_many(Odd() for _ in range(3))
        self.assertIs(driver.verdict, True)

    def other_threads_run_during(self, work, ticks, pause):
        """Checks that another thread ticks more than `ticks` times while `work` runs, and that no pause between two ticks is
        longer than `pause` and half of the time. On a busy machine the thread may wait for a core, so there are five tries;
        work that holds the GIL fails in each of them."""
        tries = []
        for _ in range(5):
            number, longest, whole = self.ticks_during(work)
            if number > ticks and longest < max(pause, whole / 2):
                return
            tries.append((number, longest, whole))
        self.fail(f"ticks, longest pause, whole time: {tries}")

    def ticks_during(self, work):
        """The ticks of another thread while `work` runs: their number, the longest time between two, and the whole time."""
        ticks = []
        done = threading.Event()

        def tick():
            while not done.wait(0.001):
                ticks.append(time.monotonic())

        thread = threading.Thread(target=tick)
        thread.start()
        began = time.monotonic()
        work()
        ended = time.monotonic()
        done.set()
        thread.join()
        during = [began, *[tick for tick in ticks if began < tick < ended], ended]
        longest = max(later - earlier for earlier, later in zip(during, during[1:]))
        return len(during), longest, ended - began

    def test_other_threads_run_during_long_computations(self):
        first, second = list(range(20_000)), list(range(20_000))
        setup = {"tail": "greater", "seed": 1, "at_least": 0.5, "error": 1e-300, "limit": 300}
        # The GIL is held only while lists become numbers.
        self.other_threads_run_during(lambda: csm.permutation_test(first, second, "median", **setup), 10, 0.5)

    def test_other_threads_run_while_an_iterator_without_bytecode_is_read(self):
        def observe():
            driver = csm.Driver(at_least=0.5, error=1e-300)
            outcomes = itertools.islice(itertools.cycle([True, False]), 3_000_000)
            self.assertEqual(driver.observe_many(outcomes), 3_000_000)

        self.other_threads_run_during(observe, 0, 0.2)

    def test_an_interrupt_ends_every_long_computation(self):
        calls = [
            "csm.permutation_test(range(300_000), range(300_000), 'mean', seed=1, at_least=0.5, error=1e-300)",
            "csm.permutation_test([1], [2], lambda a, b: 0.0, seed=1, at_least=1 - 1e-15, error=1e-300)",
            "csm.Driver(at_least=0.5, error=1e-300).run(lambda: next(c) % 2)",
            "csm.Driver(at_least=0.5, error=1e-300).observe_many(i % 2 for i in c)",
            "csm.MeanDriver(0, 1, at_least=0.5, error=1e-300).observe_many(i % 2 for i in c)",
            "csm.quantile_interval(c, 0.5, 0.1)",
            "csm.power(0.5, 1_000_000, at_least=0.5, error=1e-12)",
        ]
        for call in calls:
            with self.subTest(call):
                program = f"import itertools\nfrom millstream import csm\nc = itertools.count()\nprint('go', flush=True)\n{call}"
                heard = interrupted(program, after=0.2, limit=120)
                self.assertIsNotNone(heard, "the interrupt was not heard")
                _, complaints = heard
                self.assertIn(b"KeyboardInterrupt", complaints)


class Arrays(unittest.TestCase):
    def test_buffers_and_iterables_give_the_same_result(self):
        numbers = [0, 1, 1, 0, 1]
        for values in [numbers, tuple(numbers), iter(numbers), (x for x in numbers), bytes(numbers)]:
            self.assertEqual(self.successes(values), 3)
        for code in "bBhHiIlLqQfd":
            self.assertEqual(self.successes(array.array(code, numbers)), 3, code)
        self.assertEqual(self.successes([x == 1 for x in numbers]), 3)
        self.assertEqual(self.successes(memoryview(bytes(numbers)).cast("?")), 3)
        self.assertEqual(self.successes(memoryview(bytes(numbers)).cast("?")[::2]), 2)

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_numpy_arrays_are_read(self):
        numbers = [0, 1, 1, 0, 1]
        for dtype in ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]:
            self.assertEqual(self.successes(numpy.array(numbers, dtype=dtype)), 3, dtype)
            self.assertEqual(self.successes(numpy.array(numbers, dtype=dtype)[::2]), 2, dtype)
        driver = csm.Driver(at_least=0.5)
        driver.observe(numpy.bool_(True))
        driver.observe(numpy.float64(0.0))
        self.assertEqual((driver.trials, driver.successes), (2, 1))
        values = numpy.linspace(1, 2, 1001)
        self.assertIn(1.5, csm.quantile_interval(values, 0.5, 0.01))
        self.assertEqual(csm.compare(values, 2 * values).smaller, "first")
        with self.assertRaises(ValueError):
            csm.quantile_interval(numpy.ones((2, 2)), 0.5, 0.1)

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_complex_numbers_are_refused(self):
        for order in "<>":
            for values in [numpy.ones(5, order + "c16"), numpy.ones(5, order + "c8")]:
                with self.assertRaisesRegex(TypeError, "complex"):
                    csm.quantile_interval(values, 0.5, 0.1)

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_masked_elements_are_refused(self):
        masked = numpy.ma.masked_array([0.0, 1.0, 1.0, 0.0], mask=[False, True, False, False])
        for question in [
            lambda: csm.quantile_interval(masked, 0.5, 0.1),
            lambda: csm.compare(masked + 1, [1.0]),
            lambda: csm.Driver(at_least=0.5).observe_many(masked),
            lambda: csm.Driver(at_least=0.5).observe_many(masked.astype(bool)),
            lambda: csm.MeanDriver(0, 1, at_least=0.5).observe_many(masked),
            lambda: csm.permutation_test(masked, [1.0], "mean", seed=1),
        ]:
            with self.subTest(inspect.getsource(question)), self.assertRaisesRegex(ValueError, "compressed"):
                question()
        self.assertEqual(self.successes(masked.compressed()), 1)
        self.assertEqual(self.successes(numpy.ma.masked_array([0.0, 1.0])), 1)

    def test_arrays_of_every_byte_order_give_the_same_result(self):
        expected = csm.quantile_interval(range(200), 0.5, 1e-2)
        outcomes = [0, 1, 1, 0, 1] * 2
        kinds = [ctypes.c_int16, ctypes.c_uint16, ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64]
        for kind in [*kinds, ctypes.c_float, ctypes.c_double]:
            for order in [kind.__ctype_be__, kind.__ctype_le__]:
                values = (order * 200)(*range(200))
                self.assertEqual(csm.quantile_interval(values, 0.5, 1e-2), expected, order)
                self.assertEqual(self.successes((order * 10)(*outcomes)), 6, order)

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_numpy_arrays_of_every_byte_order_give_the_same_result(self):
        expected = csm.quantile_interval(range(100), 0.5, 1e-2)
        other = [x + 200.0 for x in range(100)]
        for order, kind in itertools.product("><=", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]):
            values = numpy.arange(100).astype(order + kind)
            self.assertEqual(csm.quantile_interval(values, 0.5, 1e-2), expected, order + kind)
            self.assertEqual(csm.compare(values + values.dtype.type(1), other).smaller, "first", order + kind)
            self.assertEqual(self.successes(values[:2]), 1, order + kind)
            driver = csm.MeanDriver(0.0, 99.0, at_most=90.0, error=1e-3)
            self.assertEqual(driver.observe_many(values), driver.status().trials, order + kind)
            self.assertIs(csm.permutation_test(values, other, "mean", seed=1).verdict, True, order + kind)

    def test_an_iterator_keeps_the_items_after_a_decision(self):
        for driver, item in [
            (csm.Driver(at_least=0.9), True),
            (csm.MeanDriver(0.0, 1.0, at_most=0.9), 0.1),
            (csm.Driver(at_least=0.5, limit=3), True),
        ]:
            drawn = itertools.count()
            used = driver.observe_many(item for _ in drawn)
            self.assertEqual((used, next(drawn)), (driver.status().trials, used))
            self.assertEqual(driver.observe_many(itertools.repeat(item)), 0)

    def test_an_iterator_may_look_at_its_driver(self):
        driver = csm.Driver(at_least=0.5, error=1e-3)
        seen = []
        driver.observe_many(seen.append(driver.trials) or True for _ in range(5))
        self.assertEqual(seen, [0, 1, 2, 3, 4])

    def test_values_that_are_no_outcomes_are_refused(self):
        for values in [[0.5], array.array("d", [0.5]), array.array("q", [2]), [math.nan]]:
            with self.assertRaises(ValueError):
                self.successes(values)
        for values in [["yes"], [None], 1]:
            with self.assertRaises(TypeError):
                self.successes(values)
        with self.assertRaises(ValueError):
            csm.quantile_interval(array.array("q", [2**53 + 1]), 0.5, 0.1)

    @staticmethod
    def successes(values):
        driver = csm.Driver(between=(0.4, 0.6), error=1e-12)
        driver.observe_many(values)
        return driver.successes


if __name__ == "__main__":
    unittest.main()
