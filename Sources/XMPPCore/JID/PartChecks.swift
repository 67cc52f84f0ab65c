internal import Glibc

/// The lengths of the parts of an address, valid or not, in bytes.
package struct AddressSplit: Sendable {
    package var localLength: Int?
    package var domainLength: Int
    package var resourceLength: Int?
}

extension AddressSplit {
    package init(_ bytes: Span<UInt8>) {
        self.init(domainLength: bytes.count)
        for position in bytes.indices {
            let byte = bytes[position]
            // Everything after the first slash is the resource, even `@`.
            if byte == UInt8(ascii: "/") {
                self.resourceLength = bytes.count - position - 1
                self.domainLength = position
                break
            }
            if byte == UInt8(ascii: "@"), localLength == nil { self.localLength = position }
        }
        self.domainLength -= domainStart
    }

    package var domainStart: Int { localLength.map { $0 + 1 } ?? 0 }
    package var domainEnd: Int { domainStart + domainLength }
    /// Offset of the resource; beyond the end if there is none.
    package var resourceStart: Int { domainEnd + 1 }

    func part(at offset: Int) -> JIDError.Part {
        if let localLength, offset <= localLength { return .local }
        return resourceLength != nil && offset >= resourceStart ? .resource : .domain
    }
}

/// The mappings that prepare an address; most addresses need none.
struct Mappings: OptionSet {
    let rawValue: UInt8

    /// The local part contains ASCII capitals.
    static let localCase = Mappings(rawValue: 1)
    /// The domain contains ASCII capitals or ends with a dot.
    static let domainCase = Mappings(rawValue: 2)
    /// The local part contains characters beyond ASCII.
    static let localUnicode = Mappings(rawValue: 4)
    /// The domain contains characters beyond ASCII, or A-labels.
    static let domainUnicode = Mappings(rawValue: 8)
    /// The resource contains characters beyond ASCII; ASCII characters of a resource are never mapped.
    static let resourceUnicode = Mappings(rawValue: 16)
}

/// Checks lengths, empty parts, forbidden ASCII characters, IPv6 literals and ASCII labels. Other characters are
/// checked by preparation.
func checkParts(_ split: AddressSplit, _ bytes: Span<UInt8>) throws(JIDError) -> Mappings {
    var mappings: Mappings = []
    if let localLength = split.localLength {
        try checkLength(localLength, of: .local)
        mappings = try checkLocal(bytes.extracting(0..<localLength))
    }
    try checkLength(split.domainLength, of: .domain)
    mappings.formUnion(try checkDomain(bytes.extracting(split.domainStart..<split.domainEnd)))
    if let resourceLength = split.resourceLength {
        try checkLength(resourceLength, of: .resource)
        mappings.formUnion(try checkResource(bytes.extracting(split.resourceStart..<bytes.count)))
    }
    return mappings
}

private func checkLength(_ length: Int, of part: JIDError.Part) throws(JIDError) {
    guard length > 0 else {
        throw JIDError(.empty, in: part, part == .domain ? "there is none" : "it is empty")
    }
    guard length <= JID.maximumPartLength else {
        throw JIDError(.tooLong, in: part, "\(length) bytes, \(JID.maximumPartLength) are allowed")
    }
}

/// Returns whether a byte is not allowed in a local part: RFC 7622 §3.3.1 excludes eight characters, and the
/// IdentifierClass excludes space and controls.
func isExcludedFromLocal(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "/"), UInt8(ascii: ":"),
        UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "@"), 0...0x20, 0x7f:
        true
    default: false
    }
}

private func checkLocal(_ bytes: Span<UInt8>) throws(JIDError) -> Mappings {
    var mappings: Mappings = []
    for position in bytes.indices {
        let byte = bytes[position]
        guard !isExcludedFromLocal(byte) else { throw forbidden(bytes, at: position, in: .local) }
        if UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte { mappings.insert(.localCase) }
        if byte >= 0x80 { mappings.insert(.localUnicode) }
    }
    return mappings
}

