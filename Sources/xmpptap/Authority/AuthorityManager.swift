internal import TapCore
internal import TapNetwork
internal import TapSecurity

/// What the commands of `xmpptap ca` do.
struct AuthorityManager {
    /// Where the authorities are.
    let folder: AuthorityFolder
    /// The time.
    var now = RunClock().now().time
    /// Names for which none is made without a confirmation.
    var suffixes = PublicSuffixes(ownName: Console.hostName)

    /// Makes one, and shows it.
    ///
    /// - Parameter allowsPublicSuffix: It was confirmed that a public suffix is meant.
    func create(_ name: CertificateName, allowsPublicSuffix: Bool = false) throws(Failure) {
        let (authority, isNew) = try tell { () throws(AuthorityError) in
            if !allowsPublicSuffix, suffixes.contains(name), try folder.authority(for: name) == nil {
                throw AuthorityError.publicSuffix(name)
            }
            let made = try folder.create(for: name, at: now)
            try made.authority.checkValidity(at: now)
            return made
        }
        Console.show(isNew ? "made for \(name):" : "there is one for \(name) already:")
        for line in AuthorityInfo(authority, in: folder).lines { Console.show(line) }
        Console.tell("how clients come to trust it: xmpptap ca export --domain \(name)\(folder.flag)")
    }

    /// Shows all of them, or one.
    func show(_ wanted: CertificateName?, isJSON: Bool) throws(Failure) {
        let names = try tell(folder.names)
        if let wanted, !names.contains(wanted) { throw missing(wanted) }
        if names.isEmpty { Console.complain("there is no certificate authority in \(folder.path)") }
        var isWell = true
        for name in names where wanted == nil || wanted == name {
            let info: AuthorityInfo
            do throws(AuthorityError) {
                // Removed since it was listed.
                guard let authority = try folder.authority(for: name) else { continue }
                info = AuthorityInfo(authority, in: folder, at: now)
            } catch {
                info = AuthorityInfo(name, fault: error, in: folder)
            }
            isWell = isWell && info.fault == nil
            if isJSON {
                Console.print(info.json)
            } else {
                Console.show("\(name)")
                for line in info.lines { Console.show(line) }
            }
        }
        if !isWell { throw .told(.checkFailed) }
    }

    /// Writes the certificate to standard output, and how to trust it to standard error.
    func export(_ wanted: CertificateName?, isDER: Bool) throws(Failure) {
        guard !isDER || !Console.isTerminal else {
            throw .usage("--der writes bytes that no terminal shows; write them to a file, or leave --der out")
        }
        let name = try chosen(wanted)
        let found = try tell { () throws(AuthorityError) in
            let found = try folder.authority(for: name)
            try found?.checkValidity(at: now)
            return found
        }
        guard let authority = found else { throw missing(name) }
        Console.write(isDER ? authority.certificate : Array(authority.pem.utf8))
        // Nobody can trust what was not written; that is told at the end.
        guard Console.fault == nil else { return }
        let guide = TrustGuide(name: name, file: Console.outputPath, isDER: isDER, flag: folder.flag)
        for line in guide.lines { Console.tell(line) }
    }

    /// Removes one.
    func remove(_ wanted: CertificateName?) throws(Failure) {
        let name = try chosen(wanted)
        try tell { () throws(AuthorityError) in try folder.remove(name) }
        Console.show("removed: the certificate authority for \(name)")
        Console.tell("clients that trust it still do; remove \"xmpptap CA for \(name)\" there too")
    }

    /// The name that was given, or else that of the only one there is.
    private func chosen(_ name: CertificateName?) throws(Failure) -> CertificateName {
        if let name { return name }
        let names = try tell(folder.names)
        guard let only = names.first else {
            throw .usage(
                "there is no certificate authority in \(folder.path); make one with 'xmpptap ca create --domain DOMAIN\(folder.flag)'"
            )
        }
        guard names.count == 1 else {
            let list = names.map(\.description).joined(separator: ", ")
            throw .usage("there are several certificate authorities: say which with --domain, of \(list)")
        }
        return only
    }

    private func missing(_ name: CertificateName) -> Failure {
        .usage(
            "there is no certificate authority for \(name) in \(folder.path); make one with 'xmpptap ca create --domain "
                + "\(name)\(folder.flag)'"
        )
    }

    private func tell<Value>(_ body: () throws(AuthorityError) -> Value) throws(Failure) -> Value {
        do throws(AuthorityError) {
            return try body()
        } catch {
            throw Failure(error, in: folder)
        }
    }
}

extension Failure {
    /// The failure of a certificate authority of a folder.
    init(_ error: AuthorityError, in folder: AuthorityFolder) {
        self.init(status: error.isUsage ? .usage : .file, message: error.message(in: folder))
    }
}
