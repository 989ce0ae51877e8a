# SPDX-License-Identifier: Apache-2.0
# One makefile, no configure. `make help` lists the targets.
#
# Sources are found by wildcard. Objects live in build/obj (sanitizer builds in build/san-NAME), so
# that kinds of builds never collide.

CC      ?= gcc
PREFIX  ?= /usr/local
DESTDIR ?=
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)')

SAN     ?=
CHECK   ?=
COMMA   := ,
# packaging/ and `make test-aarch64` build for other machines: B=, CC=, CFLAGS=, LDFLAGS= and DWARF= on the
# command line; RUN= runs unit tests there.
B       := build$(if $(SAN),/san-$(subst $(COMMA),-,$(SAN)),)$(if $(CHECK),/check,)
O       := $(B)/obj

WARN    := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wpointer-arith
# Of a sanitizer's build only lines are read; it compiles in half the time.
CFLAGS  ?= $(if $(SAN),-O1 -g1,-O2 -g)
BASE    := -std=gnu11 -fno-strict-aliasing -D_GNU_SOURCE $(WARN) -MMD -MP \
           $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer,) \
           $(if $(CHECK),-DGMT_CHECK_FRAMES,)
LDFLAGS ?=
IS_GCC  := $(findstring Free Software,$(shell $(CC) --version 2>/dev/null))
LINK    := $(if $(SAN),-fsanitize=$(SAN),$(if $(IS_GCC),-fno-lto)) $(LDFLAGS)
# What an event runs through is compiled as one piece in the library: a twentieth of its instructions are calls. gcc only.
WHOLE   := $(if $(SAN)$(CHECK),,$(if $(IS_GCC),-flto=auto -ffat-lto-objects))
PIC     := -fPIC -fvisibility=hidden
ZSTD    := -l:libzstd.a
UNPACK  := $(ZSTD) -lz -llzma
DWARF   ?= -ldw -lelf

# CUDA headers, for simgpu/ alone: the pinned ones (.venv, or .cuda by `scripts/setup.sh cuda`), else an installed toolkit's.
SIMGPU  ?= yes
WHEELS  := $(firstword $(wildcard $(addsuffix /lib/python3*/site-packages/nvidia,.venv .cuda)))
CUDA_INC := $(firstword $(wildcard $(WHEELS)/cu13/include $(CUDA_HOME)/include))
CUDA_INCS := $(addprefix -isystem ,$(CUDA_INC) $(wildcard $(WHEELS)/cudnn/include $(WHEELS)/nccl/include))

