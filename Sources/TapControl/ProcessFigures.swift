internal import Glibc

/// What the system knows of this process.
struct ProcessFigures {
    /// Its number.
    static let number = getpid()
}
