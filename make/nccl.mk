# The drop-in for NCCL programs, where its header (2.28 or later) and the CUDA toolkit are. NCCL=0 leaves it out.
NCCL          ?= 1
NCCL_INCLUDE  := $(firstword $(patsubst %/nccl.h,%,$(wildcard $(CUDA_HOME)/include/nccl.h /usr/local/include/nccl.h /usr/include/nccl.h)))
NCCL_CODE     := $(if $(NCCL_INCLUDE),$(shell sed -n 's/^.define NCCL_VERSION_CODE *//p' $(NCCL_INCLUDE)/nccl.h))
ifneq ($(and $(HAS_CUDA),$(filter-out 0,$(NCCL)),$(NCCL_CODE)),)
HAS_NCCL      := $(shell [ $(NCCL_CODE) -ge 22800 ] && echo 1)
endif

NCCL_SOURCES  := $(wildcard compat/nccl/*.c)
NCCL_OBJECTS  := $(NCCL_SOURCES:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/compat/nccl/scale.cu.o
# NCCL's and CUDA's headers are not held to our warnings.
$(NCCL_SOURCES:%.c=$(BUILD)/obj/%.o): CPPFLAGS += -isystem $(NCCL_INCLUDE) -isystem $(CUDA_HOME)/include

.PHONY: nccl
nccl: $(if $(HAS_NCCL),$(BUILD)/nccl/libnccl.so.2)
$(BUILD)/nccl/libnccl.so.2: $(NCCL_OBJECTS) $(BUILD)/librondo.a compat/nccl/exports.map
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libnccl.so.2 -Wl,--no-undefined -Wl,--version-script=compat/nccl/exports.map $(LDFLAGS) \
	    $(NCCL_OBJECTS) $(BUILD)/librondo.a -o $@ $(LDLIBS)
	@ln -sf libnccl.so.2 $(BUILD)/nccl/libnccl.so

-include $(NCCL_OBJECTS:.o=.d)

# The newest header that the drop-in keeps up with, from PyPI into the build folder, and the drop-in built against it. Where no
# PyPI is reachable, one line says so, and nothing fails.
NCCL_PINNED_VERSION := 2.32.3
NCCL_PINNED         := $(BUILD)/nccl-pinned
NCCL_PINNED_OBJECTS := $(NCCL_SOURCES:%.c=$(NCCL_PINNED)/obj/%.o)
.PHONY: nccl-header nccl-pinned
nccl-header:
	@PYTHON=$(PYTHON) compat/nccl/fetch-header $(NCCL_PINNED_VERSION) $(NCCL_PINNED)
nccl-pinned: nccl-header $(if $(HAS_NCCL),$(BUILD)/nccl/libnccl.so.2)
	@$(if $(HAS_NCCL),,echo "nccl-pinned: left out: this build has no drop-in for NCCL"; exit 0;) \
	[ -f $(NCCL_PINNED)/include/nccl.h ] || exit 0; \
	$(MAKE) --no-print-directory -s $(NCCL_PINNED)/libnccl.so.2 && RONDO_X_BUILD=$(BUILD) $(PYTHON) -m pytest -q test/nccl
$(NCCL_PINNED_OBJECTS): CPPFLAGS += -isystem $(NCCL_PINNED)/include -isystem $(CUDA_HOME)/include
$(NCCL_PINNED_OBJECTS): $(NCCL_PINNED)/obj/%.o: %.c $(BUILD)/detected $(wildcard $(NCCL_PINNED)/include/nccl.h)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(NCCL_PINNED)/libnccl.so.2: $(NCCL_PINNED_OBJECTS) $(BUILD)/obj/compat/nccl/scale.cu.o $(BUILD)/librondo.a compat/nccl/exports.map
	$(Q)$(CC) -shared -Wl,-soname,libnccl.so.2 -Wl,--no-undefined -Wl,--version-script=compat/nccl/exports.map $(LDFLAGS) \
	    $(filter %.o %.a,$^) -o $@ $(LDLIBS)
-include $(NCCL_PINNED_OBJECTS:.o=.d)

# Tests against nccl.h alone, which also run on NVIDIA's library by LD_LIBRARY_PATH.
NCCL_TEST_SHARED := test/nccl/ranks.c test/nccl/data.c
NCCL_SCENARIOS   := $(wildcard test/nccl/scenarios_*.c)
NCCL_TESTS       := $(if $(HAS_NCCL),$(patsubst test/nccl/%.c,$(BUILD)/test/nccl_%,$(filter-out $(NCCL_TEST_SHARED) $(NCCL_SCENARIOS),$(wildcard test/nccl/*.c))))
$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard test/nccl/*.c)): CPPFLAGS += -isystem $(NCCL_INCLUDE) -isystem $(CUDA_HOME)/include
$(BUILD)/test/nccl_api: $(NCCL_SCENARIOS:%.c=$(BUILD)/obj/%.o)
$(NCCL_TESTS): $(BUILD)/test/nccl_%: $(BUILD)/obj/test/nccl/%.o $(NCCL_TEST_SHARED:%.c=$(BUILD)/obj/%.o) $(BUILD)/nccl/libnccl.so.2
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(filter %.o,$^) -o $@ -L$(BUILD)/nccl -lnccl -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/../nccl' $(CUDA_LIBS) -lm
# Kernels of a program, with the drop-in's nccl_device.h before NVIDIA's.
NCCL_KERNEL_TESTS := $(if $(HAS_NCCL),$(patsubst test/nccl/%.cu,$(BUILD)/test/nccl_%,$(wildcard test/nccl/*.cu)))
$(patsubst %.cu,$(BUILD)/obj/%.cu.o,$(wildcard test/nccl/*.cu)): CPPFLAGS := -Icompat/nccl/device $(CPPFLAGS) -isystem $(NCCL_INCLUDE)
$(NCCL_KERNEL_TESTS): $(BUILD)/test/nccl_%: $(BUILD)/obj/test/nccl/%.cu.o $(BUILD)/obj/test/nccl/ranks.o $(BUILD)/nccl/libnccl.so.2
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(filter %.o,$^) -o $@ -L$(BUILD)/nccl -lnccl -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/../nccl' $(CUDA_LIBS) -lstdc++
tests: $(NCCL_TESTS) $(NCCL_KERNEL_TESTS)
-include $(patsubst test/nccl/%.cu,$(BUILD)/obj/test/nccl/%.cu.d,$(wildcard test/nccl/*.cu))
