package import TapRecord
package import XMPPCore

/// Translates the counts of stream management (XEP-0198) between the client and the server of a session.
///
/// Pass every element with a count to ``translate(_:_:previous:)`` at an item boundary, also inside SASL2 (XEP-0388)
/// and Bind 2 (XEP-0386). If both ends count differently, the value of `h` is replaced; no other byte changes.
///
/// xmpptap never answers a request (`<r/>`), because the answer shows the sender whether the receiver is alive. It
/// never drops an acknowledgement, because unrequested and repeated ones are legal. So it may send requests itself
/// (``makeRequest(_:)``), and the answers are relayed like others.
package struct StreamManagementTranslator: Sendable {
    /// The state of a session that a client wants to resume.
    package enum Previous: Sendable {
        /// Unknown: the session began without xmpptap, so both ends count the same.
        case unknown
        /// The ledgers of the session.
        case known(StreamManagementLedgers)
        /// The counts differ, but the ledgers are lost: the session cannot be resumed.
        case lost
    }

    /// The result of a translation. If nothing is set, the item is relayed unchanged.
    package struct Translation: Sendable {
        /// The bytes to relay instead of the item.
        package var bytes: [UInt8]?
        /// The answer for the sender of the item, which is not relayed.
        package var answer: [UInt8]?
        /// The change, as a human-readable clause.
        package var explanation = ""
        /// The error in the count of the item's sender; nil if there is none.
        package var finding: AcknowledgementFinding?
    }

    private enum State {
        case off
        /// The client has requested stream management; its stanzas count (XEP-0198 §4).
        case enabling
        case on
    }

    /// A resumption that the server has not answered.
    private enum Resumption {
        case none
        indirect case under(StreamManagementLedgers, isKnown: Bool)
        /// Removed from SASL2's `<authenticate/>`, in this namespace: a failure must be added to `<success/>`.
        case refused(Namespace)
    }

    /// An item during translation.
    private struct Draft {
        var edit = ItemEdit()
        var remarks: [String] = []
        var answer: [UInt8]?
        var finding: AcknowledgementFinding?
    }

    /// The ledgers of the session, which record each stanza; see ``StreamManagementLedger``.
    package var ledgers = StreamManagementLedgers()
    private var state = State.off
    private var resumption = Resumption.none
    private var namespace = Namespace.streamManagement
    /// The directions with an unanswered request of xmpptap, as bits.
    private var requested: UInt8 = 0
    private let translates: Bool

    /// Creates the translator of a session without stream management.
    ///
    /// - Parameter translates: Whether elements are changed; false relays their counts unchanged, for tests of the
    ///   consequences.
    package init(translates: Bool = true) { self.translates = translates }

    /// Whether stream management is enabled.
    package var isOn: Bool { state == .on }

    /// Whether stream management is neither enabled nor requested.
    package var isOff: Bool {
        if case .none = resumption { return state == .off }
        return false
    }

    /// Whether the counts have ever differed, so that the session depends on xmpptap.
    package var hasDiverged: Bool {
        if case .under(let previous, _) = resumption, previous.hasDiverged { return true }
        return ledgers.hasDiverged
    }

    /// The ledgers for a session that resumes this one; nil without stream management.
    package var legacy: StreamManagementLedgers? {
        if case .under(let previous, isKnown: true) = resumption { return previous }
        return isOn ? ledgers : nil
    }

    // MARK: Elements of the peers

    /// Returns whether an item must be passed to ``translate(_:_:previous:)``.
    package static func concerns(_ head: StanzaHead) -> Bool {
        let namespace = head.namespace.namespace
        return namespace == .streamManagement || namespace == .streamManagement2 || namespace.isSASL2
    }

    /// Returns the decoder's last item, a stream error, with `<reset/>` instead of `<see-other-host/>` (RFC 6120
    /// §4.9.3.16, §4.9.3.19); nil if it is not a redirection.
    package static func withoutRedirect(_ decoder: borrowing StreamDecoder) -> [UInt8]? {
        let item = decoder.bytes
        var reader = ItemReader()
        reader.begin(decoder)
        var start: Int32?
        while let token = reader.next(item) {
            switch token {
            case .start where reader.depth == 2 && reader.namespace == .streamErrors:
                if item.slice(reader.name).equals("see-other-host") { start = Int32(reader.tagRange.start) }
            case .end:
                guard reader.depth == 1, let start else { continue }
                var edit = ItemEdit()
                edit.replace(
                    ByteRange(Int(start), Int(reader.tagRange.end)),
                    with: XMLWriter.bytes { $0.element("reset", .streamErrors) }
                )
                return edit.applied(to: item)
            case .fault: return nil
            case .start, .text, .section: break
            }
        }
        return nil
    }

    /// Returns the id of the session that the decoder's last item requests to resume (`previd`); nil if there is none.
    package static func resumedID(_ decoder: borrowing StreamDecoder) -> String? {
        let asking = StreamManagementElement.read(decoder).elements.first { $0.kind == .resume && $0.place != .binding }
        guard let previous = asking?.previous else { return nil }
        var meaning: [UInt8] = []
        AttributeValue.decode(decoder.bytes.slice(previous), into: &meaning)
        return meaning.span.string()
    }

    /// Handles the decoder's last item before it is relayed in `direction`, and translates its counts.
    ///
    /// - Parameter previous: The state of the session returned by ``resumedID(_:)``, if any.
    package mutating func translate(
        _ decoder: borrowing StreamDecoder,
        _ direction: Direction,
        previous: Previous = .unknown
    ) -> Translation {
        let reading = StreamManagementElement.read(decoder)
        let item = decoder.bytes
        var draft = Draft()
        if direction == .send, reading.login == .authenticate { reset() }
        for element in reading.elements {
            switch (direction, element.kind) {
            case (_, .request): if isOn { ledgers[direction].request() }
            case (_, .acknowledgement): acknowledge(element, item, direction.opposite, &draft)
            case (.send, .enable): enable(element)
            case (.send, .resume): resume(element, item, previous, &draft)
            case (.recv, .enabled): enabled(element, &draft)
            case (.recv, .resumed): resumed(element, item, &draft)
            case (.recv, .failed): failed(element, item, &draft)
            case (.send, .enabled), (.send, .resumed), (.send, .failed), (.recv, .enable), (.recv, .resume): break
            }
        }
        if direction == .recv, reading.login == .success { addRefusal(item, reading.end, &draft) }
        guard translates else { return Translation(finding: draft.finding) }
        return Translation(
            bytes: draft.edit.isEmpty || draft.answer != nil ? nil : draft.edit.applied(to: item),
            answer: draft.answer,
            explanation: draft.remarks.joined(separator: "; "),
            finding: draft.finding
        )
    }

    /// Handles the start of a login: earlier requests will not be answered.
    private mutating func reset() {
        state = .off
        resumption = .none
        ledgers = StreamManagementLedgers()
    }

    /// Handles an acknowledgement of the peer that receives the stanzas of `direction`.
    private mutating func acknowledge(
        _ element: StreamManagementElement,
        _ item: Span<UInt8>,
        _ direction: Direction,
        _ draft: inout Draft
    ) {
        guard isOn, ledgers[direction].isCounting else { return }
        requested &= ~(1 << direction.rawValue)
        Self.translate(element, item, &ledgers[direction], isAnswer: true, &draft)
    }

    /// Passes the count in an element to the ledger, and replaces it by the count for the sender of the ledger's
    /// stanzas.
    private static func translate(
        _ element: StreamManagementElement,
        _ item: Span<UInt8>,
        _ ledger: inout StreamManagementLedger,
        isAnswer: Bool,
        _ draft: inout Draft
    ) {
        guard let range = element.count, let count = StreamManagementElement.count(item.slice(range)) else {
            // The attribute `h` may be absent in a resumption (XEP-0198 §5).
            if isAnswer || element.count != nil { draft.finding = ledger.reportUnreadable() }
            return
        }
        let acknowledgement = ledger.acknowledge(count, isAnswer: isAnswer)
        draft.finding = acknowledgement.finding
        guard acknowledgement.count != count else { return }
        draft.edit.replace(range, with: Array("\(acknowledgement.count)".utf8))
        draft.remarks.append("h=\(acknowledgement.count) instead of h=\(count)")
    }

    private mutating func enable(_ element: StreamManagementElement) {
        // A second request is an error, which the server answers.
        guard state == .off else { return }
        state = .enabling
        ledgers.send = StreamManagementLedger(startingAt: 0)
    }

    private mutating func enabled(_ element: StreamManagementElement, _ draft: inout Draft) {
        guard state == .enabling else { return }
        state = .on
        namespace = element.namespace
        ledgers.recv = StreamManagementLedger(startingAt: 0)
        guard ledgers.hasDiverged, let location = element.location else { return }
        draft.edit.replace(location)
        draft.remarks.append("location removed")
    }

    private mutating func resume(
        _ element: StreamManagementElement,
        _ item: Span<UInt8>,
        _ previous: Previous,
        _ draft: inout Draft
    ) {
        guard state != .on else { return }
        switch previous {
        case .unknown:
            var ledgers = StreamManagementLedgers()
            ledgers.recv = Self.ledger(of: element, item)
            resumption = .under(ledgers, isKnown: false)
        case .known(var ledgers):
            Self.translateResumption(element, item, &ledgers.recv, &draft)
            resumption = .under(ledgers, isKnown: true)
        case .lost where element.place == .stream:
            draft.answer = XMLWriter.bytes { Self.writeFailure(element.namespace, &$0) }
            draft.remarks.append("refused: its counts are lost")
        case .lost:
            draft.edit.replace(element.range)
            draft.remarks.append("resume removed: its counts are lost")
            resumption = .refused(element.namespace)
        }
    }

    /// Handles the count in an element of a resumption. If it is beyond a ledger whose ends agree, the session was resumed elsewhere in
    /// the meantime, and is counted anew.
    private static func translateResumption(
        _ element: StreamManagementElement,
        _ item: Span<UInt8>,
        _ ledger: inout StreamManagementLedger,
        _ draft: inout Draft
    ) {
        let count = element.count.flatMap { StreamManagementElement.count(item.slice($0)) }
        if let count, ledger.isBehind(count) {
            ledger = StreamManagementLedger(startingAt: count)
        } else {
            translate(element, item, &ledger, isAnswer: false, &draft)
        }
    }

    /// Creates the ledger of an unknown session from the receiver's count.
    private static func ledger(of element: StreamManagementElement, _ item: Span<UInt8>) -> StreamManagementLedger {
        let count = element.count.flatMap { StreamManagementElement.count(item.slice($0)) }
        return count.map { StreamManagementLedger(startingAt: $0) } ?? StreamManagementLedger()
    }

    private mutating func resumed(_ element: StreamManagementElement, _ item: Span<UInt8>, _ draft: inout Draft) {
        guard case .under(var previous, let isKnown) = resumption else { return }
        if isKnown {
            Self.translateResumption(element, item, &previous.send, &draft)
            previous.send.resume()
            previous.recv.resume()
        } else {
            previous.send = Self.ledger(of: element, item)
        }
        ledgers = previous
        resumption = .none
        requested = 0
        namespace = element.namespace
        state = .on
    }

    private mutating func failed(_ element: StreamManagementElement, _ item: Span<UInt8>, _ draft: inout Draft) {
        if element.place != .binding, case .under(var previous, let isKnown) = resumption {
            resumption = .none
            if isKnown { Self.translateResumption(element, item, &previous.send, &draft) }
        } else if state == .enabling {
            state = .off
            ledgers = StreamManagementLedgers()
        }
    }

    /// Adds the failure of a resumption that was removed from the login.
    private mutating func addRefusal(_ item: Span<UInt8>, _ end: Int, _ draft: inout Draft) {
        guard case .refused(let namespace) = resumption else { return }
        resumption = .none
        // An empty element has no authorization identity, which is already an error (XEP-0388).
        guard end > 0 else { return }
        let bytes = XMLWriter.bytes { Self.writeFailure(namespace, &$0) }
        draft.edit.replace(ByteRange(end, end), with: bytes)
        draft.remarks.append("failed added")
    }

    private static func writeFailure(_ namespace: Namespace, _ xml: inout XMLWriter) {
        xml.element("failed", namespace) { $0.element("item-not-found", .stanzaErrors) }
    }

    // MARK: Elements of xmpptap

    /// Returns a request (`<r/>`) to the peer that receives the stanzas of `direction`; nil without stream management.
    package mutating func makeRequest(_ direction: Direction) -> [UInt8]? {
        guard isOn, ledgers[direction].isCounting else { return nil }
        requested |= 1 << direction.rawValue
        ledgers[direction].request()
        return XMLWriter.bytes { $0.element("r", namespace) }
    }

    /// Returns whether ``makeRequest(_:)`` should be called to free memory; check it after each stanza that was not
    /// passed unchanged.
    package func wantsRequest(_ direction: Direction) -> Bool {
        ledgers[direction].isCrowded && requested & 1 << direction.rawValue == 0
    }
}
