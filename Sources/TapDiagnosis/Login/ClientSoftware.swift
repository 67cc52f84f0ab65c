/// What is known of the program at the client's end of a session, which decides how it is made to trust a certificate.
public struct ClientSoftware: Sendable, Hashable {
    /// TLS libraries that a ClientHello tells apart: by the extensions that only this one sends.
    public enum Library: Sendable, Hashable, CaseIterable {
        /// `crypto/tls` of Go.
        case go
        /// JSSE, the TLS of OpenJDK.
        case java
        case gnuTLS
        case openSSL
    }

    /// What programs at this address called themselves, the latest first: the node of their capabilities (XEP-0115), the name
    /// of their version (XEP-0092) or of their identity (XEP-0030), or the software of their SASL2 user agent (XEP-0388).
    /// As it came from the wire.
    public var names: [String]
    /// The library of this session's ClientHello; nil if that does not tell.
    public var library: Library?

    /// Both, as far as they are known.
    public init(names: [String] = [], library: Library? = nil) {
        self.names = names
        self.library = library
    }
}
