internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapSecurity

/// Implements the subcommands of `xmpptap ca`.
struct AuthorityManager {
    let folder: AuthorityFolder
    var now = RunClock().now().time
    /// The public suffixes, which require `--allow-public-suffix`.
    var suffixes = PublicSuffixes(ownName: Console.hostName)

    /// Creates a CA and prints it.
    ///
    /// - Parameter allowsPublicSuffix: Whether the name may be a public suffix.
    func create(_ name: CertificateName, allowsPublicSuffix: Bool = false) throws(Failure) {
        let (authority, isNew) = try convertingErrors { () throws(AuthorityError) in
            if !allowsPublicSuffix, suffixes.contains(name), try folder.authority(for: name) == nil {
                throw AuthorityError.publicSuffix(name)
            }
            let made = try folder.create(for: name, at: now)
            try made.authority.checkValidity(at: now)
            return made
        }
        Console.printEscaped(
            isNew
                ? "created the certificate authority for \(name):"
                : "the certificate authority for \(name) already exists:"
        )
        for line in AuthorityInfo(authority, in: folder).lines() { Console.print(line) }
        Console.printStandardError("to make a client trust it: xmpptap ca export --domain \(name)\(folder.flag)")
    }

    func show(_ wanted: CertificateName?, isJSON: Bool, _ style: OutputStyle = .plain) throws(Failure) {
        let names = try convertingErrors(folder.names)
        if let wanted, !names.contains(wanted) { throw missing(wanted) }
        if names.isEmpty { Console.printDiagnostic("no certificate authority in \(folder.path)") }
        var isWell = true
        for name in names where wanted == nil || wanted == name {
            let info: AuthorityInfo
            do throws(AuthorityError) {
                // The CA was removed after it was listed.
                guard let authority = try folder.authority(for: name) else { continue }
                info = AuthorityInfo(authority, in: folder, at: now)
            } catch {
                info = AuthorityInfo(name, fault: error, in: folder)
            }
            isWell = isWell && info.fault == nil
            if isJSON {
                Console.print(info.json)
            } else {
                Console.print(style.width == nil ? Console.escaped("\(name)") : style.rule("\(name)"))
                for line in info.lines(style) { Console.print(line) }
            }
        }
        if !isWell { throw .reported(.checkFailed) }
    }

    /// Writes the certificate to standard output, and instructions for trusting it to standard error.
    func export(_ wanted: CertificateName?, isDER: Bool) throws(Failure) {
        guard !isDER || !Console.isTerminal else {
            throw .usage("--der writes binary data; redirect it to a file, or leave --der out")
        }
        let name = try chosen(wanted)
        let found = try convertingErrors { () throws(AuthorityError) in
            let found = try folder.authority(for: name)
            try found?.checkValidity(at: now)
            return found
        }
        guard let authority = found else { throw missing(name) }
        Console.write(isDER ? authority.certificate : Array(authority.pem.utf8))
        // A failed write is reported when the program ends.
        guard Console.fault == nil else { return }
        let guide = TrustGuide(name: name, file: Console.outputPath, isDER: isDER, flag: folder.flag)
        for line in guide.lines { Console.printStandardError(line) }
    }

    func remove(_ wanted: CertificateName?) throws(Failure) {
        let name = try chosen(wanted)
        try convertingErrors { () throws(AuthorityError) in try folder.remove(name) }
        Console.printEscaped("removed the certificate authority for \(name)")
        Console.printStandardError("clients keep trusting it; remove \"xmpptap CA for \(name)\" from them too")
    }

    /// Returns the given name, or that of the only CA.
    private func chosen(_ name: CertificateName?) throws(Failure) -> CertificateName {
        if let name { return name }
        let names = try convertingErrors(folder.names)
        guard let only = names.first else {
            throw .usage(
                "no certificate authority in \(folder.path); create one with 'xmpptap ca create --domain DOMAIN\(folder.flag)'"
            )
        }
        guard names.count == 1 else {
            let list = names.map(\.description).joined(separator: ", ")
            throw .usage("there are several certificate authorities; choose one with --domain: \(list)")
        }
        return only
    }

    private func missing(_ name: CertificateName) -> Failure {
        Failure(AuthorityError(.missing(folder: folder.path), "\(name)"), in: folder)
    }

    private func convertingErrors<Value>(_ body: () throws(AuthorityError) -> Value) throws(Failure) -> Value {
        do throws(AuthorityError) {
            return try body()
        } catch {
            throw Failure(error, in: folder)
        }
    }
}

extension Failure {
    /// Creates the failure for an error of a CA in a folder.
    init(_ error: AuthorityError, in folder: AuthorityFolder) {
        self.init(status: error.isUsage ? .usage : .file, message: AdviceTable.line(error, in: folder))
    }
}

/// Warnings about the CAs of a folder, with advice.
enum AuthorityWarnings {
    /// Returns warnings about CAs that the whole system trusts, and then about those that are not valid now.
    static func all(_ folder: AuthorityFolder, at now: Timestamp) -> [String] {
        trustedEverywhere(folder) + outdated(folder, at: now)
    }

    /// Returns a warning for each CA that is among the system's roots.
    static func trustedEverywhere(_ folder: AuthorityFolder) -> [String] {
        let authorities = authorities(folder)
        // Read the system's roots only if there are CAs: this takes longer than the rest of the proxy's start.
        guard !authorities.isEmpty, let trust = SystemTrust() else { return [] }
        return authorities.filter(trust.holds).map { authority in
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
                return AdviceTable.line(error, in: folder)
            }
        }
    }

    private static func authorities(_ folder: AuthorityFolder) -> [CertificateAuthority] {
        ((try? folder.names()) ?? []).compactMap { try? folder.authority(for: $0) }
    }
}
