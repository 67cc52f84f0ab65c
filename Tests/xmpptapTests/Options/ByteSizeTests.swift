import Testing

@testable import xmpptap

struct ByteSizeTests {
    @Test(
        "A size is parsed from a whole number and a decimal or binary unit",
        arguments: [
            ("0", 0), ("5000", 5000), ("7B", 7), ("100MB", 100_000_000), ("100mb", 100_000_000),
            ("2 GB", 2_000_000_000),
            ("64KiB", 65536), ("1k", 1000), ("3TiB", 3 << 40),
        ] as [(String, UInt64)]
    )
    func reading(text: String, bytes: UInt64) throws {
        #expect(try ByteSize(text).bytes == bytes)
    }

    @Test("An invalid size is refused with an example", arguments: ["", "MB", "-1MB", "1.5GB", "10XB", "ten", "1 0"])
    func refusing(text: String) {
        #expect(refusal { try ByteSize(text) } == "write a whole number with a unit, as in 100MB, 64KiB or 2GB")
    }

    @Test func `A size above the maximum is refused`() {
        #expect(
            refusal { try ByteSize("99999999999TB") } == "the size is too large; write a smaller number"
        )
    }

    @Test("A size is printed in the form that is parsed", arguments: ["0B", "7B", "64kB", "100MB", "2GB", "1001B"])
    func writing(text: String) throws {
        #expect(try ByteSize(text).description == text)
    }
}
