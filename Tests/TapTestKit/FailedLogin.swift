package import TapCore
package import TapDiagnosis
package import TapRecord

/// Parts of failing logins, and their diagnoses.
package enum FailedLogin {
    package static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='example.org' version='1.0'>"
    package static let answer =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='example.org' id='1' version='1.0'>"
    package static let startTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    package static let register = "<register xmlns='http://jabber.org/features/iq-register'/>"
    package static let bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"

    package static func mechanisms(_ names: String...) -> String {
        "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
            + names.map { "<mechanism>\($0)</mechanism>" }.joined() + "</mechanisms>"
    }

    package static func features(_ content: String) -> String { "<stream:features>\(content)</stream:features>" }

    package static func auth(_ mechanism: String, _ message: String) -> String {
        "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='\(mechanism)'>\(encode(message))</auth>"
    }

    package static func sasl(_ name: String, _ message: String = "") -> String {
        "<\(name) xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\(message.isEmpty ? "" : encode(message))</\(name)>"
    }

    package static func failure(_ condition: String, _ words: String? = nil) -> String {
        let text = words.map { "<text xml:lang='en'>\($0)</text>" } ?? ""
        return "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><\(condition)/>\(text)</failure>"
    }

    package static func streamError(_ condition: String, _ content: String = "", words: String? = nil) -> String {
        let namespace = "xmlns='urn:ietf:params:xml:ns:xmpp-streams'"
        let text = words.map { "<text \(namespace)>\($0)</text>" } ?? ""
        return
            "<stream:error><\(condition) \(namespace)>\(content)</\(condition)>\(text)</stream:error></stream:stream>"
    }

    package static func error(_ id: String, _ condition: String) -> String {
        "<iq type='error' id='\(id)'><error type='cancel'><\(condition) xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
            + "</error></iq>"
    }

    private static func encode(_ text: String) -> String {
        var line = LineBuffer()
        line.append(base64: Array(text.utf8).span.bytes)
        return String(decoding: line.bytes, as: UTF8.self)
    }

    package static let plain = auth("PLAIN", "\0juliet\0R0m30myr0m30")
    package static let scramFirst = "n=juliet,r=fyko+d2lbbFgONRv9qkxdawL"
    package static let challenge = "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096"
    package static let final = "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="

    /// Returns a session after its first stream features.
    package static func opened(_ content: String, options: SessionOptions = SessionOptions(level: .trace))
        -> SessionHarness
    {
        var harness = SessionHarness(options: options)
        harness.send(header)
        harness.recv(answer + features(content))
        return harness
    }

    /// Returns a session that has authenticated, after the following stream features.
    package static func authenticated(_ content: String, options: SessionOptions = SessionOptions(level: .trace))
        -> SessionHarness
    {
        var harness = opened(mechanisms("PLAIN"), options: options)
        harness.send(plain)
        harness.recv(sasl("success"))
        harness.send(header)
        harness.recv(answer + features(content))
        return harness
    }
}

extension SessionHarness {
    /// Ends the session: first one leg, then the other.
    package mutating func leave(_ leg: Leg = .client, _ end: LegEnd = .finished) {
        self.end(leg, end)
        self.end(leg.other, .finished)
        close()
    }

    /// The reported diagnoses; there should be at most one.
    package var diagnoses: [LoginDiagnosis] {
        told(code: Record.Code.loginFailed).compactMap { LoginDiagnosis($0.record) }
    }
}
