# Rondo. `make help` lists the targets; `make` prints what was detected and builds everything that can be built.
BUILD   ?= build
CC      ?= cc
PREFIX  ?= /usr/local
OPT     ?= -O3 -g
SANITIZE ?=
PYTHON  ?= python3
TESTS   ?= test
MARKS   ?= not slow
# Other versions format differently.
CLANG_FORMAT ?= clang-format-14

MAKEFLAGS += --no-builtin-rules
Q := $(if $(V),,@)
say = @$(if $(V),:,printf '  %-5s %s\n' $(1) $(2))
.SUFFIXES:
.DEFAULT_GOAL := all

include make/detect.mk

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wno-maybe-uninitialized -Werror
# Exact results must not depend on the instruction set: no contraction, and no traps to let the compiler vectorize.
CFLAGS   := -std=c11 -D_GNU_SOURCE $(OPT) $(WARNINGS) -fPIC -pthread -fvisibility=hidden -ffp-contract=off -fno-trapping-math \
            -MMD -MP $(SANITIZE) $(EXTRA_CFLAGS)
# Includes spell their folder from the root; the public headers alone have a path of their own.
CPPFLAGS := -Iinclude -I. $(DETECTED_DEFINES)
LDFLAGS  := -pthread $(SANITIZE)
# -ldl: UCX and verbs are looked for at run time, so that what was built with them runs where they are missing.
LDLIBS   := $(CUDA_LIBS) $(NUMA_LIBS) -ldl -lm
# The engine's arithmetic must give the same bits as the host's: no contraction, IEEE division, subnormals.
# Linked by the C compiler: nothing may need the run-time library of C++.
NVCCFLAGS := -std=c++17 -O3 -lineinfo -fmad=false -Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-fno-threadsafe-statics,-Wall $(CUDA_CODE) -MD -MP

# What a build leaves out without CUDA, UCX or verbs. The block budget and the pool need no CUDA, and are tested without it.
CUDA_ONLY   := $(filter-out %/block_budget.c %/pool.c,$(wildcard device/cuda/*.c)) $(wildcard transport/p2p/*.c transport/memory/cuda_*.c)
UCX_ONLY    := $(wildcard transport/ucx/*.c)
VERBS_ONLY  := $(wildcard transport/rdma/*.c)
TOOL_CUDA_ONLY := tools/info/gpus.c tools/common/buffers_cuda.c tools/peer/peer_nccl.c tools/peer/nccl.c tools/stress/interfere.c tools/stress/peer.c
LIB_SOURCES := $(filter-out $(if $(HAS_CUDA),,$(CUDA_ONLY)) $(if $(HAS_UCX),,$(UCX_ONLY)) $(if $(HAS_VERBS),,$(VERBS_ONLY)),\
               $(wildcard lib/*/*.c proxy/*.c transport/*.c transport/*/*.c device/*.c device/*/*.c))
