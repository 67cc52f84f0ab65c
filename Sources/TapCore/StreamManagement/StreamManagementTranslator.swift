public import TapRecord
public import XMPPCore

/// Translates the counts of stream management (XEP-0198) between the client and the server of one session.
///
/// Every element that holds a count goes through ``translate(_:_:previous:)`` at an item boundary, also inside SASL2
/// (XEP-0388) and Bind 2 (XEP-0386). Where the other end has counted otherwise the value of `h` is replaced; no other byte
/// changes, and none while the counts are the same.
///
/// A request (`<r/>`) is never answered by xmpptap: the time of its answer tells the sender whether the receiver lives. No
/// acknowledgement is swallowed: one that was not requested, or tells nothing new, is legal. So xmpptap may request one
/// itself (``makeRequest(_:)``), and what comes is passed on like any other.
public struct StreamManagementTranslator: Sendable {
    /// What is known of a session that a client asks to resume.
    public enum Previous: Sendable {
        /// Nothing: it began without xmpptap, and both ends count the same.
        case unknown
        /// Its ledgers.
        case known(StreamManagementLedgers)
        /// The counts of its ends differ, and its ledgers are lost: it cannot be resumed.
        case lost
    }

    /// What becomes of an item that was looked at. Where nothing is set it goes on as it came.
    public struct Translation: Sendable {
        /// What goes on in its place.
        public var bytes: [UInt8]?
        /// It goes no further, and this goes back to its sender.
        public var answer: [UInt8]?
        /// What was changed, as a clause for people.
        public var words = ""
        /// What is wrong with the count of the peer that the item came from.
        public var finding: AcknowledgementFinding?
    }

    private enum State {
        case off
        /// The client has asked for stream management; what it sends counts (XEP-0198 §4).
        case enabling
        case on
    }

    /// A resumption that the server has not answered.
    private enum Resumption {
        case none
        indirect case under(StreamManagementLedgers, isKnown: Bool)
        /// Taken out of SASL2's `<authenticate/>`, in this namespace: `<success/>` is to say that it has failed.
        case refused(Namespace)
    }

    /// An item under translation.
    private struct Draft {
        var edit = ItemEdit()
        var words: [String] = []
        var answer: [UInt8]?
        var finding: AcknowledgementFinding?
    }

    /// The ledgers of the session. They record each stanza; see ``StreamManagementLedger``.
    public var ledgers = StreamManagementLedgers()
    private var state = State.off
    private var resumption = Resumption.none
    private var namespace = Namespace.streamManagement
    /// The directions in which xmpptap has requested an acknowledgement that has not come, as bits.
    private var requested: UInt8 = 0
    private let translates: Bool

    /// A translator of a session without stream management.
    ///
    /// - Parameter translates: Whether elements are changed. Without, they pass with the counts that they came with: for
    ///   tests that show what happens then.
    public init(translates: Bool = true) { self.translates = translates }

    /// Whether both ends count.
    public var isOn: Bool { state == .on }

    /// Whether neither end counts, nor any has asked for it.
    public var isOff: Bool {
        if case .none = resumption { return state == .off }
        return false
    }

    /// Whether the ends have ever counted differently, so that the session needs xmpptap as long as it lasts.
    public var hasDiverged: Bool {
        if case .under(let previous, _) = resumption, previous.hasDiverged { return true }
        return ledgers.hasDiverged
    }

    /// What the session leaves to one that resumes it; nil where there is no stream management.
    public var legacy: StreamManagementLedgers? {
        if case .under(let previous, isKnown: true) = resumption { return previous }
        return isOn ? ledgers : nil
    }

    // MARK: Elements of the peers

    /// Whether an item is one for ``translate(_:_:previous:)``.
    public static func concerns(_ head: StanzaHead) -> Bool {
        let namespace = head.namespace.namespace
        return namespace == .streamManagement || namespace == .streamManagement2 || namespace.isSASL2
    }

