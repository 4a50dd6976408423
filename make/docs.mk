# Documentation that is generated: pages from tables in the code, manual pages and the API reference from the public headers.
.PHONY: docs man api-docs
docs: $(BUILD)/rondo $(BUILD)/examples/programs
	@mkdir -p docs/guide
	@$(PYTHON) make/environment-guide $(BUILD)/rondo >$(BUILD)/environment.md
	@cmp -s $(BUILD)/environment.md docs/guide/environment.md || cp $(BUILD)/environment.md docs/guide/environment.md
	@examples/programs/table.py $(BUILD)/examples/programs >$(BUILD)/program-examples.md
	@cmp -s $(BUILD)/program-examples.md docs/guide/program-examples.md || cp $(BUILD)/program-examples.md docs/guide/program-examples.md
	@echo "docs/guide/environment.md, docs/guide/program-examples.md: ok"

man:
	@make/man-pages $(BUILD)/man $(VERSION)

# Into $(BUILD)/api/html. A warning is an error.
api-docs:
	@command -v doxygen >/dev/null || { echo "make api-docs: no doxygen. Install the package doxygen." >&2; exit 1; }
	@mkdir -p $(BUILD)/api
	@{ cat make/Doxyfile; echo 'PROJECT_NUMBER = $(VERSION)'; echo 'OUTPUT_DIRECTORY = $(BUILD)/api'; } | doxygen - >$(BUILD)/api/log
	@echo "$(BUILD)/api/html/index.html"
