"""Tests of millstream.slab: views without copies, the lives of objects, processes that fork and die, misuse."""

import copy
import gc
import inspect
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from millstream.slab import Entry, Handle, Private, Slab, SlabError

try:
    import numpy
except ImportError:
    numpy = None


def made(**options):
    return Slab.memory(64, 100, **options)


def put(slab, data):
    private = slab.allocate()
    with memoryview(private) as view:
        view[: len(data)] = data
    return private.publish()


class Views(unittest.TestCase):
    def test_a_view_is_the_object_itself(self):
        slab = made()
        private = slab.allocate()
        one, other = memoryview(private), memoryview(private)
        one[:4] = b"abcd"
        self.assertEqual(bytes(other[:4]), b"abcd")
        self.assertEqual((len(private), one.nbytes, one.format, one.readonly, one.ndim), (64, 64, "B", False, 1))
        self.assertIs(one.obj, private)
        numbers = other.cast("q")
        numbers[1] = -5
        self.assertEqual(bytes(one[8:16]), (-5).to_bytes(8, sys.byteorder, signed=True))
        for view in [numbers, one, other]:
            view.release()
        handle = private.publish()
        self.assertEqual(slab.read(handle)[:4], b"abcd")

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_a_numpy_array_is_the_object_itself(self):
        slab = made()
        private = slab.allocate()
        array = numpy.frombuffer(private, dtype="f8")
        self.assertTrue(array.flags.writeable and not array.flags.owndata)
        array[:] = range(8)
        part = array.reshape(2, 4)[:, 1:3]
        del array
        gc.collect()
        for end in [private.publish, private.free, slab.close]:
            with self.assertRaisesRegex(BufferError, r"views \(1\)"):
                end()
        self.assertEqual(part.tolist(), [[1, 2], [5, 6]])
        del part
        handle = private.publish()
        again = slab.claim(handle)
        self.assertEqual(numpy.frombuffer(again, dtype="f8").sum(), 28)
        again.free()

    def test_views_keep_the_memory_when_everything_else_is_gone(self):
        slab = made()
        view = memoryview(slab.allocate())
        del slab
        gc.collect()
        view[:5] = b"still"
        self.assertEqual(bytes(view[:5]), b"still")
        self.assertEqual(repr(view.obj)[:8], "<Private")

    def test_nothing_ends_an_object_with_views(self):
        slab = made()
        private = slab.allocate()
        views = [memoryview(private) for _ in range(3)]
        for end, what in [(private.publish, "publish"), (private.free, "free"), (slab.close, "close")]:
            with self.assertRaisesRegex(BufferError, rf"cannot {what}.*views \(3\)"):
                end()
        with self.assertRaises(BufferError), slab:
            pass
        for view in views:
            view.release()
        slab.close()
        self.assertEqual(repr(slab), "<Slab, closed>")
        with self.assertRaisesRegex(BufferError, "closed"):
            memoryview(private)

    def test_an_object_that_ended_shows_nothing(self):
        slab = made()
        for end in [Private.publish, Private.free]:
            private = slab.allocate()
            end(private)
            with self.assertRaisesRegex(BufferError, "no longer private"):
                memoryview(private)
            for again in [private.publish, private.free, lambda: private.handle]:
                with self.assertRaisesRegex(ValueError, "no longer private"):
                    again()
            self.assertEqual(repr(private), "<Private, no longer private>")

    def test_an_object_that_comes_back_is_another_one(self):
        slab = made()
        first = slab.allocate()
        handle = first.publish()
        second = slab.claim(handle)
        view = memoryview(second)
        for again in [first.publish, first.free]:
            with self.assertRaisesRegex(ValueError, "no longer private"):
                again()
        del first
        gc.collect()
        view[0] = 1
        self.assertEqual([entry.state for entry in slab.live()], ["private"])
        view.release()
        self.assertEqual(second.publish(), handle)

    def test_a_request_that_cannot_be_met_leaves_no_view(self):
        import ctypes

        slab = made()
        private = slab.allocate()
        get = ctypes.pythonapi.PyObject_GetBuffer
        get.argtypes, get.restype = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int], ctypes.c_int
        with self.assertRaises(BufferError):
            get(private, None, 0)
        private.publish()


