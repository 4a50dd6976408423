# What this machine offers. Each row: found or not, and why. Every one of them is optional.
comma := ,
hash  := \#
# (Inside a function some versions of make take the backslash away, and some do not.)
has_header = $(shell printf '$(hash)include <$(1)>\n' | $(CC) -E -x c - >/dev/null 2>&1 && echo 1)

# Without these nothing can be built, or everything but the command. JANSSON=0 leaves the command out.
JANSSON     ?= 1
HAS_CC      := $(call has_header,stdio.h)
HAS_JANSSON := $(if $(filter-out 0,$(JANSSON)),$(call has_header,jansson.h))

# The MPIs that Rondo is measured beside, and has drop-ins for, by their compiler wrappers; MPICC="WRAPPER ..." names others. Each
# word of MPIS is NAME:MPICC:MPIRUN:ABI, of each name the first.
MPICC     := $(foreach wrapper,mpicc mpicc.openmpi mpicc.mpich,$(shell command -v $(wrapper) 2>/dev/null))
MPIS      := $(shell for wrapper in $(MPICC); do make/mpi-peer $$wrapper; done | awk -F: '!seen[$$1]++')
NVCC      := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
# VERBS=0 and UCX=0 leave those transports out.
VERBS     ?= 1
UCX       ?= 1
HAS_VERBS := $(if $(filter-out 0,$(VERBS)),$(and $(call has_header,infiniband/verbs.h),$(call has_header,rdma/rdma_cma.h)))
HAS_UCX   := $(if $(filter-out 0,$(UCX)),$(call has_header,ucp/api/ucp.h))
# SODIUM=0 leaves encryption out.
SODIUM     ?= 1
HAS_SODIUM := $(if $(filter-out 0,$(SODIUM)),$(call has_header,sodium.h))
# PMIX=0 leaves the launcher's key store out. Debian has the headers in a folder that pkg-config tells.
PMIX         ?= 1
PMIX_CFLAGS  := $(if $(filter-out 0,$(PMIX)),$(shell pkg-config --cflags-only-I pmix 2>/dev/null | sed 's/-I/-isystem /g'))
HAS_PMIX     := $(if $(filter-out 0,$(PMIX)),$(shell printf '$(hash)include <pmix.h>\n' | $(CC) $(PMIX_CFLAGS) -E -x c - >/dev/null 2>&1 && echo 1))
# NUMA=0 leaves libnuma out.
NUMA      ?= 1
HAS_NUMA  := $(if $(filter-out 0,$(NUMA)),$(and $(call has_header,numa.h),$(call has_header,numaif.h)))
NUMA_LIBS := $(if $(HAS_NUMA),-lnuma)

# CUDA=0 leaves the CUDA device out. The architectures are those of the list that this nvcc knows, and PTX of the last of them.
CUDA      ?= 1
CUDA_HOME := $(if $(NVCC),$(patsubst %/bin/,%,$(dir $(realpath $(NVCC)))))
CUDA_ARCHITECTURES ?= 70 80 90
ifneq ($(CUDA),0)
ifneq ($(and $(NVCC),$(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h)),)
HAS_CUDA  := 1
CUDA_KNOWN := $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch))
CUDA_BUILT := $(or $(filter $(CUDA_KNOWN),$(CUDA_ARCHITECTURES)),$(firstword $(CUDA_KNOWN)))
CUDA_CODE := $(foreach a,$(CUDA_BUILT),-gencode arch=compute_$(a),code=sm_$(a)) \
             -gencode arch=compute_$(lastword $(CUDA_BUILT)),code=compute_$(lastword $(CUDA_BUILT))
CUDA_LIBS := -L$(CUDA_HOME)/lib64 -lcudart_static -lrt -ldl
endif
endif

# NVTX=0 leaves out the ranges for NVIDIA's profilers, which need the header alone.
NVTX         ?= 1
NVTX_INCLUDE := $(if $(filter-out 0,$(NVTX)),$(if $(CUDA_HOME),$(patsubst %/nvtx3/nvToolsExt.h,%,$(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExt.h))))
HAS_NVTX     := $(if $(filter-out 0,$(NVTX)),$(if $(NVTX_INCLUDE),1,$(call has_header,nvtx3/nvToolsExt.h)))

