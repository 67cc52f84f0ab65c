internal import TapRecord
package import XMPPCore

/// Creates divergences from findings and from the texts of their items, which are read from the recordings again.
package struct DivergenceBuilder {
    /// The text of an item that was read again.
    package struct Text: Sendable {
        /// The bytes as the receiving peer got them.
        package var bytes: [UInt8]
        /// The declarations of the stream header, as ``StanzaParser/parse(_:root:)`` expects them.
        package var root: [UInt8]

        package init(bytes: [UInt8], root: [UInt8] = StanzaForm.clientDeclarations) {
            self.bytes = bytes
            self.root = root
        }
    }

    /// The texts of one side's items, by session and number.
    package typealias Texts = [SessionKey: [UInt64: Text]]

    private let recorded: Texts
    private let live: Texts
    private let bindings: ValueBindings
    private let rules: NoiseRules
    private let parser: StanzaParser

    /// The full JIDs of the compared sessions.
    private let played: Set<String>
    private let written: (recorded: WrittenValues, live: WrittenValues)

    /// Creates a builder.
    ///
    /// - Parameters:
    ///   - bindings: The pairs of accounts.
    ///   - played: The full JIDs of the sessions on both sides: stanzas that concern other clients are optional.
    ///   - written: The values that the clients of each side stored on the server.
    package init(
        recorded: Texts,
        live: Texts,
        bindings: ValueBindings,
        rules: NoiseRules,
        played: Set<String> = [],
        written: (recorded: WrittenValues, live: WrittenValues) = (WrittenValues(), WrittenValues()),
        parser: StanzaParser
    ) {
        self.written = written
        self.played = played
        self.recorded = recorded
        self.live = live
        self.bindings = bindings
        self.rules = rules
        self.parser = parser
    }

    /// Returns the divergence for a finding.
    package func divergence(_ finding: RecordingDifference.Finding) -> Divergence {
        let (one, form) = read(finding.recorded, recorded)
        let (other, liveForm) = read(finding.live, live)
        var divergence = Divergence(.behaviour, finding.code, recorded: one, live: other)
        divergence.consequences = finding.consequences
        switch finding.code {
        case .changed:
            guard let form, let liveForm else { break }
            var bindings = self.bindings
            let comparison = StanzaComparison(recorded: form, live: liveForm, bindings: &bindings, rules: rules)
            divergence.differences = comparison.differences + collisions(comparison, finding.collisions)
            if divergence.differences.isEmpty, let optional = comparison.optional.first {
                divergence.setOptional(StanzaOption(optional.source))
                divergence.message = "\(optional.path): \(divergence.message)"
                return divergence
            }
            if divergence.differences.isEmpty, !comparison.undecided.isEmpty {
                divergence.code = .undecided
                divergence.message = comparison.undecided.joined(separator: ", ")
            } else if !divergence.differences.isEmpty,
                divergence.differences.allSatisfy({ $0.reason == .collision })
            {
                divergence.code = .collision
            }
        case .slower:
            if let trips = finding.roundTrips {
                divergence.message = "\(Self.seconds(trips.recorded)) → \(Self.seconds(trips.live))"
            }
        default: break
        }
        divergence.classify(form, liveForm)
        if isOfOwnData(divergence, finding, form) { divergence.divergenceClass = .behaviour }
        let isRecorded = finding.recorded != nil
        let account = (form ?? liveForm).flatMap { $0.to.flatMap { JID($0) } }
        let stanzas = DivergenceSubject.Stanzas(
            recorded: form,
            live: liveForm,
            request: read(finding.request, isRecorded ? recorded : live).1,
            account: account,
            isSent: (finding.recorded ?? finding.live)?.direction == .send,
            address: { [bindings] in bindings.jid($0, .toRecorded) }
        )
        if isRecorded { divergence.asked = finding.request?.at }
        divergence.subject = DivergenceSubject(divergence.code, stanzas, divergence.differences)
        if finding.code == .missing || finding.code == .unexpected, let form = form ?? liveForm,
            (finding.recorded ?? finding.live)?.direction == .recv,
            let option = OptionalStanzas.option(form, rules, OptionalStanzas.Roles(isPlayed: played.contains)),
            finding.code == .missing || option.isRepeatable
        {
            divergence.setOptional(option)
        }
        return divergence
    }

    /// Returns whether a divergence of stored data concerns a value that the clients of both recordings stored
    /// themselves.
    private func isOfOwnData(_ divergence: Divergence, _ finding: RecordingDifference.Finding, _ form: StanzaForm?)
        -> Bool
    {
        guard divergence.divergenceClass == .state, divergence.code == .changed, let one = finding.recorded,
            let other = finding.live
        else { return false }
        func moment(_ place: RecordingDifference.Place, _ values: WrittenValues) -> WrittenValues.Moment {
            values.moment(place.sequence, run: place.session.run)
        }
        return written.recorded.explain(
            divergence.differences,
            in: form,
            before: moment(one, written.recorded),
            live: (written.live, moment(other, written.live))
        )
    }

    private func read(_ place: RecordingDifference.Place?, _ texts: Texts) -> (Divergence.Item?, StanzaForm?) {
        guard let place else { return (nil, nil) }
        let text = texts[place.session]?[place.sequence] ?? Text(bytes: [])
        let item = Divergence.Item(
            session: place.session.number,
            sequence: place.sequence,
            at: place.at,
            direction: place.direction,
            text: String(decoding: text.bytes, as: UTF8.self)
        )
        return (item, StanzaForm(text.bytes, parser: parser, root: text.root))
    }

    /// Returns differences for the bound values that conflict with earlier bindings.
    private func collisions(
        _ comparison: StanzaComparison,
        _ values: [(VolatileValue, VolatileValue)]
    ) -> [ValueDifference] {
        guard !values.isEmpty else { return [] }
        var digester = StanzaDigester(rules: rules, names: bindings.recordedNames)
        var liveDigester = StanzaDigester(rules: rules, names: bindings.liveNames)
        return comparison.bound.compactMap { value in
            let pair = (
                digester.value(value.recorded, value.valueClass), liveDigester.value(value.live, value.valueClass)
            )
            guard values.contains(where: { $0 == pair }) else { return nil }
            return ValueDifference(path: value.path, recorded: value.recorded, live: value.live, reason: .collision)
        }
    }

    static func seconds(_ nanoseconds: Int64) -> String {
        let milliseconds = (nanoseconds + 500_000) / 1_000_000
        let rest = String(milliseconds % 1000)
        return "\(milliseconds / 1000).\(String(repeating: "0", count: 3 - rest.count))\(rest) s"
    }
}

extension Divergence {
    /// Assigns the divergence to the class `optional`, with the source of the permission as its message.
    mutating func setOptional(_ option: StanzaOption) {
        divergenceClass = .optional
        if let source = option.source { message = source }
    }

    /// Sets the class according to the code, and to whether the item carries data that the server stores.
    package mutating func classify(_ recorded: StanzaForm?, _ live: StanzaForm?) {
        let form = recorded ?? live
        // An answer of another type, or a missing answer, is a change of behaviour. Other contents may only result from
        // other data.
        let isNoAnswer = code == .missing && ["result", "error"].contains(recorded?.type ?? "")
        let isOtherAnswer = recorded != nil && live != nil && recorded?.type != live?.type
        switch code {
        case .undecided: divergenceClass = .redacted
        case .late, .slower: divergenceClass = .timing
        case .reordered: divergenceClass = form?.kind == .message ? .behaviour : .timing
        case .missing, .unexpected, .changed, .collision, .session, .unsent:
            let isOfData = form.map { $0.hasStoredData || code == .unexpected && $0.isDelayed } == true
            let isState = isOfData && !isNoAnswer && !isOtherAnswer && code != .session
            divergenceClass = isState ? .state : .behaviour
        }
    }
}
