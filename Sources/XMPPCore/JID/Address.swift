/// An address as it stood on the wire, right or wrong.
///
/// A tap must show what a peer sent also where it is no JID, and say what is wrong with it. So nothing here throws: the raw
/// text is kept, and beside it either the parsed address or the fault.
public struct Address: Hashable, Sendable, CustomStringConvertible {
    /// The text as it was sent; bytes that are not UTF-8 are replaced by U+FFFD. Escape it before showing it.
    public let raw: String
    /// The parsed address, or `nil` when ``fault`` says why there is none.
    public let jid: JID?
    /// What is wrong with the text, or `nil` when it is an address.
    public let fault: JIDError?

    /// Takes a text as it is.
    public init(_ text: String) {
        raw = text
        do throws(JIDError) {
            self.jid = try JID(parsing: text)
            fault = nil
        } catch {
            self.jid = nil
            fault = error
        }
    }

    /// Takes bytes as they are.
    public init(utf8 bytes: Span<UInt8>) {
        do throws(JIDError) {
            let jid = try JID(utf8: bytes)
            raw = jid.description
            self.jid = jid
            fault = nil
        } catch {
            raw = bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
            self.jid = nil
            fault = error
        }
    }

    /// The text as it was sent.
    public var description: String { raw }

    /// Two parsed addresses are equal as JIDs are; otherwise only the same text is equal.
    public static func == (left: Address, right: Address) -> Bool {
        switch (left.jid, right.jid) {
        case (.some(let left), .some(let right)): left == right
        case (nil, nil): left.raw == right.raw
        default: false
        }
    }

    /// Hashes what equality compares.
    public func hash(into hasher: inout Hasher) {
        if let jid { hasher.combine(jid) } else { hasher.combine(raw) }
    }
}
