# What a newcomer types. The work is done by the scripts in .ci, so that people and CI run the same thing.

.PHONY: demo test build benchmark format clean

demo: build
	@.build/release/xmpptap demo

build:
	@.ci/packages build
	@swift build -c release --product xmpptap

test:
	@.ci/test

# What a stanza costs, and what relaying costs beside haproxy. UPDATE=1 takes the counts of instructions as the new measure.
benchmark: build
	@.ci/packages benchmark
	@Tests/Benchmarks/run $(if $(UPDATE),--update)

format:
	@swift format format --in-place --recursive Package.swift Sources Tests

clean:
	rm -rf .build .build-release-tests
