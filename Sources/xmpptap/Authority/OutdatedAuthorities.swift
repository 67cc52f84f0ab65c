internal import TapRecord
internal import TapSecurity

/// Authorities that cannot vouch for anything today.
enum OutdatedAuthorities {
    /// A line for each authority in the folder whose time is over or has not begun, and what to do.
    static func warnings(_ folder: AuthorityFolder, at now: Timestamp) -> [String] {
        guard let names = try? folder.names() else { return [] }
        return names.compactMap { name in
            guard let authority = try? folder.authority(for: name) else { return nil }
            do throws(AuthorityError) {
                try authority.checkValidity(at: now)
                return nil
            } catch {
                return error.message(in: folder)
            }
        }
    }
}
