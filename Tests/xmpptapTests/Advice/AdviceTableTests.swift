import Foundation
import TapCapture
import TapDiagnosis
import TapNetwork
import TapRecord
import TapSecurity
import Testing

@testable import xmpptap

struct AdviceTableTests {
    private static let remedies: [Remedy] =
        LoginCause.allCases.map { .usual($0) }
        + [
            .addAccount, .refuseOversize, .offerMechanism, .giveClientCertificate, .changeClientTLS, .changeServerTLS,
            .allowClearClients,
            .giveServerCertificate, .allowSender, .listTarget, .checkOwnAccount, .comparePassword, .changeBindingType,
            .addKey(mechanism: "SCRAM-SHA-1"), .tryOtherPort,
            .checkServerPort, .checkClientPort, .lowerVersionForClient, .lowerVersionForServer, .trustIssuer,
            .renewCertificate, .nameDomain, .overlookFaults, .nameServer(.serverName, nil),
            .nameServer(.header, .domain), .nameServer(.header, .host("a.example", port: 5222)), .checkClientLog,
            .trustAuthority(.init(domain: "a.example")),
            .trustAuthority(trust(.header, isUnconfirmed: true)),
            .trustAuthority(trust(client: ClientSoftware(names: ["http://slixmpp.com/ver/1.8"]))),
            .trustAuthority(trust(client: ClientSoftware(library: .go))),
        ]
        + [
            .create("a.example"), .createAnother("a.example"), .confirm("example"),
            .createBeyond(limit: 3, "a.example"),
            .recreate(nil), .protect("/a/key.pem", mode: "0600", domain: "a.example"), .replaceFolder("a.example"),
            .useOwnFolder, .checkLibrary,
        ].map { Remedy.changeAuthority($0, folder: "/tmp/ca") }

    private static func trust(
        _ missing: Remedy.ClientNaming? = nil,
        isUnconfirmed: Bool = false,
        client: ClientSoftware = ClientSoftware()
    ) -> Remedy.AuthorityTrust {
        let file = "/a b/a.example/certificate.pem"
        var trust = Remedy.AuthorityTrust(domain: "a.example", folder: "/a b", certificate: file)
        trust.missing = missing
        trust.isUnconfirmed = isUnconfirmed
        trust.client = client
        return trust
    }

    @Test func `Every remedy is a clause in lower case without a final stop`() {
        for remedy in Self.remedies {
            let words = AdviceTable.advice(for: remedy)
            #expect(words.first?.isLowercase == true && words.last != ".", "\(remedy): \(words)")
            #expect(!words.contains("  "), "\(words)")
        }
    }

