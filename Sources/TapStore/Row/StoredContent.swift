internal import TapCore
internal import TapSecurity

/// What rows contain of stanzas, and of their recording.
package struct StoredContent: Sendable, Hashable {
    /// The form in which the texts of messages are stored.
    package var bodies = Bodies.full
    /// Whether the stanza as recorded is stored.
    package var includesXML = false
    /// Whether avatars and vCards are stored.
    package var includesAvatars = false
    /// The name of the xmpptap that records; nil for recordings, which do not say it.
    package var tap: String?

    package init() {}

    /// The form in which texts are stored.
    package enum Bodies: String, Sendable, Hashable, CaseIterable {
        /// An empty text instead.
        case off
        /// `sha256:` and the SHA-256 digest of the text in hexadecimal: it shows whether a known text was sent.
        case hash
        case full

        private static let hashPrefix = "sha256:"

        /// Returns whether a stored text of a message with a key of its copies is the text itself.
        static func isStored(_ text: String) -> Bool { !text.isEmpty && !text.hasPrefix(hashPrefix) }

        /// Returns what is stored of a text.
        func stored(_ text: String?) -> String? {
            guard let text else { return nil }
            switch self {
            case .off: return ""
            case .full: return text
            case .hash:
                let digest = try? OpenSSLCryptography().digest(.sha256, of: Array(text.utf8).span)
                return digest.map { "\(Self.hashPrefix)\($0.hexadecimal)" } ?? ""
            }
        }
    }
}
