import TapCore
import TapSecurity
import Testing

@Suite struct OpenSSLCryptographyTests {
    private let cryptography = OpenSSLCryptography()

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    @Test(arguments: [
        (HashAlgorithm.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            .sha512,
            """
            ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
            2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f
            """
        ),
    ])
    func `a digest equals the FIPS 180 value, at once and in pieces`(_ hash: HashAlgorithm, of: String) throws {
        let abc = Array("abc".utf8)
        #expect(try hex(cryptography.digest(hash, of: abc)) == of)
        let running = try cryptography.makeDigest(hash)
        for _ in 0..<2 {
            running.update(abc.span.extracting(..<1))
            running.update([UInt8]().span)
            running.update(abc.span.extracting(1...))
            #expect(try hex(running.finalize()) == of)
        }
    }

    /// The vectors are from RFC 2202 and RFC 4231, test case 2.
    @Test(arguments: [
        (HashAlgorithm.sha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        (.sha256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        (
            .sha512,
            """
            164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
            9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737
            """
        ),
    ])
    func `an HMAC equals the RFC's value, computed at once, in pieces, and with a reused object`(
        _ hash: HashAlgorithm,
        code: String
    ) throws {
        let key = Array("Jefe".utf8)
        let data = Array("what do ya want for nothing?".utf8)
        #expect(try hex(cryptography.hmac(hash, key: key, of: data)) == code)
        let running = try cryptography.makeHMAC(hash, key: key)
        for split in [0, 1, 20, data.count] {
            running.update(data.span.extracting(..<split))
            running.update(data.span.extracting(split...))
            #expect(try hex(running.finalize()) == code)
        }
    }

    @Test func `an HMAC with an empty key and message has the expected value`() throws {
        let code = try cryptography.hmac(.sha256, key: [], of: [])
        #expect(hex(code) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
    }

    /// The vectors are from RFC 6070, from RFC 7914 §11 (first block), and, for SHA-512, from Python's hashlib.
    @Test(arguments: [
        (HashAlgorithm.sha1, "password", 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
        (.sha1, "password", 4096, "4b007901b765489abead49d926f721d065a429c1"),
        (.sha256, "passwd", 1, "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"),
        (
            .sha512, "password", 4096,
            """
            d197b1b33db0143e018b12f3d1d1479e6cdebdcc97c5c0f87f6902e072f457b5\
            143f30602641b3d55cd335988cb36b84376060ecd532e039b742a239434af2d5
            """
        ),
    ])
    func `a derived key equals the RFC's value`(
        _ hash: HashAlgorithm,
        password: String,
        iterations: Int,
        key: String
    ) throws {
        let derived = try cryptography.deriveKey(
            hash,
            password: Array(password.utf8),
            salt: Array("salt".utf8),
            iterations: iterations
        )
        #expect(hex(derived) == key)
    }

    @Test(arguments: [0, -1, Int.max])
    func `an invalid iteration count throws an error with the name of the OpenSSL call`(iterations: Int) {
        let salt = Array("salt".utf8)
        let error = #expect(throws: OpenSSLError.self) {
            try cryptography.deriveKey(.sha1, password: salt, salt: salt, iterations: iterations)
        }
        #expect(error?.call == "PKCS5_PBKDF2_HMAC")
        if iterations == 0 { #expect(error?.reasons.first?.contains("iteration count") == true) }
    }

    @Test func `random bytes have the requested length and differ each time`() throws {
        #expect(try cryptography.randomBytes(count: 0) == [])
        let drawn = try (0..<100).map { _ in try cryptography.randomBytes(count: 16) }
        #expect(Set(drawn).count == 100)
        #expect(drawn.allSatisfy { $0.count == 16 })
    }

    @Test func `arrays of any length can be compared`() {
        let bytes: [UInt8] = [1, 2, 3]
        #expect(cryptography.areEqual(bytes, [1, 2, 3]))
        #expect(!cryptography.areEqual(bytes, [1, 2, 4]))
        #expect(!cryptography.areEqual(bytes, [1, 2]))
        #expect(cryptography.areEqual([], []))
    }
}
