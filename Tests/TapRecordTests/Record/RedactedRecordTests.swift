import Testing
import XMPPCore

@testable import TapRecord

/// Tests the redaction of records before they reach the sinks.
@Suite struct RedactedRecordTests {
    private static let secret = "sesame-4711"
    private static let text = "see https://juliet:\(secret)@example.org/ for it"
    private static let attributes: Attributes = [
        "a": .string(text), "b": .strings(["nothing", text]), "user": .string(text), "n": 1, "f": true,
    ]

    /// The texts of a record that may contain data of a peer.
    private let texts: [WritableKeyPath<Record, String?>] = [\.condition]
    private let lists: [WritableKeyPath<Record, Attributes?>] = [\.sasl, \.tls, \.sm, \.details]

    private func line(_ record: Record, _ policy: RedactionPolicy, at domain: String? = nil) -> String {
        let redactor = Redactor(policy: policy, registry: SecretRegistry())
        var line = LineBuffer()
        var form = JSONForm()
        let content: [UInt8] = []
        form.append(redactor.redact(record, at: domain).record, content: content.span, .content, to: &line)
        return String(decoding: line.bytes, as: UTF8.self)
    }

    @Test(arguments: [RedactionPolicy.secrets, .bodies, .metadata])
    func `Redaction removes a secret from every text of a record`(policy: RedactionPolicy) {
        for text in texts {
            var record = Sample(.note, .info).record
            record[keyPath: text] = Self.text
            #expect(line(record, .none).contains(Self.secret))
            #expect(!line(record, policy).contains(Self.secret), "\(text)")
        }
        var remark = Sample(.note, .info).record
        remark.message = Prose(Self.text)
        #expect(line(remark, .none).contains(Self.secret))
        #expect(!line(remark, policy).contains(Self.secret))
        for list in lists {
            var record = Sample(.note, .info).record
            record[keyPath: list] = Self.attributes
            #expect(line(record, .none).contains(Self.secret))
            #expect(!line(record, policy).contains(Self.secret), "\(list)")
        }
        var record = Sample(.bytes, .info).record
        record.bytes = Array(Self.secret.utf8)
        #expect(line(record, .none).contains("base64"))
        #expect(!line(record, policy).contains("base64"))
    }

    @Test func `Redaction of metadata removes the names of persons`() {
        var record = Sample(.note, .info).record
        record.jid = "juliet@example.org/balcony"
        record.user = "juliet"
        record.domain = "example.org"
        record.sasl = ["user": "juliet", "authzid": "juliet@example.org", "resource": "juliet", "software": "juliet"]
        record.details = ["from": "juliet@example.org", "to": "juliet@example.org", "domain": "example.org"]
        #expect(line(record, .secrets).contains("juliet"))
        let shown = line(record, .metadata, at: "example.org")
        #expect(!shown.contains("juliet") && !shown.contains("balcony") && shown.contains("example.org"))
    }

    /// Fails if a text is added to ``Record``, so that its author decides whether the text must be redacted.
    @Test func `The redaction tests cover every text of a record`() {
        var record = Sample(.note, .info).record
        record.action = "passed"
        let remarks = record.remarks[0]
        let isText: (Mirror.Child) -> Bool = { type(of: $0.value) == String?.self || type(of: $0.value) == Prose?.self }
        #expect(
            Mirror(reflecting: record).children.filter(isText).compactMap(\.label) == [
                // The names of the session and the remote address; the summary is made from redacted content.
                "jid", "user", "domain", "remote", "summaryText",
            ]
        )
        #expect(
            Mirror(reflecting: remarks).children.filter(isText).compactMap(\.label) == [
                // Only the condition and the message may contain text of a peer.
                "action", "rule", "digest", "condition", "code", "message",
            ]
        )
    }
}
