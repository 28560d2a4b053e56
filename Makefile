# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# sonde: README.md has the two commands a user needs, CONTRIBUTING.md the rest.
# Everything is made under $(B). A new family (bpf/probes/X/), command, report,
# format, test or workload is found by its place: no list here names it.

B       ?= build
CLANG   ?= clang
BPFTOOL ?= $(or $(shell command -v bpftool),/usr/sbin/bpftool)
PREFIX  ?= /usr/local
VERSION := $(shell cat VERSION)
# Where scripts/cuda.sh puts CUDA headers and libraries, for tests and demo alone
CUDA    ?= build/cuda
# Where scripts/nccl.sh puts NCCL's, for tests alone
NCCL    ?= build/nccl
# Where scripts/nvtx.sh puts NVTX's headers, for tests alone
NVTX    ?= build/nvtx

# All cores; a -j of the command line comes later and wins
ifeq ($(MAKELEVEL),0)
MAKEFLAGS := -j$(shell nproc) $(MAKEFLAGS)
endif

ifeq ($(SAN),1)
override B := $(B)/san
SAN_FLAGS  := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif

# A compiler newer than those tried may have new warnings, so they are errors only where WERROR=1 asks for it: in
# `make lint` and .ci/run
WARN         := -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror) -Wno-unused-parameter
SONDE_CPP    := -D_GNU_SOURCE -Iuser -Ibpf -I$(B)/gen -DSONDE_VERSION='"$(VERSION)"' $(CPPFLAGS)
# The sanitized program is compiled in half the time without the optimizer's last steps and debuggers' types
CFLAGS       ?= $(if $(filter 1,$(SAN)),-O1 -g1,-O2 -g)
# Where ccache is installed, trees share the objects of equal sources
CCACHE       := $(shell command -v ccache)
# Paths in debug information are relative to the tree
MAP          := -ffile-prefix-map=$(CURDIR)=.
SONDE_CFLAGS := -std=gnu11 $(WARN) $(CFLAGS) $(SAN_FLAGS)
SONDE_LD     := $(LDFLAGS) $(SAN_FLAGS)
LDLIBS       := -lbpf -ldw -lelf -lcap -lseccomp -lzstd -lxxhash -lcjson -lcapstone -liberty -llzma -lsqlite3 -lncursesw -ltinfo -lz -ldl -lpthread -lm
# For a program that needs glibc alone: the rest is linked in. libbz2 is a need of libdw's; Debian has no libcjson.a
GLIBC_LIBS   := -ldl -lpthread -lm
STATIC_LIBS  := -Wl,-Bstatic $(patsubst -lcjson,$(B)/cjson/libcjson.a,$(filter-out $(GLIBC_LIBS),$(LDLIBS))) -lbz2 -Wl,-Bdynamic $(GLIBC_LIBS)

BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -D__bpf__ $(WARN) \
              -Ibpf -Ibpf/core -Ivmlinux/x86_64 -I$(B)/gen
# Extra families, for tests: directories like those in bpf/probes/
FAMILIES   := $(patsubst %/,%,$(wildcard bpf/probes/*/) $(EXTRA_FAMILIES))

BPF_SRCS  := $(wildcard bpf/core/*.bpf.c) $(foreach d,$(FAMILIES),$(wildcard $(d)/*.bpf.c))
BPF_OBJS  := $(BPF_SRCS:%.bpf.c=$(B)/bpf/%.o)
# All of user/ but main.c, and the families' host side
LIB_SRCS  := $(filter-out user/main.c,$(wildcard user/*.c user/*/*.c user/*/*/*.c)) \
             $(foreach d,$(FAMILIES),$(filter-out %.bpf.c,$(wildcard $(d)/*.c)))
LIB_OBJS  := $(LIB_SRCS:%.c=$(B)/obj/%.o)

# Commands are shown with V=1
say = $(if $(V),,@printf '  %-5s %s\n' '$(1)' '$@';)

all: $(B)/sonde
	@:

# Parts with rules of their own, which add to `all` or `workloads`
include $(wildcard cupti-shim/rules.mk tests/fakes/*/rules.mk tests/gpu/rules.mk)

# Rewritten when the commands or the lists of files change, so that what depends on them is made anew
# $(B) may be written as it likes: build and /here/build are one
CONFIG := $(subst $(B)/,,$(SONDE_CPP) $(SONDE_CFLAGS) $(SONDE_LD) $(LDLIBS) $(CLANG) $(BPF_CFLAGS) $(BPF_SRCS) $(LIB_SRCS))
$(B)/gen/config: FORCE | deps-build
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(CONFIG))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(CONFIG))' > $@

