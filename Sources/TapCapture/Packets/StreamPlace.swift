internal import Synchronization
internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// A position in captured bytes from which a stream can be read.
struct StreamPlace: Equatable {
    var offset: Int
    /// Whether the stream begins there; otherwise a stanza, another element or the end of the stream.
    var isHeader: Bool

    private static let headers: [StaticString] = ["<?xml", "<stream:stream"]
    private static let stanzas: [StaticString] = ["<message", "<presence", "<iq", "<r", "<a", "</stream:stream"]
    /// Elements of a login, which are searched for only at the beginning of a segment.
    private static let others: [StaticString] = [
        "<stream:features", "<stream:error", "<starttls", "<proceed", "<auth", "<challenge", "<response", "<success",
        "<failure",
    ]
    private static let ends: [StaticString] = ["</message>", "</presence>", "</iq>"]

    /// Returns the first position: the beginning of the bytes, or a stanza directly after the end of another. A stanza
    /// elsewhere may be nested in another stanza, as forwarded ones are (XEP-0297).
    static func first(in bytes: Span<UInt8>) -> StreamPlace? {
        var at = 0
        while at < bytes.count, [0x20, 0x0A, 0x0D, 0x09].contains(bytes[at]) { at += 1 }
        if begins(bytes, at: at, with: headers) { return StreamPlace(offset: at, isHeader: true) }
        if begins(bytes, at: at, with: stanzas) || begins(bytes, at: at, with: others) {
            return StreamPlace(offset: at, isHeader: false)
        }
        while let found = bytes.firstIndex(of: 0x3E, from: at) {
            at = found + 1
            guard at < bytes.count else { return nil }
            let head = bytes.extracting(..<at)
            guard ends.contains(where: { head.hasSuffix($0) }), begins(bytes, at: at, with: stanzas) else { continue }
            return StreamPlace(offset: at, isHeader: false)
        }
        return nil
    }

    /// Elements that only a server sends.
    private static let ofServers: [StaticString] = [
        "<stream:features", "<features", "<proceed", "<challenge", "<success", "<failure",
    ]
    /// Elements that only a client sends.
    private static let ofClients: [StaticString] = ["<starttls", "<auth", "<authenticate", "<response"]

    /// Returns whether bytes are a client's, judged by their beginning; nil if that is ambiguous.
    ///
    /// Only the stream header of a server has an id (RFC 6120 §4.7.3). In TLS, the type of the handshake message
    /// decides (RFC 8446 §4).
    static func isOfClient(_ bytes: Span<UInt8>) -> Bool? {
        if bytes.count > 5, bytes[0] == 0x16 { return bytes[5] == 1 ? true : bytes[5] == 2 ? false : nil }
        if begins(bytes, at: 0, with: ofServers) { return false }
        if begins(bytes, at: 0, with: ofClients) { return true }
        guard begins(bytes, at: 0, with: headers) else { return nil }
        var decoder = StreamDecoder()
        decoder.append(bytes)
        var isOfClient: Bool?
        while let event = decoder.next(), case .item(let kind) = event.kind {
            if kind == .header { isOfClient = event.head.id == nil }
            // The features that may follow a header without an id show that it is the server's.
            if kind == .element { return isOfClient == true && event.head.namespace.namespace != .streams }
        }
        return isOfClient
    }

    private static func begins(_ bytes: Span<UInt8>, at offset: Int, with names: [StaticString]) -> Bool {
        let rest = bytes.extracting(offset...)
        return names.contains { name in
            let length = name.utf8CodeUnitCount
            guard rest.count > length, rest.extracting(..<length).equals(name) else { return false }
            return [0x20, 0x3E, 0x2F, 0x0A, 0x09].contains(rest[length])
        }
    }
}

extension Span<UInt8> {
    fileprivate func hasSuffix(_ text: StaticString) -> Bool {
        let length = text.utf8CodeUnitCount
        return count >= length && extracting((count - length)...).equals(text)
    }
}
