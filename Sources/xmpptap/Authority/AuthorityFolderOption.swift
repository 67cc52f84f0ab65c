internal import ArgumentParser
internal import Glibc
internal import TapSecurity

/// `--ca-dir`, used by all commands that need a certificate authority.
struct AuthorityFolderOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Folder of the CAs (default: ~/.local/share/xmpptap/ca).",
            discussion: "The default is $XDG_DATA_HOME/xmpptap/ca if that variable is set.",
            valueName: "folder"
        ),
        completion: .directory
    )
    var caDir: String?

    /// Returns the folder to use; it may not exist.
    func resolved() throws(Failure) -> AuthorityFolder {
        let usual = (Console.environment("HOME") ?? Self.homeOfAccount).map {
            AuthorityFolder.usual(dataHome: Console.environment("XDG_DATA_HOME"), home: $0)
        }
        guard let caDir else {
            guard let usual else {
                throw .usage("this user has no home folder; name the folder of certificate authorities with --ca-dir")
            }
            return usual
        }
        guard !caDir.isEmpty else { throw .usage("--ca-dir is empty; name a folder, or leave it out") }
        // Hints repeat `--ca-dir` only if it is not the default folder.
        let named = AuthorityFolder(caDir)
        return usual.flatMap { $0 == named ? $0 : nil } ?? named
    }

    /// The account's home folder: services are often started without `HOME`.
    private static var homeOfAccount: String? {
        guard let entry = getpwuid(geteuid()), let folder = entry.pointee.pw_dir, folder.pointee != 0 else {
            return nil
        }
        return String(cString: folder)
    }
}
