internal import XMPPCore

/// Checks whether a session can read the items that a log shows: a fault of the log must not be reported as a fault of
/// a peer.
///
/// A decoder that has read a header is kept for the items after it, until an item has a fault.
final class LogItemCheck {
    typealias Fault = (code: ScanFault.Code?, message: String)

    private struct PrimedDecoder: ~Copyable {
        let header: [UInt8]
        var decoder: StreamDecoder
    }

    private var sent: PrimedDecoder?
    private var received: PrimedDecoder?

    /// Returns the fault of an item that follows a header; nil if there is none.
    func fault(_ item: [UInt8], after header: [UInt8], isSent: Bool) -> Fault? {
        isSent ? Self.fault(item, after: header, &sent) : Self.fault(item, after: header, &received)
    }

    private static func fault(_ item: [UInt8], after header: [UInt8], _ known: inout PrimedDecoder?) -> Fault? {
        var primed = reused(&known, header)
        let fault = fault(item, &primed.decoder)
        known = fault == nil ? consume primed : nil
        return fault
    }

    private static func reused(_ known: inout PrimedDecoder?, _ header: [UInt8]) -> PrimedDecoder {
        if let kept = known.take() { if kept.header == header { return kept } }
        return begin(header)
    }

    private static func begin(_ header: [UInt8]) -> PrimedDecoder {
        var decoder = StreamDecoder(limits: .unlimited)
        decoder.append(header.span)
        while decoder.next() != nil {}
        return PrimedDecoder(header: header, decoder: decoder)
    }

    /// Returns the fault of an item that follows a header; nil if there is none. If `header` is empty, the item itself
    /// is a header.
    static func fault(_ item: [UInt8], after header: [UInt8]) -> Fault? {
        var primed = begin(header)
        return fault(item, &primed.decoder)
    }

    private static func fault(_ item: [UInt8], _ decoder: inout StreamDecoder) -> Fault? {
        decoder.append(item.span)
        while let event = decoder.next() {
            if case .fault(let fault) = event.kind { return (fault.code, fault.explanation) }
        }
        return decoder.isBetweenItems ? nil : (nil, "the item has no end")
    }
}
