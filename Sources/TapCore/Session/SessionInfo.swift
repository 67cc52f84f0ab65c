package import TapRecord
package import XMPPCore

/// The facts about a session, which are gathered while it runs and recorded when it ends.
package struct SessionInfo: Sendable {
    /// The kind of stream, from the content namespace of its header.
    package enum StreamKind: String, Sendable {
        case unknown
        case client
        case server
        case component
    }

    /// The outcome of authentication.
    package enum Authentication: Sendable, Hashable {
        case none
        case succeeded
        /// With the SASL condition, or the condition of the stanza error in legacy authentication.
        case failed(condition: String)
    }

    /// How the session ended.
    package enum Ending: Sendable, Hashable {
        /// Both streams were closed by their end tags.
        case clean(by: Direction)
        /// A stream error with this condition was sent in this direction.
        case error(condition: String, by: Direction)
        /// A connection ended before its stream was closed.
        case unclean(leg: Leg, LegEnd)
        /// A connection ended while its bytes were not decoded.
        case undecoded(leg: Leg, LegEnd)
        /// TLS failed on a leg, for this reason.
        case tls(leg: Leg, String)
        /// xmpptap closed the session.
        case tap(condition: String)
        case stopped
        /// The recording ends here; the session may have continued.
        case unrecorded
    }

    /// The counts of one direction.
    package struct Counts: Sendable, Hashable {
        /// The number of iq stanzas.
        package var iq: UInt64 = 0
        /// The number of message stanzas.
        package var message: UInt64 = 0
        /// The number of presence stanzas.
        package var presence: UInt64 = 0
        /// The number of relayed bytes of every kind.
        package var bytes: UInt64 = 0

        /// The number of stanzas of all kinds.
        package var stanzas: UInt64 { iq &+ message &+ presence }

        static func + (one: Self, other: Self) -> Self {
            var sum = one
            sum.iq &+= other.iq
            sum.message &+= other.message
            sum.presence &+= other.presence
            sum.bytes &+= other.bytes
            return sum
        }
    }

    /// The epoch and the id of a stream.
    package struct Stream: Sendable, Hashable {
        /// The epoch of the stream in the receiving direction.
        package var epoch: Int
        /// The `id` in the server's stream header.
        package var id: String?
    }

    /// The kind of stream.
    package var kind = StreamKind.unknown
    /// The domain that the initiator requested.
    package var domain: String?
    /// The `from` in the initiator's header: the domain of a server.
    package var from: String?
    /// The `version` of the initiator's header; nil for a stream before version 1.0.
    package var version: String?
    /// The streams that the server opened, at most the first ``maximumStreams``.
    package var streams: [Stream] = []
    /// The largest number of stored streams. A login has three or four, and a peer may open any number.
    static let maximumStreams = 16
    /// The mechanisms that the server offered last.
    package var mechanisms: [String] = []
    /// The mechanism that the initiator chose.
    package var mechanism: String?
    /// The client's channel binding flag (RFC 5801 §4): `n`, `y` or `p`; nil if the mechanism has none.
    package var bindingFlag: String?
    /// The outcome of authentication.
    package var authentication = Authentication.none
    /// The user name of the authentication.
    package var user: String?
    /// The bare JID of the account that has logged in by SASL, as far as the client's messages name it; nil if they do not.
    var account: String?
    /// The bound full JID.
    package var jid: String?
    /// The TLS versions that xmpptap terminates on the legs, as in the protocol (0x0304 is TLS 1.3); nil for a leg
    /// without TLS.
    package var clientTLS, serverTLS: UInt16?
    /// Whether the server's certificate was not accepted, but the session continues as configured.
    package var isUnverified = false
    /// Whether the client's connection is encrypted and its contents are decoded.
    package var hasClientTLS = false
    /// The names of the features in the last `<features/>`.
    package var features: [String] = []
    /// The counts of stanzas and bytes from the initiator.
    package var sent = Counts()
    /// The counts of stanzas and bytes from the server.
    package var received = Counts()
    /// The time at which the session began.
    package var began: Run.Instant
    /// The time at which the session became open; nil before.
    package var opened: Run.Instant?
    /// How the session ended; nil before its end.
    package var ending: Ending?
    /// The reason for the end, if the items show more than ``ending``.
    package var closeReason: CloseReason?
    /// A further description of the reason; nil if there is none.
    package var reason: Prose?
    /// The section that defines the condition of ``ending``, if it is one of BOSH and not of the stream.
    package var boshRule: String?
    /// The fault of the client's request for stream management; nil if it has none.
    var enableFault: Prose?
    /// The number of requests that were never answered.
    package var unanswered = 0

    init(began: Run.Instant) { self.began = began }

    /// Returns the fault of the client's request for stream management, if it may be the reason for the server's stream
    /// error with this condition. Conditions with another meaning (RFC 6120 §4.9.3) return nil.
    func enableFault(for condition: String) -> Prose? {
        switch StreamErrorCondition(rawValue: condition) {
        case .badFormat, .invalidXML, .notAuthorized, .policyViolation, .undefinedCondition, .unsupportedStanzaType,
            nil:
            enableFault
        default: nil
        }
    }

    mutating func count(_ kind: StanzaHead.Kind, _ direction: Direction) {
        switch direction {
        case .send: sent.count(kind)
        case .recv: received.count(kind)
        }
    }

    mutating func count(bytes: UInt64, _ direction: Direction) {
        switch direction {
        case .send: sent.bytes &+= bytes
        case .recv: received.bytes &+= bytes
        }
    }
}

