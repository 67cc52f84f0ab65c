/// The client software of a session, which determines how users make it trust a certificate.
package struct ClientSoftware: Sendable, Hashable {
    /// TLS libraries that can be recognised by extensions of the ClientHello that only they send.
    package enum Library: Sendable, Hashable, CaseIterable {
        /// `crypto/tls` of Go.
        case go
        /// JSSE, the TLS of OpenJDK.
        case java
        case gnuTLS
        case openSSL
    }

    /// Names that the software at this address gave itself, latest first: the node of its capabilities (XEP-0115), its
    /// version name (XEP-0092) or identity name (XEP-0030), or its SASL2 user agent (XEP-0388). Not escaped.
    package var names: [String]
    /// The library that sent the ClientHello; nil if unknown.
    package var library: Library?

    /// Creates a description of client software.
    package init(names: [String] = [], library: Library? = nil) {
        self.names = names
        self.library = library
    }
}