ALONE   := format/reader_alone.c # the reader without threads
FORMAT  := $(filter-out $(ALONE),$(wildcard format/*.c))
INSIDE  := $(filter-out format/reader_memory.c format/reader_ahead.c,$(FORMAT)) $(ALONE) # of it, what the traced program has
SHIM    := $(wildcard shim/*.c shim/*/*.c) $(if $(CHECK),tests/check/compare_walks.c)
CUPTI   := $(wildcard cupti/*.c)
LIBRARY := $(wildcard viewer/ask/library*.c)
VIEWER  := $(filter-out $(LIBRARY),$(wildcard viewer/*/*.c))
DEVICE  := $(if $(filter no,$(SIMGPU)),,$(wildcard simgpu/*/*.c))
UNITS   := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
FUZZ    := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
PROGRAMS := $(patsubst tests/programs/%.c,$(B)/programs/%,$(wildcard tests/programs/*.c))
objs     = $(patsubst %.c,$(O)/%.o,$(1))

PRODUCTS := $(B)/libgpumemtrace.so $(B)/gpumemtrace $(B)/libgpumemtrace_core.so \
            $(if $(DEVICE),$(B)/libsimgpu.so $(B)/simgpu/libcuda.so.1 $(B)/simgpu/libnvidia-ml.so.1 $(B)/simgpu/link/libcudart.so,)

.SECONDARY:
.PHONY: all
all: $(PRODUCTS)  ## build the library, the tool and the simulated device

$(O)/format/%.o $(O)/shim/%.o $(O)/cupti/%.o $(O)/viewer/%.o: PARTFLAGS := $(PIC)
$(O)/tests/check/%.o $(O)/python/%.o: PARTFLAGS := $(PIC)
$(O)/simgpu/%.o: PARTFLAGS := $(PIC) $(CUDA_INCS)
$(O)/tests/%.o: PARTFLAGS := -fPIE
# Cards whose cuDNN was measured: tests/data/cudnn-CARD.txt, made on such a card by `make cudnn-table`.
CUDNN_TABLES := $(wildcard tests/data/cudnn-*.txt)
$(O)/simgpu/libraries/lib_cudnn_workspace.o: PARTFLAGS += -DCUDNN_TABLES='"$(patsubst tests/data/cudnn-%.txt,%,$(CUDNN_TABLES))"'
$(O)/simgpu/libraries/lib_cudnn_workspace.o: $(CUDNN_TABLES)

$(call objs,$(filter shim/stacks/% shim/rings/% shim/torch/% shim/recording/capture.c,$(SHIM))): WHOLEFLAGS := $(WHOLE)

$(B)/system-ok:
	@mkdir -p $(B)
	@printf '#include <zstd.h>\n#include <elfutils/libdwelf.h>\n' | $(CC) $(CFLAGS) -E -x c - >/dev/null 2>&1 || \
	  { echo 'zstd.h or libdwelf.h is not there: `scripts/setup.sh system` installs what is missing'; exit 1; }
	@touch $@

$(B)/cuda-ok:
	@mkdir -p $(B)
	@printf '#include <%s.h>\n' cuda cuda_runtime_api cupti nvml | sed '$$a #if CUDA_VERSION < 13000\n#error\n#endif' | \
	  $(CC) $(CFLAGS) $(CUDA_INCS) -E -x c - >/dev/null 2>&1 || { echo 'the headers of CUDA 13, which the simulated device is' \
	  'built with, are not there: `scripts/setup.sh cuda` fetches them (16 MB), CUDA_HOME=DIR names a toolkit, SIMGPU=no does without the device'; exit 1; }
	@touch $@

$(O)/%.o: %.c Makefile | $(B)/system-ok $(if $(DEVICE),$(B)/cuda-ok)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(CFLAGS) $(PARTFLAGS) $(WHOLEFLAGS) -c -o $@ $<

# What the library exports is its hooks and nothing else.
$(B)/exports.map: shim/hooks.def Makefile
	@mkdir -p $(@D)
	$(Q){ echo '{ global:'; $(CC) -E -P -x c -DEXPORT_LIST shim/hooks.def | tr ';' '\n' | sed -n 's/^ *\([A-Za-z_][A-Za-z0-9_]*\) *$$/  \1;/p'; \
	  echo 'local: *; };'; } > $@.new && mv $@.new $@

$(B)/libgpumemtrace.so: $(call objs,$(INSIDE) $(SHIM) $(CUPTI)) $(B)/exports.map
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(filter-out -fno-lto,$(LINK)) $(WHOLE) -o $@ $(filter %.o,$^) -Wl,--version-script=$(B)/exports.map \
	  -Wl,-Bsymbolic -Wl,-z,now $(ZSTD) -ldl -lpthread

# The core as a library: the interface of viewer/ask/gpumemtrace.h, and of the tool's objects those that it needs.
$(B)/core.map: Makefile
	@mkdir -p $(@D)
	$(Q)echo '{ global: gpumemtrace_*; local: *; };' >$@
$(B)/libgpumemtrace_core.so: $(call objs,$(LIBRARY)) $(B)/parts.a $(B)/core.map
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LINK) -Wl,-z,defs -Wl,-Bsymbolic -Wl,--version-script=$(B)/core.map $(if $(IS_GCC),-Wl$(COMMA)-Map=$@.map) \
	  -o $@ $(filter %.o %.a,$^) $(UNPACK) $(DWARF) -ldl -lpthread -lm

# What a page is made of lies inside the tool.
$(O)/viewer/page/page_write.o build/wasm/viewer/page/page_write.o: $(wildcard viewer/page/assets/*)
PYTHON_INSIDE := $(addprefix python/gpumemtrace/,_answer.py _core.py _error.py) \
                 $(filter-out %/__init__.py,$(wildcard $(patsubst %,python/gpumemtrace/%/*.py,ranks lake search changes)))
build/python_modules: Makefile $(PYTHON_INSIDE)
	@mkdir -p $(@D)
	$(Q)for f in $(PYTHON_INSIDE); do printf '%s\0' "$${f#python/gpumemtrace/}"; cat "$$f"; printf '\0'; done >$@.new && mv $@.new $@
$(O)/viewer/commands/cmd_lake.o: viewer/commands/views.sql
$(O)/viewer/recording/exchange.o: viewer/recording/attach.py
$(O)/viewer/commands/question.o: build/python_modules python/gpumemtrace/_world.py
$(O)/viewer/commands/handover.o: viewer/commands/handover.py

$(B)/gpumemtrace: $(call objs,$(FORMAT) $(VIEWER))
	$(call say,LINK,$@)
	$(Q)$(CC) $(LINK) -pie -o $@ $^ $(UNPACK) $(DWARF) -ldl -lpthread -lm

# The command for a browser (browser/README.md), without what starts processes or reaches into them.
# WASM= is the folder of its libraries.
WASM_OUT := format/reader_ahead.c $(addprefix viewer/,recording/elf_names.c \
            $(patsubst %,recording/%.c,attach exchange registers target) \
            $(patsubst %,commands/%.c,ask_ranks engine_settings handover lake_files pager question run_changes run_output run_program run_result search_facts searches \
            $(addprefix cmd_,attach ctl lake open run top)))
WASM_OBJECTS := $(patsubst %.c,build/wasm/%.o,browser/heap.c browser/stand_ins.c $(filter-out $(WASM_OUT),$(FORMAT) $(VIEWER)))
WASM_FLAGS := -std=gnu11 -fno-strict-aliasing -D_GNU_SOURCE $(patsubst %,-D_WASI_EMULATED_%,MMAN SIGNAL PROCESS_CLOCKS GETPID) -O2 -g0 -w -MMD -MP "-DCHUNKS_LIMIT=(384ul<<20)" \
              -include browser/system.h -I$(WASM)/include
WASM_LIBS := $(addprefix $(WASM)/lib/,libzstd.a libz.a liblzma.a demangler.o) $(addprefix -lwasi-emulated-,mman signal process-clocks getpid)
build/wasm/%.o: %.c Makefile browser/system.h
	$(call say,WASM,$<)
	@mkdir -p $(@D)
	$(Q)WHEEL_ARCH=wasm32 packaging/cc.sh $(WASM_FLAGS) -c -o $@ $<

build/gpumemtrace.wasm: $(WASM_OBJECTS)
	$(call say,LINK,$@)
	$(Q)WHEEL_ARCH=wasm32 packaging/cc.sh -s -Wl,-z,stack-size=4194304 -o $@ $^ $(WASM_LIBS)

build/gpumemtrace.html: build/gpumemtrace.wasm $(wildcard browser/*) viewer/page/assets/page.css
	$(Q)browser/page.sh $< >$@.new && mv $@.new $@

# Pages of the manual: prose by hand, the rest from the tables, and examples run on tests/data/example.
MANUAL := $(patsubst docs/man/%.md,build/man/%,$(wildcard docs/man/*.md))
build/man/%: docs/man/%.md scripts/man.sh build/gpumemtrace
	@mkdir -p $(@D)
	$(Q)bash scripts/man.sh $< >$@.new && mv $@.new $@

$(B)/libsimgpu.so: $(call objs,$(DEVICE))
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LINK) -Wl,-soname,libsimgpu.so -Wl,-Bsymbolic -Wl,--exclude-libs,ALL -o $@ $^ $(ZSTD) -ldl -lpthread -lm

# The driver's and NVML's names: libraries that need libsimgpu.so, so that dlsym on them finds its functions.
$(B)/simgpu/%.so.1: $(O)/simgpu/lookup.o $(B)/libsimgpu.so
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(LINK) -Wl,-soname,$(notdir $@) -Wl,--no-as-needed -Wl,-rpath,'$$ORIGIN/..' -o $@ $^ -ldl
	$(Q)ln -sf $(notdir $@) $(@:.1=)

# For programs that link what they compile: only a linker looks there.
$(B)/simgpu/link/libcudart.so:
	@mkdir -p $(@D)
	$(Q)echo 'INPUT(-l:libcudart.so.13)' >$@

# Unit tests: one binary a file. Each may use all of format/ and viewer/ (an archive, so that only what
# it names is linked); objects of other folders by a line ` * links: shim/base/ shim/cuda/nvtx.c` in the test.
$(B)/parts.a: $(call objs,$(FORMAT) $(filter-out viewer/commands/main.c,$(VIEWER)))
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

links    = $(call objs,$(wildcard $(patsubst %/,%/*.c,$(shell sed -n 's/^ \* links: *//p' $(1)))))
cuda     = $(if $(findstring cuda,$(shell sed -n 's/^ \* needs: *//p' $(1))),$(CUDA_INCS),)

.SECONDEXPANSION:
$(UNITS:%=$(B)/unit/%): $(B)/unit/%: $(O)/tests/unit/%.o $$(call links,tests/unit/$$*.c) $(B)/parts.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LINK) -pie -o $@ $(filter %.o,$^) $(B)/parts.a -lcmocka $(UNPACK) $(DWARF) -ldl -lpthread -lm

# Fuzz targets: over their corpus as an ordinary test; `make fuzz` looks for more with clang's fuzzer.
# Objects of other folders by a line ` * links:`, as in unit tests.
$(FUZZ:%=$(B)/unit/corpus_%): $(B)/unit/corpus_%: $(O)/tests/fuzz/fuzz_%.o $$(call links,tests/fuzz/fuzz_$$*.c) $(O)/tests/fuzz/corpus.o $(B)/parts.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LINK) -pie -o $@ $^ $(UNPACK) $(DWARF) -ldl -lpthread -lm

