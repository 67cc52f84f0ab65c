internal import TapRecord
internal import TapSecurity

/// CAs that are not valid now.
enum OutdatedAuthorities {
    /// A line for each CA in the folder that has expired or is not yet valid, with what to do.
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
