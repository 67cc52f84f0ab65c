internal import XMPPCore

/// A prepared address, split into its parts. A class, because several rules use the same address.
final class RuleAddress: Sendable {
    let full: [UInt8]
    fileprivate let split: AddressSplit

    /// Parses an address; a text that is not a JID is compared as written.
    init(_ text: String) {
        let address = Address(text)
        let full = Array((address.jid?.normalized.description ?? address.raw).utf8)
        split = AddressSplit(full.span)
        self.full = full
    }

    var bare: [UInt8] { Array(full[..<split.domainEnd]) }
    var local: [UInt8]? { split.local.map { Array(full[$0]) } }
    var domain: [UInt8] { Array(full[split.domain]) }
    var resource: [UInt8]? { split.resource.map { Array(full[$0]) } }
}

extension AddressSplit {
    // The ranges of the parts.
    var local: Range<Int>? { localLength.map { 0..<$0 } }
    var domain: Range<Int> { domainStart..<domainEnd }
    var resource: Range<Int>? { resourceLength.map { resourceStart..<(resourceStart + $0) } }
}

/// A pattern for addresses; each part may be `<glob*>` or `<<Lua pattern>>`.
final class AddressPattern: Sendable {
    enum Part: Sendable {
        case absent
        case any
        case exact([UInt8])
        case pattern(LuaPattern)

        /// Returns whether a part of an address matches; nil is an absent part.
        func matches(_ part: Range<Int>?, of address: [UInt8]) throws(PatternTooComplex) -> Bool {
            guard let part else { if case .absent = self { return true } else { return false } }
            let text = address.span.extracting(part)
            switch self {
            case .absent: return false
            case .any: return true
            case .exact(let bytes): return text.equals(bytes.span)
            case .pattern(let pattern):
                return pattern.mayMatch(text) ? try pattern.firstMatch(in: Array(address[part])) != nil : false
            }
        }
    }

    let local: Part
    let domain: Part
    /// The pattern of the resource; nil matches any resource, and also an absent one.
    private let resource: Part?

    /// Parses the rest of the line as an address.
    init(_ reader: inout RuleReader) throws(RuleFault) {
        reader.skipSpaces()
        let start = reader
        let text = RuleReader.trimmed(reader.consumeRest())
        guard !text.isEmpty else {
            throw reader.fault("missing address", "expected a JID, as in romeo@example.net", at: start)
        }
        let parts = Self.split(text)
        // An address without patterns is prepared like the addresses that it is compared with.
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

    /// Splits the address at the first `@` and `/` outside angle brackets.
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

    /// Converts a glob to a Lua pattern: `*` matches any text, `?` any byte; other punctuation is literal.
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
        let (full, split) = (address.full, address.split)
        guard try local.matches(split.local, of: full), try domain.matches(split.domain, of: full) else { return false }
        return try resource?.matches(split.resource, of: full) ?? true
    }
}

/// An IP network such as `192.0.2.0/24`.
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

    /// Returns whether the address of `other` is in this network. IPv4-mapped IPv6 addresses are compared as IPv4.
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
