internal import TapRecord

/// Entries of a log that are still to be read, in the order of the log.
///
/// A client's stream header after `<proceed/>` or `<success/>` restarts the stream (RFC 6120 §4.3.3), or opens a stream
/// on another connection because the first connection was lost. The server's next features and the client's next item
/// show which of the two it is.
struct LogQueue {
    private var entries: ArraySlice<LogFragmenter.Entry> = []

    /// The largest number of entries that are searched for the effect of a header.
    private static let maximumCount = 64

    /// The effect of a header.
    enum Answer {
        case restarts, reconnects
        /// The entries so far do not show the effect.
        case unknown
    }

    /// The server's item after which the client sends the header.
    enum Cause {
        /// `<proceed/>`.
        case tls
        /// `<success/>` of SASL.
        case login

        /// Whether the server's features offer again what was negotiated already.
        fileprivate func isOffered(_ features: [UInt8]) -> Bool {
            let offersTLS = features.firstRange(of: Array("<starttls".utf8)) != nil
            return offersTLS || self == .login && features.firstRange(of: Array("<mechanisms".utf8)) != nil
        }
    }

    var first: LogFragmenter.Entry? { entries.first }
    var isFull: Bool { entries.count >= Self.maximumCount }

    mutating func append(_ entry: LogFragmenter.Entry) { entries.append(entry) }

    mutating func popFirst() -> LogFragmenter.Entry? { entries.popFirst() }

    /// Returns the effect of the header in the first entry; `isSame` tests whether a fragment belongs to the same
    /// session.
    func answer(after cause: Cause, isSame: (LogFragment) -> Bool) -> Answer {
        var isOffered = false
        for case .fragment(let fragment) in entries.dropFirst().prefix(Self.maximumCount) where isSame(fragment) {
            for item in fragment.items where item.state == .whole {
                switch item.evidence.role {
                case .features:
                    guard cause.isOffered(item.bytes) else { return .restarts }
                    isOffered = true
                case .request(let isLogin) where isOffered:
                    return isLogin && cause == .tls ? .restarts : .reconnects
                case .query where isOffered && item.evidence.direction != .recv: return .restarts
                case .opening where item.evidence.direction == .send: return isOffered ? .reconnects : .restarts
                case .end: return isOffered ? .reconnects : .restarts
                default: break
                }
            }
        }
        return .unknown
    }

    /// Whether a fragment shows a client's stream header.
    static func opensStream(_ fragment: LogFragment) -> Bool {
        fragment.items.contains { $0.evidence.role == .opening && $0.evidence.direction == .send }
    }
}
