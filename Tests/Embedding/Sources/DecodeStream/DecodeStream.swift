import XMPPCore

/// Prints the stanzas of one direction of a stream, read from standard input.
@main
enum DecodeStream {
    static func main() {
        var decoder = StreamDecoder(limits: .authenticated)
        let parser = StanzaParser()
        while let line = readLine(strippingNewline: false) {
            decoder.append(Array(line.utf8).span)
            while let event = decoder.next() {
                switch event.kind {
                case .item(.header): print("stream opened")
                case .item(.element):
                    // The decoder has checked the item, and provides the namespaces that are declared by the stream header.
                    guard let element = try? parser.parse(decoder) else { continue }
                    let kind = element.attribute("type").map { " of type \($0)" } ?? ""
                    let text = element.childText("body", .client).map { ": \($0)" } ?? ""
                    print("\(event.length) bytes at offset \(event.offset): \(element.name)\(kind)\(text)")
                case .item(.end): print("stream closed")
                case .fault(let fault): print("offset \(fault.offset): \(fault.explanation)")
                default: break
                }
            }
        }
        if decoder.finish() != nil { print("the stream ends inside an item") }
    }
}
