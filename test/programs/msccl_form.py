"""Programs in the form in which msccl-tools writes them, made independently of it and of Rondo.

What is peculiar to that form: buffers are as large as their use, and nchunksperloop is the largest of them; in place, all of an
all-reduce lies in i, and all of an all-gather in o. A step names the place it sends to on the receiver, and the place it receives
from on the sender. Fused steps (rcs, rrs, rrcs) keep the sender's place and take the next receiver's; so they exist only where
both ranks use the same place. Thread blocks are sorted by their peers and channel, and know one of each. A step waits for one
other at most; more become nop steps before it, with offsets of -1 and a count of 0. Attributes come in a fixed order.

    python3 msccl_form.py DIRECTORY     writes the files of this directory
    python3 msccl_form.py --conditions  prints the custom programs' conditions
"""
import itertools
import pathlib
import sys

LOCAL = ("cpy", "re")


class Step:
    def __init__(self, type, rank, source, destination, count, channel):
        self.type, self.rank, self.source, self.destination = type, rank, source, destination
        self.count, self.channel = count, channel
        self.before, self.after, self.match, self.block = [], [], None, None

    sends = property(lambda self: self.destination[0] if self.type in ("s", "rcs", "rrs", "rrcs") else -1)
    receives = property(lambda self: self.source[0] if self.type in ("r", "rrc", "rcs", "rrs", "rrcs") else -1)


