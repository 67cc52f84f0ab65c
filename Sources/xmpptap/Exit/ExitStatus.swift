/// The exit codes of the program.
enum ExitStatus: Int32, CaseIterable {
    /// Success, also after SIGTERM.
    case success = 0
    /// The comparison, check, probe or explained session failed.
    case checkFailed = 1
    /// Wrong usage.
    case usage = 2
    /// A file could not be read or written.
    case file = 3
    /// A network or DNS error, or no running proxy.
    case network = 4
    /// Login or preparation failed in `demo`.
    case preparation = 5
}
