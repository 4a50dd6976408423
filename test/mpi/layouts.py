"""Buffers of MPI datatypes. Layouts with one signature differ between ranks: what a rank sees is a matter of that rank alone."""

import numpy
from mpi4py import MPI


def usable(names):
    """The predefined datatypes of these names that the library has (wheels are built without Fortran)."""
    found = []
    for name in names:
        try:
            datatype = getattr(MPI, name)
            if datatype != MPI.DATATYPE_NULL and datatype.Get_size() > 0:
                found.append(datatype)
        except (AttributeError, MPI.Exception):
            pass
    return found


def pattern(count, rank, number):
    """Bytes that depend on the rank, the number of the operation and the place."""
    return ((numpy.arange(count, dtype=numpy.uint64) * 2654435761 + rank * 40503 + number * 97) >> 5).astype(numpy.uint8)


class Layout:
    """An element: `length` basic elements, laid out in one of several ways that the generator draws."""

    def __init__(self, random, basic, length):
        self.made = random.choice([None, self.contiguous, self.vector, self.indexed, self.structure, self.resized])
        _, self.step = basic.Get_extent()
        self.multiple, self.derived = 1, self.made is not None and length > 0
        self.positions = range(length) # of the basic elements, in order, in units of their extent
        if self.derived:
            self.datatype = self.made(random, basic, length).Commit()
        else:
            self.datatype, self.multiple = basic, length
        lower, extent = self.datatype.Get_extent()
        true_lower, true_extent = self.datatype.Get_true_extent()
        assert lower >= 0 and true_lower >= 0
        self.extent, self.last = extent * self.multiple, (self.multiple - 1) * extent + true_lower + true_extent

    def contiguous(self, random, basic, length):
        return basic.Create_contiguous(length)

    def vector(self, random, basic, length):
        stride = random.randint(1, 3)
        self.positions = range(0, length * stride, stride)
        return basic.Create_vector(length, 1, stride)

    def indexed(self, random, basic, length):
        places = list(range(length + 2))
        random.shuffle(places)
        self.positions = places[:length]
        return basic.Create_indexed_block(1, self.positions)

    def structure(self, random, basic, length):
        first, gap = random.randint(0, length), random.randint(0, 2)
        self.positions = [i if i < first else i + gap for i in range(length)]
        return MPI.Datatype.Create_struct([first, length - first], [0, (first + gap) * self.step], [basic, basic])

    def resized(self, random, basic, length):
        inner = basic.Create_contiguous(length)
        outer = inner.Create_resized(0, (length + random.randint(1, 3)) * self.step)
        inner.Free()
        return outer

    def bytes(self, elements):
        """Of a buffer of so many elements, one after the other."""
        return (elements - 1) * self.extent + self.last if elements > 0 else 0

    def places(self, first, elements):
        """Of all bytes that consecutive elements have, in the order of the elements; `first` is their offset in bytes."""
        starts = first + numpy.arange(elements).reshape(-1, 1) * self.extent + numpy.array(self.positions) * self.step
        return (starts.reshape(-1, 1) + numpy.arange(self.step)).reshape(-1).astype(int)

    def free(self):
        if self.derived:
            self.datatype.Free()
            self.derived = False


class Memory:
    """Bytes with some to spare on each side; `places` are those that a call may change, in the order of its elements."""

    SPARE = 32

    def __init__(self, size):
        self.memory = numpy.zeros(size + 2 * self.SPARE, dtype=numpy.uint8)
        self.view = self.memory[self.SPARE:self.SPARE + size]
        self.before = None

    def fill(self, rank, number):
        self.memory[:] = pattern(len(self.memory), rank + 100, number)
        self.memory[self.places] = pattern(len(self.places), rank, number) # wherever they lie
        self.before = self.memory.copy()

    def unchanged(self):
        return (self.memory == self.before).all()

    def contents(self):
        """What the elements hold; the bytes between them must be as they were."""
        found = self.memory[self.places]
        self.before[self.places] = found
        assert self.unchanged(), "bytes between the elements, or beyond, were written to"
        return found.tobytes()


class Buffer(Memory):
    """Elements of one layout, one after the other."""

    def __init__(self, random, layout, elements):
        super().__init__(layout.bytes(elements))
        self.layout, self.elements = layout, elements
        self.places = layout.places(self.SPARE, elements)
        self.bottom = self.absolute() if layout.derived and elements > 0 and random.random() < 0.1 else None

    def absolute(self):
        """The layout at this buffer's address, for MPI_BOTTOM."""
        moved = MPI.Datatype.Create_struct([1], [MPI.Get_address(self.view)], [self.layout.datatype])
        made = moved.Create_resized(0, self.layout.extent)
        moved.Free()
        return made.Commit()

    def simple(self, blocks=1):
        """mpi4py's form: buffer, count, datatype. Where a collective's buffer has a block a rank, the count is a block's."""
        elements = self.elements // blocks if blocks > 0 else 0
        if self.bottom is not None:
            return [MPI.BOTTOM, elements, self.bottom]
        return [self.view, elements * self.layout.multiple, self.layout.datatype]

    def free(self):
        if self.bottom is not None:
            self.bottom.Free()
            self.bottom = None
        self.layout.free()


class Parts(Buffer):
    """A part a rank, of `counts` elements each, with gaps between the parts, in an order that is drawn."""

    def __init__(self, random, layout, counts):
        self.counts = list(counts)
        order = list(range(len(counts)))
        random.shuffle(order)
        self.displacements, end = [0] * len(counts), random.randint(0, 2)
        for part in order:
            self.displacements[part] = end
            end += counts[part] + random.randint(0, 2)
        super().__init__(random, layout, end)
        self.places = joined(layout.places(self.SPARE + place * layout.extent, count)
                             for place, count in zip(self.displacements, counts))

    def vector(self):
        multiple = self.layout.multiple
        count, places = [c * multiple for c in self.counts], [p * multiple for p in self.displacements]
        if self.bottom is not None:
            return [MPI.BOTTOM, self.counts, self.displacements, self.bottom]
        return [self.view, count, places, self.layout.datatype]


class PartsApart(Memory):
    """A part a rank, each with a layout of its own."""

    def __init__(self, random, layouts, counts):
        self.counts, self.layouts, self.displacements, end = list(counts), layouts, [], 0
        for count, layout in zip(counts, layouts):
            self.displacements.append(end)
            end += layout.bytes(count) + random.randint(0, 9)
        super().__init__(end)
        self.places = joined(layout.places(self.SPARE + place, count)
                             for place, count, layout in zip(self.displacements, counts, layouts))

    def each(self):
        return [self.view, ([c * layout.multiple for c, layout in zip(self.counts, self.layouts)], self.displacements),
                [layout.datatype for layout in self.layouts]]

    def free(self):
        for layout in self.layouts:
            layout.free()


def joined(parts):
    parts = list(parts)
    return numpy.concatenate(parts) if parts else numpy.zeros(0, dtype=int)