# System calls by number, from this system's headers
$(B)/gen/syscall_nr.h: scripts/syscalls.sh bpf/probes/syscall/calls.txt $(B)/gen/config
	$(call say,GEN)scripts/syscalls.sh $(CC) bpf/probes/syscall/calls.txt > $@.tmp
	@mv $@.tmp $@

# Texts that are part of the program, as `page`, a string of C
vpath %.html user/export
vpath %.rules user/findings
$(B)/gen/%.inc: % Makefile $(B)/gen/config
	$(call say,GEN)sed 's/[\\"]/\\&/g; s/^/"/; s/$$/\\n"/; 1s/^/static const char page[] =\n/; $$s/$$/;/' $< > $@.tmp
	@mv $@.tmp $@
$(B)/obj/user/export/flame.o: $(B)/gen/flame.html.inc
$(B)/obj/user/export/html.o: $(B)/gen/html.html.inc
$(B)/obj/user/findings/rules.o: $(B)/gen/library.rules.inc

$(B)/bpf/%.o: %.bpf.c $(B)/gen/config | $(B)/gen/syscall_nr.h
	@mkdir -p $(@D)
	$(call say,BPF)$(CCACHE) $(CLANG) $(BPF_CFLAGS) $(MAP) -MMD -MP -c $< -o $@

$(B)/gen/sonde.bpf.o: $(BPF_OBJS)
	$(call say,LINK)$(BPFTOOL) gen object $@ $^

$(B)/gen/sonde.skel.h: $(B)/gen/sonde.bpf.o
	$(call say,SKEL)$(BPFTOOL) gen skeleton $< name sonde_bpf > $@.tmp
	@mv $@.tmp $@

$(B)/obj/%.o: %.c $(B)/gen/config | $(B)/gen/sonde.skel.h
	@mkdir -p $(@D)
	$(call say,CC)$(CCACHE) $(CC) $(SONDE_CPP) $(SONDE_CFLAGS) $(MAP) -MMD -MP -c $< -o $@

# Listing the events reads them as recording does: an id used twice or a tag without sense fails the build
$(B)/sonde: $(B)/obj/user/main.o $(LIB_OBJS)
	$(call say,LINK)$(CC) $(SONDE_LD) $^ $(LDLIBS) -o $@.new
	@$@.new list events > /dev/null
	@mv $@.new $@

# The same program for any distribution with the glibc of the one it is made on, or a newer one
$(B)/sonde-portable: $(B)/obj/user/main.o $(LIB_OBJS) $(B)/cjson/libcjson.a
	$(call say,LINK)$(CC) $(SONDE_LD) $(filter %.o,$^) $(STATIC_LIBS) -o $@ || \
		{ echo "Static archives are missing or incomplete here; Debian 12's are not" >&2; exit 1; }
$(B)/cjson/libcjson.a: scripts/cjson.sh
	@scripts/deps.sh dist
	$(call say,LIB)scripts/cjson.sh $(CC) $@

# Tests: unit, fuzz and golden programs hold all of user/ but main.c; workloads are what
# tests trace, never sanitized; a fake is a small library in place of a real one.
# A workload named cuda_* is made once for each CUDA version that is there, one named nccl_* for each of NCCL, one named
# nvtx_* for each of NVTX.
CHECKS    := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/*.c tests/fuzz/*.c tests/golden/*.c tests/vm/*.c))
BENCHES   := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/*.c))
WORK_SRCS := $(wildcard tests/workloads/*.c tests/probes/*/*.c)
CUDA_SRCS := $(foreach f,$(WORK_SRCS),$(if $(filter cuda_%,$(notdir $(f))),$(f)))
NCCL_SRCS := $(foreach f,$(WORK_SRCS),$(if $(filter nccl_%,$(notdir $(f))),$(f)))
NVTX_SRCS := $(foreach f,$(WORK_SRCS),$(if $(filter nvtx_%,$(notdir $(f))),$(f)))
WORKLOADS := $(patsubst %.c,$(B)/%,$(filter-out $(CUDA_SRCS) $(NCCL_SRCS) $(NVTX_SRCS),$(WORK_SRCS)))
FAKES     := $(patsubst %.c,$(B)/%.so,$(wildcard tests/fakes/lib*.c))
define cuda_rules
CUDA_WORKLOADS += $(CUDA_SRCS:%.c=$(B)/%-$(1))
$(CUDA_SRCS:%.c=$(B)/%-$(1)): $(B)/%-$(1): %.c $(B)/gen/config
	@mkdir -p $$(@D)
	$$(call say,CC)$$(CC) $$(WORK_CFLAGS) -I$(CUDA)/$(1)/include $$< -o $$@ -L$(CUDA)/$(1)/lib -l:libcudart.so.$(1) \
		-Wl,-rpath,$(abspath $(CUDA)/$(1)/lib)
