# Documentation that is generated: pages from tables in the code, man pages and the API reference from the public headers.
.PHONY: docs
docs: $(BUILD)/rondo
	@mkdir -p docs/guide
	@$(PYTHON) make/environment-guide $(BUILD)/rondo >$(BUILD)/environment.md
	@cmp -s $(BUILD)/environment.md docs/guide/environment.md || cp $(BUILD)/environment.md docs/guide/environment.md
	@echo "docs/guide/environment.md: ok"

.PHONY: man
man:
	@mkdir -p $(BUILD)/man
