# Checks of the source that need no build.
.PHONY: check-headers
check-headers:
	@CC="$(CC)" NVCC="$(if $(HAS_CUDA),$(NVCC))" CPPFLAGS="$(CPPFLAGS)" make/check-headers
