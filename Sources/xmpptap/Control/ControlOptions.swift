internal import ArgumentParser
internal import TapControl
internal import TapNetwork
internal import TapRecord
internal import XMPPCore

/// `--control`: selects the proxy.
struct ControlOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("Control socket of the proxy (default: that of the only running one).", valueName: "path"),
        completion: .controlSockets
    )
    var control: String?

    /// Returns a client for the selected proxy.
    func client() throws(ControlClientError) -> ControlClient {
        guard let control else { return try ControlClient(onlyIn: ControlPath.folder) }
        return ControlClient(path: control)
    }
}

/// `--session` and `--jid`: select a session of the proxy.
struct SessionOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("Number of the session.", valueName: "number"),
        completion: .sessionNumbers,
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var session: [UInt64] = []

    @Option(
        help: ArgumentHelp("JID of the session, full or bare.", valueName: "jid"),
        completion: .sessionJIDs,
        transform: JID.typed
    )
    var jid: JID?

    func validate() throws {
        guard session.count <= 1 else { throw ValidationError("--session given more than once") }
        guard session.isEmpty || jid == nil else {
            throw ValidationError("--session and --jid both name a session; leave one out")
        }
        guard !session.isEmpty || jid != nil else {
            throw ValidationError("name the session with --session or --jid; 'xmpptap sessions' lists them")
        }
    }

    /// Returns the selected session.
    ///
    /// - Throws: A ``Failure`` if no session or several match; a ``ControlClientError`` if the request to the proxy
    ///   fails.
    func choose(_ client: ControlClient) async throws -> RunningSession {
        if let number = session.first { return try await client.session(number) }
        let name = jid?.description ?? ""
        let list = try await client.ask(.init("GET", "/sessions", query: [("jid", name)]))
        let found = try (list["sessions"]?.values ?? []).map { json throws(ControlClientError) in
            try RunningSession(json)
        }
        guard let first = found.first else {
            let advice = AdviceTable.advice(for: ControlProblem.noSuchSession) ?? ""
            throw Failure(status: .checkFailed, message: "no session of \(name); \(advice)")
        }
        guard found.count == 1 else {
            let list = found.map { "\($0.number) (\($0.jid ?? name))" }.joined(separator: ", ")
            throw Failure.usage("\(name) has several sessions: \(list); choose one with --session")
        }
        return first
    }
}

extension ControlClient {
    /// Returns the session with a number.
    func session(_ number: UInt64) async throws -> RunningSession {
        try RunningSession(await ask(.init("GET", "/sessions/\(number)")))
    }
}

/// One of the two sides of a session.
enum Side: String, CaseIterable {
    case client, server
}

extension JID {
    /// Parses a JID typed by the user.
    static func typed(_ text: String) throws(Failure) -> JID {
        do throws(JIDError) {
            return try JID(parsing: text)
        } catch {
            throw .usage("write a JID such as juliet@example.org (\(error))")
        }
    }
}
