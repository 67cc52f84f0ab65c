internal import XMPPCore

/// An address as rules compare it: prepared, in its parts. A class, since many rules ask for the same one.
final class RuleAddress: Sendable {
    let full: [UInt8]
    let bare: [UInt8]
    let local: [UInt8]?
    let domain: [UInt8]
    let resource: [UInt8]?

    /// The address a text says; what is not a JID is compared as it is written.
    init(_ text: String) {
        let address = Address(text)
        let prepared = address.jid?.normalized
        let resource = (prepared.map { $0.resource } ?? address.resource).map { Array($0.utf8) }
        local = (prepared.map { $0.local } ?? address.local).map { Array($0.utf8) }
        domain = Array((prepared?.domain ?? address.domain).utf8)
        self.resource = resource
        let full = Array((prepared?.description ?? address.raw).utf8)
        bare = resource.map { Array(full.dropLast($0.count + 1)) } ?? full
        self.full = full
    }
}

/// An address to compare with, whose parts may be `<glob*>` or `<<Lua pattern>>`.
final class AddressPattern: Sendable {
    enum Part: Sendable {
        case absent
        case any
        case exact([UInt8])
        case pattern(LuaPattern)

        func matches(_ part: [UInt8]?) throws(PatternTooComplex) -> Bool {
            switch self {
            case .absent: part == nil
            case .any: part != nil
            case .exact(let bytes): part == bytes
            case .pattern(let pattern):
                if let part { try pattern.firstMatch(in: part) != nil } else { false }
            }
        }
    }

    private let local: Part
    private let domain: Part
    /// Nil is any resource, and none.
    private let resource: Part?

    /// Reads the address that the rest of the line is.
    init(_ reader: inout RuleReader) throws(RuleFault) {
        reader.skipSpaces()
        let start = reader
        let text = RuleReader.trimmed(reader.takeRest())
        guard !text.isEmpty else {
            throw reader.fault("missing address", "expected a JID, as in romeo@example.net", at: start)
        }
        let parts = Self.split(text)
        // Prepared as what it is compared with, where it is a JID all through.
        let prepared = text.contains("<") ? nil : RuleAddress(text)
        if prepared != nil, let fault = Address(text).fault {
            throw reader.fault("\"\(text)\" is not a JID: \(fault)", at: start)
        }
        local = try Self.part(parts.local, prepared?.local, start) ?? .absent
        guard let domain = try Self.part(parts.domain, prepared?.domain, start) else {
            throw reader.fault("\"\(text)\" has no domain", "expected a JID, as in <*>@example.net", at: start)
        }
        self.domain = domain
        resource = try Self.part(parts.resource, prepared?.resource, start)
    }

    /// The address at the first `@` and `/` outside angle brackets.
    private static func split(_ text: String) -> (local: Substring?, domain: Substring, resource: Substring?) {
        var depth = 0
        var at: String.Index?
        var slash: String.Index?
        for index in text.indices where slash == nil {
            switch text[index] {
            case "<": depth += 1
            case ">": depth -= 1
            case "@" where depth == 0 && at == nil: at = index
            case "/" where depth == 0: slash = index
            default: break
            }
        }
        let end = slash ?? text.endIndex
        return (
            at.map { text[..<$0] }, text[(at.map { text.index(after: $0) } ?? text.startIndex)..<end],
            slash.map { text[text.index(after: $0)...] }
        )
    }

    private static func part(_ text: Substring?, _ prepared: [UInt8]?, _ start: RuleReader) throws(RuleFault) -> Part? {
        guard let text, !text.isEmpty else { return nil }
        guard text.hasPrefix("<"), text.hasSuffix(">") else {
            guard !text.contains("<") else {
                throw start.fault("\"\(text)\" mixes text and < >", "expected <…> around the whole part")
            }
            return .exact(prepared ?? Array(text.utf8))
        }
        let inner = text.dropFirst().dropLast()
        if inner == "*" { return .any }
        let source =
            inner.hasPrefix("<") && inner.hasSuffix(">") ? String(inner.dropFirst().dropLast()) : pattern(ofGlob: inner)
        do {
            return .pattern(try LuaPattern(Array("^\(source)$".utf8)))
        } catch {
            throw start.fault("\"\(text)\": \(error.message)", "expected a Lua pattern in << >>")
        }
    }

    /// `*` is any text, `?` any byte; all other punctuation is itself.
    private static func pattern(ofGlob glob: Substring) -> String {
        var pattern = ""
        for character in glob {
            switch character {
            case "*": pattern += ".*"
            case "?": pattern += "."
            case let other where other.isASCII && !other.isLetter && !other.isNumber && !other.isWhitespace:
                pattern += "%\(other)"
            default: pattern.append(character)
            }
        }
        return pattern
    }

    func matches(_ address: RuleAddress) throws(PatternTooComplex) -> Bool {
        guard try local.matches(address.local), try domain.matches(address.domain) else { return false }
        return try resource?.matches(address.resource) ?? true
    }
}

/// A network of IP addresses, as in `192.0.2.0/24`.
struct AddressNetwork: Sendable, Hashable {
    private let bytes: [UInt8]
    private let bits: Int

    /// Parses an address, with or without `/BITS`; nil if it is invalid.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard let first = parts.first, parts.count <= 2, let bytes = Self.parse(String(first)) else { return nil }
        let bits = parts.count == 2 ? Int(parts[1]) ?? -1 : bytes.count * 8
        guard (0...bytes.count * 8).contains(bits) else { return nil }
        (self.bytes, self.bits) = (bytes, bits)
    }

    /// Whether the address of `other` is in this network; IPv4 in IPv6 counts as IPv4.
    func contains(_ other: AddressNetwork) -> Bool {
        guard bytes.count == other.bytes.count else { return false }
        for index in 0..<bytes.count {
            let kept = min(8, max(0, bits - index * 8))
            guard (bytes[index] ^ other.bytes[index]) >> UInt8(8 - kept) == 0 || kept == 0 else { return false }
        }
        return true
    }

    private static func parse(_ text: String) -> [UInt8]? {
        guard text.contains(":") else { return parseV4(text[...]) }
        guard let gap = text.firstRange(of: "::") else { return plain(groups(text[...])) }
        guard let head = groups(text[..<gap.lowerBound]), let tail = groups(text[gap.upperBound...]),
            head.count + tail.count <= 14
        else { return nil }
        return plain(head + Array(repeating: 0, count: 16 - head.count - tail.count) + tail)
    }

    private static func plain(_ bytes: [UInt8]?) -> [UInt8]? {
        guard let bytes, bytes.count == 16 else { return nil }
        let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        return isMapped ? Array(bytes[12...]) : bytes
    }

    private static func groups(_ text: Substring) -> [UInt8]? {
        guard !text.isEmpty else { return [] }
        var bytes: [UInt8] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if index == parts.count - 1, part.contains(".") {
                guard let four = parseV4(part) else { return nil }
                bytes += four
            } else {
                guard (1...4).contains(part.count), let value = UInt16(part, radix: 16) else { return nil }
                bytes += [UInt8(value >> 8), UInt8(value & 0xFF)]
            }
        }
        return bytes.count <= 16 ? bytes : nil
    }

    private static func parseV4(_ text: Substring) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let bytes = parts.compactMap { UInt8($0) }
        return parts.count == 4 && bytes.count == 4 ? bytes : nil
    }
}