DETECTED_DEFINES := -DRONDO_WITH_CUDA=$(if $(HAS_CUDA),1,0) -DRONDO_WITH_VERBS=$(if $(HAS_VERBS),1,0) -DRONDO_WITH_UCX=$(if $(HAS_UCX),1,0) \
                    -DRONDO_WITH_NUMA=$(if $(HAS_NUMA),1,0) -DRONDO_WITH_MPI=$(if $(MPIS),1,0) \
                    -DRONDO_WITH_SODIUM=$(if $(HAS_SODIUM),1,0) -DRONDO_WITH_NVTX=$(if $(HAS_NVTX),1,0) \
                    -DRONDO_WITH_PMIX=$(if $(HAS_PMIX),1,0) \
                    $(if $(NVTX_INCLUDE),-isystem $(NVTX_INCLUDE)) $(if $(HAS_CUDA),-I$(CUDA_HOME)/include) \
                    $(if $(HAS_PMIX),$(PMIX_CFLAGS))

ifeq ($(shell uname -m),x86_64)
VECTOR_VARIANTS := avx2 avx512
DETECTED_DEFINES += -DRONDO_VECTOR_AVX2 -DRONDO_VECTOR_AVX512
endif

NEED_JANSSON := 'make deps' installs it (package libjansson-dev on Debian and Ubuntu, jansson-devel on Fedora)

# What is missing is told before anything is compiled.
.PHONY: compiler detect
compiler:
	@$(if $(HAS_CC),:,printf '%s\n' "rondo: '$(CC)' does not compile: $(if $(shell command -v $(firstword $(CC))),it finds no stdio.h,there is no such command)." \
	    "Nothing can be built. Install a C compiler with the C library's headers: 'make deps' does" \
	    "(packages gcc and libc6-dev on Debian and Ubuntu$(comma) gcc and glibc-devel on Fedora)." >&2; exit 1)
detect: compiler
	@printf '%-9s %-4s %s\n' feature in why
	@printf '%-9s %-4s %s\n' jansson $(if $(HAS_JANSSON),yes "the rondo command",no "$(if $(filter 0,$(JANSSON)),JANSSON=0,no jansson.h): the rondo command is left out. $(NEED_JANSSON)")
	@printf '%-9s %-4s %s\n' CUDA $(if $(HAS_CUDA),yes "$(NVCC)$(comma) sm_$(subst $() ,$(comma) sm_,$(strip $(CUDA_BUILT))) and PTX",no "$(if $(filter 0,$(CUDA)),CUDA=0,no nvcc)")
	@printf '%-9s %-4s %s\n' verbs $(if $(HAS_VERBS),yes "the rdma transport; its libraries are looked for at run time",no "$(if $(filter 0,$(VERBS)),VERBS=0,no infiniband/verbs.h or rdma/rdma_cma.h)")
	@printf '%-9s %-4s %s\n' UCX $(if $(HAS_UCX),yes "the ucx transport; its libraries are looked for at run time",no "$(if $(filter 0,$(UCX)),UCX=0,no ucp/api/ucp.h)")
	@printf '%-9s %-4s %s\n' libsodium $(if $(HAS_SODIUM),yes "RONDO_ENCRYPT=1; the library is looked for at run time",no "$(if $(filter 0,$(SODIUM)),SODIUM=0,no sodium.h): no encryption")
	@printf '%-9s %-4s %s\n' PMIx $(if $(HAS_PMIX),yes "ranks on several hosts meet by the launcher's key store; the library is looked for at run time",no "$(if $(filter 0,$(PMIX)),PMIX=0,no pmix.h): RONDO_ROOT is needed across hosts")
	@printf '%-9s %-4s %s\n' libnuma $(if $(HAS_NUMA),yes "slots in host memory lie near the rank's GPU",no "$(if $(filter 0,$(NUMA)),NUMA=0,no numa.h)")
	@printf '%-9s %-4s %s\n' NVTX $(if $(HAS_NVTX),yes "a profiler that has attached sees each operation",no "$(if $(filter 0,$(NVTX)),NVTX=0,no nvtx3/nvToolsExt.h)")
	@printf '%-9s %-4s %s\n' MPI $(if $(MPIS),yes "rondo bench --peer $(subst $() ,$(comma),$(foreach m,$(MPIS),mpi:$(firstword $(subst :, ,$(m)))));$(MPI_ABIS:%= librondo-mpi-%.so)",no "no mpicc: rondo bench has no --peer mpi$(comma) and MPI programs have no drop-in")
	@printf '%-9s %-4s %s\n' NCCL $(if $(HAS_NCCL),yes "$(NCCL_INCLUDE)/nccl.h: build/nccl/libnccl.so.2$(comma) for NCCL's programs",no "$(if $(filter 0,$(NCCL)),NCCL=0,$(if $(HAS_CUDA),no nccl.h of 2.28 or later,without CUDA))")