class Program:
    """Places are (rank, buffer, index)."""

    def __init__(self, name, collective, ranks, inplace, protocol="Simple"):
        self.name, self.collective, self.ranks, self.inplace, self.protocol = name, collective, ranks, inplace, protocol
        self.steps, self.writer, self.readers = [], {}, {}

    def _add(self, step, reads, writes):
        before = []
        for place in reads:
            before += [self.writer[place]] if place in self.writer else []
        for place in writes:
            before += self.readers.get(place, []) or ([self.writer[place]] if place in self.writer else [])
        for other in dict.fromkeys(before):
            step.before.append(other)
            other.after.append(step)
        for place in reads:
            self.readers.setdefault(place, []).append(step)
        for place in writes:
            self.writer[place], self.readers[place] = step, []
        self.steps.append(step)
        return step

    @staticmethod
    def _row(place, count):
        return [(place[0], place[1], place[2] + k) for k in range(count)]

    def copy(self, source, destination, count=1, channel=0):
        reads, writes = self._row(source, count), self._row(destination, count)
        if source[0] == destination[0]:
            self._add(Step("cpy", source[0], source, destination, count, channel), reads, writes)
        else:
            send = self._add(Step("s", source[0], source, destination, count, channel), reads, [])
            send.match = self._add(Step("r", destination[0], source, destination, count, channel), [], writes)
        return destination

    def reduce(self, destination, source, count=1, channel=0):
        """destination becomes the sum of both."""
        reads, writes = self._row(source, count), self._row(destination, count)
        if source[0] == destination[0]:
            self._add(Step("re", source[0], source, destination, count, channel), reads, writes)
        else:
            send = self._add(Step("s", source[0], source, destination, count, channel), reads, [])
            send.match = self._add(Step("rrc", destination[0], source, destination, count, channel), [], writes)
        return destination

    def _fuse(self):
        def join(step, send, type):
            step.type, step.destination, step.match = type, send.destination, send.match
            step.before += [b for b in send.before if b is not step and b not in step.before]
            step.after = [a for a in step.after if a is not send] + [a for a in send.after if a not in step.after]
            for other in send.after:
                other.before = list(dict.fromkeys(step if b is send else b for b in other.before))
            for other in send.before:
                other.after = list(dict.fromkeys(step if a is send else a for a in other.after))
            self.steps.remove(send)

        def same(step, send):
            return send.type == "s" and step.count == send.count and step.channel == send.channel and \
                step.destination[1:] == send.destination[1:] and step.destination == send.source

        for step in list(self.steps):
            if step.type == "rrc" and len(step.after) == 1 and same(step, step.after[0]):
                send = step.after[0]
                join(step, send, "rrs" if len(send.after) == 1 and send.after[0].type == "r" else "rrcs")
        for step in list(self.steps):
            if step.type == "r":
                for send in step.after:
                    if same(step, send):
                        join(step, send, "rcs")
                        break

    def _blocks(self):
        blocks = [[] for _ in range(self.ranks)]  # [send, receive, channel, steps]

        def block_of(step):
            for block in blocks[step.rank]:
                own = step.type in LOCAL or (step.sends >= 0 and block[0] == step.sends) or \
                    (step.receives >= 0 and block[1] == step.receives)
                if own and block[2] == step.channel:
                    break
            else:
                block = [step.sends, step.receives, step.channel, []]
                blocks[step.rank].append(block)
            for side, peer in ((0, step.sends), (1, step.receives)):
                assert peer in (-1, block[side]), "a thread block with two peers"
            return block

        for step in self.steps:
            if step.sends >= 0 and step.receives >= 0:
                block_of(step)  # steps with two peers first, because other steps may share their blocks
        for step in self.steps:
            block_of(step)[3].append(step)
        for rank in blocks:
            rank.sort(key=lambda block: block[:3])
        return blocks

    def _use(self, rank, buffer):
        most = 0
        for step in self.steps:
            if step.rank == rank and step.type in ("s",) + LOCAL and step.source[1] == buffer:
                most = max(most, step.source[2] + step.count)
            if step.rank == rank and step.type != "s" and step.destination[1] == buffer:
                most = max(most, step.destination[2] + step.count)
        return most

    def xml(self):
        self._fuse()
        blocks = self._blocks()
        for rank in blocks:
            for number, block in enumerate(rank):
                for step in block[3]:
                    step.block = number
        # Waits for other blocks, except those that the block has waited for before.
        waits, notifying = {}, set()
        for rank in blocks:
            for block in rank:
                waited = set()
                for step in block[3]:
                    waits[step] = [b for b in step.before if b.block != step.block and b not in waited]
                    waited.update(waits[step])
                    notifying.update(waits[step])
        places = {}
        for rank in blocks:
            for block in rank:
                at = 0
                for step in block[3]:
                    at += max(0, len(waits[step]) - 1)
                    places[step] = at
                    at += 1
        sizes = [[self._use(rank, buffer) for buffer in "ios"] for rank in range(self.ranks)]
        lines = [f'<algo name="{self.name}" proto="{self.protocol}" nchannels="{1 + max(s.channel for s in self.steps)}" '
                 f'nchunksperloop="{max(max(size[:2]) for size in sizes)}" ngpus="{self.ranks}" coll="{self.collective}" '
                 f'inplace="{int(self.inplace)}">']
        for rank, size in enumerate(sizes):
            lines.append(f'  <gpu id="{rank}" i_chunks="{size[0]}" o_chunks="{size[1]}" s_chunks="{size[2]}">')
            for number, (send, receive, channel, steps) in enumerate(blocks[rank]):
                lines.append(f'    <tb id="{number}" send="{send}" recv="{receive}" chan="{channel}">')
                for step in steps:
                    for k, wait in enumerate(waits[step][1:]):
                        at = places[step] - len(waits[step]) + 1 + k
                        lines.append(f'      <step s="{at}" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" '
                                     f'depid="{wait.block}" deps="{places[wait]}" hasdep="0"/>')
                    first = waits[step][0] if waits[step] else None
                    lines.append(f'      <step s="{places[step]}" type="{step.type}" srcbuf="{step.source[1]}" '
                                 f'srcoff="{step.source[2]}" dstbuf="{step.destination[1]}" dstoff="{step.destination[2]}" '
                                 f'cnt="{step.count}" depid="{first.block if first else -1}" '
                                 f'deps="{places[first] if first else -1}" hasdep="{int(step in notifying)}"/>')
                lines.append('    </tb>')
            lines.append('  </gpu>')
        return "\n".join(lines + ["</algo>"]) + "\n"


# ---- algorithms ----

def allreduce_ring(n, channels=1):
    p = Program("allreduce_ring", "allreduce", n, True)
    for chunk in range(n * channels):
        channel, at = chunk % channels, chunk // channels
        for step in range(1, n):
            p.reduce(((at + 1 + step) % n, "i", chunk), ((at + step) % n, "i", chunk), channel=channel)
        for step in range(n - 1):
            p.copy(((at + step) % n, "i", chunk), ((at + step + 1) % n, "i", chunk), channel=channel)
    return p


