internal import NIOCore
internal import NIOPosix

/// The processors that this process may run on, which can be fewer than the machine has (`taskset`, cgroups).
enum Processors {
    /// Gives NIO's shared event loops one thread per processor. Call it before they are first used: more threads
    /// than processors only add context switches.
    static func limitEventLoops() {
        guard let status = try? TextFile.read("/proc/self/status"), let count = allowed(in: status) else { return }
        NIOSingletons.groupLoopCountSuggestion = min(count, System.coreCount)
    }

    /// The number of processors in the line `Cpus_allowed` of a process's status: a hexadecimal mask, in groups.
    static func allowed(in status: String) -> Int? {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Cpus_allowed:") }) else {
            return nil
        }
        let count = line.dropFirst("Cpus_allowed:".count).reduce(0) { $0 + ($1.hexDigitValue?.nonzeroBitCount ?? 0) }
        return count > 0 ? count : nil
    }
}
