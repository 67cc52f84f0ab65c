/// How the program ends: the only place where exit codes are chosen.
enum ExitStatus: Int32, CaseIterable {
    /// All well, also after SIGTERM.
    case success = 0
    /// The comparison, check, probe or explained session failed.
    case checkFailed = 1
    /// What was typed cannot be done.
    case usage = 2
    /// A file could not be read or written.
    case file = 3
    /// Something with sockets and names, or no running proxy.
    case network = 4
    /// Login or preparation failed where that is not the question: in `demo`, `replay` and `serve`.
    case preparation = 5
}
