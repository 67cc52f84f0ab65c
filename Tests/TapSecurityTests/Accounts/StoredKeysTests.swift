import TapCore
import TapRecord
import Testing

@testable import TapSecurity

/// Stored keys, tested with the examples of the RFCs.
struct StoredKeysTests {
    /// The password `pencil` of RFC 5802 §5 and RFC 7677 §3, with its keys.
    static let records: [(mechanism: SCRAMMechanism, record: String, clientKey: String)] = [
        (
            SCRAMMechanism(.sha1),
            "SCRAM-SHA-1$4096:QSXCR+Q6sek8bf92$6dlGYMOdZcOPutkcNY8U2g7vK9Y=:D+CSWLOshSulAsxiupA+qs2/fTE=",
            "4jTEe/bDZpbdbYUrmaqiuiZVVyg="
        ),
        (
            SCRAMMechanism(.sha256),
            "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
                + ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
            "pg/JI9Z+hkSpLRa5btpe9GVrDHJcSEN0viVTVXaZbos="
        ),
        (
            SCRAMMechanism(.sha512),
            "SCRAM-SHA-512$4096:QSXCR+Q6sek8bf92$Lm7w6zPGAx+UoahlEm1whIN7PS1KGU+9+V5PyudK6c/mWVVtkXSCpVPmUKQLYDKR7v0uSkxrBzP"
                + "m7HuSwZ/ytw==:b/Ph5kGCpfdw2MyLh0C8l10iiFENloZLKPiJIHv57J3BRD9++4RvoYjTKhOehyHgJS/nsxnNB17UKgNU7nRy6g==",
            "P1aVtY5kO1PmyL3549iMWpfmTtIcjwRt5NmUnVckTYecBR8+nIn4FHx/6HLup1tL11cj7qadrmFSM8G5DimxOg=="
        ),
    ]

    private func fault(_ text: String) -> StoredKeys.Fault? {
        do throws(StoredKeys.Fault) {
            _ = try StoredKeys(parsing: text)
            return nil
        } catch {
            return error
        }
    }

    @Test func `stored keys equal the keys derived from the password, and a file may have several`() throws {
        for (mechanism, record, _) in Self.records {
            let keys = try StoredKeys(parsing: record + "\n")
            let stored = try #require(keys.records[mechanism.algorithm])
            let made = try SCRAMCredentials(
                mechanism.algorithm,
                password: "pencil",
                salt: stored.salt,
                iterations: 4096,
                cryptography: OpenSSLCryptography()
            )
            #expect(stored == made && keys.algorithms == [mechanism.algorithm])
        }
        let text = "\(Self.records[0].record)\r\n\n# of the server\n\(Self.records[1].record)"
        #expect(try StoredKeys(parsing: text).algorithms == [.sha256, .sha1])
    }

