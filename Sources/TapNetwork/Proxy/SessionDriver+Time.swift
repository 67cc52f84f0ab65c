internal import NIOCore
internal import TapCore
internal import XMPPCore

// Sessions that take too long.
extension SessionDriver {
    /// Ends a session that takes too long.
    func checkTime(_ now: Run.Instant) {
        guard isLive else { return }
        let limits = loop.context.limits
        let began = session.info.began.monotonic
        if let limit = limits.login, !session.isPastLogin, now.monotonic - began > limit.nanoseconds {
            return refuse(.tooLong("No login within \(limit.words) (limit login)."))
        }
        if let limit = limits.idle, now.monotonic - max(began, lastRead) > limit.nanoseconds {
            refuse(.tooLong("No data for \(limit.words) (limit idle)."))
        }
    }
}

extension RelayLoop.Refusal {
    /// A session that took too long.
    fileprivate static func tooLong(_ text: String) -> Self { Self(condition: .connectionTimeout, text: text) }

    /// The text without its full stop.
    var clause: String { text.hasSuffix(".") ? String(text.dropLast()) : text }
}

extension TimeAmount {
    /// Seconds, as short as they can be told.
    fileprivate var words: String {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest == 0 ? "\(seconds) s" : "\(nanoseconds / 1_000_000) ms"
    }
}
