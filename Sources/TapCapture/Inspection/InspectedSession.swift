package import TapDiagnosis
package import TapRecord

/// A session of a table, as lists show it. Texts that are unknown are empty.
package struct InspectedSession: Sendable {
    /// The state of a session.
    package enum State: String, Sendable {
        case connecting, open, ended, failed
    }

    /// Which boundaries of reads and TLS records are known.
    package enum Borders: String, Sendable {
        /// All borders of reads from sockets.
        case reads
        /// Only those that records have.
        case partial
        /// Those of TCP segments, or of TLS records if these were decrypted.
        case segments
        /// None: logs have no borders, and WebSocket and BOSH divide items by frames and bodies.
        case missing
    }

    /// A failed login.
    package struct Failure: Sendable {
        /// The position of the record with the diagnosis.
        package let position: Int
        package let step: String
        package let cause: String
        /// The failure, as a clause.
        package let finding: String
        /// The side at fault.
        package let side: String
        /// The RFC section or XEP with the broken rule.
        package let rule: String?
        package let isProxyTheCause: Bool?
        package let advice: String?
    }

    /// The number of the session, which is unique in the table.
    package let number: UInt64
    /// The number of the run, from 1; 0 if the files have no header.
    package let run: Int
    package let jid: String
    package let remote: String
    package let server: String
    /// The source of the session; empty if xmpptap has relayed it.
    package let source: String
    package let software: String
    package let borders: Borders
    package let mechanism: String
    package let clientTLS: String
    package let serverTLS: String
    package let state: State
    /// The number of the resumed session; 0 if there is none.
    package let resumes: UInt64
    package let began: Timestamp
    /// In nanoseconds.
    package let duration: Int64
    /// The positions of the first and the last record.
    package let first: Int
    package let last: Int
    package let records: UInt64
    package let messages: UInt64
    package let sent: SessionOverview.Count
    package let received: SessionOverview.Count
    package let errors: UInt64
    package let peers: Int
    package let closeReason: String
    /// The longest round trip of an iq in nanoseconds; 0 if there is none.
    package let slowest: Int64
    package let failure: Failure?
    /// Number of records over time, in intervals of equal length.
    package let traffic: [UInt32]

    /// Returns the number of a session as readers see it; files of several runs have several sessions 1.
    package static func name(of number: UInt64) -> String { TableRuns.name(of: number) }
}

extension InspectedSession.Failure {
    /// Maximum number of bytes of a sentence.
    private static let maximumSentence = 1024

    init(_ diagnosis: LoginDiagnosis, at position: Int) {
        self.init(
            position: position,
            step: diagnosis.loginStep.rawValue,
            cause: diagnosis.cause.rawValue,
            finding: "\(diagnosis.finding.cut(to: Self.maximumSentence))",
            side: diagnosis.side.rawValue,
            rule: diagnosis.rule?.cut(to: RecordSurvey.maximumText),
            isProxyTheCause: diagnosis.isProxyTheCause,
            advice: diagnosis.advice?.cut(to: Self.maximumSentence)
        )
    }

    /// Creates a failure of which only the cause is known, as audit stores have it.
    init(_ record: Record, at position: Int) {
        let cause = record.details?[Record.Detail.cause]?.text ?? record.condition ?? ""
        self.init(
            position: position,
            step: "",
            cause: cause.cut(to: RecordSurvey.maximumText),
            finding: (record.details?[Record.Detail.finding]?.text ?? cause).cut(to: Self.maximumSentence),
            side: "",
            rule: nil,
            isProxyTheCause: nil,
            advice: nil
        )
    }

    fileprivate func append(to output: inout LineBuffer) {
        output.openObject()
        output.field("at", position)
        output.field("step", step)
        output.field("cause", cause)
        output.field("finding", finding)
        output.field("side", side)
        if let rule { output.field("rule", rule) }
        if let isProxyTheCause { output.field("proxy", isProxyTheCause) }
        if let advice { output.field("advice", advice) }
        output.closeObject()
    }
}

extension InspectedSession {
    /// Writes the session as an object.
    func append(to output: inout LineBuffer) {
        output.openObject()
        output.field("session", number)
        output.field("run", run)
        output.field("number", TableRuns.number(of: number, in: run))
        output.field("jid", jid)
        output.field("remote", remote)
        output.field("server", server)
        output.field("source", source)
        output.field("software", software)
        output.field("borders", borders.rawValue)
        output.field("mechanism", mechanism)
        output.field("client_tls", clientTLS)
        output.field("server_tls", serverTLS)
        output.field("state", state.rawValue)
        output.field("resumes", resumes)
        output.field("began", Int(began.nanoseconds / 1000))
        output.field("duration", Int(duration / 1000))
        output.field("first", first)
        output.field("last", last)
        output.field("records", records)
        output.field("messages", messages)
        output.field("sent", sent.stanzas)
        output.field("received", received.stanzas)
        output.field("sent_bytes", sent.bytes)
        output.field("received_bytes", received.bytes)
        output.field("errors", errors)
        output.field("peers", peers)
        output.field("close_reason", closeReason)
        output.field("slowest", Int(slowest / 1000))
        if let failure {
            output.field("failure")
            failure.append(to: &output)
        }
        output.field("line")
        output.openArray()
        for count in traffic {
            output.separate()
            output.append(decimal: UInt64(count))
        }
        output.closeArray()
        output.closeObject()
    }
}