extension SessionInfo.Counts {
    fileprivate mutating func count(_ kind: StanzaHead.Kind) {
        switch kind {
        case .iq: iq += 1
        case .message: message += 1
        case .presence: presence += 1
        case .nonza: break
        }
    }
}

// Describes the end of a session as text and numbers.
extension SessionInfo {
    /// Returns whether the session belongs to an account. A bare JID includes all resources of the account.
    package func isOf(_ account: JID) -> Bool {
        guard let jid else { return false }
        return Address(jid).matches(Address(account), in: account.isFull ? .full : .bare)
    }

    var endingLevel: Level {
        switch ending {
        case .clean, .undecoded(_, .finished), .stopped, .unrecorded, nil: .info
        case .unclean, .undecoded: .warn
        case .error, .tls, .tap: .error
        }
    }

    /// Whether the session ended in another way than by the client's logout or the end of xmpptap.
    var isDropped: Bool {
        switch ending {
        case .clean(by: .send), .undecoded(_, .finished), .stopped, .unrecorded, nil: false
        case .clean, .error, .unclean, .undecoded, .tls, .tap: true
        }
    }

    var endingCondition: String? {
        switch ending {
        case .error(let condition, _), .tap(let condition): condition
        default: nil
        }
    }

    /// The leg whose connection ended the session; nil if another event ended it, or if the leg is unknown.
    var endingLeg: Leg? {
        switch ending {
        case .unclean(let leg, _), .undecoded(let leg, _), .tls(let leg, _): leg
        case .clean, .error, .tap, .stopped, .unrecorded, nil: nil
        }
    }

    var endingDescription: String { reason.map { "\(plainEndingDescription); \($0)" } ?? plainEndingDescription }

    /// The reason for the end, as a code; derived from ``ending`` if ``closeReason`` is nil.
    package var effectiveCloseReason: CloseReason? {
        if let closeReason { return closeReason }
        return switch ending {
        case .clean: .closed
        case .error: .streamError
        case .unclean(_, .finished): .unclean
        case .undecoded(_, .finished): .undecoded
        case .unclean, .undecoded: .reset
        case .tls: .tls
        case .tap: .tap
        case .stopped: .stopped
        case .unrecorded: .unrecorded
        case nil: nil
        }
    }

    private var plainEndingDescription: String {
        switch ending {
        case .clean(let direction): "closed by the \(direction.source.name)"
        case .error(let condition, let direction) where boshRule != nil:
            "the \(direction.source.name) ended the BOSH session: \(condition) (\(boshRule ?? ""))"
        case .error(let condition, let direction):
            "stream error from the \(direction.source.name): \(condition)"
        case .unclean(let leg, let end): "the \(leg.name)'s connection \(end.description) before its stream was closed"
        case .undecoded(let leg, let end): "the \(leg.name)'s connection \(end.description)"
        case .tls(let leg, let explanation): "TLS with the \(leg.name) failed: \(explanation)"
        case .tap(let condition): "closed by xmpptap: \(condition)"
        case .stopped: "closed because xmpptap stopped"
        case .unrecorded: "the recording shows nothing more of the session"
        case nil: "ended"
        }
    }

    /// The counts and facts for the record of the session's end.
    var summary: Attributes {
        var summary = Attributes()
        summary.reserveCapacity(18)
        func add(_ name: String, _ count: UInt64) { summary.append(name, .integer(Int64(clamping: count))) }
        summary.append("kind", .string(kind.rawValue))
        add("sent_stanzas", sent.stanzas)
        add("received_stanzas", received.stanzas)
        add("sent_bytes", sent.bytes)
        add("received_bytes", received.bytes)
        if sent.stanzas > 0 {
            add("sent_iq", sent.iq)
            add("sent_message", sent.message)
            add("sent_presence", sent.presence)
        }
        if received.stanzas > 0 {
            add("received_iq", received.iq)
            add("received_message", received.message)
            add("received_presence", received.presence)
        }
        summary.append(Record.Detail.closeReason, effectiveCloseReason.map { .string($0.rawValue) })
        if isUnverified { summary.append("unverified", true) }
        summary.append("domain", domain.map { .string($0) })
        summary.append("mechanism", mechanism.map { .string($0) })
        switch authentication {
        case .none: break
        case .succeeded: summary.append("authentication", "succeeded")
        case .failed(let condition): summary.append("authentication", .string("failed: \(condition)"))
        }
        if !streams.isEmpty { summary.append("streams", .strings(streams.map { $0.id ?? "" })) }
        if unanswered > 0 { summary.append(Record.Detail.unanswered, .integer(Int64(unanswered))) }
        return summary
    }
}

extension LegEnd {
    var description: String {
        switch self {
        case .finished: "ended"
        case .reset: "was reset"
        case .failed(let reason): "failed (\(reason))"
        }
    }
}
