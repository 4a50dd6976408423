# The tests of python/ with PyTorch: a virtual environment of the build folder gets PyTorch from PyPI, and then the tree as the guide
# installs it (docs/guide/pytorch.md). TORCH_PYTHON names another Python that has PyTorch. `make test` runs test/python alone.
TORCH_FOLDER  = $(abspath $(BUILD))/torch
TORCH_PYTHON ?= $(TORCH_FOLDER)/bin/python
RANKS        ?= 3
.PHONY: torch-install torch-test torch-suite torch-bench
$(TORCH_FOLDER)/bin/python:
	@echo "installing: PyTorch into $(TORCH_FOLDER)"
	@$(PYTHON) -m venv $(TORCH_FOLDER)
	@$@ -m pip install -q --disable-pip-version-check torch numpy pytest setuptools wheel ninja expecttest || { rm -rf $(TORCH_FOLDER); exit 1; }
torch-install: $(TORCH_PYTHON) lib
	@RONDO_X_BUILD=$(abspath $(BUILD)) $(TORCH_PYTHON) -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps ./python
torch-test: torch-install
	@RONDO_X_BUILD=$(abspath $(BUILD)) RONDO_X_TORCH=1 $(TORCH_PYTHON) -m pytest -q -rs test/python test/torch
torch-suite: torch-install
	@mkdir -p $(BUILD)/torch-suite
	@for backend in gloo rondo; do $(TORCH_PYTHON) test/torch/suite.py --ranks $(RANKS) --json $(BUILD)/torch-suite/$$backend.json $$backend $(NAMES); done; \
	    $(TORCH_PYTHON) test/torch/suite.py --compare $(BUILD)/torch-suite/gloo.json $(BUILD)/torch-suite/rondo.json $(CSV)
torch-bench: torch-install
	@$(TORCH_PYTHON) examples/pytorch/cpu.py $(OPTIONS)
