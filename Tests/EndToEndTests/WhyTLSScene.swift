import TapTestKit
import Testing

/// Connects one client through a proxy that terminates TLS to one server. The handshake fails, and the diagnosis is
/// checked.
enum WhyTLSScene {
    /// The expected diagnosis.
    struct Verdict: Sendable {
        let cause: String
        let side: String
        let rule: String
        /// Parts of the finding and of the advice.
        let words: [String]
    }

    /// Checks that session 1 of a stopped proxy has exactly this diagnosis, and that `explain` prints the same.
    static func check(_ tap: Tap, _ wanted: Verdict, _ name: String, sourceLocation: SourceLocation)
        async throws
    {
        let diagnoses = try tap.records().filter { $0.code == "login-failed" }
        try #require(diagnoses.count == 1, "\(name): \(Tap.read(tap.text))", sourceLocation: sourceLocation)
        let parameters = try #require(diagnoses[0].details)
        #expect(diagnoses[0].kind == "note" && diagnoses[0].level == "error", "\(name)", sourceLocation: sourceLocation)
        let told =
            "\(parameters.cause ?? "") \(parameters.step ?? "") \(parameters.side ?? "") \(parameters.rule ?? "")"
        #expect(
            told == "\(wanted.cause) tls \(wanted.side) \(wanted.rule)",
            "\(name): \(diagnoses[0].message ?? "")",
            sourceLocation: sourceLocation
        )
        #expect(parameters.proxyIsCause == (wanted.side == "xmpptap"), "\(name)", sourceLocation: sourceLocation)
        let explained = try await XMPPTapBinary.run(["explain", tap.json, "--session", "1"])
        #expect(explained.ending == .exited(1), "\(name): \(explained.error)", sourceLocation: sourceLocation)
        for words in wanted.words + ["failed at tls: ", wanted.rule] {
            #expect(explained.output.contains(words), "\(name): \(explained.output)", sourceLocation: sourceLocation)
            guard words != "failed at tls: " else { continue }
            #expect(diagnoses[0].message?.contains(words) == true, "\(name)", sourceLocation: sourceLocation)
        }
    }

    /// Connects a scripted client through a proxy to a scripted server, and checks the diagnosis. The client must not
    /// be able to log in.
    static func fail(
        _ name: String,
        server: (certificate: String, key: String),
        trusting root: String,
        serverArguments: [String] = [],
        clientArguments: [String] = ["--sni", "localhost"],
        clientTrusts: String? = nil,
        direct: Bool = false,
        _ wanted: Verdict,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let own = try await InterceptAuthority()
        let port = try FreePort.next()
        let begin = direct ? [] : ["--starttls"]
        let peer = try await TLSPeer.serve(
            port: port,
            certificate: server.certificate,
            key: server.key,
            begin + serverArguments
        )
        let tap = try await Tap(
            upstream: port,
            arguments: own.arguments + ["--upstream-ca", root]
        )
        let parameters = try await TLSPeer.connect(
            port: tap.port,
            trusting: clientTrusts ?? own.certificate,
            begin + clientArguments
        )
        #expect(
            parameters.error != nil && parameters.mechanisms == nil,
            "\(name): \(parameters)",
            sourceLocation: sourceLocation
        )
        try await tap.stop()
        try await peer.stop()
        try await check(tap, wanted, name, sourceLocation: sourceLocation)
    }
}
