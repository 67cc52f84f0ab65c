internal import Glibc
internal import TapCapture
internal import TapSecurity

/// Reads a password from a file, or from the terminal without echo. It is never an argument, because other users can
/// see the command line.
enum PasswordFile {
    /// Maximum size of the file in bytes.
    private static let maximumLength = 4096

    /// Returns the password, which is the first line of a file.
    ///
    /// - Parameters:
    ///   - path: The file; `-` is standard input, with a prompt if it is a terminal.
    ///   - account: The account, for the prompt.
    ///   - flag: The flag that names the file.
    static func read(
        _ path: String,
        of account: String,
        flag: String = "--password-file"
    ) throws(Failure) -> String {
        if path == "-", isatty(STDIN_FILENO) == 1 { return try ask(for: account) }
        guard rights(of: path) & 0o077 == 0 else {
            throw .file("other users can read \(flag) \(path); run 'chmod 600 \(path)'")
        }
        let text: String
        do throws(Failure) {
            text = try TextFile.read(path, limit: maximumLength)
        } catch {
            throw Failure(status: error.status, message: "\(flag): \(error.message)")
        }
        let line = text.passwordLine
        guard !line.isEmpty else {
            throw .file("\(flag): the first line of \(path) is empty; write the password there")
        }
        return line
    }

    /// Returns the permissions of a regular file; 0 for anything else.
    private static func rights(of path: String) -> UInt32 {
        guard path != "-", let status = FileStatus(path: path), status.isRegular else { return 0 }
        return status.rights
    }

    private static func ask(for account: String) throws(Failure) -> String {
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else {
            throw .file("cannot prompt for the password on this terminal")
        }
        var silent = settings
        // Disable signals too, as getpass does: an interrupt would leave the terminal without echo.
        silent.c_lflag &= ~tcflag_t(ECHO | ISIG)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
        defer {
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
            Console.printStandardError("")
        }
        Console.prompt("Password of \(account): ")
        guard let line = readLine(), !line.isEmpty else { throw .usage("no password was typed") }
        return line
    }
}