    @Test func `a client's proof reveals its client key to the owner of the stored key`() throws {
        for (mechanism, record, clientKey) in Self.records {
            let stored = try #require(try StoredKeys(parsing: record).records[mechanism.algorithm])
            for password in ["pencil", "pen"] {
                var client = SCRAMClient(
                    mechanism,
                    identity: .init(authentication: "user"),
                    secret: .password(password),
                    nonce: "fyko",
                    cryptography: OpenSSLCryptography()
                )
                var server = SCRAMServer(
                    mechanism,
                    settings: .init(nonce: "3rfc", decoyKey: []) { _ in stored },
                    cryptography: OpenSSLCryptography()
                )
                guard case .send(let first) = client.step(nil), case .send(let challenge) = server.step(first),
                    case .send(let final) = client.step(challenge)
                else {
                    Issue.record("no exchange")
                    return
                }
                #expect(server.learned == nil)
                let end = server.step(final)
                guard password == "pencil" else {
                    #expect(
                        server.learned == nil && end == .failed(.notAuthorized, text: "wrong user name or password")
                    )
                    continue
                }
                #expect(server.learned == .clientKey(mechanism.algorithm, try #require(Base64.decode(clientKey))))
            }
        }
    }

    @Test func `an exchange with the client key sends the same messages as one with the password`() throws {
        for (mechanism, record, clientKey) in Self.records {
            let stored = try #require(try StoredKeys(parsing: record).records[mechanism.algorithm])
            let key = try #require(Base64.decode(clientKey))
            let challenge = Array("r=fyko3rfc,s=\(Base64.encode(stored.salt)),i=4096".utf8)
            let said = [SCRAMClient.Secret.password("pencil"), .key(key, of: stored)].map { secret in
                var client = SCRAMClient(
                    mechanism,
                    identity: .init(authentication: "user"),
                    secret: secret,
                    nonce: "fyko",
                    cryptography: OpenSSLCryptography()
                )
                return [client.step(nil), client.step(challenge)]
            }
            #expect(said[0] == said[1])
            guard case .send(let final) = said[0][1] else {
                Issue.record("\(said)")
                continue
            }
            #expect(String(decoding: final, as: UTF8.self).contains(",p="))
        }
    }

    @Test(arguments: [
        ("r=fyko3rfc,s=QSXCR+Q6sek8bf92,i=8192", "iteration count is 8192, that of the stored keys is 4096;"),
        (
            "r=fyko3rfc,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "salt differs from that of the stored keys (both 4096 iterations)"
        ),
    ])
    func `a different salt or iteration count is reported with both values`(
        challenge: String,
        words: String
    ) throws {
        let (mechanism, record, key) = Self.records[0]
        let stored = try #require(try StoredKeys(parsing: record).records[.sha1])
        var client = SCRAMClient(
            mechanism,
            identity: .init(authentication: "user"),
            secret: .key(try #require(Base64.decode(key)), of: stored),
            nonce: "fyko",
            cryptography: OpenSSLCryptography()
        )
        _ = client.step(nil)
        guard case .failed(_, let text) = client.step(Array(challenge.utf8)) else {
            Issue.record("it goes on")
            return
        }
        #expect(text.contains(words) && text.hasSuffix("or use its password"), "\(text)")
    }

    @Test func `an invalid stored key is refused with its line, but not shown`() {
        let good = Self.records[0].record
        for (text, line, words) in [
            ("SCRAM-SHA-1$4096:c2FsdA==", 1, "not a stored key"), ("\(good)\nr0m30", 2, "not a stored key"),
            ("# of\n\(good)\n\(good)", 3, "more than one stored key for SCRAM-SHA-1"),
            (
                good.replacing("SHA-1", with: "SHA-224"), 1,
                "unknown mechanism; the mechanisms are SCRAM-SHA-512, SCRAM-SHA-256, "
            ),
            (good.replacing("SHA-1", with: "SHA-1-PLUS"), 1, "unknown mechanism"),
            (good.replacing("4096", with: "0"), 1, "must be from 1 to 1000000"),
            (good.replacing("4096", with: "1000001"), 1, "must be from 1 to 1000000"),
            (good.replacing("4096", with: "99999999999999999999"), 1, "must be from 1 to 1000000"),
            (good.replacing("QSXCR+Q6sek8bf92", with: ""), 1, "the salt is empty"),
            (good.replacing("QSXCR", with: "QS*CR"), 1, "the salt is empty or not base64"),
            (good.replacing("6dlG", with: ""), 1, "must have 20 bytes"),
            (good.replacing("SHA-1", with: "SHA-256"), 1, "both keys of SCRAM-SHA-256 must have 32 bytes"),
        ] {
            let fault = fault(text)
            #expect(
                fault?.line == line && fault?.message.contains(words) == true,
                "\(text): \(String(describing: fault))"
            )
            #expect(
                fault?.message.contains("r0m30") == false
                    && fault?.message.contains("dlGYMOdZcOPutkcNY8U2g7vK9Y") == false
            )
        }
    }

    @Test(arguments: ["# of the server\n", "\u{FEFF}", "\n", " \t\r\n", "\u{FEFF}# of\r\n\r\n  # the server\n\n  "])
    func `a file of stored keys may begin with a byte order mark, comments and empty lines`(start: String)
        throws
    {
        let text = start + Self.records[1].record + " \n"
        #expect(StoredKeys.begin(text))
        #expect(try StoredKeys(parsing: text) == StoredKeys(parsing: Self.records[1].record))
    }

    @Test func `a password that resembles a stored key is a password`() {
        for text in [
            "r0m30", "SCRAM-SHA-1", "$SCRAM-SHA-1$", "scram-sha-1$4096", "x\n\(Self.records[0].record)", "", "\n# x\n",
            "#r0m30", "#r0m30\nnotes", "#r0m30\nnotes\n\(Self.records[0].record)",
        ] {
            #expect(!StoredKeys.begin(text), "\(text)")
        }
        #expect(StoredKeys.begin(Self.records[1].record) && StoredKeys.begin("SCRAM-SHA-1$4096"))
    }
}
