"""Workers fill numpy arrays in shared memory; the parent adds them up in place. One worker is killed on the way.

    pip install numpy && python shared_arrays.py
"""

import multiprocessing
import os
import pathlib
import signal
import tempfile

import numpy

from millstream.slab import Handle, Slab

NUMBERS = 1000


def work(path, name, results):
    with Slab.open(path) as slab:
        for number in range(10):
            object = slab.allocate()
            array = numpy.frombuffer(object, dtype="i8")  # the shared memory itself, no copy
            array[:] = 10 * name + number
            del array  # an object with views cannot be published
            results.send(bytes(object.publish()))
        left = slab.allocate()
        if name == 0:
            os.kill(os.getpid(), signal.SIGKILL)  # what it has published stays
        left.free()


def main(path):
    context = multiprocessing.get_context("spawn")
    with Slab.create(path, object_bytes=8 * NUMBERS, max_objects=10_000) as slab:
        pipes, workers = [], []
        for name in range(4):
            receiver, sender = context.Pipe(duplex=False)
            worker = context.Process(target=work, args=(path, name, sender))
            worker.start()
            sender.close()
            pipes.append(receiver)
            workers.append(worker)
        total = arrays = 0
        for pipe in pipes:
            for _ in range(10):
                object = slab.claim(Handle.from_bytes(pipe.recv()))
                array = numpy.frombuffer(object, dtype="i8")
                total += int(array.sum())
                arrays += 1
                del array
                object.free()
        for worker in workers:
            worker.join()
        slab.recover()
        orphans = [entry for entry in slab.live() if entry.state == "orphan"]
        assert len(orphans) == 1 and workers[0].exitcode == -signal.SIGKILL
        print(f"{len(workers)} workers filled {arrays} arrays, the sum is {total}")


if __name__ == "__main__":
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        main(str(pathlib.Path(folder) / "arrays"))
