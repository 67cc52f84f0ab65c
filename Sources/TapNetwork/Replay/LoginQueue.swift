/// Starts at most ``limit`` logins at a time; others wait until one ends. With more at once, a login could wait at the
/// server for longer than its time limit. Used on one event loop only.
final class LoginQueue {
    /// Maximum number of logins in progress. A server that handles fewer at a time still answers each step in time.
    static let limit = 50

    private var count = 0
    private var waiting: ArraySlice<() -> Bool> = []
    private var failures = 0
    private var hasSucceeded = false

    /// Whether ``limit`` logins have failed and none has succeeded: no further login is tried.
    var allLoginsFailed: Bool { !hasSucceeded && failures >= Self.limit }

    /// Starts a login, now or when another one has ended.
    ///
    /// - Parameter login: Starts the login; returns false if it could not. If it returns true, ``ended(well:)`` must be
    ///   called once at its end.
    func begin(_ login: @escaping () -> Bool) {
        waiting.append(login)
        beginNext()
    }

    /// Records the end of a login, and starts the next one.
    func ended(well: Bool) {
        count -= 1
        if well { hasSucceeded = true } else { failures += 1 }
        beginNext()
    }

    private func beginNext() {
        while count < Self.limit, let login = waiting.popFirst() {
            count += 1
            if !login() { count -= 1 }
        }
    }
}
