"""Random MPI collectives: every one, on several communicators, with types of every class, blocking, non-blocking and persistent,
their requests completed together with those of messages. What each rank ends with goes to a file, a line a start: a run with the drop-in
is compared with one without (test/mpi/test_mpi.py).

    mpiexec -n 3 python random_calls.py --seed 1 --rounds 200 --output FILE

The seed decides what is called with which values, on every MPI alike. Each rank chooses by itself how its data lie in memory (with
--mixed), how it waits, and when it frees types."""

import argparse
import hashlib
import random
import sys
from collections import Counter

import numpy
from mpi4py import MPI

import calls
from calls import Call, Context

WORLD = MPI.COMM_WORLD


class Message:
    """A message around the communicator, whose requests complete among those of collectives."""

    def __init__(self, comm, number):
        rank, size = comm.Get_rank(), comm.Get_size()
        self.sent = numpy.full(200, rank * 1000 + number % 1000, dtype="i4")
        self.received = numpy.zeros(200, dtype="i4")
        self.requests = [comm.Irecv(self.received, (rank - 1) % size, 5), comm.Isend(self.sent, (rank + 1) % size, 5)]
        self.expected = (rank - 1) % size * 1000 + number % 1000

    def check(self):
        assert (self.received == self.expected).all(), "a message arrived wrong"


WAYS = "wait waitall waitany waitsome test testall testany testsome status".split()


def complete(requests, way, mine):
    """In one of the ways that MPI has, which each rank chooses by itself."""
    left = list(requests)
    mine.shuffle(left)
    if way == "wait":
        for request in left:
            request.Wait()
    elif way == "waitall":
        MPI.Request.Waitall(left)
    elif way == "waitany":
        for _ in range(len(left)):
            assert MPI.Request.Waitany(left) != MPI.UNDEFINED
        assert MPI.Request.Waitany(left) == MPI.UNDEFINED
    elif way == "waitsome":
        done = 0
        while done < len(left):
            done += len(MPI.Request.Waitsome(left))
        assert MPI.Request.Waitsome(left) is None
    elif way == "test":
        for request in left:
            while not request.Test():
                pass
    elif way == "testall":
        while not MPI.Request.Testall(left):
            pass
    elif way == "testany":
        done = 0
        while done < len(left):
            index, flag = MPI.Request.Testany(left)
            done += flag and index != MPI.UNDEFINED
    elif way == "testsome":
        done = 0
        while done < len(left):
            done += len(MPI.Request.Testsome(left) or [])
    else:
        for request in left:
            while not request.Get_status():
                pass
        MPI.Request.Waitall(left)


