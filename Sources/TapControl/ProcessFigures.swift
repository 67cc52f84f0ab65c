internal import Glibc

/// Resource usage of this process.
struct ProcessFigures {
    /// The process id.
    static let number = getpid()

    /// Processor time in seconds.
    let processorSeconds: Double
    /// Resident memory in bytes; nil if unknown.
    let residentBytes: Int?
    /// Number of open file descriptors.
    let openFiles: Int

    /// Reads the current figures.
    init() {
        var usage = rusage()
        getrusage(Int32(RUSAGE_SELF.rawValue), &usage)
        let microseconds = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
        processorSeconds = Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + Double(microseconds) / 1e6
        residentBytes = Self.pages().map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) }
        var count = 0
        if let folder = opendir("/proc/self/fd") {
            while readdir(folder) != nil { count += 1 }
            closedir(folder)
        }
        // Do not count the descriptor of the folder, `.` and `..`.
        openFiles = max(0, count - 3)
    }

    /// Returns the resident pages, the second number of `/proc/self/statm`.
    private static func pages() -> Int? {
        guard let file = fopen("/proc/self/statm", "r") else { return nil }
        defer { fclose(file) }
        var text = [CChar](repeating: 0, count: 128)
        guard fgets(&text, Int32(text.count), file) != nil else { return nil }
        let words = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self).split(
            separator: " "
        )
        return words.count > 1 ? Int(words[1]) : nil
    }
}
