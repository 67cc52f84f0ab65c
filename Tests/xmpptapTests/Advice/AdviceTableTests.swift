import TapDiagnosis
import TapNetwork
import TapRecord
import Testing

@testable import xmpptap

struct AdviceTableTests {
    private static let remedies: [Remedy] =
        LoginCause.allCases.map { .usual($0) }
        + [
            .addAccount, .offerMechanism, .giveClientCertificate, .changeClientTLS, .changeServerTLS,
            .allowClearClients,
            .giveServerCertificate, .allowSender, .checkOwnAccount, .comparePassword, .changeBindingType,
            .addKey(mechanism: "SCRAM-SHA-1"), .tryOtherPort,
            .checkServerPort, .checkClientPort, .lowerVersionForClient, .lowerVersionForServer, .trustIssuer,
            .renewCertificate, .nameDomain, .overlookFaults, .nameServer(.serverName, nil),
            .nameServer(.header, .domain), .nameServer(.header, .host("a.example", port: 5222)), .checkClientLog,
            .trustAuthority(domain: "a.example", folder: nil, missing: nil, isUnconfirmed: false),
            .trustAuthority(domain: "a.example", folder: "/a b", missing: .header, isUnconfirmed: true),
        ]

    @Test func `Every remedy is a clause in lower case`() {
        for remedy in Self.remedies {
            let words = AdviceTable.words(for: remedy)
            #expect(words.first?.isLowercase == true && words.last != ".", "\(remedy): \(words)")
            #expect(!words.contains("  "), "\(words)")
        }
    }

    @Test func `What the remedy speaks of stands in the words`() {
        #expect(
            AdviceTable.words(for: .comparePassword) == "compare the client's password with the one in --accounts"
        )
        #expect(
            AdviceTable.words(for: .addKey(mechanism: "SCRAM-SHA-1"))
                == "add the password, or a stored key for SCRAM-SHA-1, to the account's file"
        )
        #expect(AdviceTable.words(for: .tryOtherPort).contains("--server-tls direct"))
        #expect(AdviceTable.words(for: .usual(.tlsExpected)).contains("--server-tls direct"))
        #expect(
            AdviceTable.words(for: .nameServer(.serverName, .host("a.example", port: 5223)))
                == "let the client send SNI, or use the name in the upstream's certificate: --upstream a.example:5223"
        )
        let trust = AdviceTable.words(
            for: .trustAuthority(domain: "a.example", folder: "/a b", missing: nil, isUnconfirmed: false)
        )
        #expect(
            trust == "let the client trust the certificate authority for a.example: 'xmpptap ca export --domain "
                + "a.example --ca-dir \"/a b\"' prints it with instructions for each client"
        )
    }

    @Test(arguments: [
        (ControlProblem.noSuchSession, "no session 3; 'xmpptap sessions' lists them"),
        (.noAnswer, "no session 3; wait longer with --timeout"), (.tooManyWaiting, "no session 3; ask the API"),
        (nil, "no session 3; ask the API"),
    ])
    func `A refusal of a proxy has the advice of a command where there is one`(problem: ControlProblem?, words: String)
    {
        let answer = JSONValue.object([.init("advice", .text("ask the API"))])
        let failure = Failure(ControlClientError.refused(problem, "no session 3", answer))
        #expect(failure == Failure(status: .checkFailed, message: words))
    }
}
