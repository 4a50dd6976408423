"""One call of every collective, with drawn arguments. `draw` is the generator that all ranks of the communicator share, `mine` this
rank's own: it decides what MPI leaves to each rank."""

import random

from mpi4py import MPI

from layouts import Buffer, Layout, Parts, PartsApart
from operators import BYTES, FLOATS, INTEGERS, NOT_OF_C, Reduction


MOVED = [t for t in INTEGERS + NOT_OF_C + FLOATS + BYTES if t != MPI.LONG_DOUBLE] # of whose padding MPICH moves some and some not


class Call:
    """The arguments of a call, what to write into its buffers before each start, and what it leaves."""

    def __init__(self, name, arguments, inputs=(), outputs=(), parts=()):
        self.name, self.arguments = name, arguments
        self.inputs = list(inputs)   # functions of the number of the start
        self.outputs = list(outputs) # functions that give bytes
        self.parts = list(parts)     # to free

    def prepare(self, number):
        for write in self.inputs:
            write(number)

    def results(self):
        return [output() for output in self.outputs]

    def free(self):
        """What MPI keeps by itself as long as it needs it."""
        for part in self.parts:
            part.free()

    def end(self):
        for part in self.parts:
            if hasattr(part, "end"):
                part.end()


class Context:
    """A communicator and its two generators. Layouts have a third, so that the rest does not depend on whether they are mixed."""

    def __init__(self, comm, draw, mine, mixed):
        self.comm, self.draw = comm, draw
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        alike = random.Random(draw.random())
        self.random = mine if mixed else alike
        self.basic = draw.choice(MOVED)
        self.length = draw.choice([1, 1, 2, 3, 5])

    def count(self):
        """Elements of a block: often few, sometimes none, sometimes many."""
        return self.draw.choice([0, 1, 1, 2, 3, 7, 16, 33, 100, 100, 1000, self.draw.randint(1, 20000)])

    def counts(self, parts):
        """Of each part."""
        if self.draw.random() < 0.3:
            return [self.draw.choice([0, 3, 50])] * parts
        return [self.draw.choice([0, 1, 2, 5, 17, 80, self.draw.randint(0, 3000)]) for _ in range(parts)]

    def layout(self):
        return Layout(self.random, self.basic, self.length)

    def buffer(self, elements):
        return Buffer(self.random, self.layout(), elements)

    def parts(self, counts):
        return Parts(self.random, self.layout(), counts)

    def apart(self, counts):
        return PartsApart(self.random, [self.layout() for _ in counts], counts)

    def root(self):
        return self.draw.randrange(self.size)

    def in_place(self):
        return self.draw.random() < 0.25


def made(context, name, arguments, sends, receives):
    """A call that moves data."""
    sends, receives = [b for b in sends if b is not None], [b for b in receives if b is not None]

    def unchanged(buffer):
        assert buffer.unchanged(), f"{name} wrote to what it sends"
        return b""
    outputs = [lambda b=b: unchanged(b) for b in sends] + [b.contents for b in receives]
    return Call(name, arguments, [lambda number, b=b: b.fill(context.rank, number) for b in sends + receives], outputs, sends + receives)


def barrier(c):
    return Call("Barrier", [])


def bcast(c):
    buffer = c.buffer(c.count())
    return made(c, "Bcast", [buffer.simple(), c.root()], [], [buffer])


def allgather(c):
    count, in_place = c.count(), c.in_place()
    send, recv = None if in_place else c.buffer(count), c.buffer(count * c.size)
    return made(c, "Allgather", [MPI.IN_PLACE if in_place else send.simple(), recv.simple(c.size)], [send], [recv])


def allgatherv(c):
    counts, in_place = c.counts(c.size), c.in_place()
    send, recv = None if in_place else c.buffer(counts[c.rank]), c.parts(counts)
    return made(c, "Allgatherv", [MPI.IN_PLACE if in_place else send.simple(), recv.vector()], [send], [recv])