CUDA_OBJECTS := $(patsubst %.cu,$(BUILD)/obj/%.cu.o,$(wildcard device/*/*.cu))
LIB_OBJECTS := $(LIB_SOURCES:%.c=$(BUILD)/obj/%.o) \
               $(VECTOR_VARIANTS:%=$(BUILD)/obj/device/reduce/reduce_kernels_%.o) $(VECTOR_VARIANTS:%=$(BUILD)/obj/device/codec/zfp_kernels_%.o) \
               $(if $(HAS_CUDA),$(CUDA_OBJECTS) $(BUILD)/obj/device/cuda/link.o)
TOOL_SOURCES := $(filter-out tools/peer/peer_mpi.c $(if $(HAS_CUDA),,$(TOOL_CUDA_ONLY)),$(wildcard tools/*.c tools/*/*.c))
TOOL_OBJECTS := $(TOOL_SOURCES:%.c=$(BUILD)/obj/%.o) \
                $(if $(HAS_CUDA),$(patsubst %.cu,$(BUILD)/obj/%.cu.o,$(wildcard tools/*/*.cu)))
# In the command itself, so that it also runs where jansson is not installed.
JANSSON_LIB := $(or $(filter /%,$(shell $(CC) -print-file-name=libjansson.a 2>/dev/null)),-ljansson)
EXAMPLES    := $(patsubst %,$(BUILD)/examples/%,allreduce heat train elastic program programs)
UNIT_SOURCES := $(wildcard test/unit/*.c test/unit/control/*.c test/unit/daemon/*.c test/observing/*.c test/membership/*.c test/rdma/test_*.c)
UNIT_TESTS  := $(patsubst %.c,$(BUILD)/test/%,$(notdir $(UNIT_SOURCES)))
MULTIRANK_SHARED := test/multirank/ranks.c test/multirank/device_memory.c
MULTIRANK_SOURCES := $(filter-out $(MULTIRANK_SHARED),$(wildcard test/multirank/*.c test/operators/*.c test/requests/*.c test/scale/*.c))
MULTIRANK   := $(patsubst %.c,$(BUILD)/test/%,$(notdir $(MULTIRANK_SOURCES)))
FUZZERS     ?= xml language verify directory tuning environment frame handshake $(if $(HAS_JANSSON),trace conditions)
REPLAYS     := $(FUZZERS:%=$(BUILD)/test/replay_%)
# For machines with GPUs; they link cudart themselves.
GPU_TESTS   := $(if $(HAS_CUDA),$(patsubst test/gpu/%.c,$(BUILD)/test/gpu_%,$(wildcard test/gpu/*.c)))
# The device's code by itself, piece by piece: minutes to compile, so for `make gpu-test` only.
KERNEL_TESTS := $(if $(HAS_CUDA),$(patsubst test/gpu/%.cu,$(BUILD)/test/gpu_%,$(wildcard test/gpu/*.cu)))

# The first two numbers while the first is 0, then the first: see RONDO_VERSION_MAJOR.
VERSION := $(shell sed -n 's/^\#define RONDO_VERSION_[A-Z]* *//p' include/rondo.h | paste -sd.)
SONAME  := librondo.so.$(if $(filter 0.%,$(VERSION)),$(basename $(VERSION)),$(firstword $(subst ., ,$(VERSION))))

ALL_GPU     = lib tool examples nccl $(MULTIRANK) $(GPU_TESTS) $(KERNEL_TESTS) $(NCCL_TESTS) $(NCCL_KERNEL_TESTS) $(BUILD)/test/injection

.PHONY: FORCE all lib tool examples tests fuzz fuzz-merge fuzz-mutations interpreter-cost recorder-cost policies ucx-exchange need-jansson demo test test-all membership scale failure-injection test-rdma bench-network gpu-test gpu-bench gpu-programs gpu-network asan tsan delays clean compile-commands
all: detect lib $(if $(HAS_JANSSON),tool) examples nccl mpi

lib: $(BUILD)/librondo.so $(BUILD)/librondo.a
MPI_PEERS := $(foreach m,$(MPIS),$(BUILD)/rondo-peer-mpi-$(firstword $(subst :, ,$(m))).so)
# The command needs jansson: asked for by name it fails at once without, and `make` builds the rest.
tool: $(if $(HAS_JANSSON),,need-jansson) $(BUILD)/rondo $(if $(MPIS),$(BUILD)/rondo-peer-mpi.so $(MPI_PEERS))
examples: $(EXAMPLES)
tests: $(UNIT_TESTS) $(MULTIRANK) $(BUILD)/test/injection $(BUILD)/test/test_cuda_wrappers $(GPU_TESTS) $(REPLAYS) $(BUILD)/test/mutations $(BUILD)/ucx-exchange

need-jansson:
	@echo "rondo: the command needs jansson.h. $(NEED_JANSSON)." >&2; exit 1

# What was detected; changed only when something else is, for then everything is compiled anew.
$(BUILD)/detected: FORCE | compiler
	@mkdir -p $(@D)
	@echo '$(DETECTED_DEFINES) $(CUDA_CODE)' | cmp -s - $@ || echo '$(DETECTED_DEFINES) $(CUDA_CODE)' >$@
FORCE:

$(BUILD)/obj/%.o: %.c $(BUILD)/detected
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

# The vector kernels, once an instruction set; chosen at run time.
$(BUILD)/obj/device/%_kernels_avx2.o: VARIANT := -DRONDO_VECTOR_VARIANT=avx2 -mavx2 -mf16c
$(BUILD)/obj/device/%_kernels_avx512.o: VARIANT := -DRONDO_VECTOR_VARIANT=avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl \
                                                      -mprefer-vector-width=512
$(BUILD)/obj/device/reduce/reduce_kernels_%.o: device/reduce/reduce_kernels.c $(BUILD)/detected
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(VARIANT) -c $< -o $@
$(BUILD)/obj/device/codec/zfp_kernels_%.o: device/codec/zfp_kernels.c $(BUILD)/detected
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(VARIANT) -c $< -o $@

# The device's code is compiled in parts, and linked before the host's; the register bound is that of the kernels' blocks.
$(CUDA_OBJECTS): NVCCFLAGS += -dc -maxrregcount=128
$(BUILD)/obj/device/cuda/link.o: $(CUDA_OBJECTS)
	$(Q)$(NVCC) -ccbin $(CC) $(CUDA_CODE) -Xcompiler -fPIC -dlink $^ -o $@

$(BUILD)/obj/%.cu.o: %.cu $(BUILD)/detected
	@mkdir -p $(@D)
	$(Q)$(NVCC) -ccbin $(CC) $(CPPFLAGS) $(NVCCFLAGS) -c $< -o $@

$(BUILD)/librondo.so: $(LIB_OBJECTS) make/librondo.map
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--no-undefined -Wl,--version-script=make/librondo.map $(LDFLAGS) $(LIB_OBJECTS) -o $(BUILD)/librondo.so.$(VERSION) $(LDLIBS)
	@ln -sf librondo.so.$(VERSION) $(BUILD)/$(SONAME) && ln -sf librondo.so.$(VERSION) $@

$(BUILD)/librondo.a: $(LIB_OBJECTS)
	@rm -f $@
	$(Q)ar rcs $@ $^

$(BUILD)/rondo: $(TOOL_OBJECTS) $(BUILD)/librondo.a
	$(Q)$(CC) $(LDFLAGS) -rdynamic $^ -o $@ $(JANSSON_LIB) -ldl $(LDLIBS)

# The command with a file of the library replaced by one of test/bench, to measure what is left out there: the interpreter, in the ring's
# loop, and the flight recorder.
$(BUILD)/rondo-unrolled $(BUILD)/rondo-unrecorded: $(BUILD)/rondo-%: $(TOOL_OBJECTS) $(BUILD)/obj/test/bench/%.o $(BUILD)/librondo.a
	$(Q)$(CC) $(LDFLAGS) -rdynamic $^ -o $@ $(JANSSON_LIB) -ldl $(LDLIBS)
interpreter-cost: $(BUILD)/rondo $(BUILD)/rondo-unrolled
	@$(PYTHON) test/bench/build_cost.py $(BUILD) unrolled allreduce --algorithm ring --channels 1 -b $(or $(MIN),64) -e 4M -f 16
recorder-cost: $(BUILD)/rondo $(BUILD)/rondo-unrecorded
	@$(PYTHON) test/bench/build_cost.py $(BUILD) unrecorded allreduce -b 8 -e 64K -f 8192

# Ways to choose how long waits are. OPTIONS="--device cuda --ranks 2,4 --json FILE"
policies: $(BUILD)/rondo
	@$(PYTHON) test/bench/policies.py $(BUILD)/rondo $(OPTIONS)

# What UCX moves by itself, beside which the ucx transport is measured. OPTIONS="--workers 2"
$(BUILD)/ucx-exchange: $(BUILD)/obj/test/bench/ucx_exchange.o $(BUILD)/librondo.a
	$(Q)$(CC) $(LDFLAGS) $^ -o $@ $(LDLIBS)
ucx-exchange: $(BUILD)/ucx-exchange
	@$(BUILD)/ucx-exchange $(OPTIONS)

# A peer for each MPI, rondo-peer-mpi-NAME.so; rondo-peer-mpi.so is the first of them. $(1): NAME, $(2): MPICC, $(3): MPIRUN.
define MPI_PEER
$$(BUILD)/rondo-peer-mpi-$(1).so: tools/peer/peer_mpi.c $$(BUILD)/detected
	@mkdir -p $$(@D)
	$$(Q)OMPI_CC=$$(CC) MPICH_CC=$$(CC) I_MPI_CC=$$(CC) $(2) $$(CPPFLAGS) $$(CFLAGS) -DPEER_NAME='"mpi:$(1)"' -DPEER_LAUNCHER='"$(3)"' -shared $$< -o $$@
endef
$(foreach m,$(MPIS),$(eval $(call MPI_PEER,$(word 1,$(subst :, ,$(m))),$(word 2,$(subst :, ,$(m))),$(word 3,$(subst :, ,$(m))))))
$(BUILD)/rondo-peer-mpi.so: $(firstword $(MPI_PEERS))
	@ln -sf $(<F) $@

$(BUILD)/examples/allreduce: $(BUILD)/obj/examples/allreduce.o
$(BUILD)/examples/program: $(BUILD)/obj/examples/program.o
$(BUILD)/examples/heat: $(BUILD)/obj/examples/heat.o
$(BUILD)/examples/programs: $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard examples/programs/*.c))
$(BUILD)/examples/train $(BUILD)/examples/elastic: $(BUILD)/examples/%: $(BUILD)/obj/examples/%.o $(patsubst %,$(BUILD)/obj/examples/%.o,training digits network)
$(EXAMPLES): $(BUILD)/librondo.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(filter %.o,$^) $(BUILD)/librondo.a -o $@ $(LDLIBS)

define UNIT_TEST
$(BUILD)/test/$(basename $(notdir $(1))): $(BUILD)/obj/$(1:.c=.o) $(BUILD)/librondo.a
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(LDFLAGS) $$^ -o $$@ -lcmocka $$(LDLIBS)
endef
$(foreach source,$(UNIT_SOURCES),$(eval $(call UNIT_TEST,$(source))))

$(BUILD)/test/test_renew: $(if $(HAS_VERBS),$(BUILD)/obj/test/rdma/fabric.o)

# Bit identity is tested against the zfp library.
$(BUILD)/test/test_zfp: LDLIBS += -lzfp
$(BUILD)/test/test_zfp: $(BUILD)/obj/examples/network.o $(BUILD)/obj/examples/digits.o

$(foreach s,$(MULTIRANK_SOURCES),$(eval $(BUILD)/test/$(basename $(notdir $s)): $(s:%.c=$(BUILD)/obj/%.o)))
$(MULTIRANK): $(MULTIRANK_SHARED:%.c=$(BUILD)/obj/%.o) $(BUILD)/librondo.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(filter %.o,$^) $(BUILD)/librondo.a -o $@ $(LDLIBS)

# Between the library and libc, and between it and CUDA's runtime, stand wrappers that can make a call fail.
paren := (
INJECTED := $(patsubst X$(paren)%,%,$(shell grep -oh 'X.[a-z_][A-Za-z_0-9]*' test/injection/functions.h $(if $(HAS_CUDA),test/injection/cuda_functions.h) 2>/dev/null))
INJECTION_OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard test/injection/*.c))
$(BUILD)/test/injection: $(INJECTION_OBJECTS) $(BUILD)/librondo.a test/injection/functions.h test/injection/cuda_functions.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -rdynamic $(INJECTED:%=-Wl,--wrap=%) $(INJECTION_OBJECTS) $(BUILD)/librondo.a -o $@ $(LDLIBS)

# The wrappers of CUDA's functions, before functions of the test.
$(BUILD)/test/test_cuda_wrappers: $(patsubst %,$(BUILD)/obj/test/injection/%.o,unit/test_cuda_wrappers inject cuda_wrappers)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $^ -o $@ -lcmocka $(LDLIBS)

$(GPU_TESTS): $(BUILD)/test/gpu_%: $(BUILD)/obj/test/gpu/%.o $(MULTIRANK_SHARED:%.c=$(BUILD)/obj/%.o) $(BUILD)/librondo.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $^ -o $@ $(LDLIBS)

$(KERNEL_TESTS): $(BUILD)/test/gpu_%: $(BUILD)/obj/test/gpu/%.cu.o $(BUILD)/librondo.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $^ -o $@ $(LDLIBS)

$(REPLAYS): $(BUILD)/test/replay_%: $(BUILD)/obj/test/fuzz/%.o $(BUILD)/obj/test/fuzz/replay.o $(BUILD)/librondo.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(filter-out %.a,$^) $(BUILD)/librondo.a -o $@ $(LDLIBS_OF_TARGET) $(LDLIBS)
$(BUILD)/test/replay_trace: $(BUILD)/obj/tools/trace/load.o
$(BUILD)/test/replay_conditions: $(BUILD)/obj/tools/program/conditions.o
$(BUILD)/test/replay_trace $(BUILD)/test/replay_conditions: LDLIBS_OF_TARGET := $(JANSSON_LIB)

# ---- what a newcomer runs; both install what they lack ----
.PHONY: deps
deps:
	@make/deps $(or $(FOR),build)
demo:
	@make/deps demo
	@$(MAKE) --no-print-directory -s -j$$(nproc) all && BUILD=$(BUILD) make/demo

test:
	@make/deps test
	@$(MAKE) --no-print-directory -s -j$$(nproc) all tests
	@$(MAKE) --no-print-directory check-layers check-format
	@RONDO_X_BUILD=$(BUILD) $(PYTHON) -m pytest -q --durations=15 -m "$(MARKS)" $(TESTS)
# The slow ones too: large counts, long stress, all types and operators on 8 ranks, installations.
test-all:
	@$(MAKE) --no-print-directory test MARKS=""

# Ranks that go and come, also where it takes minutes: hundreds of deaths in jobs of eight.
membership:
	@$(MAKE) --no-print-directory test MARKS="" TESTS=test/membership

# Jobs of up to a thousand processes on this machine, and what a rank of them costs. OPTIONS="--ranks 64,256 --json FILE"
scale:
	@$(MAKE) --no-print-directory -s -j$$(nproc) $(BUILD)/test/scale
	@RONDO_X_BUILD=$(BUILD) $(PYTHON) test/scale/scale.py $(OPTIONS)

# The n-th call of each function fails, for every n, on each rank of a job: thousands of runs. OPTIONS="--part life --jobs 4"
failure-injection:
	@$(MAKE) --no-print-directory -s -j$$(nproc) $(BUILD)/test/injection
	@$(BUILD)/test/injection $(OPTIONS)

# The rdma transport in a virtual machine with SoftRoCE; needs no RDMA card. STEPS=matrix: only steps of such a name.
test-rdma:
	@make/deps rdma
	@$(MAKE) --no-print-directory -s -j$$(nproc) CUDA=0 BUILD=$(BUILD)/rdma-build lib tool $(addprefix $(BUILD)/rdma-build/test/,matrix mix p2p faults)
	@$(PYTHON) test/rdma/run.py $(BUILD)/rdma-build $(STEPS)

# Figures of docs/guide/networks.md and docs/guide/compression.md, between network namespaces: as root, on a quiet machine. PARTS="veth": those.
bench-network:
	@make/deps network
	@$(MAKE) --no-print-directory -s -j$$(nproc) tool
	@RONDO_X_BUILD=$(BUILD) $(PYTHON) test/bench/network_speed.py $(PARTS) $(OPTIONS)

# On a machine with GPUs. Tables of speed go to RESULTS; OPTIONS are those of the scripts.
RESULTS ?= $(BUILD)/gpu-bench
gpu-test:
	@$(MAKE) --no-print-directory -s -j$$(nproc) $(ALL_GPU)
	@BUILD=$(BUILD) PYTHON=$(PYTHON) make/gpu-test $(OPTIONS)
gpu-bench:
	@$(MAKE) --no-print-directory -s -j$$(nproc) tool
	@BUILD=$(BUILD) make/gpu-bench $(RESULTS) $(OPTIONS)
gpu-programs:
	@$(MAKE) --no-print-directory -s -j$$(nproc) tool
	@BUILD=$(BUILD) make/gpu-programs $(OPTIONS)
gpu-network:
	@$(MAKE) --no-print-directory -s -j$$(nproc) tool $(BUILD)/ucx-exchange
	@BUILD=$(BUILD) make/gpu-network $(OPTIONS)

# The host device under the sanitizers. Slow tests (large counts, long stress) are left to the plain build.
# PROGRAMS="mix p2p": the only programs of the tests that are built, and the command. Without, all is built that a test may start; with,
# a test of TESTS that starts another one fails.
sanitized = $(if $(PROGRAMS),tool $(addprefix $(BUILD)/$(1)/test/,$(PROGRAMS)),all tests)
# intercept_tls_get_addr=0: the leak check takes a library's thread-local block 16 bytes into a page for one of an old C library, and
# crashes on what it reads there.
ASAN_OPTIONS_ := detect_leaks=1:abort_on_error=0:detect_stack_use_after_return=0:intercept_tls_get_addr=0
asan:
	@make/deps test
	$(MAKE) --no-print-directory -s -j$$(nproc) BUILD=$(BUILD)/asan CUDA=0 OPT="-O1 -g" SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer" $(call sanitized,asan)
	ASAN_OPTIONS=$(ASAN_OPTIONS_) UBSAN_OPTIONS=print_stacktrace=1 RONDO_X_BUILD=$(BUILD)/asan $(PYTHON) -m pytest -q -m "not slow" $(TESTS)
# UCX's hooks of memory calls take a lock in a thread that the sanitizer has already taken down: without them.
tsan:
	@make/deps test
	$(MAKE) --no-print-directory -s -j$$(nproc) BUILD=$(BUILD)/tsan CUDA=0 OPT="-O1 -g" SANITIZE="-fsanitize=thread" $(call sanitized,tsan)
	UCX_MEM_EVENTS=no TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 suppressions=$(CURDIR)/test/tsan.supp" RONDO_X_BUILD=$(BUILD)/tsan $(PYTHON) -m pytest -q -m "not slow" $(TESTS)

# Threads and ranks in rare orders: functions sleep at random where they begin and end (test/delays/delays.c), seldom and for
# long in one round, often and for a short time in the next.
ROUNDS ?= 2
delays: TESTS = test/test_lifecycle.py test/test_mix.py test/test_p2p.py test/test_stress.py test/test_inline_execution.py \
                test/test_oversubscription.py test/test_user_operators.py test/test_faults.py test/test_hang.py test/membership
delays:
	@make/deps test
	@$(MAKE) --no-print-directory -s -j$$(nproc) BUILD=$(BUILD)/delays CUDA=0 OPT="-O2 -g -finstrument-functions" all tests
	@$(CC) -O2 -shared -fPIC -Wall -Wextra -Werror -o $(BUILD)/delays/delays.so test/delays/delays.c
	@for round in $$(seq $(ROUNDS)); do \
	    if [ $$((round % 2)) = 1 ]; then set -- 50000 2000000; else set -- 5000 100000; fi; \
	    echo "round $$round: one of $$1 sleeps, for less than $$2 ns"; \
	    DELAYS_EVERY=$$1 DELAYS_NS=$$2 LD_PRELOAD=$(abspath $(BUILD))/delays/delays.so RONDO_X_BUILD=$(BUILD)/delays \
	        $(PYTHON) -m pytest -q -m "not slow" $(TESTS) || exit 1; \
	done

# What reads what others have written, on hostile input, under the sanitizers: SECONDS each. A target's corpus is one archive
# (make/fuzz-corpus). What finds new paths is kept in the build folder; `make fuzz-merge` takes the smallest of it into the archive.
SECONDS ?= 60
FUZZ_SOURCES := $(filter-out lib/base/host.c,$(wildcard lib/base/*.c)) lib/bootstrap/frame_connection.c lib/bootstrap/process_socket.c lib/bootstrap/handshake.c \
                lib/select/tuning.c lib/select/program_files.c $(wildcard lib/call/*.c lib/program/*.c lib/algorithms/*.c)
FUZZ_FLAGS := -g -O1 -std=c11 -D_GNU_SOURCE -fsanitize=address,undefined -fno-sanitize-recover=undefined -MMD -MP
$(BUILD)/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(Q)clang $(FUZZ_FLAGS) $(CPPFLAGS) -fsanitize=fuzzer-no-link -c $< -o $@
$(BUILD)/fuzz_%: $(BUILD)/fuzz/test/fuzz/%.o $(FUZZ_SOURCES:%.c=$(BUILD)/fuzz/%.o)
	$(Q)clang $(FUZZ_FLAGS) -fsanitize=fuzzer $^ -o $@ $(LDLIBS_OF_TARGET)
# Mutants of the files in test/programs: MUTANTS of them under the sanitizers.
MUTANTS ?= 20000
MUTATED := $(wildcard test/programs/msccl/*.xml test/programs/good/*.xml)
$(BUILD)/test/mutations: $(BUILD)/obj/test/fuzz/mutations.o $(BUILD)/librondo.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $^ -o $@ $(LDLIBS)
$(BUILD)/fuzz/mutations: $(BUILD)/fuzz/test/fuzz/mutations.o $(FUZZ_SOURCES:%.c=$(BUILD)/fuzz/%.o)
	$(Q)clang $(FUZZ_FLAGS) $^ -o $@
fuzz-mutations: $(BUILD)/fuzz/mutations
	@$(PYTHON) test/programs/msccl_form.py --conditions >$(BUILD)/fuzz/conditions
	@UBSAN_OPTIONS=print_stacktrace=1 $(BUILD)/fuzz/mutations $(BUILD)/fuzz/conditions 0 $(MUTANTS) $(MUTATED)
$(BUILD)/fuzz_trace: $(BUILD)/fuzz/tools/trace/load.o
$(BUILD)/fuzz_conditions: $(BUILD)/fuzz/tools/program/conditions.o
$(BUILD)/fuzz_trace $(BUILD)/fuzz_conditions: LDLIBS_OF_TARGET := $(JANSSON_LIB)
.PRECIOUS: $(BUILD)/fuzz/%.o
fuzz: $(FUZZERS:%=$(BUILD)/fuzz_%)
	@set -e; for f in $(FUZZERS); do mkdir -p $(BUILD)/fuzz-corpus/$$f; make/fuzz-corpus unpack test/fuzz/corpus/$$f.zip $(BUILD)/fuzz-seeds/$$f; \
	    $(BUILD)/fuzz_$$f -max_total_time=$(SECONDS) -max_len=16384 -rss_limit_mb=2048 -timeout=20 $$(test -f test/fuzz/words/$$f && echo -dict=test/fuzz/words/$$f) \
	    -artifact_prefix=$(BUILD)/fuzz-corpus/ -print_final_stats=1 $(BUILD)/fuzz-corpus/$$f $(BUILD)/fuzz-seeds/$$f; done
fuzz-merge: $(FUZZERS:%=$(BUILD)/fuzz_%)
	@set -e; for f in $(FUZZERS); do mkdir -p $(BUILD)/fuzz-corpus/$$f; make/fuzz-corpus unpack test/fuzz/corpus/$$f.zip $(BUILD)/fuzz-seeds/$$f; \
	    $(BUILD)/fuzz_$$f -merge=1 -use_counters=0 -max_len=2048 -timeout=20 $(BUILD)/fuzz-seeds/$$f $(BUILD)/fuzz-corpus/$$f; \
	    make/fuzz-corpus pack $(BUILD)/fuzz-seeds/$$f test/fuzz/corpus/$$f.zip; done

compile-commands: compile_commands.json
compile_commands.json: Makefile make/detect.mk
	@$(MAKE) --no-print-directory -nwB all tests | $(PYTHON) make/compile-commands > $@

clean:
	rm -rf $(BUILD) compile_commands.json

include make/mpi.mk
include make/nccl.mk
include make/help.mk
include make/install.mk
include make/docs.mk
include make/check.mk
include make/results.mk
include make/rivals.mk
include python/python.mk

-include $(LIB_OBJECTS:.o=.d) $(TOOL_OBJECTS:.o=.d) $(wildcard $(BUILD)/obj/test/*/*.d $(BUILD)/obj/test/*/*/*.d $(BUILD)/obj/examples/*.d $(BUILD)/obj/examples/*/*.d $(BUILD)/fuzz/*/*/*.d)
