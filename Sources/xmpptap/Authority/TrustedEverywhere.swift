internal import TapSecurity

/// Authorities of this program that the whole machine trusts, which is more than anybody needs.
enum TrustedEverywhere {
    /// A line for each authority in the folder that is among the system's roots, and what to do.
    static func warnings(_ folder: AuthorityFolder) -> [String] {
        guard let names = try? folder.names(), !names.isEmpty, let trust = SystemTrust() else { return [] }
        return names.compactMap { name in
            guard let authority = try? folder.authority(for: name), trust.holds(authority) else { return nil }
            return
                "the certificate authority for \(name) is among the roots that every program of this machine trusts: "
                + "whoever gets its key can pass for \(name) to all of them; take it out there (on Debian: out of "
                + "/usr/local/share/ca-certificates, then update-ca-certificates) and have the one client trust it"
        }
    }
}