    /// The stream error that the decoder's last item is, with `<reset/>` in the place of `<see-other-host/>` (RFC 6120
    /// §4.9.3.16, §4.9.3.19); nil where it redirects nobody.
    public static func withoutRedirect(_ decoder: borrowing StreamDecoder) -> [UInt8]? {
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

    /// The id of the session that the decoder's last item asks to resume (`previd`); nil where it asks for none.
    public static func resumedID(_ decoder: borrowing StreamDecoder) -> String? {
        let asking = StreamManagementElement.read(decoder).elements.first { $0.kind == .resume && $0.place != .binding }
        guard let previous = asking?.previous else { return nil }
        var meaning: [UInt8] = []
        AttributeValue.decode(decoder.bytes.slice(previous), into: &meaning)
        return meaning.span.string()
    }

    /// Takes note of the decoder's last item, which is about to go on in `direction`, and changes the counts in it.
    ///
    /// - Parameter previous: What is known of the session that ``resumedID(_:)`` names, where it names one.
    public mutating func translate(
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
        if direction == .recv, reading.login == .success { tellRefusal(item, reading.end, &draft) }
        guard translates else { return Translation(finding: draft.finding) }
        return Translation(
            bytes: draft.edit.isEmpty || draft.answer != nil ? nil : draft.edit.applied(to: item),
            answer: draft.answer,
            words: draft.words.joined(separator: "; "),
            finding: draft.finding
        )
    }

    /// A login begins: what an earlier one asked for is not answered any more.
    private mutating func reset() {
        state = .off
        resumption = .none
        ledgers = StreamManagementLedgers()
    }

    /// The peer that gets the stanzas of `direction` has acknowledged some.
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

    /// Replaces the count of an element by the one that the ledger's sender is to get.
    private static func translate(
        _ element: StreamManagementElement,
        _ item: Span<UInt8>,
        _ ledger: inout StreamManagementLedger,
        isAnswer: Bool,
        _ draft: inout Draft
    ) {
        guard let range = element.count, let count = StreamManagementElement.count(item.slice(range)) else {
            // Of a resumption it may be absent (XEP-0198 §5).
            if isAnswer || element.count != nil { draft.finding = ledger.reportUnreadable() }
            return
        }
        let acknowledgement = ledger.acknowledge(count, isAnswer: isAnswer)
        draft.finding = acknowledgement.finding
        guard acknowledgement.count != count else { return }
        draft.edit.replace(range, with: Array("\(acknowledgement.count)".utf8))
        draft.words.append("h=\(acknowledgement.count) instead of h=\(count)")
    }

    private mutating func enable(_ element: StreamManagementElement) {
        // A second one is an error, which the server answers.
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
        draft.words.append("location removed")
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
            Self.translate(element, item, &ledgers.recv, isAnswer: false, &draft)
            resumption = .under(ledgers, isKnown: true)
        case .lost where element.place == .stream:
            draft.answer = XMLWriter.bytes { Self.writeFailure(element.namespace, &$0) }
            draft.words.append("refused: its counts are lost")
        case .lost:
            draft.edit.replace(element.range)
            draft.words.append("resume removed: its counts are lost")
            resumption = .refused(element.namespace)
        }
    }

    /// The ledger of a session of which nothing is known but what the receiver has counted.
    private static func ledger(of element: StreamManagementElement, _ item: Span<UInt8>) -> StreamManagementLedger {
        let count = element.count.flatMap { StreamManagementElement.count(item.slice($0)) }
        return count.map { StreamManagementLedger(startingAt: $0) } ?? StreamManagementLedger()
    }

    private mutating func resumed(_ element: StreamManagementElement, _ item: Span<UInt8>, _ draft: inout Draft) {
        guard case .under(var previous, let isKnown) = resumption else { return }
        if isKnown {
            Self.translate(element, item, &previous.send, isAnswer: false, &draft)
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
            if isKnown { Self.translate(element, item, &previous.send, isAnswer: false, &draft) }
        } else if state == .enabling {
            state = .off
            ledgers = StreamManagementLedgers()
        }
    }

    /// Adds the answer to a resumption that was taken out of the login.
    private mutating func tellRefusal(_ item: Span<UInt8>, _ end: Int, _ draft: inout Draft) {
        guard case .refused(let namespace) = resumption else { return }
        resumption = .none
        // An empty one names no address, and is an error already (XEP-0388).
        guard end > 0 else { return }
        let bytes = XMLWriter.bytes { Self.writeFailure(namespace, &$0) }
        draft.edit.replace(ByteRange(end, end), with: bytes)
        draft.words.append("failed added")
    }

    private static func writeFailure(_ namespace: Namespace, _ xml: inout XMLWriter) {
        xml.element("failed", namespace) { $0.element("item-not-found", .stanzaErrors) }
    }

    // MARK: Elements of xmpptap

    /// A request (`<r/>`) to the peer that gets the stanzas of `direction`; nil where that does not count.
    public mutating func makeRequest(_ direction: Direction) -> [UInt8]? {
        guard isOn, ledgers[direction].isCounting else { return nil }
        requested |= 1 << direction.rawValue
        ledgers[direction].request()
        return XMLWriter.bytes { $0.element("r", namespace) }
    }

    /// Whether ``makeRequest(_:)`` is due, to have less to keep: asked after a stanza was not passed as it came.
    public func wantsRequest(_ direction: Direction) -> Bool {
        ledgers[direction].isCrowded && requested & 1 << direction.rawValue == 0
    }
}
