# What a newcomer types. The work is done by the scripts in .ci, so that people and CI run the same thing.

.PHONY: demo test sanitize build benchmark format clean

demo: build
	@.build/release/xmpptap demo

build:
	@.ci/packages build
	@swift build -c release --product xmpptap

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

format:
	@swift format format --in-place --recursive Package.swift Sources Tests

clean:
	rm -rf .build .build-release-tests .build-thread .build-address
