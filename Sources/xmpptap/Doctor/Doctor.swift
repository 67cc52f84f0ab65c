internal import Glibc
internal import NIOCore
internal import TapCapture
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapSecurity

/// Checks for problems that stop the program from working.
enum Doctor {
    /// Runs all checks, and returns the results in the order of the output.
    static func examine(_ spec: ListenSpec) -> [CheckResult] {
        var findings = [
            .ok("xmpptap", "\(Version.program) on \(system)"),
            libxml2(version: Version.libxml2),
            openSSL(version: Version.openSSL),
            cryptography(OpenSSLCryptography()),
        ]
        findings += listening(spec)
        let limit = ProcessLimits.descriptors
        findings.append(descriptors(hard: limit.hard))
        findings.append(folder(path: ShellWords.workingFolder, error: writing(in: ".")))
        findings.append(resolver(found: SystemNames.addresses(of: "localhost")))
        findings.append(output(Surroundings.current))
        findings.append(packets(error: LiveCapture.permission))
        return findings
    }

    // MARK: Checks

    static func libxml2(version: String) -> CheckResult {
        let numbers = version.split(separator: ".").compactMap { Int($0) }
        guard numbers.count == 3, (numbers[0], numbers[1]) >= (2, 9) else {
            return .stop("libxml2", "\(version) is too old; install 2.9 or later (apt-get install libxml2)")
        }
        return .ok("libxml2", version)
    }

    static func openSSL(version: String) -> CheckResult {
        guard let major = version.split(separator: ".").first.flatMap({ Int($0) }), major >= 3 else {
            return .stop("OpenSSL", "\(version) is too old; install 3.0 or later (apt-get install libssl3)")
        }
        return .ok("OpenSSL", version)
    }

    /// Checks the digests and random bytes that logins need: the OpenSSL policy of a machine can forbid them.
    static func cryptography(_ cryptography: some Cryptography) -> CheckResult {
        let missing = [HashAlgorithm.sha1, .sha256].filter { (try? cryptography.digest($0, of: [])) == nil }
        guard missing.isEmpty, (try? cryptography.randomBytes(count: 16)) != nil else {
            let names = missing.map(\.rawValue).joined(separator: ", ")
            return .stop(
                "cryptography",
                "OpenSSL refuses \(names.isEmpty ? "random numbers" : names); check /etc/ssl/openssl.cnf"
            )
        }
        return .ok("cryptography", "SHA-1, SHA-256 and random numbers work")
    }

    /// Checks whether the proxy could listen as specified: on all addresses of the host, or on both loopback addresses.
    static func listening(_ spec: ListenSpec) -> [CheckResult] {
        let hasHost = spec.host.map { $0 != "localhost" } ?? false
        let addresses = hasHost ? SystemNames.addresses(of: spec.host ?? "") : ListenPort.loopback
        guard !addresses.isEmpty else {
            return [
                .stop(
                    "port \(spec.port)",
                    "\(spec.host ?? "") cannot be resolved; choose another with --listen HOST:PORT"
                )
            ]
        }
        return addresses.map { address in
            listening(spec.port, address, isChosen: hasHost, error: ListenPort.listen(spec.port, address))
        }
    }

    /// Returns the result for one address.
    ///
    /// - Parameter isChosen: Whether the user named the address, so that it must exist.
    static func listening(_ port: Int, _ address: String, isChosen: Bool = false, error: Int32) -> CheckResult {
        let subject = "port \(port)"
        let shown = address.contains(":") ? "[\(address)]" : address
        switch error {
        case 0:
            return .ok(subject, "free on \(shown)")
        case EADDRINUSE:
            let search = "ss -ltnp 'sport = :\(port)'"
            return .stop(
                subject,
                "in use on \(shown); stop the process that uses it (\(search)), or choose another with --listen PORT"
            )
        case EADDRNOTAVAIL where !isChosen, EAFNOSUPPORT where !isChosen:
            return .note(subject, "this machine has no \(shown); only the other address family is used")
        default:
            return .stop(
                subject,
                "cannot listen on \(shown): \(reason(error)); choose another with --listen PORT"
            )
        }
    }

    static func descriptors(hard: UInt64) -> CheckResult {
        let sessions = ProcessLimits.sessions(descriptors: hard)
        let text = "\(hard) allowed, enough for \(sessions) sessions"
        if sessions < 8 { return .stop("descriptors", "\(text); raise the limit (ulimit -Hn 4096)") }
        if sessions < 400 {
            return .note("descriptors", "\(text); for more sessions raise the limit (ulimit -Hn 4096)")
        }
        return .ok("descriptors", text)
    }

    static func folder(path: String, error: Int32) -> CheckResult {
        guard error == 0 else {
            return .note(
                "logs",
                "cannot write to \(path): \(reason(error)); put logs and captures in another folder"
            )
        }
        return .ok("logs", "can write to \(path)")
    }

    static func resolver(found: [String]) -> CheckResult {
        guard !found.isEmpty else {
            return .note(
                "names",
                "localhost cannot be resolved; add the line \"127.0.0.1 localhost\" to /etc/hosts"
            )
        }
        guard found.allSatisfy({ $0 == "::1" || $0.hasPrefix("127.") }) else {
            return .note("names", "localhost is \(found.joined(separator: ", ")); check /etc/hosts")
        }
        return .ok("names", "localhost is \(found.joined(separator: ", "))")
    }

