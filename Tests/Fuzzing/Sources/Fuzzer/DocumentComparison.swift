import ReferenceParser
import XMPPCore

/// Compares the scanner's verdict on a whole input with that of plain libxml2.
enum DocumentComparison {
    /// The faults of well-formed XML: constructs that XMPP forbids, and exceeded limits.
    private static let restrictions: Set<ScanFault.Code> = [
        .notXML, .notAStream, .textOutsideStanza, .comment, .processingInstruction, .documentType, .unsupportedEncoding,
        .unsupportedXMLVersion, .tooDeep, .tooManyAttributes, .tooManyNamespaces, .nameTooLong, .tagTooLong,
        .itemTooLong,
    ]

    static func contradiction(_ input: FuzzInput) -> String? {
        var decoder = StreamDecoder(limits: input.limits)
        decoder.append(input.bytes.span)
        var ends: [Int64] = []
        var hasEnded = false
        var fault: ScanFault?
        while let event = decoder.next() {
            switch event.kind {
            case .item(.element): ends.append(Int64(event.position + event.length))
            case .item(.end): hasEnded = true
            case .item(.header): hasEnded = event.head.isEmptyElement
            case .fault(let found): fault = found
            case .item, .fragment, .incomplete: break
            }
        }
        // If a stream restarts inside a stream, libxml2 sees a different document.
        guard decoder.epoch <= 1 else { return nil }
        let verdict = input.bytes.withUnsafeBufferPointer { reference_parse($0.baseAddress, $0.count) }

        if let fault {
            guard verdict.code == 0, !restrictions.contains(fault.code), !isKnown(fault, input) else { return nil }
            return "libxml2 accepts what the scanner refuses: \(fault)"
        }
        if hasEnded, verdict.code != 0 { return "the scanner accepts what libxml2 refuses: \(verdict.code)" }
        if !hasEnded, verdict.code == 0 { return "libxml2 sees an end where the scanner does not" }
        guard hasEnded else { return nil }
        guard verdict.items == ends.count else { return "\(ends.count) items, libxml2 sees \(verdict.items)" }
        let known = withUnsafeBytes(of: verdict.ends) { Array($0.bindMemory(to: Int64.self).prefix(ends.count)) }
        return known == Array(ends.prefix(known.count)) ? nil : "items end at \(ends), for libxml2 at \(known)"
    }

    /// Returns whether the difference is a known fault of libxml2, or a limit of the scanner without a separate code.
    private static func isKnown(_ fault: ScanFault, _ input: FuzzInput) -> Bool {
        switch fault.code {
        // libxml2 accepts overlong forms in CDATA.
        case .invalidUTF8: String(validating: input.bytes, as: UTF8.self) == nil
        // A reference of more than 32 bytes, with leading zeros.
        case .invalidReference:
            input.bytes.dropFirst(Int(fault.offset)).prefix(32).dropFirst(2).allSatisfy { $0 != 0x3B && $0 != 0x3C }
        default: false
        }
    }
}
