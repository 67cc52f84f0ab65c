internal import Glibc

/// Reports the state of this process to the service manager that started it (sd_notify(3)); does nothing without a
/// service manager.
///
/// Messages are sent as datagrams to the Unix socket in `NOTIFY_SOCKET`. If one cannot be sent, it is lost: nothing
/// here depends on it.
enum ServiceManager {
    /// Reports that all listeners accept connections, or that reloading is complete.
    static func ready() { notify("READY=1") }

    /// Reports that files are being reloaded; ``ready()`` must follow.
    static func reloading() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        // Services of type `notify-reload` require the time.
        notify("RELOADING=1\nMONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1000)")
    }

    /// Reports that the program is shutting down.
    static func stopping() { notify("STOPPING=1") }

    private static func notify(_ message: String) {
        guard let path = Console.environment("NOTIFY_SOCKET"), let mark = path.utf8.first else { return }
        // A leading `@` represents the zero byte of an abstract socket address.
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
            // Do not include a terminating zero: in an abstract address, every byte counts.
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
