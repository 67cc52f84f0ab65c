internal import Glibc
internal import TapRecord

extension LocalZone {
    /// The time zone of this machine, or that in `TZ`.
    static let system = LocalZone(name: "local") { time in
        var seconds = time_t(time.nanoseconds / 1_000_000_000)
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return 0 }
        return Int64(parts.tm_gmtoff)
    }
}
