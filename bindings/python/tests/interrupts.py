"""Programs that are interrupted from the keyboard, as tests see them."""

import signal
import subprocess
import sys
import time


def interrupted(program, after, limit):
    """Runs a program until it has printed `go`, interrupts it `after` seconds later, and returns what it printed to its
    standard output and error from then on; `None` if it has not ended `limit` seconds later.

    A parent that ignores the interrupt, as a shell does for its background jobs, hands that down: the program hears it
    nevertheless.
    """
    listen = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", listen + program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    started = process.stdout.readline()
    if started != b"go\n":
        raise AssertionError((started, process.communicate()))
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
