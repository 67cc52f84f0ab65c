package import XMPPCore

/// A decoder's output for one direction in a comparable form: one line for each event, with its pieces joined.
package struct DecoderTranscript: Equatable, CustomStringConvertible {
    /// One line for each event.
    package var lines: [String] = []

    /// The lines, separated by line feeds.
    package var description: String { lines.joined(separator: "\n") }

    /// Runs a decoder on `input`, which is split at `cuts` (offsets in ascending order).
    package init(_ input: [UInt8], cuts: [Int] = [], limits: StreamLimits = .unauthenticated) {
        var decoder = StreamDecoder(limits: limits)
        var start = 0
        var whitespace: (epoch: Int, offset: UInt64, length: UInt64)?
        var fragments: UInt64 = 0

        func flush(_ lines: inout [String]) {
            if let run = whitespace { lines.append("\(run.epoch)/\(run.offset)+\(run.length) whitespace") }
            whitespace = nil
        }

        func note(_ event: StreamEvent, _ decoder: borrowing StreamDecoder, _ lines: inout [String]) {
            if case .item(.whitespace) = event.kind {
                whitespace =
                    whitespace.map { ($0.epoch, $0.offset, $0.length + event.length) }
                    ?? (event.epoch, event.offset, event.length)
                return
            }
            flush(&lines)
            if case .fragment = event.kind {
                fragments += event.length
                return
            }
            var line = "\(event.epoch)/\(event.offset)+\(event.length) "
            switch event.kind {
            case .item(let kind): line += "\(kind)"
            case .fault(let fault):
                // Data after the fault in the same read does not belong to the diagnosis.
                line = "\(event.epoch)/\(event.offset - fragments) fault "
                line += "\(fault.code.rawValue) at \(fault.offset) \(fault.limit)"
            case .incomplete where event.isTruncated:
                line = "\(event.epoch)/\(event.offset - fragments)+\(event.length + fragments) torn"
            case .incomplete: line += "torn"
            case .fragment: break
            }
            line += Self.describe(event, decoder)
            if case .fault = event.kind {
                // How much of the faulty item is still available depends on the sizes of the reads.
            } else if event.isTruncated {
                line += " truncated \(fragments)"
            } else {
                line += " " + decoder.bytes.string()
            }
            if event.isTruncated { fragments = 0 }
            lines.append(line)
        }

        for end in cuts + [input.count] {
            decoder.append(input.span.extracting(start..<end))
            start = end
            while let event = decoder.next() { note(event, decoder, &lines) }
        }
        if let event = decoder.finish() { note(event, decoder, &lines) }
        flush(&lines)
    }

    private static func describe(_ event: StreamEvent, _ decoder: borrowing StreamDecoder) -> String {
        guard case .item(let kind) = event.kind, kind == .header || kind == .element else { return "" }
        let head = event.head
        let bytes = decoder.bytes
        var line = " \(head.kind)"
        func name(_ range: ByteRange, _ namespace: NamespaceName) -> String {
            var uri: [UInt8] = []
            decoder.appendURI(of: namespace, to: &uri)
            return " {" + String(decoding: uri, as: UTF8.self) + "}" + bytes.slice(range).string()
        }
        line += name(head.name, head.namespace)
        let attributes = [
            ("id", head.id), ("type", head.type), ("from", head.from), ("to", head.to), ("version", head.version),
        ]
        for (label, attribute) in attributes {
            guard let attribute else { continue }
            line += " \(label)=" + bytes.slice(attribute.range).string() + (attribute.needsDecoding ? "&" : "")
        }
        if let payload = head.payloadName { line += " payload" + name(payload, head.payloadNamespace) }
        if head.mayContainSecret { line += " secret?" }
        if head.isEmptyElement { line += " empty" }
        return line
    }
}

/// Checks that a decoder gives the same events no matter how its input is split.
package enum DecoderVerifier {
    /// A split that gives other events.
    package struct Difference: CustomStringConvertible {
        /// The offsets at which the input was split.
        package var cuts: [Int]
        /// The events of the unsplit input.
        package var whole: DecoderTranscript
        /// The events of the split input.
        package var cut: DecoderTranscript

        /// The transcripts of the cut input and of the whole input.
        package var description: String { "cut at \(cuts):\n\(cut)\nbut in one piece:\n\(whole)" }
    }

    /// Splits the input at each byte boundary in turn, and at all of them at once. Returns the first split with other
    /// events; nil if there is none.
    package static func checkEachBoundary(_ input: [UInt8], limits: StreamLimits = .unauthenticated) -> Difference? {
        let whole = DecoderTranscript(input, limits: limits)
        let all = Array(1..<max(1, input.count))
        for cuts in [all] + all.map({ [$0] }) {
            let cut = DecoderTranscript(input, cuts: cuts, limits: limits)
            if cut != whole { return Difference(cuts: cuts, whole: whole, cut: cut) }
        }
        return nil
    }

    /// Splits the input at random offsets, `rounds` times. Returns the first split with other events; nil if there is
    /// none.
    package static func checkRandom(
        _ input: [UInt8],
        rounds: Int,
        limits: StreamLimits = .unauthenticated,
        using generator: inout some RandomNumberGenerator
    ) -> Difference? {
        let whole = DecoderTranscript(input, limits: limits)
        for _ in 0..<rounds {
            var cuts: [Int] = []
            var position = 0
            let largest = Int.random(in: 1...max(1, min(64, input.count)), using: &generator)
            while true {
                position += Int.random(in: 1...largest, using: &generator)
                guard position < input.count else { break }
                cuts.append(position)
            }
            let cut = DecoderTranscript(input, cuts: cuts, limits: limits)
            if cut != whole { return Difference(cuts: cuts, whole: whole, cut: cut) }
        }
        return nil
    }
}