# Large memory, files and contexts of zstd are kept from run to run: keep*.c in the place of the system's calls.
KEEP := $(call objs,$(wildcard tests/fuzz/keep*.c))
KEPT := $(patsubst %,-Wl$(COMMA)--wrap=%,$(shell sed -n 's/^ \* wraps: *//p' tests/fuzz/keep*.c))
$(FUZZ:%=$(B)/fuzz_%): $(B)/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $$(call links,tests/fuzz/fuzz_$$*.c) $$(if $$(filter lookups,$$*),,$(KEEP)) $(B)/parts.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LINK) -fsanitize=fuzzer $(if $(filter lookups,$*),,$(KEPT)) -pie -o $@ $^ $(UNPACK) $(DWARF) -ldl -lpthread -lm

# Benches in C reach the library's entry point through a function in an object of its own.
$(O)/tests/bench/entry.o: PARTFLAGS := $(PIC)
$(B)/bench-entry.so: $(O)/tests/bench/entry.o $(call objs,$(INSIDE) $(SHIM))
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(LINK) -Wl,-soname,$(notdir $@) -o $@ $^ -Wl,-Bsymbolic -Wl,--exclude-libs,ALL $(ZSTD) -ldl -lpthread

$(B)/bench_%: $(O)/tests/bench/bench_%.o $(B)/bench-entry.so
	$(call say,LINK,$@)
	$(Q)$(CC) $(LINK) -pie -o $@ $^ -Wl,-rpath,'$$ORIGIN'