def allgather_ring(n, inplace=True):
    p = Program("allgather_ring", "allgather", n, inplace, "LL")
    for rank in range(n):
        if not inplace:
            p.copy((rank, "i", 0), (rank, "o", rank))
        for step in range(n - 1):
            p.copy(((rank + step) % n, "o", rank), ((rank + step + 1) % n, "o", rank))
    return p


def allgather_doubling(n):
    """Pairs exchange all chunks that they have: blocks of 1, 2, 4 ... chunks travel together."""
    p = Program("allgather_recursive_doubling", "allgather", n, True)
    count = 1
    while count < n:
        for rank in range(n):
            peer, first = rank ^ count, rank // count * count
            p.copy((rank, "o", first), (peer, "o", first), count)
        count *= 2
    return p


def alltoall_two_step(hosts, group):
    """The chunks of one host for one rank of another are collected on one rank and sent together."""
    p = Program("alltoall_twostep", "alltoall", hosts * group, False)
    for a, b, g in itertools.product(range(hosts), range(hosts), range(group)):
        target = b * group + g
        for i in range(group):
            source = (a * group + i, "i", target)
            if a == b:
                p.copy(source, (target, "o", a * group + i))
            else:
                p.copy(source, (a * group + g, "s", b * group + i), channel=0)
        if a != b:
            p.copy((a * group + g, "s", b * group), (target, "o", a * group), group, channel=1)
    return p


def allreduce_hierarchical(hosts, group):
    """Rings within the hosts, pairs across them, rings again; a rank's part is `hosts` chunks."""
    n = hosts * group
    p = Program("allreduce_hierarchical", "allreduce", n, True)
    ring = lambda h, g: h * group + g % group
    for h, part in itertools.product(range(hosts), range(group)):
        for step in range(1, group):
            p.reduce((ring(h, part + 1 + step), "i", part * hosts), (ring(h, part + step), "i", part * hosts), hosts, channel=0)
    for part, h in itertools.product(range(group), range(hosts)):
        chunk, across = part * hosts + h, lambda k: (h + k) % hosts * group + part
        for step in range(1, hosts):
            p.reduce((across(1 + step), "i", chunk), (across(step), "i", chunk), channel=1)
        for step in range(hosts - 1):
            p.copy((across(step), "i", chunk), (across(step + 1), "i", chunk), channel=1)
    for h, part in itertools.product(range(hosts), range(group)):
        for step in range(group - 1):
            p.copy((ring(h, part + step), "i", part * hosts), (ring(h, part + step + 1), "i", part * hosts), hosts, channel=2)
    return p


def allreduce_allpairs(n):
    """Every rank gets all inputs of its part, adds them step by step, and sends the sum to every rank."""
    p = Program("allreduce_pairs", "allreduce", n, True, "LL")
    for rank, other in itertools.product(range(n), range(n)):
        if rank != other:
            p.copy((other, "i", rank * n), (rank, "s", (other - (other > rank)) * n), n)
    for rank in range(n):
        for index, other in itertools.product(range(n), range(n - 1)):
            p.reduce((rank, "i", rank * n + index), (rank, "s", other * n + index))
    for rank, other in itertools.product(range(n), range(n)):
        if rank != other:
            p.copy((rank, "i", rank * n), (other, "i", rank * n), n)
    return p


def reduce_scatter_ring(n):
    """Partial sums travel through scratch, so a received chunk and the rank's own part have different places."""
    p = Program("reduce_scatter_ring", "reduce_scatter", n, False)
    for chunk in range(n):
        for step in range(1, n):
            p.reduce(((chunk + 1 + step) % n, "i", chunk), ((chunk + step) % n, "i", chunk))
        p.copy((chunk, "i", chunk), (chunk, "o", 0))
    return p


def alltonext(hosts, group, backward=False):
    """Each rank's input becomes the next rank's output. Between hosts all ranks of both take a part of the way. msccl-tools writes
    its AllToNext as a custom collective in place, though the steps use two buffers."""
    n = hosts * group
    p = Program("alltonext-backward" if backward else "alltonext-forward", "custom", n, True)
    at = lambda rank: n - 1 - rank if backward else rank
    for rank in range(n - 1):
        if (rank + 1) % group != 0:
            p.copy((at(rank), "i", 0), (at(rank + 1), "o", 0), group, channel=rank % 2)
            continue
        for part in range(group):
            place, near, far = (at(rank), "i", part), rank + 1 - group + part, rank + 1 + part
            if part < group - 1:
                place = p.copy(place, (at(near), "s", 0), channel=part % 2)
            if part > 0:
                place = p.copy(place, (at(far), "s", 1), channel=part % 2)
            p.copy(place, (at(rank + 1), "o", part), channel=part % 2)
    return p


