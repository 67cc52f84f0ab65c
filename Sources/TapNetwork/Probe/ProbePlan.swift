public import NIOCore
public import TapDiagnosis
public import TapRecord
public import TapSecurity
public import XMPPCore

/// What is to be probed, and how.
public struct ProbePlan: Sendable {
    /// The account to check, a bare JID; the probe logs in if there is a ``password``.
    public var account: JID
    /// Its password in clear; nil looks at what the server offers, and goes no further.
    public var password: String?
    /// Connected to instead of the servers that the domain's records name.
    public var via: Endpoint?
    /// Who is asked for names; nil is the system's name servers.
    public var resolver: Endpoint?
    /// TLS from the first byte on, and no STARTTLS. Default: what the domain's records say; STARTTLS with ``via``.
    public var isDirect = false
    /// Whether to use channel binding if both sides support it; default yes.
    public var bindsChannel = true
    /// How TLS is spoken. A certificate that is refused never gets the password, but is looked at all the same.
    public var tls = ServerLegTLS()
    /// How long each step may take; default 10 seconds.
    public var timeout = TimeAmount.seconds(10)
    /// What is hidden from the logs.
    public var redaction = RedactionPolicy.secrets
    /// The words for what to try where the login fails; nil leaves them out.
    public var advice: Advice?

    /// A probe of an account's server without a password, with the defaults of each.
    public init(account: JID) { self.account = account.bare }
}
