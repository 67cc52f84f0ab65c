internal import CLibXML2
internal import TapSecurity

/// The versions of the program and of the libraries it runs with.
enum Version {
    /// The version of the program.
    static let program = "0.3.0"

    /// The version of the loaded libxml2, such as `2.9.14`.
    static var libxml2: String {
        // The version consists of digits without dots, such as 20914; text of the distribution may follow.
        let digits = String(cString: xmpptap_libxml2_version()).prefix { $0.isNumber }
        guard let number = Int(digits) else { return "(unknown version)" }
        return "\(number / 10_000).\(number / 100 % 100).\(number % 100)"
    }

    /// The version of the loaded OpenSSL, such as `3.0.19`.
    static var openSSL: String { OpenSSLCryptography.libraryVersion }

    /// All versions, as printed by `--version`.
    static var text: String { "xmpptap \(program) (libxml2 \(libxml2), OpenSSL \(openSSL))" }
}
