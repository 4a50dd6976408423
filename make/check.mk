# Checks of the source that need no build.
.PHONY: check-layers check-headers check-format format
check-layers:
	@$(PYTHON) make/check-layers

check-headers: compiler
	@CC="$(CC)" NVCC="$(if $(HAS_CUDA),$(NVCC))" CPPFLAGS="$(CPPFLAGS)" make/check-headers

FORMATTED := $(shell git ls-files '*.c' '*.h' 2>/dev/null)
check-format:
	@$(CLANG_FORMAT) --dry-run --Werror $(FORMATTED) && echo "formatting: ok"
format:
	$(CLANG_FORMAT) -i $(FORMATTED)