class Lives(unittest.TestCase):
    def test_an_object_is_allocated_published_claimed_and_freed(self):
        slab = made(owners=True, tag=7)
        slab.set_owner(42)
        self.assertEqual((slab.object_bytes, slab.max_objects, slab.tag), (64, 100, 7))
        private = slab.allocate()
        self.assertEqual(slab.live(), [Entry(private.handle, "private", os.getpid(), 42)])
        with self.assertRaisesRegex(SlabError, "private to process"):
            slab.read(private.handle)
        expected = private.handle
        handle = private.publish()
        self.assertEqual(handle, expected)
        self.assertEqual([(entry.state, entry.pid, entry.owner) for entry in slab.live()], [("published", 0, 42)])
        claimed = slab.claim(handle)
        with self.assertRaises(SlabError):
            slab.claim(handle)
        with memoryview(claimed) as view:
            view[0] = 9
        self.assertEqual(claimed.publish(), handle)
        self.assertEqual(slab.read(handle)[0], 9)
        slab.free(handle)
        for use in [slab.free, slab.read, slab.claim]:
            with self.assertRaisesRegex(SlabError, "was freed"):
                use(handle)
        self.assertEqual((slab.live(), slab.verify(), slab.recover()), ([], [], 0))
        slab.sync()

    def test_a_private_object_that_is_dropped_is_freed(self):
        slab = made()
        for _ in range(1000):
            slab.allocate()
        self.assertEqual(slab.live(), [])
        kept = [slab.allocate() for _ in range(100)]
        with self.assertRaisesRegex(SlabError, "full"):
            slab.allocate()
        del kept[50]
        slab.allocate().publish()
        slab.close()
        del kept
        gc.collect()

    def test_files_are_created_opened_and_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "slab"
            with Slab.create(path, 20, 10, reserve=True) as slab:
                self.assertEqual(slab.object_bytes, 24)
                handle = put(slab, b"kept")
                with self.assertRaises(FileExistsError):
                    Slab.create(path, 20, 10)
                with Slab.open_or_create(str(path), 20, 10) as other:
                    self.assertEqual(other.read(handle)[:4], b"kept")
            with Slab.open(path) as slab:
                self.assertEqual(slab.read(handle)[:4], b"kept")
            with self.assertRaises(FileNotFoundError):
                Slab.open(pathlib.Path(folder) / "missing")
            (pathlib.Path(folder) / "text").write_text("no slab " * 100)
            with self.assertRaisesRegex(SlabError, "not a slab"):
                Slab.open(pathlib.Path(folder) / "text")
            os.chmod(path, 0o666)
            with self.assertRaisesRegex(SlabError, "others may write"):
                Slab.open(path)
        for wrong in [{"object_bytes": 2**63, "max_objects": 10}, {"object_bytes": 8, "max_objects": 0},
                      {"object_bytes": 8, "max_objects": 10, "caches": 0}]:
            with self.subTest(wrong), self.assertRaises((ValueError, OSError)):
                Slab.memory(**wrong)
        with self.assertRaises(OverflowError):
            Slab.memory(-1, 10)

    def test_a_closed_slab_says_so(self):
        slab = made()
        handle = put(slab, b"x")
        slab.close()
        slab.close()
        for use in [
            lambda: slab.allocate(),
            lambda: slab.claim(handle),
            lambda: slab.read(handle),
            lambda: slab.free(handle),
            lambda: slab.live(),
            lambda: slab.recover(),
            lambda: slab.verify(),
            lambda: slab.sync(),
            lambda: slab.set_owner(1),
            lambda: slab.object_bytes,
        ]:
            with self.subTest(inspect.getsource(use)), self.assertRaisesRegex(ValueError, "the slab is closed"):
                use()

    def test_handles_are_values(self):
        slab = made()
        handle = put(slab, b"x")
        self.assertEqual(len(bytes(handle)), 16)
        for again in [Handle.from_bytes(bytes(handle)), copy.copy(handle), pickle.loads(pickle.dumps(handle)),
                      eval(repr(handle))]:
            self.assertEqual((again, hash(again)), (handle, hash(handle)))
            self.assertEqual(slab.read(again)[:1], b"x")
        entry = slab.live()[0]
        self.assertEqual(pickle.loads(pickle.dumps(entry)), entry)
        self.assertEqual(hash(copy.copy(entry)), hash(entry))
        for other in [Handle(0, 0), put(made(), b"y"), Handle(2**64 - 1, 2**64 - 1)]:
            with self.assertRaises(SlabError):
                slab.read(other)
        for wrong in [b"", b"15 bytes too few", b"x" * 17][::2]:
            with self.assertRaisesRegex(ValueError, "16 bytes"):
                Handle.from_bytes(wrong)
        with self.assertRaises(ValueError):
            Entry(handle, "lost", 0, 0)

    def test_threads_share_a_slab(self):
        slab = Slab.memory(8, 2000)
        failures = []

        def work(number):
            try:
                for _ in range(200):
                    handle = put(slab, bytes([number]) * 8)
                    assert slab.read(handle) == bytes([number]) * 8
                    claimed = slab.claim(handle)
                    with memoryview(claimed) as view:
                        assert view.tolist() == [number] * 8
                    claimed.free()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((failures, slab.live(), slab.verify()), ([], [], []))


