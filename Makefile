# What a newcomer types. The work is done by the scripts in .ci, so that people and CI run the same thing.

.PHONY: demo test sanitize build man benchmark deb tar install format clean

demo: build
	@.build/release/xmpptap demo

# With the Swift runtime linked in, as in the packages: a login costs 13 % less time than with shared libraries.
build:
	@.ci/packages build
	@.ci/progress swift build -c release --static-swift-stdlib --product xmpptap

# The man pages, in .build/man.
man: build
	@.build/release/xmpptap manual --man .build/man
	@echo ".build/man: $$(ls .build/man/man1 .build/man/man7 | grep -c '^xmpptap') man pages; man -l .build/man/man1/xmpptap.1"

test:
	@.ci/test

# The unit tests under the thread sanitizer and the address sanitizer, each in a build folder of its own.
sanitize:
	@.ci/packages test
	@/usr/bin/python3 .ci/sanitize.py

# What a stanza costs, and what relaying costs beside haproxy. UPDATE=1 takes the counts of instructions as the new measure.
benchmark: build
	@.ci/packages benchmark
	@Tests/Benchmarks/run $(if $(UPDATE),--update)

# What is installed without a Swift toolchain: a Debian package, an archive for other systems. The results are in .build-package/dist.
deb tar:
	@.ci/packages package
	@.packaging/build $@

PREFIX ?= /usr/local
install:
	@.ci/packages install
	@.packaging/build install $(PREFIX)

format:
	@swift format format --in-place --recursive Package.swift Sources Tests

clean:
	rm -rf .build .build-package .build-release-tests .build-thread .build-address
