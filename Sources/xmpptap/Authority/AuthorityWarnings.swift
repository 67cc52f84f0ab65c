internal import TapRecord
internal import TapSecurity

/// Lines about the CAs of a folder that need attention, with what to do.
enum AuthorityWarnings {
    /// Those that the whole system trusts, then those that are not valid now.
    static func all(_ folder: AuthorityFolder, at now: Timestamp) -> [String] {
        trustedEverywhere(folder) + outdated(folder, at: now)
    }

    /// A line for each CA that is among the system's roots.
    static func trustedEverywhere(_ folder: AuthorityFolder) -> [String] {
        guard let trust = SystemTrust() else { return [] }
        return authorities(folder).filter(trust.holds).map { authority in
            let name = authority.name
            return
                "every program on this machine trusts the certificate authority for \(name): anyone who gets its key can "
                + "impersonate \(name) to all of them; remove it from the system's roots (on Debian: from "
                + "/usr/local/share/ca-certificates, then update-ca-certificates) and let only the one client trust it"
        }
    }

    private static func outdated(_ folder: AuthorityFolder, at now: Timestamp) -> [String] {
        authorities(folder).compactMap { authority in
            do throws(AuthorityError) {
                try authority.checkValidity(at: now)
                return nil
            } catch {
                return error.message(in: folder)
            }
        }
    }

    private static func authorities(_ folder: AuthorityFolder) -> [CertificateAuthority] {
        ((try? folder.names()) ?? []).compactMap { try? folder.authority(for: $0) }
    }
}