class Processes(unittest.TestCase):
    def test_a_killed_process_leaves_what_it_published_and_orphans(self):
        program = "\n".join([
            "import os, signal, sys",
            "from millstream.slab import Slab",
            "slab = Slab.open(sys.argv[1])",
            "slab.set_owner(5)",
            "done, begun = slab.allocate(), slab.allocate()",
            "memoryview(done)[:4] = b'done'",
            "view = memoryview(begun)",
            "view[:4] = b'half'",
            "done.publish()",
            "os.kill(os.getpid(), signal.SIGKILL)",
        ])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "slab"
            with Slab.create(path, 64, 100, owners=True) as slab:
                killed = subprocess.run([sys.executable, "-c", program, path])
                self.assertEqual(killed.returncode, -signal.SIGKILL)
                self.assertGreaterEqual(slab.recover(), 1)
                found = {entry.state: slab.read(entry.handle)[:4] for entry in slab.live()}
                self.assertEqual(found, {"published": b"done", "orphan": b"half"})
                self.assertEqual({entry.owner for entry in slab.live()}, {5})
                claimed = slab.claim(next(entry.handle for entry in slab.live() if entry.state == "orphan"))
                claimed.free()

    def test_a_forked_child_uses_the_slab_and_leaves_its_parents_objects_alone(self):
        slab = made()
        private, viewed = slab.allocate(), slab.allocate()
        view = memoryview(viewed)
        published = put(slab, b"parent")
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)

        def child():
            seen = []
            for use in [private.publish, private.free, lambda: memoryview(private)]:
                try:
                    use()
                except (SlabError, BufferError) as error:
                    seen.append(str(error))
            claimed = slab.claim(published)
            with memoryview(claimed) as bytes_of_it:
                bytes_of_it[:6] = b"child!"
            sender.send((seen, bytes(claimed.publish()), bytes(put(slab, b"new"))))
            own = slab.allocate()
            own_view = memoryview(own)
            try:
                slab.close()
            except BufferError:
                own_view.release()
                slab.close()
            # The parent's view still shows the parent's memory.
            os._exit(0 if bytes(view[:1]) == b"\0" else 1)

        process = context.Process(target=child)
        process.start()
        seen, claimed, new = receiver.recv()
        process.join()
        self.assertEqual(process.exitcode, 0)
        self.assertTrue(len(seen) == 3 and all("has forked this one" in text for text in seen), seen)
        self.assertEqual(Handle.from_bytes(claimed), published)
        self.assertEqual(slab.read(published)[:6], b"child!")
        self.assertEqual(slab.read(Handle.from_bytes(new))[:3], b"new")
        view.release()
        self.assertEqual(len({private.publish(), viewed.publish()}), 2)
        self.assertEqual(slab.verify(), [])


if __name__ == "__main__":
    unittest.main()
