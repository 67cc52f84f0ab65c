package import TapCore
internal import TapSecurity

/// Settings of the built-in server; constant while it runs.
package struct ServerSettings: Sendable {
    /// An account that exists when the server starts.
    package struct Account: Sendable, Hashable {
        /// The local part of its address.
        package var name: String
        /// The password in clear text; the server keeps only the SCRAM keys derived from it.
        package var password: String
    }

    /// The domain of all accounts. Default: `localhost`.
    package var domain = "localhost"
    /// The accounts at the start. They are contacts of each other, and have one more contact that is never online.
    package var accounts: [Account]
    /// Whether clients may register accounts (XEP-0077). Default: true.
    package var allowsRegistration = true
    /// Maximum number of accounts, including registered ones. Default: 1,000.
    package var accountLimit = 1000
    /// Maximum number of contacts in a roster. Default: 1,000.
    package var rosterLimit = 1000
    /// Maximum number of connected resources of one account. Default: 16.
    package var resourceLimit = 16
    /// Maximum number of connections; further ones get a stream error. Default: 10,000.
    package var connectionLimit = 10_000
    /// The offered mechanisms, most preferred first: `PLAIN` and SCRAM mechanisms without `-PLUS`.
    package var mechanisms = ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]
    /// Number of failed logins after which the stream is closed. Default: 3 (RFC 6120 §6.4.5 recommends 2 to 5).
    package var loginAttempts = 3
    /// Whether SASL2 is offered too, with inline resource binding and resumption (XEP-0388, XEP-0386). Default: false;
    /// requires a ``ServerResponder``.
    var offersSASL2 = false
    /// Whether STARTTLS is offered, which requires a certificate.
    var offersStartTLS = false
    /// Whether TLS is required for the login.
    var requiresTLS = false
    /// The software name in answers to version requests (XEP-0092) and service discovery.
    package var softwareName = "xmpptap"
    /// The software version in answers to version requests (XEP-0092).
    package var softwareVersion: String

    /// Creates settings with two accounts, `romeo` and `juliet`, and random passwords.
    ///
    /// - Throws: Errors of the cryptographic library.
    package static func demo(softwareVersion: String, cryptography: any Cryptography) throws -> ServerSettings {
        let accounts = try ["romeo", "juliet"].map { name in
            Account(name: name, password: try randomName(bytes: 9, cryptography))
        }
        return ServerSettings(accounts: accounts, softwareVersion: softwareVersion)
    }
}

/// Returns random hexadecimal digits, two for each byte.
func randomName(bytes: Int, _ cryptography: any Cryptography) throws -> String {
    try cryptography.randomBytes(count: bytes).hexadecimal
}
