internal import CLibXML2
internal import TapSecurity

/// The versions of the program and of the libraries it runs with.
enum Version {
    /// The program's.
    static let program = "0.3.0"

    /// libxml2's, of the library that is loaded, such as `2.9.14`.
    static var libxml2: String {
        // Digits without dots: 20914, perhaps with words of the distribution behind.
        let digits = String(cString: xmpptap_libxml2_version()).prefix { $0.isNumber }
        guard let number = Int(digits) else { return "(unknown version)" }
        return "\(number / 10_000).\(number / 100 % 100).\(number % 100)"
    }

    /// OpenSSL's, of the library that is loaded, such as `3.0.19`.
    static var openSSL: String { OpenSSLCryptography.libraryVersion }

    /// All of them, as `--version` prints them.
    static var text: String { "xmpptap \(program) (libxml2 \(libxml2), OpenSSL \(openSSL))" }
}
