"""A queue that three threads use, checked for linearizability with the calls that Hypothesis thinks of.

    pip install hypothesis && python -m unittest hypothesis_queue
"""

import collections
import threading
import time
import unittest

from hypothesis import given, settings, strategies

from millstream.history import Op, check


def dequeue(queue):
    try:
        return queue.popleft()
    except IndexError:
        return None


def run(queue, process, calls, log):
    for call, argument in calls:
        start = time.monotonic_ns()
        result = queue.append(argument) if call == "enqueue" else dequeue(queue)
        log.append(Op(process, call, argument, result, start, time.monotonic_ns()))


plan = strategies.lists(strategies.one_of(
    strategies.tuples(strategies.just("enqueue"), strategies.integers(0, 1_000_000)),
    strategies.just(("dequeue", None)),
), max_size=8)


class Queue(unittest.TestCase):
    @settings(max_examples=50, deadline=None)
    @given(strategies.lists(plan, min_size=3, max_size=3))
    def test_it_is_linearizable(self, plans):
        queue, log = collections.deque(), []
        threads = [threading.Thread(target=run, args=(queue, n, calls, log)) for n, calls in enumerate(plans)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        verdict = check(log, "queue")
        assert verdict, verdict
