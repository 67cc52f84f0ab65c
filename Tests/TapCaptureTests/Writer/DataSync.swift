import Glibc
import Synchronization

/// How often each file was brought to the disk, and which files fail to be.
///
/// The symbol below is in the test program, which precedes the C library: callers of fdatasync(2) in it use this
/// function, which does the same by fsync(2).
enum DataSync {
    private static let state = Mutex((counts: [String: Int](), failing: Set<String>()))

    /// Calls for the file at a path that succeeded.
    static func count(_ path: String) -> Int { state.withLock { $0.counts[path] ?? 0 } }

    /// From now on it fails for the file at a path with EIO, or not any more.
    static func fail(_ path: String, _ isFailing: Bool) {
        state.withLock { state in
            if isFailing { state.failing.insert(path) } else { state.failing.remove(path) }
        }
    }

    fileprivate static func synchronize(_ descriptor: Int32) -> Int32 {
        var name = [CChar](repeating: 0, count: 4096)
        let length = max(0, readlink("/proc/self/fd/\(descriptor)", &name, name.count))
        let path = String(decoding: name[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let isFailing = state.withLock { state in
            guard !state.failing.contains(path) else { return true }
            state.counts[path, default: 0] += 1
            return false
        }
        guard !isFailing else {
            errno = EIO
            return -1
        }
        return fsync(descriptor)
    }
}

@_cdecl("fdatasync")
func replacedDataSync(_ descriptor: Int32) -> Int32 { DataSync.synchronize(descriptor) }
