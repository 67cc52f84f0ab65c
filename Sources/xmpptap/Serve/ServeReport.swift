internal import TapNetwork
internal import TapRecord
internal import TapReplay
internal import TapSecurity

/// What `serve` prints while clients are served, one line an event.
enum ServeReport {
    /// - Parameter forwards: Requests without a recorded answer go to a real server.
    static func line(_ event: ServeEvent, forwards: Bool) -> String {
        switch event {
        case .began(let jid, let session): LineBuffer.escaped("\(jid) logged in and gets session \(session)")
        case .notForwarded(let jid, let reason): LineBuffer.escaped("\(jid): not forwarded: \(reason)")
        case .refused(let refusal): LineBuffer.escaped(words(refusal))
        case .lost(let jid): LineBuffer.escaped("\(jid) lost its connection, and can resume its session")
        case .resumed(let jid): LineBuffer.escaped("\(jid) resumed its session")
        case .ended(let jid): LineBuffer.escaped("\(jid) is gone")
        case .diverged(let jid, let divergence): LineBuffer.escaped("\(jid): \(words(divergence, forwards))")
        }
    }

    private static func words(_ refusal: ServerRefusal) -> String {
        switch refusal {
        case .tls(let fault):
            "TLS failed: \(fault.words(peer: "the client")); clients must trust the CA, see 'xmpptap ca export'"
        case .login(let condition): "a client could not log in: \(condition)"
        case .stream(let condition, let text):
            "a client's stream ended with \(condition)\(text.map { ": \($0)" } ?? "")"
        }
    }

    private static func words(_ divergence: Divergence, _ forwards: Bool) -> String {
        let live = divergence.live.map { shortened($0.text) } ?? ""
        let recorded = divergence.recorded.map { shortened($0.text) } ?? ""
        switch divergence.code {
        case .missing: return "did not send \(recorded)"
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

    /// At most 160 characters of a stanza.
    private static func shortened(_ text: String) -> String {
        text.count > 160 ? "\(text.prefix(159))…" : text
    }
}
