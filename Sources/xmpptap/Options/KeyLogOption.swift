internal import ArgumentParser
internal import TapCapture
internal import TapSecurity

/// `--keylog`, for commands that read packets.
struct KeyLogOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "TLS secrets for packets, as SSLKEYLOGFILE or proxy --keylog write them.",
            valueName: "file"
        ),
        completion: .file()
    )
    var keylog: String?

    /// Maximum size of a key log in bytes. The key log of a busy server has about 1 kB per connection.
    private static let maximumBytes = 512 << 20

    /// Returns the secrets. Malformed lines are reported and skipped.
    func keys() throws(Failure) -> KeyLog {
        let lines = try lines()
        let keys = KeyLog(lines)
        reportDamage(of: keys)
        guard keylog == nil || keys.count > 0 else { throw .file("--keylog: \(keylog ?? "") has no TLS secrets") }
        return keys
    }

    /// Returns the content of the file, for callers that read packets several times; empty if no file is given.
    func lines() throws(Failure) -> [UInt8] {
        try keylog.map { path throws(Failure) in try TextFile.bytes(path, limit: Self.maximumBytes) } ?? []
    }

    /// Opens the key log to read it while it grows; nil if none is given.
    func followed() throws(Failure) -> FollowedKeyLog? {
        guard let path = keylog else { return nil }
        do throws(PacketFault) {
            let keys = try FollowedKeyLog(path)
            if !keys.exists { Console.printDiagnostic("--keylog: \(path) does not exist yet; sniff waits for it") }
            return keys
        } catch {
            throw .file("--keylog: cannot open \(path): \(error)")
        }
    }

    /// Reports the lines that are malformed.
    func reportDamage(of keys: KeyLog) {
        for damage in keys.damage {
            Console.printDiagnostic(
                "line \(damage.line) of \(keylog ?? "") skipped: \(Self.explanation(damage.reason))"
            )
        }
        DamageReport.printSkipped(of: keylog ?? "", skipped: keys.damagedLines, named: keys.damage.count)
    }

    private static func explanation(_ reason: KeyLog.Damage.Reason) -> String {
        switch reason {
        case .notKeyLog: "it does not begin with a label such as CLIENT_RANDOM"
        case .clientRandom: "the client random is not 64 hexadecimal digits"
        case .secret: "the secret is not hexadecimal digits, or its length does not fit the label"
        case .tooLong: "it is too long for a line of a key log"
        case .full: "the file has too many secrets"
        }
    }
}
