# Charts and tables of the documents, from docs/results/data: see docs/results/README.md. Charts need matplotlib: that of $(PYTHON), or one
# installed into the build folder.
PLOT_PYTHON = $(BUILD)/plot-venv/bin/python
.PHONY: results check-results
results:
	@if $(PYTHON) -c 'import matplotlib' 2>/dev/null; then $(PYTHON) docs/results/draw.py; \
	elif $(PLOT_PYTHON) -c 'import matplotlib' 2>/dev/null \
	    || { echo "installing: matplotlib, into $(BUILD)/plot-venv"; $(PYTHON) -m venv $(BUILD)/plot-venv \
	         && $(PLOT_PYTHON) -m pip install -q --disable-pip-version-check matplotlib; }; then $(PLOT_PYTHON) docs/results/draw.py; \
	else echo "make results: no matplotlib. Install it with: apt-get install python3-matplotlib, or python3 -m pip install matplotlib"; exit 1; fi
check-results:
	@$(PYTHON) docs/results/draw.py --check
