import XMPPCore

/// An element of stream management (XEP-0198): a top-level item, or inside SASL2 (XEP-0388) or Bind 2 (XEP-0386).
struct StreamManagementElement {
    enum Kind {
        case enable, enabled, resume, resumed, failed, request, acknowledgement

        init?(_ name: Span<UInt8>) {
            if name.equals("a") {
                self = .acknowledgement
            } else if name.equals("r") {
                self = .request
            } else if name.equals("enable") {
                self = .enable
            } else if name.equals("enabled") {
                self = .enabled
            } else if name.equals("resume") {
                self = .resume
            } else if name.equals("resumed") {
                self = .resumed
            } else if name.equals("failed") {
                self = .failed
            } else {
                return nil
            }
        }
    }

    enum Place {
        /// A top-level item.
        case stream
        /// In SASL2's `<authenticate/>` or `<success/>`.
        case authentication
        /// In Bind 2's `<bind/>` or `<bound/>`.
        case binding
    }

    let kind: Kind
    let place: Place
    let namespace: Namespace
    /// The range of the element.
    private(set) var range: ByteRange
    /// The value of `h`, as written.
    private(set) var count: ByteRange?
    /// The value of `previd`, as written.
    private(set) var previous: ByteRange?
    /// The attribute `location`, with the white space character before it.
    private(set) var location: ByteRange?

    /// The elements in an item.
    struct Reading {
        enum Login { case none, authenticate, success }

        var elements: [StreamManagementElement] = []
        /// The SASL2 element, if the item is one.
        var login = Login.none
        /// Offset of the item's end tag; 0 if it has none.
        var end = 0
    }

    /// Reads the decoder's last item, which must be complete.
    static func read(_ decoder: borrowing StreamDecoder) -> Reading {
        let item = decoder.bytes
        var reading = Reading()
        var reader = ItemReader()
        reader.begin(decoder)
        var isBinding = false
        // The depth of the current element.
        var openDepth = 0
        while let token = reader.next(item) {
            switch token {
            case .start:
                let place: Place?
                switch reader.depth {
                case 1:
                    place = .stream
                    guard reader.namespace.isSASL2 else { break }
                    let name = item.slice(reader.name)
                    if name.equals("authenticate") { reading.login = .authenticate }
                    if name.equals("success") { reading.login = .success }
                case 2 where reading.login != .none:
                    place = .authentication
                    isBinding = reader.namespace == .bind2 || reader.namespace == .bind2Legacy
                case 3 where isBinding: place = .binding
                default: place = nil
                }
                guard let place, reader.namespace == .streamManagement || reader.namespace == .streamManagement2,
                    let kind = Kind(item.slice(reader.name))
                else { continue }
                reading.elements.append(StreamManagementElement(kind, place, reader, item))
                // Of a top-level item, only the start tag matters.
                if place == .stream { return reading }
                openDepth = reader.depth
            case .end:
                if reader.depth == openDepth - 1, let last = reading.elements.indices.last {
                    reading.elements[last].range.end = reader.tagRange.end
                    openDepth = 0
                }
                if reader.depth == 0 { reading.end = Int(reader.tagRange.start) }
            case .text, .section: break
            case .fault: return Reading()
            }
        }
        return reading
    }

    /// Creates an element from the reader's current start tag.
    private init(_ kind: Kind, _ place: Place, _ reader: borrowing ItemReader, _ item: Span<UInt8>) {
        self.kind = kind
        self.place = place
        namespace = reader.namespace
        range = reader.tagRange
        for index in 0..<reader.attributeCount {
            let attribute = reader.attribute(index, item)
            guard attribute.namespace == .none else { continue }
            let name = item.slice(attribute.name)
            if name.equals("h") {
                count = attribute.value
            } else if name.equals("previd") {
                previous = attribute.value
            } else if name.equals("location") {
                location = ByteRange(Int(attribute.name.start) - 1, Int(attribute.value.end) + 1)
            }
        }
    }

    /// Parses `h`: an unsigned integer below 2^32 with optional white space (XEP-0198 §4); nil for anything else.
    static func count(_ written: Span<UInt8>) -> UInt32? {
        var meaning: [UInt8] = []
        AttributeValue.decode(written, into: &meaning)
        var value: UInt64?
        var hasEnded = false
        for byte in meaning {
            switch byte {
            case 0x20: hasEnded = value != nil
            case 0x30...0x39 where !hasEnded:
                let next = (value ?? 0) * 10 + UInt64(byte - 0x30)
                guard next <= UInt64(UInt32.max) else { return nil }
                value = next
            default: return nil
            }
        }
        return value.map { UInt32($0) }
    }
}
