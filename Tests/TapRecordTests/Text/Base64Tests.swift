import TapRecord
import TapTestKit
import Testing

@Suite struct Base64Tests {
    // RFC 4648 §10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func `the test vectors of RFC 4648 are encoded and decoded`(plain: String, text: String) {
        #expect(Base64.encode(Array(plain.utf8)) == text)
        #expect(Base64.decode(text) == Array(plain.utf8))
    }

    @Test func `the whole alphabet is decoded`() {
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        #expect(Base64.decode(alphabet).map(Base64.encode) == alphabet)
    }

    @Test func `random bytes are encoded and decoded to the same bytes`() {
        var random = SeededGenerator(seed: 1)
        for count in 0..<300 {
            let bytes = random.bytes(count: count)
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
    }

    @Test(arguments: [
        "Z", "Zg", "Zg=", "Zg===", "Zm9vYg=", "Zm9", "=", "==", "====", "Z===", "Zg==Zg==", "Z=g=", "=Zg=", "Zm9v=",
        // Bits that are set after the last byte.
        "Zh==", "Zm9=", "Zm8=\n", " Zm8=", "Zm 8=", "Zm-_", "Zm8\u{0}", "Zmé=",
    ])
    func `text that no encoder writes is refused`(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test func `all bytes outside the alphabet are refused`() {
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        for byte in UInt8.min...UInt8.max {
            let text: [UInt8] = [0x5A, byte, 0x39, 0x76]
            let decoded = Base64.decode(text.span.bytes)
            #expect((decoded != nil) == alphabet.contains(byte), "byte \(byte)")
        }
    }

    @Test func `whitespace is skipped only on request`() {
        #expect(Base64.decode("\n Zm9v\r\n\tYg = =\n", ignoringWhitespace: true) == Array("foob".utf8))
        #expect(Base64.decode("Zm9v\u{B}Yg==", ignoringWhitespace: true) == nil)
        #expect(Base64.decode("Zg= =x", ignoringWhitespace: true) == nil)
    }
}