endef
define nvtx_rules
NVTX_WORKLOADS += $(NVTX_SRCS:%.c=$(B)/%-$(1))
$(NVTX_SRCS:%.c=$(B)/%-$(1)): $(B)/%-$(1): %.c $(B)/gen/config
	@mkdir -p $$(@D)
	$$(call say,CC)$$(CC) $$(WORK_CFLAGS) -I$(NVTX)/$(1)/include $$< -o $$@ -ldl -lpthread
endef
# Found at run time by LD_LIBRARY_PATH, so that a fake can stand in
define nccl_rules
NCCL_WORKLOADS += $(NCCL_SRCS:%.c=$(B)/%-$(1))
$(NCCL_SRCS:%.c=$(B)/%-$(1)): $(B)/%-$(1): %.c $(B)/gen/config
	@mkdir -p $$(@D)
	$$(call say,CC)$$(CC) $$(WORK_CFLAGS) -I$(NCCL)/$(1)/include -I$(CUDA)/13/include $$< -o $$@ \
		-L$(NCCL)/$(1)/lib -l:libnccl.so.2
endef
# They do odd things on purpose: warnings are shown, and are no errors
WORK_CFLAGS = -std=gnu11 -O2 -g -fno-omit-frame-pointer -Wall -D_GNU_SOURCE= -Ibpf -pthread -MMD -MP -MF $@.d
$(foreach v,12 13,$(if $(wildcard $(NVTX)/$(v)/include),$(eval $(call nvtx_rules,$(v)))))
$(if $(wildcard $(CUDA)/13/include),$(foreach v,$(notdir $(patsubst %/lib/,%,$(wildcard $(NCCL)/*/lib/))),$(eval $(call nccl_rules,$(v)))))
$(foreach v,12 13,$(if $(wildcard $(CUDA)/$(v)/lib),$(eval $(call cuda_rules,$(v)))))

# A test is linked with one object of all of user/ but main.c, which halves the CPU time of linking. The switches
# replace weak functions of user/util/test_switch.c; build/sonde does not have them.
SWITCHES := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/switches/*.c))
$(B)/all.o: $(LIB_OBJS)
	$(call say,LINK)$(CC) -nostdlib -r $^ -o $@
# This test reads the types of its own program
$(B)/obj/tests/unit/dwarf.o: SONDE_CFLAGS += -g
$(CHECKS) $(BENCHES): $(B)/%: $(B)/obj/%.o $(B)/all.o $(SWITCHES)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(SONDE_LD) $^ $(LDLIBS) -lm -o $@
$(WORKLOADS): $(B)/%: %.c $(B)/gen/config
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(WORK_CFLAGS) $< -o $@ -lm -ldl
$(FAKES): $(B)/%.so: %.c $(B)/gen/config
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(WORK_CFLAGS) -shared -fPIC $< -o $@
# The program that tests run, with the library beside it, where it looks for it
$(B)/test/sonde: $(B)/obj/user/main.o $(B)/all.o $(SWITCHES) | $(B)/test/libsonde-cupti.so
	$(call say,LINK)$(CC) $(SONDE_LD) $^ $(LDLIBS) -o $@
$(B)/test/libsonde-cupti.so: $(B)/libsonde-cupti.so
	@mkdir -p $(@D)
	@ln -f $< $@
checks: $(B)/sonde $(B)/test/sonde $(CHECKS)
	@:
# With libFuzzer, which is clang's; all of user/ once more, instrumented. Empty lists are NULL + 0, which gcc's
# sanitizer and the next C standard accept.
FUZZ_FLAGS := -fsanitize=address,undefined -fno-sanitize=pointer-overflow -fno-sanitize-recover=undefined \
	      -fno-omit-frame-pointer
FUZZERS    := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/*.c))
$(B)/fuzz/obj/%.o: %.c $(B)/gen/config | $(B)/gen/sonde.skel.h
	@mkdir -p $(@D)
	$(call say,CC)$(CCACHE) $(CLANG) $(SONDE_CPP) -DFUZZ -std=gnu11 -w -O1 -g1 $(FUZZ_FLAGS) $(MAP) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@
$(B)/fuzz/obj/user/export/flame.o: $(B)/gen/flame.html.inc
$(B)/fuzz/obj/user/export/html.o: $(B)/gen/html.html.inc
$(B)/fuzz/obj/user/findings/rules.o: $(B)/gen/library.rules.inc
$(FUZZERS): $(B)/fuzz/%: $(B)/fuzz/obj/tests/fuzz/%.o $(LIB_SRCS:%.c=$(B)/fuzz/obj/%.o)
	$(call say,LINK)$(CLANG) $(LDFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer $^ $(LDLIBS) -o $@
fuzzers: $(FUZZERS)
	@:
benches: $(BENCHES) $(B)/tests/golden/make_gpu_trace
	@:
workloads: $(WORKLOADS) $(CUDA_WORKLOADS) $(NCCL_WORKLOADS) $(NVTX_WORKLOADS) $(FAKES)
	@:

# What records live does so alone on the machine (tests/lib/live_lock.py)
ALONE := SONDE_LIVE_LOCK=1 flock -o /run/lock/sonde-live.lock

# Without T the gate: what must pass before a change lands, in 10 to 15 minutes. T=PATTERN: only the tests whose names
# match; T=smoke: those that need neither CUDA nor a network, a minute; T=all: all tests, 40 minutes
test: $(if $(T),test-$(if $(filter smoke,$(T)),smoke,some),test-gate)
	@:
test-gate:
	@scripts/gate.sh
test-smoke:
	@scripts/deps.sh build smoke
	@tests/run smoke
test-some:
	@scripts/deps.sh build test
	@scripts/cuda.sh 12 13 || true
	@scripts/nccl.sh $(if $(filter gate,$(T)),2.32.3) || true
	@scripts/cupti.sh 12 13 || true
	@scripts/nvtx.sh || true
	@scripts/nvml.sh || true
	@tests/run $(if $(filter-out all,$(T)),'$(T)')

# The gate on a clone of HEAD, as a landing runs it. Its output is stored in build/gate/COMMIT
gate:
	@scripts/gate.sh --clone

# All that the gate leaves out, in parts; PART=NAME: one of them; PART=list prints them with what they cost
check-all:
	@scripts/check-all.sh $(PART)

# 1,000 times on and off a busy program, 500 kills, and 1,000 times into one: three quarters of an hour; then a shim
# that sleeps for an hour, and an hour of churn whose recording must not grow. M=10: ten minutes of that alone
ifdef M
stress: all $(FAKES)
	@$(ALONE) tests/stress/memory.py $(M)
else
stress:
	@scripts/deps.sh build test
	@scripts/cuda.sh 12 13 || true
	@scripts/cupti.sh 12 13 || true
	@STRESS=1 ROUNDS=1000 tests/run 'e2e/test_rounds'
	@STRESS=1 KILLS=500 tests/run 'e2e/test_kill'
	@STRESS=1 ROUNDS=1000 tests/run 'probes/gpu/test_inject.py'
	@STRESS=1 DORMANT=3600 tests/run 'probes/gpu/test_dormant'
	@$(MAKE) --no-print-directory all $(FAKES)
	@$(ALONE) tests/stress/memory.py
endif

# Inputs made up by libFuzzer: two minutes for each target, or S=600 seconds each, or TOTAL=60 for all; T=elf: one of
# them
fuzz:
	@scripts/deps.sh build fuzz
	@$(MAKE) --no-print-directory $(if $(T),$(B)/fuzz/$(T),fuzzers)
	@tests/fuzz/run $(B)/fuzz $(if $(TOTAL),--total=$(TOTAL),--each=$(or $(S),120)) $(T)

bench:
	@scripts/deps.sh build test bench
	@scripts/deps.sh peers || echo "bpftrace can't be had: what it is compared with is skipped"
	@scripts/cuda.sh 13 || true
	@$(MAKE) --no-print-directory all $(B)/test/sonde benches workloads
	@$(ALONE) tests/bench/run $(if $(T),'$(T)')

demo:
	@scripts/deps.sh build demo
	@scripts/cuda.sh 13 || true
	@scripts/cupti.sh 13 || true
	@$(MAKE) --no-print-directory all workloads
	@scripts/demo.sh $(B)

# The traces of the docs, what commands print about them, and README's picture. The texts around the blocks mention some
# of the figures: read the diff.
readme:
	@scripts/deps.sh build demo
	@scripts/cuda.sh 13 || true
	@scripts/cupti.sh 13 || true
	@$(MAKE) --no-print-directory all workloads
	$(ALONE) scripts/readme.sh $(B)
	scripts/case-table.py > docs/cases.md.tmp && mv docs/cases.md.tmp docs/cases.md
	scripts/doc-output.py $(B)/sonde

# PostgreSQL, Redis and PyTorch with and without sonde: some ten minutes. Then gunicorn, PyTorch with a thread that
# spins and CPython's own tests, in four ways each: some ten more
real: all
	$(ALONE) tests/real/run
	$(ALONE) tests/real/python.py
	$(ALONE) tests/real/pytorch.py

# Packages of PyTorch, recorded in two ways, name by name beside torch.profiler: the last part of `make real`
real-torch: all
	$(ALONE) tests/real/pytorch.py

# Programs with one planted cause each, judged by the first lines of the report, into docs/incidents.md; N='NAME..' runs
# some
incidents: all
	@$(ALONE) tests/incidents/run.py $(or $(N),--markdown docs/incidents.md)

fresh:
	@scripts/deps.sh fresh
	@T=$(T) scripts/fresh.sh

# Packages, build and smoke tests in roots of Debian 12, 13 and sid, or DISTRO='trixie sid'
distros:
	@scripts/deps.sh fresh
	@$(MAKE) --no-print-directory dist > /dev/null
	@scripts/distros.sh $(DISTRO)

# Debian's kernels under QEMU: all of them, or K=6.1,newest; QUICK=1: what the gate has time for, on 6.1
vm:
	@scripts/deps.sh build test vm
	@scripts/cuda.sh 12 13 || true
	@$(MAKE) --no-print-directory all workloads $(B)/test/sonde $(B)/tests/vm/load_each
	@$(if $(QUICK),,tests/vm/compilers.sh || true)
	@tests/vm/run $(if $(QUICK),--quick) $(if $(K),K=$(K))

# Compiles everything with warnings as errors: into a folder of its own, unless the caller's whole build is such a one.
# QUICK=1: without cppcheck
lint:
	@scripts/deps.sh build lint
	@QUICK=$(QUICK) scripts/lint.sh $(if $(filter 1,$(WERROR)),$(B),$(B)/lint)

# Tables that are made from the program, and what it prints about the traces in the tree
docs: all
	scripts/doc-tables.py $(B)/sonde > docs/events.md.tmp && mv docs/events.md.tmp docs/events.md
	scripts/json-keys.py $(B) > docs/json.md.tmp && mv docs/json.md.tmp docs/json.md
	scripts/doc-output.py $(B)/sonde

format:
	clang-format -i $$(git ls-files --cached --others --exclude-standard '*.c' '*.h')

dist:
	@scripts/deps.sh build dist
	@$(MAKE) --no-print-directory all $(B)/sonde-portable
	@scripts/dist.sh $(B) $(VERSION)

# clangd looks in build/ by itself
compile_commands.json: deps-build
	@$(MAKE) --no-print-directory -nB V=1 all checks 2> /dev/null | \
		scripts/compile-commands.py > $(B)/compile_commands.json

# PORTABLE=1: the program that needs glibc alone
INSTALLED := $(B)/sonde$(if $(filter 1,$(PORTABLE)),-portable)
install: all $(INSTALLED)
	install -D -m 755 $(INSTALLED) $(DESTDIR)$(PREFIX)/bin/sonde
	install -D -m 755 $(B)/libsonde-cupti.so $(DESTDIR)$(PREFIX)/lib/sonde/libsonde-cupti.so
	install -D -m 644 scripts/sonde.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/sonde.conf
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/doc/sonde
	scripts/man.py $(B)/sonde $(B)/man
	install -m 644 $(wildcard docs/man/*.1) $(B)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -D -m 644 scripts/completion/sonde.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/sonde
	install -D -m 644 scripts/completion/_sonde $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_sonde
	install -m 644 README.md LICENSE $(wildcard docs/*.md) $(DESTDIR)$(PREFIX)/share/doc/sonde

# What install puts there, of this version or an older one
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/sonde $(DESTDIR)$(PREFIX)/share/man/man1/sonde.1 $(DESTDIR)$(PREFIX)/share/man/man1/sonde-*.1
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/sonde $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_sonde
	rm -rf $(DESTDIR)$(PREFIX)/lib/sonde $(DESTDIR)$(PREFIX)/share/doc/sonde
	rm -f $(DESTDIR)$(PREFIX)/lib/sysusers.d/sonde.conf

clean:
	rm -rf $(B)

# Quick, and without the network, when all is there
deps-build: FORCE
	@scripts/deps.sh build

-include $(shell find $(B)/bpf $(B)/obj $(B)/tests $(B)/fuzz -name '*.d' 2>/dev/null)

FORCE:
.PHONY: all docs deps-build checks fuzzers fuzz benches workloads test test-gate test-smoke test-some gate check-all stress bench demo readme real real-torch incidents fresh vm lint format compile_commands.json install uninstall dist clean FORCE
.DELETE_ON_ERROR:
