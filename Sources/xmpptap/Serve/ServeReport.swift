internal import Synchronization
internal import TapNetwork
internal import TapRecord
internal import TapReplay
internal import TapSecurity

/// A difference from the recording that can make `serve` exit with code 1; the raw values are those of `--fail-on`.
enum ServeFault: String, CaseIterable, Sendable {
    /// A client sent a request or another stanza that was not recorded.
    case unmatched
    /// A client sent a recorded stanza with different content.
    case changed
    /// A client did not send a recorded stanza.
    case missing
    /// A client left before it received a recorded stanza.
    case unsent

    /// Creates the fault of an event; nil if the event is not a fault.
    init?(_ event: ServeEvent) {
        guard case .diverged(_, let divergence) = event else { return nil }
        switch divergence.code {
        case .missing: self = .missing
        case .changed: self = .changed
        case .unsent: self = .unsent
        default: self = .unmatched
        }
    }

    /// Returns the number of faults as text for users.
    func text(_ count: Int) -> String {
        switch self {
        case .unmatched: "\(Plural.of(count, "stanza")) not recorded"
        case .changed: "\(Plural.of(count, "stanza")) changed"
        case .missing: "\(Plural.of(count, "stanza")) of the client missing"
        case .unsent: "\(Plural.of(count, "stanza")) of the server not sent"
        }
    }
}

/// Counts faults; its methods may be called from any thread.
final class ServeTally: Sendable {
    private let counts = Mutex<[ServeFault: Int]>([:])

    func record(_ event: ServeEvent) {
        if let fault = ServeFault(event) { counts.withLock { $0[fault, default: 0] += 1 } }
    }

    /// The kinds of faults so far.
    var faults: Set<ServeFault> { counts.withLock { Set($0.keys) } }

    /// The numbers of faults as text for users; empty without faults.
    var summary: String {
        let counts = counts.withLock(\.self)
        return ServeFault.allCases.compactMap { fault in counts[fault].map(fault.text) }.joined(separator: ", ")
    }
}

/// The value of `--fail-on FAULTS` of `serve`.
struct ServeFaults {
    let faults: Set<ServeFault>

    static func typed(_ text: String) throws(Failure) -> ServeFaults {
        guard text != "none" else { return ServeFaults(faults: []) }
        var faults: Set<ServeFault> = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let fault = ServeFault(rawValue: String(name)) else {
                let names = ServeFault.allCases.map(\.rawValue).joined(separator: ", ")
                throw .usage("\"\(name)\" is not a fault; there are \(names), and none")
            }
            faults.insert(fault)
        }
        return ServeFaults(faults: faults)
    }
}

/// The output of `serve` while it runs: one line per event.
enum ServeReport {
    /// Returns the line for an event.
    ///
    /// - Parameter forwards: Whether requests without a recorded answer are forwarded to a real server.
    static func line(_ event: ServeEvent, forwards: Bool) -> String {
        switch event {
        case .began(let jid, let session): LineBuffer.escaped("\(jid) logged in and gets session \(session)")
        case .notForwarded(let jid, let reason): LineBuffer.escaped("\(jid): not forwarded: \(reason)")
        case .refused(let refusal): LineBuffer.escaped(message(refusal))
        case .lost(let jid): LineBuffer.escaped("\(jid) lost its connection, and can resume its session")
        case .resumed(let jid): LineBuffer.escaped("\(jid) resumed its session")
        case .ended(let jid): LineBuffer.escaped("\(jid) is gone")
        case .diverged(let jid, let divergence): LineBuffer.escaped("\(jid): \(message(divergence, forwards))")
        }
    }

    private static func message(_ refusal: ServerRefusal) -> String {
        switch refusal {
        case .tls(let fault):
            "TLS failed: \(fault.explanation(peer: "the client")); clients must trust the CA, see 'xmpptap ca export'"
        case .login(let condition): "a client could not log in: \(condition)"
        case .stream(let condition, let text):
            "a client's stream ended with \(condition)\(text.map { ": \($0)" } ?? "")"
        case .web(let reason): "refused a request for a WebSocket: \(reason)"
        }
    }

    private static func message(_ divergence: Divergence, _ forwards: Bool) -> String {
        let live = divergence.live.map { shortened($0.text) } ?? ""
        let recorded = divergence.recorded.map { shortened($0.text) } ?? ""
        switch divergence.code {
        case .missing: return "did not send \(recorded)"
        case .unsent: return "left before it got \(recorded)"
        case .changed:
            let places = divergence.differences.prefix(3).map { difference in
                "\(difference.path): \(value(difference.live)) instead of \(value(difference.recorded))"
            }
            return "sent \(live), treated as \(recorded): \(places.joined(separator: "; "))"
        default:
            let why = divergence.message.isEmpty ? "" : ": \(divergence.message)"
            let isRequest = live.hasPrefix("<iq ")
            let what = !isRequest ? "" : forwards ? "; forwarded" : "; answered service-unavailable"
            return "sent \(live), which was not recorded\(why)\(what)"
        }
    }

    private static func value(_ text: String?) -> String { text.map { "\"\(shortened($0))\"" } ?? "nothing" }

    /// Returns at most 160 characters of a stanza.
    private static func shortened(_ text: String) -> String {
        text.count > 160 ? "\(text.prefix(159))…" : text
    }
}
