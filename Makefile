# The commands people type; CMake does the work.
#
#   make demo      installs what is missing, builds what the demo needs, shows packets arriving in a kernel
#   make test      builds what tests run, runs every test, ends with "N passed, N failed, N skipped"; with ALSO=bench the
#                  benchmarks that no test runs are built too
#   make bench     runs the benchmarks, the last beside dpdk-testpmd and tcpreplay, ends with "N of M goals met"
#   make bench-guard
#                  compares the benchmarks with those of the commit in bench/baseline; fails if a row is slower
#   make format    rewrites our sources the way .clang-format says
#   make tidy      clang-tidy over our sources
#   make install   PREFIX=/usr/local
#   make install-cufile PREFIX=/opt/weftio-cufile
#                  libcufile.so.0 and cufile.h alone, for programs that call cuFile (docs/files.md)
#   make install-doca PREFIX=/opt/weftio-doca [LIBDIR=lib]
#                  headers, library and pkg-config files for programs that call DOCA GPUNetIO 2.10 (meson-compat/doca-2.10)
#   make bundle    packs programs and the libraries they need for a machine with nothing installed
#   make clean     removes build/
BUILD := build
PREFIX ?= /usr/local
MAKEFLAGS += --no-print-directory

.PHONY: all demo test bench bench-guard format tidy install install-cufile install-doca bundle clean
all: $(BUILD)/build.ninja
	@cmake --build $(BUILD)

# The first configuration leaves the tests out: their packages are not needed for a demo.
$(BUILD)/build.ninja:
	@cmake/install-dependencies.sh
	@cmake --preset demo

demo:
	@cmake/install-dependencies.sh
	@test -f $(BUILD)/build.ninja || cmake --preset demo
	@cmake --build $(BUILD) --target simple_receive
	@$(BUILD)/samples/simple_receive
	@echo "Next, as root: make && build/apps/weftio-packets -n tap:w0 --address 10.9.0.1/24 --peer 10.9.0.2"
	@echo "and in another terminal: ping 10.9.0.1; curl http://10.9.0.1/"

test:
	@cmake/install-dependencies.sh test
	@cmake --preset default
	@cmake --build $(BUILD) --target all $(ALSO)
	@tests/run-all $(BUILD)

bench:
	@cmake/install-dependencies.sh test
	@cmake --preset default
	@cmake --build $(BUILD) --target all bench
	@bench/figures --build $(BUILD) --json $(BUILD)/figures.json

bench-guard:
	@cmake/install-dependencies.sh test
	@cmake --preset default
	@bench/since --build $(BUILD)

tool = $(firstword $(foreach name,$(1)-14 $(1),$(shell command -v $(name))))

format:
	@cmake/install-dependencies.sh test
	@git ls-files -co --exclude-standard '*.hpp' '*.cpp' '*.h' '*.cu' | xargs -r $(call tool,clang-format) -i

# A build folder that knows the options of each file, and is never built: the others compile several as one.
tidy:
	@cmake/install-dependencies.sh test
	@cmake --preset default -B $(BUILD)/tidy -DCMAKE_UNITY_BUILD=OFF
	@git ls-files -co --exclude-standard 'lib/*.cpp' 'apps/*.cpp' | \
	    xargs -r -n 1 -P "$$(nproc)" $(call tool,clang-tidy) --quiet --warnings-as-errors='*' -p $(BUILD)/tidy

install: all
	@cmake --install $(BUILD) --prefix "$(PREFIX)"

install-cufile: $(BUILD)/build.ninja
	@cmake --build $(BUILD) --target cufile
	@cmake --install $(BUILD) --component cufile --prefix "$(PREFIX)"

install-doca: $(BUILD)/build.ninja
	@cmake -B $(BUILD) -DWEFTIO_DOCA_LIBDIR="$(or $(LIBDIR),lib)" >/dev/null
	@cmake --build $(BUILD) --target weftio_doca doca_gpunetio_device
	@cmake --install $(BUILD) --component doca --prefix "$(PREFIX)"

clean:
	@rm -rf $(BUILD)

bundle: all
	@cmake --build $(BUILD) --target bench
	@cmake/bundle.sh $(BUILD) $(BUILD)/weftio-bundle.tar.gz
