import Testing

@testable import XMPPCore

/// Tests the positions in items where reads ended.
@Suite struct ReadBoundariesTests {
    @Test func `Finding the read boundaries of buffered items takes linear time`() {
        let item = Array("<a/>".utf8)
        let items = 5000
        let header = Array("<s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams'>".utf8)
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(header.span)
        #expect(decoder.next() != nil)
        // The items arrive byte by byte and stay buffered, as after a STARTTLS request.
        for _ in 0..<items {
            for index in item.indices { decoder.append(item.span.extracting(index..<(index + 1))) }
        }
        var seen = 0
        while let event = decoder.next() {
            #expect(event.chunks == [1, 2, 3])
            seen += 1
        }
        #expect(seen == items)
        #expect(decoder.boundaries.isEmpty)
        #expect(decoder.boundaries.comparisons <= 5 * items)
    }

    @Test func `The ends of TLS records are found inside items, also where reads do not end`() {
        let header = Array("<s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams'>".utf8)
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(header.span, records: nil, keepsItem: false)
        #expect(decoder.next()?.tlsRecords == [])
        // Two items in a read of three records, and the end of the second item in the next read.
        decoder.append(Array("<a>1</a><b>".utf8).span, records: [3, 8], keepsItem: false)
        let first = decoder.next()
        #expect(first?.tlsRecords == [3] && first?.chunks == [])
        #expect(decoder.next() == nil)
        decoder.append(Array("2</b><c/>".utf8).span, records: [1], keepsItem: false)
        let second = decoder.next()
        #expect(second?.tlsRecords == [3, 4] && second?.chunks == [3])
        #expect(decoder.next()?.tlsRecords == [])
    }

    @Test func `A read boundary at the edge of an item is not inside the item`() {
        var boundaries = ReadBoundaries()
        for position in [3, 5, 8, 10, 11] as [UInt64] { boundaries.append(position) }
        #expect(boundaries.consume(from: 0, to: 5) == [3])
        #expect(boundaries.consume(from: 5, to: 5) == [])
        #expect(boundaries.consume(from: 5, to: 9) == [3])
        #expect(!boundaries.isEmpty)
        #expect(boundaries.consume(from: 9, to: 20) == [1, 2])
        #expect(boundaries.isEmpty)
    }
}
