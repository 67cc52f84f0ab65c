# What a newcomer types. The work is done by the scripts in .ci, so that people and CI run the same thing.

.PHONY: demo test build format clean

demo: build
	@.build/release/xmpptap demo

build:
	@.ci/packages build
	@swift build -c release --product xmpptap

test:
	@.ci/test

format:
	@swift format format --in-place --recursive Package.swift Sources Tests

clean:
	rm -rf .build .build-release-tests