def gather(c):
    count, root, in_place = c.count(), c.root(), c.in_place()
    at_root = c.rank == root
    send = None if in_place and at_root else c.buffer(count)
    recv = c.buffer(count * c.size) if at_root else None
    return made(c, "Gather", [MPI.IN_PLACE if send is None else send.simple(), recv.simple(c.size) if at_root else None, root], [send], [recv])


def gatherv(c):
    counts, root, in_place = c.counts(c.size), c.root(), c.in_place()
    at_root = c.rank == root
    send = None if in_place and at_root else c.buffer(counts[c.rank])
    recv = c.parts(counts) if at_root else None
    return made(c, "Gatherv", [MPI.IN_PLACE if send is None else send.simple(), recv.vector() if at_root else None, root], [send], [recv])


def scatter(c):
    count, root, in_place = c.count(), c.root(), c.in_place()
    at_root = c.rank == root
    send = c.buffer(count * c.size) if at_root else None
    recv = None if in_place and at_root else c.buffer(count)
    return made(c, "Scatter", [send.simple(c.size) if at_root else None, MPI.IN_PLACE if recv is None else recv.simple(), root], [send], [recv])


def scatterv(c):
    counts, root, in_place = c.counts(c.size), c.root(), c.in_place()
    at_root = c.rank == root
    send = c.parts(counts) if at_root else None
    recv = None if in_place and at_root else c.buffer(counts[c.rank])
    return made(c, "Scatterv", [send.vector() if at_root else None, MPI.IN_PLACE if recv is None else recv.simple(), root], [send], [recv])


def alltoall(c):
    count, in_place = c.count(), c.in_place()
    send, recv = None if in_place else c.buffer(count * c.size), c.buffer(count * c.size)
    return made(c, "Alltoall", [MPI.IN_PLACE if in_place else send.simple(c.size), recv.simple(c.size)], [send], [recv])


def matrix(c, symmetric):
    """Counts from each rank to each, which all know here."""
    counts = [c.counts(c.size) for _ in range(c.size)]
    if symmetric:
        counts = [[counts[min(a, b)][max(a, b)] for b in range(c.size)] for a in range(c.size)]
    return counts


def alltoallv(c):
    in_place = c.in_place()
    counts = matrix(c, in_place)
    send = None if in_place else c.parts(counts[c.rank])
    recv = c.parts([row[c.rank] for row in counts])
    return made(c, "Alltoallv", [MPI.IN_PLACE if in_place else send.vector(), recv.vector()], [send], [recv])


def alltoallw(c):
    in_place = c.in_place()
    counts = matrix(c, in_place)
    send = None if in_place else c.apart(counts[c.rank])
    recv = c.apart([row[c.rank] for row in counts])
    return made(c, "Alltoallw", [MPI.IN_PLACE if in_place else send.each(), recv.each()], [send], [recv])


# ---- reductions ----

class Numbers:
    """A buffer of a reduction's elements."""

    def __init__(self, reduction, count):
        self.reduction, self.count = reduction, count
        self.memory = reduction.values(count, 0, 0)

    def simple(self):
        return [self.memory, self.count, self.reduction.element()]

    def write(self, rank, number):
        self.memory[:] = self.reduction.values(self.count, rank, number)

    def contents(self, count):
        """Of the first elements, without their padding."""
        numbers = self.memory[:count * self.reduction.length]
        if numbers.dtype.kind == "c":
            numbers = numbers + 0 # the sign of a zero depends on the order of a product
        found, mask = numbers.view("u1"), self.reduction.mask(count)
        return (found if mask is None else found * mask).tobytes()


def labelled(call, reduction):
    call.label = reduction.name
    return call


def reducing(c, name, build, sends, receives, keeps=True):
    """build(reduction, send, recv): mpi4py's arguments. sends, receives: elements of the input and of the output, which in place are one
    buffer, of which the output is the beginning. keeps: this rank has a result."""
    reduction, in_place = Reduction(c.draw), c.in_place()
    recv = Numbers(reduction, max(sends, receives) if in_place else receives)
    send = recv if in_place else Numbers(reduction, sends)
    arguments = build(reduction, MPI.IN_PLACE if in_place else send.simple(), recv.simple())
    return labelled(Call(name, arguments, [lambda number: recv.write(c.rank + 50, number), lambda number: send.write(c.rank, number)],
                         [lambda: recv.contents(receives)] if keeps else [], [reduction]), reduction)


