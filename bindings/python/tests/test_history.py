"""Tests of millstream.history: operations, events, logs, verdicts, limits, interrupts."""

import copy
import inspect
import pathlib
import pickle
import random
import sys
import tempfile
import threading
import time
import unittest

from interrupts import interrupted
from millstream import history
from millstream.history import MODELS, History, HistoryError, Op, Verdict, check, operations

PASSED_OVER = [
    Op(0, "enqueue", 1, None, 0, 10),
    Op(0, "enqueue", 2, None, 20, 30),
    Op(1, "dequeue", None, 2, 40, 50),
    Op(2, "dequeue", None, 1, 60, 70),
]

JEPSEN = """
{:process 0, :type :invoke, :f :write, :value 1, :index 0}
{:process 0, :type :ok, :f :write, :value 1, :index 1}
{:process 1, :type :invoke, :f :read, :value nil, :index 2}
{:process :nemesis, :type :info, :f :start, :value nil, :index 3}
{:process 1, :type :ok, :f :read, :value 0, :index 4}
"""


class Checks(unittest.TestCase):
    def test_a_witness_orders_all_operations_and_a_counterexample_few(self):
        good = [PASSED_OVER[0], PASSED_OVER[1], PASSED_OVER[2]._replace(result=1), PASSED_OVER[3]._replace(result=2)]
        verdict = check(good, "queue")
        self.assertIs(verdict.linearizable, True)
        self.assertTrue(verdict)
        self.assertEqual((verdict.order, verdict.failing, verdict.reason), ((0, 1, 2, 3), None, None))
        verdict = check(PASSED_OVER, "queue")
        self.assertIs(verdict.linearizable, False)
        self.assertFalse(verdict)
        self.assertEqual((verdict.order, verdict.failing, verdict.limit), (None, (0, 1, 2), None))
        for part in [verdict.reason, "operation 2, process 1, from 40 to 50: dequeue() -> 2", "as a queue"]:
            self.assertIn(part, str(verdict))

    def test_numbers_are_those_of_the_list_whatever_its_order(self):
        noise = [Op(9, "enqueue", 100 + i, None, 1000 + 2 * i, 1001 + 2 * i) for i in range(50)]
        for seed in range(20):
            shuffled = noise + PASSED_OVER
            random.Random(seed).shuffle(shuffled)
            verdict = check(shuffled, "queue")
            self.assertEqual([shuffled[number] for number in sorted(verdict.failing, key=lambda n: shuffled[n].start)],
                             PASSED_OVER[:3], seed)
            history = History(shuffled)
            self.assertEqual([history[number] for number in check(history, "queue").failing], PASSED_OVER[:3])

    def test_every_model_knows_its_operations(self):
        for model in ["register", "cas-register", "key-value", "queue", "stack", "set", "counter", "mutex", "log"]:
            self.assertIn(model, MODELS)
        for model, names in MODELS.items():
            self.assertTrue(check([], model), model)
            for name in names:
                with self.subTest(f"{model}, {name}"):
                    try:
                        check([Op(0, name, None, None, 0, None)], model)
                    except HistoryError as error:
                        self.assertIn("operation 0: ", str(error))
            with self.assertRaisesRegex(HistoryError, "operation 1: .*levitate"):
                check([Op(0, names[0], None, None, 5, None), Op(1, "levitate", None, None, 0, None)][:2], model)

    def test_usual_objects_are_decided(self):
        cases = [
            ("register:0", [("read", None, 0), ("write", 5, None), ("read", None, 5)], ("read", None, 0)),
            ("cas-register:0", [("cas", [0, 3], True), ("cas", (0, 4), False), ("read", None, 3)], ("cas", [0, 1], True)),
            ("set", [("add", "x", True), ("contains", "x", True), ("remove", "x", True)], ("contains", "x", True)),
            ("counter", [("add", 4, None), ("add", -1, None), ("get", None, 3)], ("get", None, 4)),
            ("fetch-and-add", [("fetch_add", 2, 0), ("fetch_add", 2, 2)], ("fetch_add", 2, 2)),
            ("stack", [("push", 1, None), ("push", 2, None), ("pop", None, 2)], ("pop", None, 2)),
            ("queue:1", [("enqueue", 1, True), ("enqueue", 2, False)], ("enqueue", 3, True)),
            ("mutex", [("acquire", None, None), ("release", None, None), ("acquire", None, None)], ("acquire", None, None)),
        ]
        for model, good, bad in cases:
            ops = [Op(0, call, argument, result, 10 * n, 10 * n + 5) for n, (call, argument, result) in enumerate(good)]
            self.assertTrue(check(ops, model), model)
            late = Op(1, *bad, 10 * len(ops), 10 * len(ops) + 5)
            self.assertIs(check([*ops, late], model).linearizable, False, model)

    def test_keys_statuses_and_pending_operations_count(self):
        write = Op(0, "write", 1, None, 0, 5, "a")
        stale = Op(1, "read", None, 0, 10, 15, "a")
        self.assertFalse(check([write, stale], "register:0"))
        self.assertTrue(check([write, stale._replace(key="b")], "register:0"))
        self.assertTrue(check([write._replace(status="fail"), stale], "register:0"))
        self.assertTrue(check([write._replace(status="info"), stale], "register:0"))
        self.assertTrue(check([write._replace(end=None), stale], "register:0"))
        self.assertTrue(check([write._replace(end=None), stale._replace(result=1)], "register:0"))
        self.assertEqual(check([tuple(write), tuple(stale)], "register:0").failing, (0, 1))

    def test_values_of_every_type_come_back(self):
        values = [None, True, False, 0, -1, 2**62, -(2**63), 2**100, "", "\N{snowman}", (), (1, (True, "x"), None)]
        ops = [Op(0, "write", value, None, 10 * n, 10 * n + 5) for n, value in enumerate(values)]
        read = History([*ops, Op(1, "read", None, values[-1], 1000, 1001)])
        self.assertEqual([op.argument for op in read][:-1], values)
        self.assertTrue(check(read, "register"))
        self.assertEqual(History([ops[0]._replace(argument=[1, [2]])])[0].argument, (1, (2,)))
        try:
            import numpy
        except ImportError:
            return
        op = Op(numpy.int64(1), "write", numpy.bool_(True), None, numpy.int64(3), numpy.uint64(4), numpy.int8(5))
        self.assertEqual(History([op])[0], Op(1, "write", True, None, 3, 4, 5))

    def test_operations_that_make_no_sense_are_refused_with_their_number(self):
        good, bad = Op(0, "read", None, None, 0, 1), Op(1, "read", None, None, 0, 1)
        nested = []
        nested.append(nested)
        for wrong, words in [
            (bad._replace(start=1.5), r"operation 1: start must be an int of 0 or more, such as .* found 1.5 \(float\)"),
            (bad._replace(start=-1), "operation 1: start"),
            (bad._replace(end="x"), "operation 1: end"),
            (bad._replace(start=5), "operation 1: it ends at 1, before its start at 5"),
            (bad._replace(process=-1), "operation 1: process"),
            (bad._replace(process=None), "operation 1: process"),
            (bad._replace(call=3), "operation 1: call"),
            (bad._replace(argument=1.5), r"operation 1: a value .* found 1.5 \(float\)"),
            (bad._replace(argument={}), "operation 1: a value"),
            (bad._replace(argument=nested), "operation 1: a value has more than 64 lists"),
            (bad._replace(argument=2**200), "operation 1: an int must have at most 127 bits"),
            (bad._replace(status="maybe"), "operation 1: status"),
            (bad._replace(end=None, result=3), "operation 1: it has a result and no end"),
            (bad._replace(process=0), "operation 1: process 0 called it while its operation 0 had not returned"),
            (bad._replace(end=2**64 - 1), "operation|never"),
            ((1, 2), "operation 1: an operation must be a tuple"),
            ("text", "operation 1: an operation must be a tuple"),
            (None, "operation 1: an operation must be a tuple"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(HistoryError, words):
                check([good._replace(end=3), wrong], "register")
        with self.assertRaisesRegex(TypeError, "History.parse"):
            check("[]", "register")
        with self.assertRaises(TypeError):
            check(3, "register")
        for model in ["quue", "queue:x", "mutex:3"]:
            with self.assertRaises(HistoryError):
                check([], model)
        for seconds in [-1, float("nan"), 1e300]:
            with self.assertRaises(ValueError):
                check([], "queue", seconds=seconds)

    def test_exceptions_of_an_iterator_are_passed_on(self):
        with self.assertRaises(ZeroDivisionError):
            check((1 // 0 for _ in range(3)), "queue")


class Events(unittest.TestCase):
    def test_events_are_paired(self):
        paired = operations([
            (0, "invoke", "write", 1),
            (1, "invoke", "read", None),
            (0, "ok", "write", None),
            (1, "ok", "read", 1),
            (0, "invoke", "write", 2),
            (0, "fail", "write", 2),
            (1, "invoke", "write", 3),
            (1, "info", "write", "time-out"),
            (2, "invoke", "read", None),
        ])
        self.assertEqual(paired, [
            Op(0, "write", 1, None, 0, 2),
            Op(1, "read", None, 1, 1, 3),
            Op(0, "write", 2, None, 4, 5, None, "fail"),
            Op(1, "write", 3, None, 6, 7, None, "info"),
            Op(2, "read", None, None, 8, None),
        ])
        self.assertTrue(check(paired, "register"))

    def test_events_that_make_no_sense_are_refused_with_their_number(self):
        call = (0, "invoke", "read", None)
        for events, words in [
            ([call, call], "event 1: process 0 called 'read' while"),
            ([call, (1, "ok", "read", 1)], "event 1: process 1 returned"),
            ([call, (0, "ok", "write", 1)], "event 1: .* from 'write', but had called 'read'"),
            ([(0, "return", "read", 1)], "event 0: expected type"),
        ]:
            with self.assertRaisesRegex(HistoryError, words):
                operations(events)


class Logs(unittest.TestCase):
    def test_jepsen_and_json_logs_are_read_from_texts_and_files(self):
        read = History.parse(JEPSEN)
        self.assertEqual([op.call for op in read], ["write", "read"])
        verdict = check(read, "register")
        self.assertEqual((verdict.linearizable, verdict.failing), (False, (1,)))
        lines = History(PASSED_OVER).to_json()
        with tempfile.TemporaryDirectory() as folder:
            for name, text, length in [("jepsen.edn", JEPSEN, 2), ("lines.json", lines, 4)]:
                path = pathlib.Path(folder) / name
                path.write_text(text)
                for form in [path, str(path)]:
                    self.assertEqual(len(History.load(form)), length)
            with self.assertRaises(FileNotFoundError) as failed:
                History.load(pathlib.Path(folder) / "missing")
            self.assertEqual(failed.exception.filename, str(pathlib.Path(folder) / "missing"))
            with self.assertRaises(IsADirectoryError):
                History.load(folder, "json")
        self.assertEqual(list(History.parse(lines.encode(), "json")), PASSED_OVER)
        pairs = "[{:process 0, :type :invoke, :f :write, :value [7 1]} {:process 0, :type :ok, :f :write, :value [7 1]}]"
        self.assertEqual(History.parse(pairs, "jepsen-independent")[0], Op(0, "write", 1, None, 1, 2, 7))

    def test_texts_that_are_no_logs_are_refused_with_their_line(self):
        for log, format, words in [
            ("", None, "no known log"),
            ("hello", None, "no known log"),
            ("{", "json", "line 1"),
            ('{"process":0,"op":"read","call":3}\n{"process":1}', None, "line 2: missing field"),
            ("{:process 0", "jepsen", "line 1"),
            ("x", "yaml", "no format `yaml`"),
        ]:
            with self.subTest(log), self.assertRaisesRegex(HistoryError, words):
                History.parse(log, format)
        with self.assertRaises(TypeError):
            History.parse(3)

    def test_a_history_has_items_from_both_ends(self):
        read = History(reversed(PASSED_OVER))
        self.assertEqual((len(read), read[0], read[-1]), (4, PASSED_OVER[0], PASSED_OVER[3]))
        self.assertEqual(read.show(2), "dequeue() -> 2")
        for index in [4, -5, sys.maxsize, -sys.maxsize - 1]:
            for get in [read.__getitem__, read.show]:
                with self.assertRaises(IndexError):
                    get(index)


class Objects(unittest.TestCase):
    def test_verdicts_compare_hash_copy_and_pickle(self):
        slow, _ = hard(40)
        verdicts = [check(PASSED_OVER, "queue"), check(PASSED_OVER[:2], "queue"), check(slow, "register", memory_bytes=1)]
        self.assertEqual([verdict.linearizable for verdict in verdicts], [False, True, None])
        for verdict in verdicts:
            for again in [copy.deepcopy(verdict), pickle.loads(pickle.dumps(verdict)), Verdict(*verdict.__getnewargs__())]:
                self.assertEqual((again, hash(again), str(again), repr(again)),
                                 (verdict, hash(verdict), str(verdict), repr(verdict)))
        self.assertEqual(len(set(verdicts)), 3)
        read = pickle.loads(pickle.dumps(History(PASSED_OVER)))
        self.assertEqual(list(read), PASSED_OVER)


class Limits(unittest.TestCase):
    def test_at_a_limit_the_verdict_is_unknown_and_false(self):
        slow, total = hard(60)
        for limits, limit in [({"seconds": 0.05}, "time"), ({"memory_bytes": 100_000}, "memory")]:
            verdict = check(slow, "register", **limits)
            self.assertEqual((verdict.linearizable, verdict.limit, verdict.total), (None, limit, total))
            self.assertFalse(verdict)
            self.assertTrue(verdict.decided < total and str(verdict).startswith(f"unknown: at the limit of {limit}"))

    def ticks_during_a_check(self):
        """The ticks of another thread during a check of half a second: their number, and the longest time between two."""
        slow, _ = hard(60)
        done, ticks = threading.Event(), []

        def tick():
            while not done.wait(0.001):
                ticks.append(time.monotonic())

        thread = threading.Thread(target=tick)
        thread.start()
        began = time.monotonic()
        check(slow, "register", seconds=0.5)
        ended = time.monotonic()
        done.set()
        thread.join()
        during = [began, *[tick for tick in ticks if began < tick < ended], ended]
        return len(during), max(later - earlier for earlier, later in zip(during, during[1:]))

    def test_other_threads_run_meanwhile(self):
        # On a busy machine the other thread may wait for a core. A check that held the GIL would fail in each try.
        tries = []
        for _ in range(5):
            number, longest = self.ticks_during_a_check()
            if number > 10 and longest < 0.4:
                return
            tries.append((number, longest))
        self.fail(f"ticks, longest pause: {tries}")

    def test_an_interrupt_ends_the_check_and_its_thread(self):
        program = "\n".join([
            "import os, time",
            "from millstream.history import Op, check",
            inspect.getsource(hard),
            "slow, _ = hard(60)",
            "print('go', flush=True)",
            "try:",
            "    check(slow, 'register', memory_bytes=2**40)",
            "except KeyboardInterrupt:",
            "    time.sleep(0.5)",
            "    before = time.process_time()",
            "    time.sleep(0.5)",
            "    print('heard', len(os.listdir('/proc/self/task')), time.process_time() - before < 0.2)",
        ])
        heard = interrupted(program, after=0.3, limit=120)
        self.assertIsNotNone(heard, "the interrupt was not heard")
        printed, complaints = heard
        self.assertEqual(printed, b"heard 1 True\n", complaints)


def hard(width):
    """A history whose many operations all overlap and write few values: only a search decides it."""
    ops = [Op(n, "write", n % 7, None, 0, 1000) for n in range(width)]
    ops += [Op(width + n, "cas" if n < 0 else "read", None, (3 * n + n * n) % 7, n, 500 + n) for n in range(width)]
    ops.append(Op(2 * width, "read", None, 99, 1001, 1002))
    return ops, len(ops)


if __name__ == "__main__":
    unittest.main()
