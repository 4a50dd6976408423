"""What reductions are tried with: datatypes by class, the operators of each class, and operators of the program's own. Values are
such that every order of evaluation gives the same bits where MPI leaves the order open."""

import numpy
from mpi4py import MPI

from layouts import usable

INTEGERS = usable("SIGNED_CHAR SHORT INT LONG LONG_LONG UNSIGNED_CHAR UNSIGNED_SHORT UNSIGNED UNSIGNED_LONG UNSIGNED_LONG_LONG "
                  "INT8_T INT16_T INT32_T INT64_T UINT8_T UINT16_T UINT32_T UINT64_T".split())
NOT_OF_C = usable("AINT OFFSET COUNT INTEGER INTEGER4 INTEGER8".split()) # without logical operators
FLOATS = usable("FLOAT DOUBLE LONG_DOUBLE REAL DOUBLE_PRECISION REAL4 REAL8".split())
LOGICALS = usable("C_BOOL CXX_BOOL LOGICAL".split())
COMPLEX = usable("C_FLOAT_COMPLEX C_DOUBLE_COMPLEX C_LONG_DOUBLE_COMPLEX COMPLEX DOUBLE_COMPLEX".split())
BYTES = usable(["BYTE"])
PAIRS = usable("FLOAT_INT DOUBLE_INT LONG_INT TWOINT SHORT_INT LONG_DOUBLE_INT".split())

ARITHMETIC, LOGICAL, BITWISE = "SUM PROD MIN MAX".split(), "LAND LOR LXOR".split(), "BAND BOR BXOR".split()
CLASSES = [(INTEGERS, ARITHMETIC + LOGICAL + BITWISE), (NOT_OF_C, ARITHMETIC + BITWISE), (FLOATS, ARITHMETIC), (LOGICALS, LOGICAL), (COMPLEX, ["SUM", "PROD"]),
           (BYTES, BITWISE), (PAIRS, ["MINLOC", "MAXLOC"])]
CLASSES = [(types, operators) for types, operators in CLASSES if types]

FIELDS = [(MPI.FLOAT_INT, "f4"), (MPI.DOUBLE_INT, "f8"), (MPI.LONG_INT, "i8"), (MPI.TWOINT, "i4"), (MPI.SHORT_INT, "i2"),
          (MPI.LONG_DOUBLE_INT, "g")]


def is_in(datatype, types):
    return any(datatype == other for other in types)


def array_type(datatype):
    """numpy's type of the same memory."""
    _, extent = datatype.Get_extent()
    if is_in(datatype, PAIRS):
        first = next(code for pair, code in FIELDS if pair == datatype)
        return numpy.dtype([("value", first), ("index", "i4")], align=True)
    if is_in(datatype, COMPLEX):
        return numpy.dtype({8: "c8", 16: "c16", 32: "G"}[extent])
    if is_in(datatype, FLOATS):
        return numpy.dtype({4: "f4", 8: "f8", 16: "g"}[extent])
    return numpy.dtype(f"u{extent}")


def meaningful(datatype):
    """Which bytes of an element have a value: 1; padding: 0."""
    kind = array_type(datatype)
    mask = numpy.ones(kind.itemsize, dtype=numpy.uint8)

    def long_double(at):
        mask[at + 10:at + 16] = 0
    if kind.names is not None:
        mask[:] = 0
        for name in kind.names:
            field, at = kind.fields[name][:2]
            mask[at:at + field.itemsize] = 1
            if field.char == "g":
                long_double(at)
    elif kind.char in "gG":
        for at in range(0, kind.itemsize, 16):
            long_double(at)
    return mask


def values(datatype, operator, count, rank, number):
    """Values of a rank."""
    random = numpy.random.default_rng([rank, number, count])
    kind = array_type(datatype)
    if kind.names is not None:
        result = numpy.zeros(count, dtype=kind)
        result["value"] = random.integers(-3, 4, count)
        result["index"] = random.integers(0, 100, count)
        return result
    if is_in(datatype, COMPLEX):
        return (random.integers(-2, 3, count) + 1j * random.integers(-2, 3, count)).astype(kind)
    if is_in(datatype, FLOATS):
        return random.choice([1, 2, -1, 0.5, -2], count).astype(kind)
    if operator in LOGICAL:
        return random.integers(0, 2, count).astype(kind)
    if operator == "PROD":
        return random.integers(1, 3, count).astype(kind)
    return random.integers(0, 100 if operator in BITWISE else 20, count).astype(kind)


PRIME = 32749


def multiply(earlier, later, datatype):
    """2 x 2 matrices of numbers below PRIME: associative, not commutative."""
    a = numpy.frombuffer(earlier, dtype="i4").reshape(-1, 2, 2).astype("i8")
    b = numpy.frombuffer(later, dtype="i4").reshape(-1, 2, 2)
    b[:] = a @ b.astype("i8") % PRIME


def mix(earlier, later, datatype):
    """Commutative: the sum of bytes, modulo 256."""
    a, b = numpy.frombuffer(earlier, dtype="u1"), numpy.frombuffer(later, dtype="u1")
    b += a


class Reduction:
    """A datatype and an operator, drawn alike on all ranks."""

    def __init__(self, draw):
        self.own = None
        if draw.random() < 0.2:
            self.matrices = draw.random() < 0.5
            self.own = MPI.Op.Create(multiply, False) if self.matrices else MPI.Op.Create(mix, True)
            self.operator, self.datatype = self.own, MPI.INT if self.matrices else MPI.BYTE
            self.derived = self.datatype.Create_contiguous(4).Commit() if draw.random() < 0.7 or self.matrices else None
            self.name = "matrix" if self.matrices else "mix"
        else:
            types, operators = draw.choice(CLASSES)
            self.name = draw.choice(operators)
            self.operator, self.datatype, self.derived = getattr(MPI, self.name), draw.choice(types), None

        self.length = 4 if self.derived is not None else 1 # basic elements of an element

    def element(self):
        return self.derived if self.derived is not None else self.datatype

    def values(self, count, rank, number):
        if self.own is not None:
            random = numpy.random.default_rng([rank, number])
            if self.matrices:
                return random.integers(0, PRIME, count * 4).astype("i4")
            return random.integers(0, 256, count * self.length).astype("u1")
        return values(self.datatype, self.name, count, rank, number)

    def mask(self, count):
        if self.own is not None:
            return None
        return numpy.tile(meaningful(self.datatype), count)

    def free(self):
        """The datatype, before an operation has ended, too: MPI keeps what it needs."""
        if self.derived is not None:
            self.derived.Free()
            self.derived = None

    def end(self):
        """The operator, when no operation uses it: mpi4py forgets the function at once."""
        if self.own is not None:
            self.own.Free()