def allreduce(c):
    count = c.count()
    return reducing(c, "Allreduce", lambda r, send, recv: [send, recv, r.operator], count, count)


def reduce(c):
    """In place at the root alone."""
    reduction, in_place, count, root = Reduction(c.draw), c.in_place(), c.count(), c.root()
    at_root = c.rank == root
    recv = Numbers(reduction, count)
    send = recv if in_place and at_root else Numbers(reduction, count)
    return labelled(Call("Reduce", [MPI.IN_PLACE if send is recv else send.simple(), recv.simple() if at_root else None,
                                    reduction.operator, root],
                         [lambda number: recv.write(c.rank + 50, number), lambda number: send.write(c.rank, number)],
                         [lambda: recv.contents(count)] if at_root else [], [reduction]), reduction)


def reduce_scatter_block(c):
    count = c.count()

    def build(r, send, recv):
        if send is not MPI.IN_PLACE:
            send = [send[0], count, send[2]]
        return [send, [recv[0], count, recv[2]], r.operator]
    return reducing(c, "Reduce_scatter_block", build, count * c.size, count)


def reduce_scatter(c):
    counts = c.counts(c.size)
    return reducing(c, "Reduce_scatter", lambda r, send, recv: [send, recv, counts, r.operator], sum(counts), counts[c.rank])


def scan(c):
    count = c.count()
    return reducing(c, "Scan", lambda r, send, recv: [send, recv, r.operator], count, count)


def exscan(c):
    count = c.count()
    return reducing(c, "Exscan", lambda r, send, recv: [send, recv, r.operator], count, count, c.rank > 0)


# ---- neighbourhoods ----

def degrees(c):
    """Of this rank: from how many and to how many."""
    if c.comm.Get_topology() == MPI.CART:
        both = 2 * c.comm.Get_dim()
        return both, both
    sources, destinations = c.comm.Get_dist_neighbors_count()[:2]
    return sources, destinations


def edges(c):
    """The number of elements on each edge of this rank, in and out: the same for all edges, so that ranks need not know more."""
    into, out = degrees(c)
    count = c.draw.choice([0, 1, 2, 17, 300])
    return [count] * into, [count] * out


def neighbor_allgather(c):
    into, _ = degrees(c)
    count = c.count()
    send, recv = c.buffer(count), c.buffer(count * into)
    return made(c, "Neighbor_allgather", [send.simple(), recv.simple(into)], [send], [recv])


def neighbor_allgatherv(c):
    into, _ = edges(c)
    count = c.draw.choice([0, 1, 2, 17, 300])
    send, recv = c.buffer(count), c.parts([count] * len(into))
    return made(c, "Neighbor_allgatherv", [send.simple(), recv.vector()], [send], [recv])


def neighbor_alltoall(c):
    into, out = degrees(c)
    count = c.count()
    send, recv = c.buffer(count * out), c.buffer(count * into)
    return made(c, "Neighbor_alltoall", [send.simple(out), recv.simple(into)], [send], [recv])


def neighbor_alltoallv(c):
    into, out = edges(c)
    send, recv = c.parts(out), c.parts(into)
    return made(c, "Neighbor_alltoallv", [send.vector(), recv.vector()], [send], [recv])


def neighbor_alltoallw(c):
    into, out = edges(c)
    send, recv = c.apart(out), c.apart(into)
    return made(c, "Neighbor_alltoallw", [send.each(), recv.each()], [send], [recv])


EVERYWHERE = [barrier, bcast, allgather, allgatherv, gather, gatherv, scatter, scatterv, alltoall, alltoallv, alltoallw, allreduce,
              reduce, reduce_scatter_block, reduce_scatter, scan, exscan]
NEIGHBOURS = [neighbor_allgather, neighbor_allgatherv, neighbor_alltoall, neighbor_alltoallv, neighbor_alltoallw]
