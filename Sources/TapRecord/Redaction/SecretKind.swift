/// The kind of a redacted value; the raw value is used in its placeholder, `[redacted:KIND#NUMBER]`.
///
/// Stable from version to version: the user of a replay supplies values by these names.
package enum SecretKind: String, Sendable, Hashable, CaseIterable {
    // SASL messages, by their contents.
    case saslPlain = "sasl-plain"
    case saslScramFirst = "sasl-scram-first"
    case saslScramChallenge = "sasl-scram-challenge"
    case saslScramProof = "sasl-scram-proof"
    case saslScramVerifier = "sasl-scram-verifier"
    case saslDigestChallenge = "sasl-digest-challenge"
    case saslDigestResponse = "sasl-digest-response"
    case saslOAuth = "sasl-oauth"
    case saslHashedToken = "sasl-hashed-token"
    case saslExternal = "sasl-external"
    case saslAnonymous = "sasl-anonymous"
    case saslInitial = "sasl-initial"
    case saslChallenge = "sasl-challenge"
    case saslResponse = "sasl-response"
    case saslSuccess = "sasl-success"
    /// Other contents of an authentication element.
    case saslOther = "sasl-other"
    case saslTask = "sasl-task"
    case scramSecret = "scram-secret"

    case password
    case passwordDigest = "password-digest"
    case handshake
    case dialbackKey = "dialback-key"
    case token
    case key
    case oauth
    case deviceID = "device-id"
    case deviceName = "device-name"

    case smID = "sm-id"
    case smLocation = "sm-location"
    case boshID = "bosh-id"
    case boshKey = "bosh-key"

    case formSecret = "form-secret"
    case pushNode = "push-node"
    case httpHeader = "http-header"
    case urlQuery = "url-query"
    case fileKey = "file-key"
    case preauthToken = "preauth-token"
    case inviteURL = "invite-url"
    case serviceUser = "service-user"
    case serviceExpiry = "service-expiry"
    case iceFragment = "ice-ufrag"
    case icePassword = "ice-pwd"
    case mediaKey = "media-key"
    case confirmID = "confirm-id"

    case secretKey = "secret-key"
    case omemoKey = "omemo-key"
    case omemoPayload = "omemo-payload"
    case omemoIV = "omemo-iv"

    /// A user's text, under a policy that hides it; not numbered, since equal texts must not be recognisable.
    case text
    /// An attribute value, hidden for the same reason as ``text``.
    case value
    /// Invalid text in place of an address, hidden for the same reason as ``text``.
    case address

    /// A whole item that could not be parsed.
    case item

    /// Whether the value is hidden because of its content, not because it is a credential. Its placeholder has a size
    /// but no number.
    package var isContent: Bool { self == .text || self == .value || self == .address }
}
