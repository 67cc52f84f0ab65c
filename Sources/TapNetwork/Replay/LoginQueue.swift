/// Logins that begin as others end, so that many clients that begin at the same time do not wait for each other at the server for
/// longer than a login may take. All on one event loop.
final class LoginQueue {
    /// How many are under way at most. A server that handles fewer at a time still answers each step in time.
    static let most = 50

    private var count = 0
    private var waiting: ArraySlice<() -> Bool> = []
    private var failures = 0
    private var hasSucceeded = false

    /// So many have failed, and none has succeeded, that another one is not worth its time.
    var isHopeless: Bool { !hasSucceeded && failures >= Self.most }

    /// Begins a login now or later.
    ///
    /// - Parameter login: Begins it; false if it does not. ``ended(well:)`` follows only if it does.
    func begin(_ login: @escaping () -> Bool) {
        waiting.append(login)
        beginNext()
    }

    /// A login has ended.
    func ended(well: Bool) {
        count -= 1
        if well { hasSucceeded = true } else { failures += 1 }
        beginNext()
    }

    private func beginNext() {
        while count < Self.most, let login = waiting.popFirst() {
            count += 1
            if !login() { count -= 1 }
        }
    }
}