class Program:
    def __init__(self, options):
        self.options = options
        self.rank = WORLD.Get_rank()
        self.file = open(f"{options.output}.{self.rank}", "w", buffering=1)
        self.number = 0 # of the call; the same on all ranks of a communicator
        self.comms = [WORLD]
        self.written, self.called = 0, Counter()

    def draw(self, what):
        """The generator of a round, alike on all ranks of the world."""
        return random.Random(f"{self.options.seed}.{what}")

    def own(self, what):
        return random.Random(f"{self.options.seed}.{what}.{self.rank}")

    def write(self, call, form):
        digest = hashlib.sha1()
        for part in call.results():
            digest.update(part)
        self.written += 1
        print(self.number, call.name, form, getattr(call, "label", "-"), digest.hexdigest(), file=self.file)

    # ---- communicators: made together, and used by their members; the rounds are the same for all groups of a split ----

    def make(self, draw):
        kind = draw.choice(["dup", "split", "create", "create_group", "cart", "graph", "split_type", "idup"])
        size = WORLD.Get_size()
        if kind == "dup":
            return WORLD.Dup()
        if kind == "idup":
            comm, request = WORLD.Idup()
            request.Wait()
            return comm
        if kind == "split":
            colors, keys = [draw.randint(0, 1) for _ in range(size)], [draw.randint(0, 9) for _ in range(size)]
            return WORLD.Split(colors[self.rank], keys[self.rank])
        if kind == "split_type":
            return WORLD.Split_type(MPI.COMM_TYPE_SHARED, draw.randint(0, 1) * (size - self.rank))
        if kind in ("create", "create_group"):
            members = list(range(size))
            draw.shuffle(members)
            members, tag = members[:draw.randint(1, size)], draw.randint(0, 99)
            group = WORLD.Get_group().Incl(members)
            if kind == "create":
                return WORLD.Create(group)
            return WORLD.Create_group(group, tag) if self.rank in members else MPI.COMM_NULL
        if kind == "cart":
            dims = MPI.Compute_dims(size, draw.randint(1, 2))
            return WORLD.Create_cart(dims, [draw.random() < 0.6 for _ in dims], False)
        targets = [[b for b in range(size) for _ in range(draw.choice([0, 1, 1, 2]))] for a in range(size)]
        sources = [a for a in range(size) for b in targets[a] if b == self.rank]
        return WORLD.Create_dist_graph_adjacent(sources, targets[self.rank])

    # ---- rounds ----

    def start(self, call, form, comm):
        return getattr(comm, "I" + call.name.lower() if form == "nonblocking" else call.name + "_init")(*call.arguments)

    def run(self, comm, draw, mine, choices):
        """Some calls under way at once, in one form."""
        form = draw.choice(self.options.forms.split(","))
        made = []
        for _ in range(1 if form == "blocking" else draw.randint(1, 4)):
            made.append(draw.choice(choices)(Context(comm, draw, mine, self.options.mixed)))
            self.called[made[-1].name.lower()] += 1
        if form == "blocking":
            self.number += 1
            made[0].prepare(self.number)
            getattr(comm, made[0].name)(*made[0].arguments)
            self.write(made[0], form)
            made[0].free()
            made[0].end()
            return
        freed = mine.random() < 0.4 and not self.options.plain
        numbers = [self.number + 1 + i for i in range(len(made))]
        requests = []
        if not self.options.plain:
            if form == "nonblocking":
                for call, number in zip(made, numbers):
                    call.prepare(number)
            requests = [self.start(call, form, comm) for call in made]
        if freed: # MPI keeps types and operators as long as it needs them
            for call in made:
                call.free()
        for again in range(draw.randint(1, 3) if form == "persistent" else 1):
            message = Message(comm, numbers[0]) if draw.random() < 0.5 else None
            together = draw.random() < 0.5
            if self.options.plain or form == "persistent":
                for call, number in zip(made, numbers):
                    call.prepare(number + again)
            if self.options.plain:
                for call in made:
                    getattr(comm, call.name)(*call.arguments)
            elif form == "persistent" and together:
                MPI.Prequest.Startall(requests)
            elif form == "persistent":
                for request in requests:
                    request.Start()
            complete(requests + (message.requests if message is not None else []), mine.choice(WAYS), mine)
            if message is not None:
                message.check()
            for call in made:
                self.write(call, form)
        if form == "persistent":
            for request in requests:
                request.Free()
        for call in made:
            if not freed:
                call.free()
            call.end()

    def main(self):
        for number in range(self.options.rounds):
            draw, self.number = self.draw(number), number * 100
            if draw.random() < 0.08:
                if len(self.comms) > 5:
                    old = self.comms.pop(draw.randrange(1, len(self.comms)))
                    if old != MPI.COMM_NULL:
                        old.Free()
                self.comms.append(self.make(draw))
            comm = draw.choice(self.comms)
            if comm == MPI.COMM_NULL:
                continue
            topological = comm.Get_topology() in (MPI.CART, MPI.DIST_GRAPH)
            wanted = self.options.only.split(",") if self.options.only else None
            choices = calls.EVERYWHERE + (calls.NEIGHBOURS * 2 if topological else [])
            choices = [c for c in choices if wanted is None or c.__name__ in wanted]
            # Groups of a split have other sizes, so each goes on with a generator of its own.
            self.run(comm, random.Random(f"{self.options.seed}.{number}.{comm.Get_size()}"), self.own(number), choices)
        for comm in self.comms[1:]:
            if comm != MPI.COMM_NULL:
                comm.Free()
        self.file.close()
        with open(f"{self.options.output}.{self.rank}.calls", "w") as file:
            file.writelines(f"{name} {count}\n" for name, count in self.called.items())
        WORLD.Barrier()
        if self.rank == 0:
            print(f"random_calls: {self.written} results")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", default="1")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--output", required=True, help="PREFIX: rank r writes PREFIX.r")
    parser.add_argument("--only", help="collectives, by comma")
    parser.add_argument("--forms", default="blocking,nonblocking,persistent", help="of calls, by comma")
    parser.add_argument("--mixed", action="store_true", help="ranks lay one call's data out differently")
    parser.add_argument("--plain", action="store_true", help="all calls blocking, one after the other: what a library does best")
    Program(parser.parse_args()).main()


if __name__ == "__main__":
    sys.exit(main())