    @Test func `The text of a remedy contains its values`() {
        #expect(
            AdviceTable.advice(for: .comparePassword) == "compare the client's password with the one in --accounts"
        )
        #expect(
            AdviceTable.advice(for: .addKey(mechanism: "SCRAM-SHA-1"))
                == "add the password, or a stored key for SCRAM-SHA-1, to the account's file"
        )
        #expect(AdviceTable.advice(for: .tryOtherPort).contains("--server-tls direct"))
        #expect(AdviceTable.advice(for: .usual(.tlsExpected)).contains("--server-tls direct"))
        #expect(
            AdviceTable.advice(for: .nameServer(.serverName, .host("a.example", port: 5223)))
                == "let the client send SNI, or use the name in the upstream's certificate: --upstream a.example:5223"
        )
    }

    @Test func `The advice to trust the authority fits the client`() {
        func words(_ trust: Remedy.AuthorityTrust) -> String { AdviceTable.advice(for: .trustAuthority(trust)) }
        let export = #"'xmpptap ca export --domain a.example --ca-dir "/a b"'"#
        #expect(
            words(Self.trust())
                == #"let the client trust the certificate authority for a.example ("/a b/a.example/certificate.pem"): "#
                + "\(export) prints it with instructions for each client, and so does 'xmpptap help clients'"
        )
        let slixmpp = ClientSoftware(names: ["http://slixmpp.com/ver/1.8.3"], library: .openSSL)
        #expect(
            words(Self.trust(client: slixmpp))
                == "to let slixmpp (seen at this address) trust the certificate authority for a.example: client.ca_certs = "
                + #""/a b/a.example/certificate.pem"; on another machine, get the file with \#(export)"#
        )
        let go = words(Self.trust(client: ClientSoftware(library: .go)))
        #expect(go.hasPrefix("to let this Go program trust the certificate authority for a.example: start it with"))
        #expect(go.contains(#"SSL_CERT_FILE="/a b/a.example/certificate.pem""#))
    }

    @Test func `Advised commands select the folder with a flag, quoted for a shell`() {
        #expect(AuthorityFolder.usual(dataHome: "/my data", home: "/home/a").flag.isEmpty)
        #expect(AuthorityFolder("./ca").flag == " --ca-dir ./ca")
        #expect(AuthorityFolder("/my data/$c\"a").flag == #" --ca-dir "/my data/\$c\"a""#)
    }

    @Test func `Commands in an authority error's advice name the folder unless it is the default`() throws {
        let name = try CertificateName("example.org")
        let codes: [AuthorityError.Code] = [
            .outside([]), .outside([name]), .publicSuffix, .tooMany(limit: 3), .missing(folder: "ca"),
            .expired(Timestamp(nanoseconds: 0)), .exposed(rights: 0o644, proper: 0o600), .damagedKey,
            .damagedCertificate, .keyOfAnother, .notXmpptapAuthority,
        ]
        for code in codes {
            let error = AuthorityError(code, "example.org")
            let words = AdviceTable.line(error, in: AuthorityFolder("/tmp/ca"))
            let commands = words.components(separatedBy: "'xmpptap ca ").dropFirst()
            #expect(!commands.isEmpty, "\(words)")
            for command in commands {
                #expect(command.prefix { $0 != "'" }.hasSuffix(" --ca-dir /tmp/ca"), "\(words)")
            }
            let usual = AdviceTable.line(error, in: .usual(dataHome: nil, home: "/home/a"))
            #expect(!usual.contains("--ca-dir") && usual.contains("'xmpptap ca create --domain "))
        }
        let wide = AuthorityError(.exposed(rights: 0o755, proper: 0o700), "/tmp/ca")
        #expect(
            AdviceTable.line(wide, in: AuthorityFolder("/tmp/ca"))
                == "other users can access /tmp/ca (mode 0755) and may have copied the key; if nobody has, run 'chmod 0700 "
                + "/tmp/ca', otherwise recreate it with 'xmpptap ca remove --domain DOMAIN --ca-dir /tmp/ca' and 'xmpptap "
                + "ca create --domain DOMAIN --ca-dir /tmp/ca', and trust the new one"
        )
    }

    @Test(arguments: [
        (
            ReaderFault.Code.notOurs,
            "xmpptap help clients says how to get a log with XML from each client; or record with --capture FILE"
        ),
        (
            .otherFormat(.textLog),
            "record in the form text at level verbose (pretty and compact cannot be read), or with --capture FILE or --log-to "
                + "FILE,format=json"
        ),
        (.otherFormat(.headerless), "add the first line of the original log"),
        (.otherFormat(.gzip), "unpack it first, as in gzip -dc FILE | xmpptap read -"),
        (.otherFormat(.zip), "unpack it first, as in unzip -p FILE | xmpptap read -"),
        (.otherFormat(.svg), "name the log or capture instead"),
    ])
    func `A file that cannot be read is reported with a remedy`(code: ReaderFault.Code, words: String) {
        #expect(AdviceTable.advice(for: code) == words)
    }

    @Test(arguments: [
        (ControlProblem.noSuchSession, "no session 3; 'xmpptap sessions' lists them"),
        (.noAnswer, "no session 3; wait longer with --timeout"), (.tooManyWaiting, "no session 3; ask the API"),
        (nil, "no session 3; ask the API"),
    ])
    func `A proxy's refusal is reported with the fitting command, if any`(problem: ControlProblem?, words: String) {
        let answer = JSONValue.object([.init("advice", .text("ask the API"))])
        let failure = Failure(ControlClientError.refused(problem, "no session 3", answer))
        #expect(failure == Failure(status: .checkFailed, message: words))
    }
}
