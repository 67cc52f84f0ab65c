internal import TapSecurity

/// CAs of this program that the whole system trusts.
enum TrustedEverywhere {
    /// A line for each CA in the folder that is among the system's roots, with what to do.
    static func warnings(_ folder: AuthorityFolder) -> [String] {
        guard let names = try? folder.names(), !names.isEmpty, let trust = SystemTrust() else { return [] }
        return names.compactMap { name in
            guard let authority = try? folder.authority(for: name), trust.holds(authority) else { return nil }
            return
                "every program on this machine trusts the certificate authority for \(name): anyone who gets its key can "
                + "impersonate \(name) to all of them; remove it from the system's roots (on Debian: from "
                + "/usr/local/share/ca-certificates, then update-ca-certificates) and let only the one client trust it"
        }
    }
}
