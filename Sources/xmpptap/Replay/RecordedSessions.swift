internal import TapCapture
internal import TapRecord
internal import TapReplay
internal import TapSecurity

/// Reads recorded sessions that can be replayed.
enum RecordedSessions {
    /// Reads the sessions.
    ///
    /// - Parameters:
    ///   - wanted: Numbers of the sessions; if empty, all with a login are read.
    ///   - keys: TLS secrets for packets.
    ///   - refusals: Whether to include sessions whose login the server refused.
    ///   - advice: The advice shown if a session cannot be replayed.
    /// - Throws: A ``Failure`` if a session cannot be replayed, or there are none.
    static func read(
        _ files: [String],
        _ wanted: Set<UInt64>,
        keys: KeyLog,
        refusals: Bool = false,
        advice: String = AdviceTable.recordWhole
    ) throws(Failure) -> [RecordedConversation] {
        var reader = ConversationReader()
        let stored = try StoredRecords(files, keys: keys) { entry in
            switch entry {
            case .header(let header): reader.add(header)
            case .record(let line):
                if line.record.code == RecordReader.droppedCode { reader.recordLoss() }
                reader.add(line)
            case .damage, .gap: reader.recordLoss()
            }
        }
        stored.remark(on: wanted)
        let name = files.joined(separator: ", ")
        let sessions = reader.conversations().filter { session in
            guard refusals || session.refusal == nil else { return false }
            return wanted.isEmpty ? session.faults != [.withoutLogin] : wanted.contains(session.number)
        }
        for session in sessions {
            guard let fault = session.faults.first else { continue }
            let help = isOrder(fault) ? AdviceTable.recordedOrder : advice
            throw .file("\(name): session \(session.number) cannot be replayed: \(explanation(fault)); \(help)")
        }
        if !wanted.isEmpty {
            // The selected sessions are missing, which was already reported.
            guard !sessions.isEmpty else { throw .reported(.file) }
            for session in sessions {
                guard let earlier = session.resumes, !wanted.contains(earlier) else { continue }
                Console.printDiagnostic(
                    "session \(session.number) resumed session \(earlier), which is left out; add --session \(earlier)"
                )
            }
        }
        guard !sessions.isEmpty else { throw .file("\(name): no session with a completed login; \(advice)") }
        return sessions
    }

    private static func explanation(_ fault: RecordedConversation.Fault) -> String {
        switch fault {
        case .withoutLogin: "its login was not recorded, or failed"
        case .encrypted: "it is encrypted"
        case .lacksItems(let count): "\(count) of its stanzas were recorded without content"
        case .incomplete: "records of it are missing"
        case .disordered(let record, let after): "record \(record) comes after record \(after)"
        case .answeredEarly(let answer, let request): "record \(answer) answers record \(request), which comes later"
        }
    }

    private static func isOrder(_ fault: RecordedConversation.Fault) -> Bool {
        switch fault {
        case .disordered, .answeredEarly: true
        case .withoutLogin, .encrypted, .lacksItems, .incomplete: false
        }
    }
}
