package import TapRecord

extension LocalZone {
    /// Central European Time in 2026: summer time from 2026-03-29T01:00:00Z to 2026-10-25T01:00:00Z.
    package static let berlin = LocalZone(name: "Europe/Berlin") { time in
        (1_774_746_000..<1_792_890_000).contains(time.nanoseconds / 1_000_000_000) ? 7200 : 3600
    }
}
