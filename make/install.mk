# What `make install` puts where; `make uninstall` removes it by the record that installing has left, and needs no build.
override PREFIX := $(abspath $(PREFIX))
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR     ?= $(PREFIX)/bin
MANDIR     ?= $(PREFIX)/share/man
DOCDIR     ?= $(PREFIX)/share/doc/rondo
MANIFEST   := $(LIBDIR)/rondo/installed

INSTALLED_BINARIES = $(if $(HAS_JANSSON),$(BUILD)/rondo $(wildcard $(BUILD)/rondo-peer-*.so))
# The pages are made by `make man`, whose names are known only then.
define INSTALLED
{ for f in include/*.h; do echo "file 644 $$f $(INCLUDEDIR)/$${f##*/}"; done; \
  for f in $$(find $(BUILD)/man -type f); do d=$${f%/*}; echo "file 644 $$f $(MANDIR)/$${d##*/}/$${f##*/}"; done; \
  for f in $(INSTALLED_BINARIES); do echo "file 755 $$f $(BINDIR)/$${f##*/}"; done; \
  for f in $(wildcard LICENSE); do echo "file 644 $$f $(DOCDIR)/$$f"; done; \
  $(if $(HAS_NCCL),echo "file 755 $(BUILD)/nccl/libnccl.so.2 $(LIBDIR)/rondo/libnccl.so.2"; \
    echo "file 644 compat/nccl/device/nccl_device.h $(INCLUDEDIR)/rondo/nccl/nccl_device.h";) \
  for f in $(MPI_LIBS); do echo "file 755 $$f $(LIBDIR)/rondo/$${f##*/}"; done; \
  echo "file 755 $(BUILD)/librondo.so.$(VERSION) $(LIBDIR)/librondo.so.$(VERSION)"; \
  echo "file 644 $(BUILD)/librondo.a $(LIBDIR)/librondo.a"; \
  echo "file 644 $(BUILD)/rondo.pc $(LIBDIR)/pkgconfig/rondo.pc"; \
  echo "link librondo.so.$(VERSION) $(LIBDIR)/$(SONAME)"; \
  echo "link $(SONAME) $(LIBDIR)/librondo.so"; }
endef

.PHONY: install uninstall
install: all man
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	    -e 's|@LIBS@|$(LDLIBS)|' make/rondo.pc.in >$(BUILD)/rondo.pc
	@$(INSTALLED) | make/install-files '$(DESTDIR)' $(MANIFEST)
	@echo "rondo $(VERSION) is installed in $(DESTDIR)$(PREFIX); 'make uninstall' with the same PREFIX and DESTDIR removes it"
	@echo "programs find librondo.so once ldconfig has run (as root, where $(LIBDIR) is among its folders), or by LD_LIBRARY_PATH=$(LIBDIR)"
uninstall:
	@make/install-files --remove '$(DESTDIR)' $(MANIFEST)
	@echo "rondo is removed from $(DESTDIR)$(PREFIX)"
