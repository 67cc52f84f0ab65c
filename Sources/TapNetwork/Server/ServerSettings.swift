package import TapCore
internal import TapSecurity

/// Settings of the built-in server; constant while it runs.
package struct ServerSettings: Sendable {
    /// An account that exists when the server starts.
    package struct Account: Sendable, Hashable {
        /// The local part of its address.
        package var name: String
        /// Its password, in clear; the server keeps only what SCRAM needs of it.
        package var password: String
    }

    /// The domain of all accounts. Default `localhost`.
    package var domain = "localhost"
    /// The accounts at the start. They are each other's contacts, and have one more contact, who is never online.
    package var accounts: [Account]
    /// Whether clients may register accounts (XEP-0077). Default yes.
    package var allowsRegistration = true
    /// How many accounts there may be, registered ones included. Default 1,000.
    package var accountLimit = 1000
    /// How many contacts a roster may hold. Default 1,000.
    package var rosterLimit = 1000
    /// How many resources of one account may be connected. Default 16.
    package var resourceLimit = 16
    /// How many connections there may be; one more gets a stream error. Default 10,000.
    package var connectionLimit = 10_000
    /// The mechanisms offered, the preferred one first: `PLAIN` and the members of SCRAM without `-PLUS`.
    package var mechanisms = ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]
    /// How often a client may fail to log in before its stream is closed. Default 3 (RFC 6120 §6.4.5 asks for 2 to 5).
    package var loginAttempts = 3
    /// Whether clients may log in with SASL2 too, and bind or resume along with it (XEP-0388, XEP-0386). Default no; it takes
    /// a ``ServerResponder``.
    var offersSASL2 = false
    /// Whether STARTTLS is offered; the server has a certificate then.
    var offersStartTLS = false
    /// Whether TLS is required for the login.
    var requiresTLS = false
    /// The name XEP-0092 and service discovery give.
    package var softwareName = "xmpptap"
    /// The version XEP-0092 gives.
    package var softwareVersion: String

    /// Settings with two accounts, `romeo` and `juliet`, and random passwords.
    ///
    /// - Throws: Errors of the cryptographic library.
    package static func demo(softwareVersion: String, cryptography: any Cryptography) throws -> ServerSettings {
        let accounts = try ["romeo", "juliet"].map { name in
            Account(name: name, password: try randomName(bytes: 9, cryptography))
        }
        return ServerSettings(accounts: accounts, softwareVersion: softwareVersion)
    }
}

/// Random hexadecimal digits, two for each byte.
func randomName(bytes: Int, _ cryptography: any Cryptography) throws -> String {
    try cryptography.randomBytes(count: bytes).hexadecimal
}
