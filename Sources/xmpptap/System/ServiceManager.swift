internal import Glibc

/// Reports the state of this process to the service manager that started it (sd_notify(3)). Does nothing without one.
///
/// The messages go as datagrams to the Unix socket that `NOTIFY_SOCKET` names; a message that cannot be sent is lost, as
/// nothing here depends on it.
enum ServiceManager {
    /// All listeners accept, also after ``reloading()``.
    static func ready() { notify("READY=1") }

    /// Files are being read again; ``ready()`` ends that.
    static func reloading() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        // Asked for by services of the type `notify-reload`.
        notify("RELOADING=1\nMONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1000)")
    }

    /// Open sessions are given their time to end.
    static func stopping() { notify("STOPPING=1") }

    private static func notify(_ message: String) {
        guard let path = Console.environment("NOTIFY_SOCKET"), let mark = path.utf8.first else { return }
        // An "@" represents the zero byte of an address without a file.
        let name = mark == UInt8(ascii: "@") ? [0] + path.utf8.dropFirst() : Array(path.utf8)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? MemoryLayout<sa_family_t>.size
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let bytes = Array(message.utf8)
        withUnsafeBytes(of: &address) { address in
            guard let base = address.baseAddress else { return }
            // Without its end: for an address without a file each byte counts.
            let size = socklen_t(offset + name.count)
            _ = sendto(
                descriptor,
                bytes,
                bytes.count,
                Int32(MSG_NOSIGNAL),
                base.assumingMemoryBound(to: sockaddr.self),
                size
            )
        }
    }
}