# Programs that make the recordings in tests/data.
$(B)/data/%: $(O)/tests/data/%.o $(O)/tests/unit/recordings.o $(O)/tests/unit/training.o $(B)/parts.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LINK) -pie -o $@ $^ -lcmocka $(UNPACK) -lpthread -lm

# Programs for the end-to-end tests. They name CUDA functions as weak symbols and link no CUDA library.
$(B)/programs/%: tests/programs/%.c Makefile
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(CFLAGS) $(call cuda,$<) -pie -fPIE -rdynamic -Wl,-z,dynamic-undefined-weak -o $@ $< -ldl -lpthread

.PHONY: programs
programs: $(PROGRAMS) $(patsubst tests/data/%.c,$(B)/data/%,$(wildcard tests/data/*.c))

.PHONY: unit $(UNITS:%=run-%) $(FUZZ:%=run-corpus_%)
# Lookups are asked of the simulated driver of the plain build.
CORPORA := $(if $(DEVICE),$(FUZZ),$(filter-out lookups,$(FUZZ)))
$(if $(SAN)$(CHECK),,run-corpus_lookups: | all)
unit: $(UNITS:%=run-%) $(CORPORA:%=run-corpus_%)  ## unit tests (SAN=address,undefined: with these sanitizers)
$(UNITS:%=run-%): run-%: $(B)/unit/%
	@if timeout 600 $(RUN) $< >$<.log 2>&1; then printf '  %-7s %s %s\n' OK $* "$$(grep -o '[0-9]* test(s) run' $<.log | tail -1)"; \
	 else cat $<.log; printf '  %-7s %s\n' FAILED $<; exit 1; fi

FUZZ_ENV := GPUMEMTRACE_OUTPUT=/dev/null/no GPUMEMTRACE_QUIET=1
$(FUZZ:%=run-corpus_%): run-corpus_%: $(B)/unit/corpus_%
	@if $(FUZZ_ENV) timeout 600 $(RUN) $< tests/fuzz/corpus/$* >$<.log 2>&1; then printf '  %-7s %s %s\n' OK corpus_$* "$$(tail -1 $<.log)"; \
	 else cat $<.log; printf '  %-7s %s\n' FAILED $<; exit 1; fi

FUZZ_SECONDS ?= 60
FUZZ_RUNS ?= -1
FUZZ_CC ?= $(firstword $(shell command -v clang; ls -r /usr/bin/clang-[0-9]* 2>/dev/null))
FUZZ_SAN := fuzzer-no-link,address,undefined
FUZZ_B := build/san-$(subst $(COMMA),-,$(FUZZ_SAN))
.PHONY: fuzz $(FUZZ:%=fuzz-%)
fuzz: $(FUZZ:%=fuzz-%)  ## look for new inputs that break readers and hooks (clang), FUZZ_SECONDS and at most FUZZ_RUNS each
$(FUZZ:%=fuzz-%): fuzz-%: | all
	@[ -n "$(FUZZ_CC)" ] || { echo 'make fuzz: no clang here (Debian: clang and libclang-rt-14-dev)'; exit 1; }
	@$(MAKE) --no-print-directory SAN=$(FUZZ_SAN) CC=$(FUZZ_CC) CFLAGS='-O1 -g' $(FUZZ_B)/fuzz_$*
	@mkdir -p build/fuzz/found_$*
	$(FUZZ_ENV) $(FUZZ_B)/fuzz_$* -max_total_time=$(FUZZ_SECONDS) -runs=$(FUZZ_RUNS) -max_len=2048 -entropic=0 -rss_limit_mb=2000 \
	  -timeout=10 -artifact_prefix=build/fuzz/ build/fuzz/found_$* tests/fuzz/corpus/$*

.PHONY: coverage reliability test-aarch64
coverage:  ## lines of the reader that the fuzzers' corpora reach (gcov); fails below 95 %
	@scripts/coverage.sh
reliability: setup  ## 1,000 kills, a full disk at every call: an hour; docs/reliability.md has the figures
	@$(MAKE) --no-print-directory all programs
	@GPUMEMTRACE_TEST_KILLS=1000 GPUMEMTRACE_TEST_LONG=1 GPUMEMTRACE_TEST_RANDOM=100 .venv/bin/python -m pytest -q -c tests/pytest.ini -o timeout=7200 -o junit_family=xunit1 \
	  --junitxml=build/reliability.xml tests/e2e/test_kill9.py tests/e2e/test_programs.py tests/e2e/test_faults.py tests/e2e/test_hosts.py tests/e2e/test_hosts_torch.py tests/e2e/test_company.py tests/e2e/test_oom_settings.py tests/e2e/test_random_calls.py
	@sed -n 's/.*name="\(test_[^"]*\)"[^>]*><properties><property name="figure" value="\([^"]*\)".*/\1: \2/p' build/reliability.xml
test-aarch64: setup  ## unit tests for aarch64, built by the wheels' compiler, run under qemu
	@scripts/setup.sh wheel
	@scripts/aarch64.sh

.PHONY: tsan
tsan: export TSAN_OPTIONS := halt_on_error=1
# The thread of test_frames changes its stack by hand, which this sanitizer does not know.
TSAN_TESTS = $(filter-out test_frames,$(basename $(notdir $(shell grep -l 'pthread_create.&' tests/unit/*.c 2>/dev/null))))
tsan:  ## unit tests that start threads, under the thread sanitizer
	@$(MAKE) --no-print-directory SAN=thread $(TSAN_TESTS:%=run-%)

.PHONY: setup simgpu-rows
simgpu-rows: setup  ## simgpu/api/simgpu_rows.def anew, from the pinned headers
	@scripts/simgpu_rows.sh "$(CC) $(CUDA_INCS)" >simgpu/api/simgpu_rows.def
setup:  ## system packages, and .venv with pinned torch (5 GB in your cache, once)
	@scripts/setup.sh system cu13

.PHONY: demo
demo: setup  ## train a model of 1.5 billion parameters (simulated without a GPU) and report
	@$(MAKE) --no-print-directory all
	@scripts/demo.sh

.PHONY: test test-page test-rule test-uses test-matrix test-driver test-frameworks test-versions test-conclusions test-cards cudnn-table test-engines bench lint
test: setup  ## build, lint, unit tests (plain and under sanitizers), end to end
	@scripts/setup.sh newest headers tools browser docs trainers wheel
	@scripts/test.sh
test-page: setup  ## pages in Chromium and Firefox, with axe-core; pictures of them in build/pictures
	@scripts/setup.sh browser tools
	@$(MAKE) --no-print-directory all viewer
	@.venv/bin/python -m pytest -q -c tests/pytest.ini tests/e2e/test_page_pictures.py tests/e2e/test_page_looks.py tests/e2e/test_html.py tests/e2e/test_diff_page.py \
	  tests/e2e/test_summary.py tests/e2e/test_wasm.py
test-rule: setup  ## how often a new rule for classes is right, RULE=NAME: writes its row of viewer/classes/precision.def (20 minutes)
	@$(MAKE) --no-print-directory all
	@.venv/bin/python tests/classes/score.py --json >$(B)/on.json
	@.venv/bin/python tests/classes/score.py --tags off --json >$(B)/off.json
	@.venv/bin/python tests/classes/precision.py $(B)/on.json $(B)/off.json --write viewer/classes/precision.def --only $(RULE)
test-uses: setup  ## do launches, copies and sets name what PyTorch's operators read and write; writes docs/uses.md (half an hour)
	@$(MAKE) --no-print-directory all
	@.venv/bin/python tests/uses/run.py --write docs/uses.md
test-matrix: setup  ## the same, with CUDA 12's torch too; every PyTorch from 2.1 and every earlier format: writes docs/pytorch-versions.md, docs/format-versions.md
	@scripts/setup.sh newest headers tools browser docs trainers cu12 wheel
	@scripts/test.sh cu12
	@.venv/bin/python tests/matrix/readers.py --table docs/format-versions.md
	@.venv/bin/python tests/matrix/versions.py --again --table docs/pytorch-versions.md
test-driver: setup  ## hooks against NVIDIA's own driver libraries (from Debian's packages, not installed); writes docs/driver-lookups.md
	@scripts/setup.sh headers driver
	@$(MAKE) --no-print-directory all
	@.venv/bin/python -m pytest -q -c tests/pytest.ini tests/driver
test-frameworks: setup  ## programs of frameworks: do they end, are classes right; writes docs/frameworks.md (an hour)
	@scripts/setup.sh frameworks
	@$(MAKE) --no-print-directory all
	@.venv-frameworks/bin/python tests/frameworks/run.py --table docs/frameworks.md
test-versions: setup  ## released versions of packages: is the first finding of `diff` the reason; writes docs/diff.md
	@$(MAKE) --no-print-directory all
	@.venv/bin/python tests/versions/run.py $(B)/versions --table docs/diff.md
test-conclusions: setup  ## is what `oom`, `advise`, `leaks` and `diff` say so in the rest of the run, and with the change made; writes docs/conclusions.md (three hours)
	@scripts/setup.sh frameworks
	@$(MAKE) --no-print-directory all $(B)/data/cut
	@.venv-frameworks/bin/python tests/future/judge.py $(B)/future --write
	@.venv-frameworks/bin/python tests/future/judge.py $(B)/future --no-tags --points 6 --write
	@.venv-frameworks/bin/python tests/remedies/ended_early.py $(B)/future
	@.venv-frameworks/bin/python tests/future/growth.py $(B)/future --write
	@.venv-frameworks/bin/python tests/remedies/known_changes.py $(B)/future --write
	@.venv-frameworks/bin/python tests/remedies/try_remedies.py $(B)/future --write
	@.venv-frameworks/bin/python tests/reports/run.py $(B)/reports --write docs/conclusions.md
	@.venv/bin/python tests/reports/lots/measure.py lot1
test-cards: setup  ## published memory figures of real cards, made again on simulated ones; writes docs/accuracy.md (many hours)
	@scripts/setup.sh frameworks cards25 cards26 cards212
	@$(MAKE) --no-print-directory all
	@.venv/bin/python tests/cards/run.py --missing --write
cudnn-table:  ## what cuDNN asks for on this machine's card: tests/data/cudnn-CARD.txt, say CARD=t4, for `fit` and tests (a minute, a GPU)
	@test -n "$(CARD)" || { echo 'say which card: make cudnn-table CARD=t4 (the first word of its name in simgpu/core/cards.def)'; exit 1; }
	@$(or $(PYTHON),.venv/bin/python) tests/workloads/workspaces.py >$(B)/cudnn-table
	@cp $(B)/cudnn-table tests/data/cudnn-$(CARD).txt
	@$(MAKE) --no-print-directory all
test-engines: setup  ## serving engines start unchanged on the simulated device: classes beside their own figures; writes docs/engines.md (15 minutes)
	@scripts/setup.sh engines sglang
	@$(MAKE) --no-print-directory all
	@.venv-engines/bin/python tests/engines/run.py --table docs/engines.md
bench: setup  ## costs and sizes, beside PyTorch's own recorder
	@$(MAKE) --no-print-directory all $(B)/data/make_long
	@.venv/bin/python tests/bench/bench.py
lint:  ## the promises that a script can check
	@scripts/lint.sh

.PHONY: docs
docs: setup  ## the documents as a site, in build/site/html
	@scripts/setup.sh docs browser
	@$(MAKE) --no-print-directory all viewer
	@.venv/bin/python scripts/docs_site.py

.PHONY: wasm viewer
wasm:  ## build/gpumemtrace.wasm: the command as a module for WebAssembly
viewer:  ## build/gpumemtrace.html: the viewer without installation, one file for any browser
wasm viewer:
	@[ -e build/gpumemtrace.wasm ] || echo '  the first time takes some minutes: a compiler for WebAssembly, its libraries, then all sources'
	@scripts/setup.sh wheel
	@$(MAKE) --no-print-directory WASM="$$(packaging/libraries.sh wasm32)" build/gpumemtrace.$(if $(filter wasm,$@),wasm,html)

.PHONY: wheel
wheel:  ## dist/: a wheel for x86-64 and one for aarch64, glibc 2.28 or later (packaging/README.md)
	@scripts/setup.sh cuda wheel
	@packaging/wheels.sh
.PHONY: release
release:  ## dist/: wheels, Debian packages, source archive, list of parts, checksums; built twice and compared
	@scripts/setup.sh cuda wheel
	@packaging/release.sh
.PHONY: test-wheel
test-wheel: setup wheel  ## install the wheel of this machine and use it: commands, plugin, callbacks, notebooks, action, pod, documents
	@scripts/setup.sh tools browser trainers loggers
	@.venv/bin/python -m pytest -q -c tests/pytest.ini tests/wheel
	@scripts/test-installed.sh dist/*"$$(uname -m)".whl

.PHONY: manual install uninstall
manual: $(MANUAL)  ## pages of the manual, in build/man
BIN = $(DESTDIR)$(PREFIX)/bin
LIB = $(DESTDIR)$(PREFIX)/lib/gpumemtrace
MAN = $(DESTDIR)$(PREFIX)/share/man/man1
BASHC = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHC = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
install: all $(MANUAL)  ## under PREFIX (default /usr/local), below DESTDIR
	install -D -m 755 build/gpumemtrace $(BIN)/gpumemtrace
	install -D -m 755 build/libgpumemtrace.so $(LIB)/libgpumemtrace.so
	install -m 755 build/libgpumemtrace_core.so $(LIB)/libgpumemtrace_core.so
	$(if $(DEVICE),install -m 755 build/libsimgpu.so $(LIB)/libsimgpu.so)
	$(if $(DEVICE),install -D -m 755 -t $(LIB)/simgpu build/simgpu/*.so*)
	$(if $(DEVICE),install -D -m 755 -t $(LIB)/simgpu/link build/simgpu/link/*.so)
	install -D -m 644 -t $(MAN) $(MANUAL)
	@mkdir -p $(BASHC) $(ZSHC)
	build/gpumemtrace --completions bash >$(BASHC)/gpumemtrace
	build/gpumemtrace --completions zsh >$(ZSHC)/_gpumemtrace
uninstall:  ## take it away again
	rm -f $(BIN)/gpumemtrace $(addprefix $(MAN)/,$(notdir $(MANUAL))) $(BASHC)/gpumemtrace $(ZSHC)/_gpumemtrace
	rm -rf $(LIB)

.PHONY: clean
clean:  ## remove build/
	rm -rf build

.PHONY: help
help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## */\1\t/p' Makefile | expand -t 16

-include $(shell find $(O) $(B)/programs build/wasm -name '*.d' 2>/dev/null)
