internal import TapRecord

// A session's end as text and numbers.
extension SessionInfo {
    var endingLevel: Level {
        switch ending {
        case .clean, .undecoded(_, .finished), .stopped, .unrecorded, nil: .info
        case .unclean, .undecoded: .warn
        case .error, .tls, .tap: .error
        }
    }

    /// Whether neither the client's logout nor the end of xmpptap ended it.
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

    /// The leg whose connection ended it; nil where it was no connection, or nobody knows which.
    var endingLeg: Leg? {
        switch ending {
        case .unclean(let leg, _), .undecoded(let leg, _), .tls(let leg, _): leg
        case .clean, .error, .tap, .stopped, .unrecorded, nil: nil
        }
    }

    var endingWords: String { reason.map { "\(plainEndingWords); \($0)" } ?? plainEndingWords }

    /// Why it ended, as a code.
    var effectiveCloseReason: CloseReason? {
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

    private var plainEndingWords: String {
        switch ending {
        case .clean(let direction): "closed by the \(direction.source.name)"
        case .error(let condition, let direction):
            "stream error from the \(direction.source.name): \(condition)"
        case .unclean(let leg, let end): "the \(leg.name)'s connection \(end.words) before its stream was closed"
        case .undecoded(let leg, let end): "the \(leg.name)'s connection \(end.words)"
        case .tls(let leg, let words): "TLS with the \(leg.name) failed: \(words)"
        case .tap(let condition): "closed by xmpptap: \(condition)"
        case .stopped: "closed because xmpptap stopped"
        case .unrecorded: "the recording ends before the session"
        case nil: "ended"
        }
    }

    /// Figures and facts for the record of the end.
    var summary: Attributes {
        var summary: Attributes = [
            "kind": .string(kind.rawValue),
            "sent_stanzas": .integer(Int64(clamping: sent.stanzas)),
            "received_stanzas": .integer(Int64(clamping: received.stanzas)),
            "sent_bytes": .integer(Int64(clamping: sent.bytes)),
            "received_bytes": .integer(Int64(clamping: received.bytes)),
        ]
        for (name, counts) in [("sent", sent), ("received", received)] where counts.stanzas > 0 {
            summary["\(name)_iq"] = .integer(Int64(clamping: counts.iq))
            summary["\(name)_message"] = .integer(Int64(clamping: counts.message))
            summary["\(name)_presence"] = .integer(Int64(clamping: counts.presence))
        }
        summary["close_reason"] = effectiveCloseReason.map { .string($0.rawValue) }
        if isUnverified { summary["unverified"] = true }
        summary["domain"] = domain.map { .string($0) }
        summary["mechanism"] = mechanism.map { .string($0) }
        switch authentication {
        case .none: break
        case .succeeded: summary["authentication"] = "succeeded"
        case .failed(let condition): summary["authentication"] = .string("failed: \(condition)")
        }
        if !streams.isEmpty { summary["streams"] = .strings(streams.map { $0.id ?? "" }) }
        if unanswered > 0 { summary["unanswered"] = .integer(Int64(unanswered)) }
        return summary
    }
}

extension LegEnd {
    var words: String {
        switch self {
        case .finished: "ended"
        case .reset: "was reset"
        case .failed(let reason): "failed (\(reason))"
        }
    }
}
