internal import TapDiagnosis
internal import TapRecord
import TapRules
import XMPPCore

// Determines why a login failed. This is reported once, when the session ends.
extension SessionContext {
    /// Warns if the client sends its password by PLAIN after a stronger mechanism failed: an attacker may have caused
    /// that failure.
    mutating func warnOfDowngrade() {
        guard info.mechanism == "PLAIN", let earlier = login?.failedSCRAM else { return }
        report(
            code: LoginCause.plainDowngrade.rawValue,
            "the client reveals its password by PLAIN after \(earlier.mechanism) failed "
                + "(\(earlier.condition ?? "aborted"))",
            direction: .send,
            part: .sasl
        )
    }

    /// Returns the diagnosis of an ended session; nil if the session was opened, or if it is unknown whether it failed.
    ///
    /// - Parameter isPartial: Whether the session is recorded, and its items alone do not show the outcome.
    func diagnosis(isPartial: Bool) -> LoginDiagnosis? {
        var diagnosis = judged(isPartial: isPartial)
        if observesOnly, let found = diagnosis {
            diagnosis?.isProxyTheCause = nil
            // A recording of packets or of another log does not show whether xmpptap took part.
            if found.side == .tap { diagnosis?.side = .network }
            switch found.remedy {
            case .useLocalPart, .removeLineBreaks, .removeDeclaration, .checkCredential, .compareLogs, .startTLS,
                .offerBinding:
                break
            default: diagnosis?.remedy = .observed(found.cause)
            }
        }
        // A recorded diagnosis contains its own advice.
        if let remedy = diagnosis?.remedy, diagnosis?.advice == nil {
            diagnosis?.advice = options.advice?(remedy)
        }
        return diagnosis
    }

    /// Whether it is unknown if a proxy was involved. With BOSH, it is xmpptap, which changed nothing.
    private var observesOnly: Bool { options.isObserved && !options.isBOSH }

    private func judged(isPartial: Bool) -> LoginDiagnosis? {
        guard info.opened == nil, info.ending != .stopped, let login, !login.hasVerified
        else { return nil }
        if let blamed = login.blamed { return blamed }
        // A recording that does not show the outcome allows no diagnosis.
        if isPartial { return nil }
        let judge = LoginDiagnoser(
            info: info,
            steps: timeline.steps,
            notes: login,
            domain: info.domain.map { tools.redactor.disclose(address: $0) },
            initiator: info.from.map { tools.redactor.disclose(address: $0) },
            isLog: options.isDecoded,
            isObserved: observesOnly
        )
        let isUnreadable = directions.send.isUnreadable || directions.recv.isUnreadable
        return judge.diagnosis(isUnreadable: isUnreadable).map { attribute($0, to: login.acted) }
    }

    /// Attributes a failure to the action of a rule or of the user on the login. An error condition from a peer takes
    /// precedence, unless the bytes that this peer received were changed.
    private func attribute(_ found: LoginDiagnosis, to acted: [Direction: LoginObserver.Intervention]) -> LoginDiagnosis
    {
        guard found.side != .tap else { return found }
        var deeds = Direction.allCases.compactMap { acted[$0] }
        if found.condition != nil {
            var received = Direction.send
            if case .error(_, .send) = info.ending { received = .recv }
            deeds = [acted[received]].compactMap { $0 }.filter(\.isCertain)
        }
        if let deed = deeds.first(where: \.isCertain) {
            return LoginDiagnosis(
                .alteredByTap,
                at: found.loginStep,
                "\(deed.summary); then: \(found.finding)",
                condition: found.condition
            )
        }
        guard let deed = deeds.first else { return found }
        // A delay may have had no effect on the failure.
        var delayed = found
        delayed.finding = "\(found.finding); before that, \(deed.summary)"
        delayed.side = .unknown
        delayed.isProxyTheCause = nil
        delayed.remedy = .usual(.alteredByTap)
        return delayed
    }

    /// Stores the rules' action on an item of the login.
    mutating func observeAction(_ ruling: ItemRuling, _ event: StreamEvent, _ direction: Direction) {
        guard let login, !ruling.isWatched, info.opened == nil else { return }
        let verdict = ruling.verdict
        let deed: Prose
        var isCertain = true
        switch verdict.decision {
        case .pass where verdict.edited != nil: deed = "changed"
        case .pass:
            guard ruling.delays else { return }
            (deed, isCertain) = ("delayed", false)
        case .drop, .fault(.loseAck): deed = "dropped"
        case .fault: deed = "stopped"
        }
        let name = Self.shownName(directions.bytes(direction).slice(event.head.name))
        let rule = ruling.rule.map { "\($0)" } ?? "a rule"
        login.observe(
            .acted("\(rule) \(deed) \(name.map { "<\($0)/>" } ?? "an element")", direction, isCertain: isCertain)
        )
    }

    /// Counts an item of the login, and stores the name of the server's last element.
    mutating func observeLoginItem(_ event: StreamEvent, _ kind: StanzaScanner.Item.Kind, _ direction: Direction) {
        guard kind == .element || kind == .header else { return }
        timeline.count(direction)
        guard kind == .element, direction == .recv else { return }
        login?.observe(.answer(Self.shownName(directions.bytes(.recv).slice(event.head.name))))
        if negotiation.isBinding, info.kind == .client, [.message, .presence].contains(event.head.kind) {
            login?.observe(.established)
        }
    }

    /// Returns the name of an element for a diagnosis; nil if it is longer than 32 bytes or contains other characters
    /// than ASCII letters, digits and hyphens.
    private static func shownName(_ name: Span<UInt8>) -> String? {
        guard 1...32 ~= name.count else { return nil }
        var text = ""
        for index in name.indices {
            switch name[index] {
            case 0x61...0x7A, 0x41...0x5A, 0x30...0x39, 0x2D: text.unicodeScalars.append(Unicode.Scalar(name[index]))
            default: return nil
            }
        }
        return text
    }

    mutating func recordDiagnosis(isPartial: Bool) {
        guard options.level >= .error, let diagnosis = diagnosis(isPartial: isPartial) else { return }
        var record = makeRecord(.note, .error, part: diagnosis.loginStep.part)
        record.code = Record.Code.loginFailed
        record.condition = diagnosis.condition
        record.message = diagnosis.message
        record.details = diagnosis.details
        emit(consume record)
    }
}

extension DirectionRelay {
    /// Whether the stream continues in bytes that cannot be decoded, so that its outcome is unknown.
    fileprivate var isUnreadable: Bool {
        switch mode {
        case .opaque(.tls, _), .opaque(.compression, _): true
        default: false
        }
    }
}
