internal import NIOCore
internal import NIOPosix

/// The processors that this process may run on, which can be fewer than the machine has (`taskset`, cgroups).
enum Processors {
    /// Gives NIO's shared loops one thread for each processor. To be called before they are first used: more threads
    /// than processors would only take turns, and each would wake up for less.
    static func limitEventLoops() {
        guard let status = try? TextFile.read("/proc/self/status"), let count = allowed(in: status) else { return }
        NIOSingletons.groupLoopCountSuggestion = min(count, System.coreCount)
    }

    /// How many processors the line `Cpus_allowed` of a process's status names: a mask in hexadecimal, in groups.
    static func allowed(in status: String) -> Int? {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Cpus_allowed:") }) else {
            return nil
        }
        let count = line.dropFirst("Cpus_allowed:".count).reduce(0) { $0 + ($1.hexDigitValue?.nonzeroBitCount ?? 0) }
        return count > 0 ? count : nil
    }
}