def spread_one(n):
    """Rank 0's chunk gets to ranks 1 and 2."""
    p = Program("spread_one", "custom", n, False)
    for rank in range(1, n):
        p.copy((0, "i", 0), (rank, "o", 0), channel=rank - 1)
    return p


def sum_of_neighbours(n):
    """Every rank gets the sum of its own and the previous rank's input."""
    p = Program("sum_of_neighbours", "custom", n, False)
    for rank in range(n):
        p.copy((rank, "i", 0), (rank, "o", 0))
        p.reduce((rank, "o", 0), ((rank - 1) % n, "i", 0))
    return p


# Custom programs, each with the name of its postcondition or [(rank, chunk, holds)], and with a precondition.
def spread(n):
    return [(rank, 0, [[0, 0]]) for rank in range(1, n)]


CUSTOM = {
    "alltonext-forward-2x2": (lambda: alltonext(2, 2), "alltonext", []),
    "alltonext-forward-3x3": (lambda: alltonext(3, 3), "alltonext", [(8, c, []) for c in range(3)]),
    "alltonext-backward-2x2": (lambda: alltonext(2, 2, True), [(r, c, [[r + 1, c]]) for r in range(3) for c in range(2)], []),
    "custom-spread-3": (lambda: spread_one(3), spread(3), [(1, 0, []), (2, 0, [])]),
    "custom-sum-4": (lambda: sum_of_neighbours(4), [(r, 0, [[(r - 1) % 4, 0], [r, 0]]) for r in range(4)], []),
    # Rank 1's input is rank 0's already: twice the same.
    "custom-sum-of-copies-3": (lambda: sum_of_neighbours(3), [(0, 0, [[0, 0], [2, 0]]), (1, 0, [[0, 0], [0, 0]]), (2, 0, [[0, 0], [2, 0]])],
                               [(1, 0, [[0, 0]])]),
}

PROGRAMS = {
    "allreduce-ring-3": lambda: allreduce_ring(3),
    "allreduce-ring-4-channels-2": lambda: allreduce_ring(4, 2),
    "allgather-ring-4": lambda: allgather_ring(4),
    "allgather-ring-3-separate": lambda: allgather_ring(3, False),
    "allgather-doubling-4": lambda: allgather_doubling(4),
    "alltoall-twostep-2x2": lambda: alltoall_two_step(2, 2),
    "alltoall-twostep-2x3": lambda: alltoall_two_step(2, 3),
    "allreduce-hierarchical-2x2": lambda: allreduce_hierarchical(2, 2),
    "allreduce-hierarchical-2x3": lambda: allreduce_hierarchical(2, 3),
    "allreduce-pairs-3": lambda: allreduce_allpairs(3),
    "reduce-scatter-ring-3": lambda: reduce_scatter_ring(3),
}

def condition_lines():
    """A line for each chunk of which a custom file's conditions say something: NAME assume|require RANK CHUNK [RANK CHUNK]..."""
    for name, (_, after, before) in CUSTOM.items():
        group = int(name[-1])
        if after == "alltonext":
            after = [(rank, chunk, [[rank - 1, chunk]]) for rank in range(1, group * int(name[-3])) for chunk in range(group)]
        for kind, entries in (("assume", before), ("require", after)):
            for rank, chunk, holds in entries:
                yield " ".join(map(str, [name, kind, rank, chunk, *itertools.chain(*holds)]))


if __name__ == "__main__":
    if sys.argv[1] == "--conditions":
        print("\n".join(condition_lines()))
        sys.exit()
    for name, make in PROGRAMS.items():
        (pathlib.Path(sys.argv[1]) / f"{name}.xml").write_text(make().xml())
    for name, (make, _, _) in CUSTOM.items():
        (pathlib.Path(sys.argv[1]) / f"{name}.xml").write_text(make().xml())
