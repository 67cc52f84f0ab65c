import Glibc
import PlainXML
import XMPPCore

/// What the parser core costs a stanza, beside plain libxml2, in one run: `ParserBenchmark CORPUS [ROUNDS [CASE]]`.
///
/// CORPUS has one stanza a line (`gencorpus.py` makes one); CASE runs only those that begin so. Medians of interleaved rounds, CPU time of this thread.
@main
struct ParserBenchmark {
    static func main() {
        guard CommandLine.arguments.count > 1, let corpus = Corpus(path: CommandLine.arguments[1]) else {
            print("usage: ParserBenchmark CORPUS [ROUNDS [CASE]]")
            exit(2)
        }
        let rounds = CommandLine.arguments.count > 2 ? Int(CommandLine.arguments[2]) ?? 21 : 21
        let wanted = CommandLine.arguments.count > 3 ? CommandLine.arguments[3] : ""
        let cases = cases.filter { $0.name.hasPrefix(wanted) }
        let mean = Double(corpus.stream.count) / Double(corpus.stanzas.count)
        print("\(corpus.stanzas.count) stanzas of \(Int(mean)) bytes, median of \(rounds) rounds")
        var times = [[Double]](repeating: [], count: cases.count)
        for _ in 0..<rounds {
            for (index, one) in cases.enumerated() {
                let start = now()
                let seen = one.run(corpus)
                times[index].append(Double(now() - start))
                guard seen == corpus.stanzas.count else {
                    print("\(one.name): \(seen) of \(corpus.stanzas.count) stanzas")
                    exit(1)
                }
            }
        }
        for (index, one) in cases.enumerated() {
            let median = times[index].sorted()[rounds / 2] / Double(corpus.stanzas.count)
            let name = one.name.padding(to: 58)
            print("\(name) \(Int(median.rounded())) ns/stanza  \(Int((mean * 1000 / median).rounded())) MB/s")
        }
    }

    struct Case: Sendable {
        var name: String
        var run: @Sendable (Corpus) -> Int
    }

    static let cases: [Case] = [
        Case(name: "StreamDecoder, reads of 16 KiB") { decode($0, chunk: 16 << 10) },
        Case(name: "StreamDecoder, one stanza a read") { decodeEach($0) },
        Case(name: "StreamDecoder and StanzaParser, reads of 16 KiB") { parse($0, chunk: 16 << 10) },
        Case(name: "StanzaParser alone, whole stanzas") { parseEach($0) },
        Case(name: "libxml2 from C, callbacks that do nothing, 16 KiB") { plain($0, chunk: 16 << 10) },
    ]

    static func decode(_ corpus: Corpus, chunk: Int) -> Int {
        var decoder = StreamDecoder()
        var seen = 0
        var start = 0
        while start < corpus.stream.count {
            let end = min(corpus.stream.count, start + chunk)
            decoder.append(corpus.stream.span.extracting(start..<end))
            start = end
            while let event = decoder.next() {
                if case .item(.element) = event.kind { seen += 1 }
            }
        }
        return seen
    }

    static func decodeEach(_ corpus: Corpus) -> Int {
        var decoder = StreamDecoder()
        var seen = 0
        decoder.append(corpus.stream.span.extracting(0..<corpus.headerCount))
        while decoder.next() != nil {}
        for stanza in corpus.stanzas {
            decoder.append(corpus.stream.span.extracting(stanza))
            while let event = decoder.next() {
                if case .item(.element) = event.kind { seen += 1 }
            }
        }
        return seen
    }

    static func parse(_ corpus: Corpus, chunk: Int) -> Int {
        var decoder = StreamDecoder()
        let parser = StanzaParser()
        var seen = 0
        var start = 0
        while start < corpus.stream.count {
            let end = min(corpus.stream.count, start + chunk)
            decoder.append(corpus.stream.span.extracting(start..<end))
            start = end
            while let event = decoder.next() {
                guard case .item(.element) = event.kind, let element = try? parser.parse(decoder) else { continue }
                if element.namespace == .client { seen += 1 }
            }
        }
        return seen
    }

    static func parseEach(_ corpus: Corpus) -> Int {
        let parser = StanzaParser()
        let root = Array(" xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'".utf8)
        var seen = 0
        for stanza in corpus.stanzas {
            guard let element = try? parser.parse(corpus.stream.span.extracting(stanza), root: root) else { continue }
            if element.namespace == .client { seen += 1 }
        }
        return seen
    }

    static func plain(_ corpus: Corpus, chunk: Int) -> Int {
        corpus.stream.withUnsafeBytes {
            plain_xml_parse($0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count, chunk)
        }
    }

    static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

/// A stream header and the stanzas of a corpus behind it.
struct Corpus {
    var stream = Array(
        "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='x' version='1.0'>"
            .utf8
    )
    var headerCount: Int
    var stanzas: [Range<Int>] = []

    init?(path: String) {
        headerCount = stream.count
        guard let file = fopen(path, "rb") else { return nil }
        defer { fclose(file) }
        var start = stream.count
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            guard count > 0 else { break }
            for byte in buffer[..<count] {
                if byte == 0x0A {
                    stanzas.append(start..<stream.count)
                    start = stream.count
                } else {
                    stream.append(byte)
                }
            }
        }
        guard !stanzas.isEmpty else { return nil }
    }
}

extension String {
    func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