/// Checks a resource, which may contain all ASCII characters except controls (RFC 7622 §3.4.1, FreeformClass).
private func checkResource(_ bytes: Span<UInt8>) throws(JIDError) -> Mappings {
    var mappings: Mappings = []
    for position in bytes.indices {
        switch bytes[position] {
        case 0..<0x20, 0x7f: throw forbidden(bytes, at: position, in: .resource)
        case 0x80...: mappings.insert(.resourceUnicode)
        default: break
        }
    }
    return mappings
}

/// Checks a domain: ASCII names consist of NR-LDH labels (RFC 5890 §2.3.2.2); ``DomainName`` explains the underscore.
private func checkDomain(_ bytes: Span<UInt8>) throws(JIDError) -> Mappings {
    guard bytes[0] != UInt8(ascii: "[") else {
        try checkAddressLiteral(bytes)
        return bytes.indices.contains { UInt8(ascii: "A")...UInt8(ascii: "F") ~= bytes[$0] } ? .domainCase : []
    }
    var mappings: Mappings = []
    var labelStart = 0
    var number = 1
    for position in bytes.indices {
        switch bytes[position] {
        case UInt8(ascii: "."):
            guard position > labelStart else {
                throw JIDError(.empty, in: .domain, "byte \(position) ends a label that is empty")
            }
            try checkHyphens(bytes.extracting(labelStart..<position), number, &mappings)
            labelStart = position + 1
            number += 1
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "_"):
            break
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): mappings.insert(.domainCase)
        case 0x80...: mappings.insert(.domainUnicode)
        default: throw forbidden(bytes, at: position, in: .domain)
        }
    }
    if labelStart == bytes.count {
        mappings.insert(.domainCase)
    } else {
        try checkHyphens(bytes.extracting(labelStart..<bytes.count), number, &mappings)
    }
    return mappings
}

/// Checks the hyphens of an ASCII label, and detects A-labels. Labels with characters beyond ASCII are checked after
/// mapping.
private func checkHyphens(_ label: Span<UInt8>, _ number: Int, _ mappings: inout Mappings) throws(JIDError) {
    let hyphen = UInt8(ascii: "-")
    guard label.count < 4 || label[2] != hyphen || label[3] != hyphen else {
        // An A-label, or reserved hyphens: preparation checks both.
        return mappings.formUnion(.domainUnicode)
    }
    guard label[0] != hyphen, label[label.count - 1] != hyphen else {
        throw JIDError(.badLabel, in: .domain, "label \(number) begins or ends with a hyphen")
    }
}

private func forbidden(_ bytes: Span<UInt8>, at position: Int, in part: JIDError.Part) -> JIDError {
    let codePoint = Unicode.Scalar(bytes[position]).codePoint
    return JIDError(.forbiddenCharacter, in: part, "\(codePoint) at byte \(position) is not allowed there")
}

/// Checks an IPv6 address in brackets (RFC 3986 §3.2.2), with an optional zone after `%` (RFC 6874).
///
/// Not inlined: inlining slows down every name by a tenth.
@inline(never)
private func checkAddressLiteral(_ bytes: Span<UInt8>) throws(JIDError) {
    let refusal = JIDError(.badAddressLiteral, in: .domain, "it begins with [ and is not an IPv6 address in brackets")
    guard bytes.count > 2, bytes[bytes.count - 1] == UInt8(ascii: "]") else { throw refusal }
    let text = bytes.extracting(1..<bytes.count - 1).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    let pieces = text.utf8.split(separator: UInt8(ascii: "%"), maxSplits: 1, omittingEmptySubsequences: false)
    // The zone names a network interface; its format depends on the operating system.
    let isZone = pieces.dropFirst().allSatisfy { zone in
        !zone.isEmpty && zone.allSatisfy { 0x21..<0x7f ~= $0 && !"[]%".utf8.contains($0) }
    }
    var address = in6_addr()
    guard isZone, !pieces[0].contains(0), inet_pton(AF_INET6, String(Substring(pieces[0])), &address) == 1 else {
        throw refusal
    }
}
