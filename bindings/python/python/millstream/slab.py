"""Share objects of one size between processes, as numpy arrays without a copy, and keep them through `kill -9`.

A slab is a file, best kept in memory (`/dev/shm/...`), that many processes have open. An object is private while it is
written to, and is published when it is ready. A kill at any instruction leaves the object free, published with its
contents, or an orphan that the survivors find.

- `Slab.create`, `Slab.open`, `Slab.open_or_create`, `Slab.memory`: a slab
- `Slab.allocate`: a new private object, which memoryview() and numpy.frombuffer() show without a copy
- `Private.publish`: its handle, 16 bytes that name it in every process
- `Slab.claim`: a published object made private again, to change it or to read it in place
- `Slab.read`: a copy of a published object
- `Slab.free`: the end of an object

>>> from millstream.slab import Slab
>>> slab = Slab.memory(object_bytes=64, max_objects=1000)
>>> object = slab.allocate()
>>> with memoryview(object) as view:
...     view[:5] = b"hello"
>>> handle = object.publish()
>>> slab.read(handle)[:5]
b'hello'
>>> slab.free(handle)
>>> slab.close()
"""

from ._native import Entry, Handle, Private, Slab, SlabError

__all__ = ["Entry", "Handle", "Private", "Slab", "SlabError"]
