internal import Synchronization
internal import TapCore
internal import TapNetwork

/// The pages that are open and can act on sessions.
///
/// Only a page can release the stanzas that a page holds. So the pauses of pages end with the last page, and the held
/// stanzas pass.
final class PageActions: Sendable {
    /// How long a page that asks for nothing counts as open.
    static let silence = Duration.seconds(60)
    /// Maximum number of open pages, and of closed pages that are remembered.
    static let maximumPages = 64
    /// Maximum length of the identifier that a page gives itself.
    static let maximumName = 64

    private struct State {
        /// When each open page has last asked for something.
        var pages: [String: ContinuousClock.Instant] = [:]
        /// The pages that were closed last: a request that they have sent before can arrive later.
        var closed: [String] = []
        /// Whether a page has paused a session since the pauses were ended.
        var hasPaused = false

        /// Returns whether pauses of pages have to end.
        mutating func takeEnd() -> Bool {
            guard pages.isEmpty, hasPaused else { return false }
            hasPaused = false
            return true
        }
    }

    /// The proxy.
    let context: ControlContext
    private let state = Mutex(State())

    init(_ context: ControlContext) { self.context = context }

    /// The number of open pages.
    var pageCount: Int { state.withLock { $0.pages.count } }

    /// Notes that a page is open.
    func see(_ page: String, at now: ContinuousClock.Instant = .now) {
        state.withLock { state in
            guard !state.closed.contains(page) else { return }
            if state.pages[page] == nil, state.pages.count >= Self.maximumPages {
                // A page that is forgotten is seen again when it asks the next time.
                let oldest = state.pages.min { $0.value < $1.value }?.key
                if let oldest { state.pages[oldest] = nil }
            }
            state.pages[page] = now
        }
    }

    /// Notes that a page has paused a session. Call it after the pause has begun, so that it is not overlooked if the
    /// last page closes at the same time.
    func notePause() { state.withLock { $0.hasPaused = true } }

    /// Closes a page.
    func close(_ page: String) async {
        let ends = state.withLock { state in
            state.pages[page] = nil
            state.closed.append(page)
            if state.closed.count > Self.maximumPages { state.closed.removeFirst() }
            return state.takeEnd()
        }
        if ends { await context.sessions.endPauses(of: .page) }
    }

    /// Closes the pages that have asked for nothing for a minute.
    func expire(at now: ContinuousClock.Instant = .now) async {
        let ends = state.withLock { state in
            state.pages = state.pages.filter { now - $0.value < Self.silence }
            return state.takeEnd()
        }
        if ends { await context.sessions.endPauses(of: .page) }
    }
}