    static func servers(of domain: Upstream.Domain, resolver: Endpoint?) -> [CheckResult] {
        let report = DomainReport.lookUp(domain, resolver: resolver)
        let findings = report.steps.map { step in
            let text = "\(step.subject): \(step.finding)"
            return step.outcome == .ok ? CheckResult.ok(domain.name, text) : .note(domain.name, text)
        }
        let way = "its clients cannot be served; ask its operator, or name its server with --upstream HOST:PORT"
        return findings + (report.fault.map { [.stop(domain.name, "\($0): \(way)")] } ?? [])
    }

    /// Checks for CAs that the whole system trusts, or that are not valid.
    static func authorities(_ folder: AuthorityFolder, at now: Timestamp) -> [CheckResult] {
        AuthorityWarnings.all(folder, at: now).map { .note("authorities", $0) }
    }

    static func output(_ surroundings: Surroundings) -> CheckResult {
        guard surroundings.isTerminal else {
            return .ok("output", "not a terminal: the log shows level info, unless --log is given")
        }
        return .ok("output", "a terminal\(surroundings.wantsColour ? ", with colours" : ", without colours")")
    }

    /// Checks whether this user may capture packets with `sniff`.
    static func packets(error: Int32) -> CheckResult {
        switch error {
        case 0: .ok("packets", "this user may capture them (xmpptap sniff)")
        case EPERM, EACCES: .note("packets", CaptureRight.missing)
        default: .note("packets", "cannot be captured: \(reason(error)); read files of packets instead (xmpptap read)")
        }
    }

    // MARK: Properties of the machine

    private static var system: String {
        let release = (try? TextFile.read("/etc/os-release")) ?? ""
        let line = release.split(separator: "\n").first { $0.hasPrefix("PRETTY_NAME=") }
        let name = line.map { $0.dropFirst("PRETTY_NAME=".count).filter { $0 != "\"" } }
        var uts = utsname()
        uname(&uts)
        let machine = withUnsafeBytes(of: uts.machine) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return "\(name ?? "unknown system"), \(machine)"
    }

    /// Tests writing by creating and removing a file. Checking permissions is not sufficient: the file system can be
    /// read-only or full.
    ///
    /// - Returns: 0 on success, otherwise the error number.
    static func writing(in folder: String) -> Int32 {
        let path = "\(folder)/.xmpptap-doctor-\(getpid())"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return errno }
        let error = write(descriptor, "\n", 1) == 1 ? 0 : errno
        close(descriptor)
        unlink(path)
        return error
    }

    private static func reason(_ error: Int32) -> String { String(cString: strerror(error)) }
}

struct CheckResult: Hashable {
    /// The severity of a result.
    enum Outcome: String, Hashable {
        case ok
        /// The program works with a restriction.
        case note
        /// The program does not work.
        case stop
    }

    /// The checked item, as one word.
    let subject: String
    let outcome: Outcome
    /// The result, with a remedy if necessary.
    let text: String

    static func ok(_ subject: String, _ text: String) -> CheckResult {
        CheckResult(subject: subject, outcome: .ok, text: text)
    }

    static func note(_ subject: String, _ text: String) -> CheckResult {
        CheckResult(subject: subject, outcome: .note, text: text)
    }

    static func stop(_ subject: String, _ text: String) -> CheckResult {
        CheckResult(subject: subject, outcome: .stop, text: text)
    }

    /// Returns the lines for users: one, or several on a terminal. Control characters are escaped, because the text can
    /// contain names from a DNS reply.
    func lines(_ style: OutputStyle = .plain) -> [String] {
        let mark: OutputStyle.Mark =
            switch outcome {
            case .ok: .done
            case .note: .warned
            case .stop: .failed
            }
        guard let width = style.width else {
            let word = style.paint(outcome.rawValue.padded(to: 5), mark.colour)
            return ["\(word) \(Console.escaped("\(subject.padded(to: 12)) \(text)"))"]
        }
        return style.rows(mark, text, name: subject, column: width < 40 ? 4 : 14)
    }

    /// The result for programs, as a JSON line.
    var json: String {
        LineBuffer.object {
            $0.field("check", subject)
            $0.field("outcome", outcome.rawValue)
            $0.field("text", text)
        }
    }
}

/// Tests whether a TCP port of this machine is available.
enum ListenPort {
    static let loopback = ["127.0.0.1", "::1"]

    /// Tries to listen on a port, and closes it again.
    ///
    /// - Returns: 0 on success, otherwise the error number.
    static func listen(_ port: Int, _ address: String) -> Int32 {
        let descriptor = socket(
            address.contains(":") ? AF_INET6 : AF_INET,
            Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue),
            0
        )
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        let socketAddress = try? SocketAddress(ipAddress: address, port: port)
        guard socketAddress?.withSockAddr({ bind(descriptor, $0, socklen_t($1)) }) == 0,
            Glibc.listen(descriptor, 1) == 0
        else {
            return errno
        }
        return 0
    }
}
