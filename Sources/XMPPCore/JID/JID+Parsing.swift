extension JID {
    /// The longest part allowed, in bytes of UTF-8 (RFC 7622 §3.1).
    public static let maximumPartLength = 1023

    /// Parses an address by the order of RFC 7622 §3.2: the resource is cut off at the first `/`, then the local part at
    /// the first `@`.
    ///
    /// This checks syntax: lengths, empty parts, characters that are forbidden as ASCII or as controls, IPv6 literals.
    ///
    /// - Throws: ``JIDError`` with the broken rule and the part that breaks it.
    public init(parsing text: String) throws(JIDError) {
        // One check for all inputs: a native string hands out its own storage.
        var text = text
        text.makeContiguousUTF8()
        let layout = try Layout(text.utf8.span)
        self.init(text: text, layout: layout)
    }

    /// Parses an address from bytes of UTF-8, as ``init(parsing:)`` does from text.
    ///
    /// - Throws: ``JIDError``; with code ``JIDError/Code/notUTF8`` when the bytes are not UTF-8.
    public init(utf8 bytes: Span<UInt8>) throws(JIDError) {
        let layout = try Layout(bytes)
        let checked: UTF8Span
        do {
            checked = try UTF8Span(validating: bytes)
        } catch {
            let offset = error.byteOffsets.lowerBound
            throw JIDError(.notUTF8, in: layout.part(at: offset), "byte \(offset) of the address is not UTF-8")
        }
        self.init(text: String(copying: checked), layout: layout)
    }

    /// Puts an address together from its parts.
    ///
    /// - Throws: ``JIDError`` when a part is empty, too long, or holds what it may not (a `/` in the domain, say).
    public init(local: String? = nil, domain: String, resource: String? = nil) throws(JIDError) {
        var text = ""
        if let local { text += "\(local)@" }
        text += domain
        if let resource { text += "/\(resource)" }
        var layout = Layout(localLength: local?.utf8.count, domainLength: domain.utf8.count, total: text.utf8.count)
        if resource == nil { layout.resourceStart = nil }
        try layout.check(text.utf8.span)
        self.init(text: text, layout: layout)
    }

    private init(text: String, layout: Layout) {
        let written = Form(text: text, localLength: layout.localLength ?? 0, domainLength: layout.domainLength)
        self.init(written: written, prepared: prepare(written))
    }
}

// MARK: -

/// Where the parts of an address lie, in bytes; checked against RFC 7622 by its throwing initialiser.
private struct Layout {
    var localLength: Int?
    var domainLength: Int
    var resourceStart: Int?
    let total: Int

    init(localLength: Int?, domainLength: Int, total: Int) {
        self.localLength = localLength
        self.domainLength = domainLength
        self.total = total
        self.resourceStart = domainStart + domainLength + 1
    }

    init(_ bytes: Span<UInt8>) throws(JIDError) {
        self.total = bytes.count
        self.domainLength = bytes.count
        var position = 0
        // Everything after the first slash is the resource, `@` included; an `@` counts only before it.
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: "/") {
                self.resourceStart = position + 1
                self.domainLength = position
                break
            }
            if byte == UInt8(ascii: "@"), localLength == nil { self.localLength = position }
            position += 1
        }
        self.domainLength -= domainStart
        try check(bytes)
    }

    private var domainStart: Int { localLength.map { $0 + 1 } ?? 0 }

    func part(at offset: Int) -> JIDError.Part {
        if let localLength, offset <= localLength { return .local }
        if let resourceStart, offset >= resourceStart { return .resource }
        return .domain
    }

    func check(_ bytes: Span<UInt8>) throws(JIDError) {
        if let localLength {
            try checkLength(localLength, of: .local)
            try checkLocal(bytes.extracting(0..<localLength))
        }
        try checkLength(domainLength, of: .domain)
        try checkDomain(bytes.extracting(domainStart..<domainStart + domainLength))
        if let resourceStart {
            try checkLength(total - resourceStart, of: .resource)
            try checkResource(bytes.extracting(resourceStart..<total))
        }
    }
}

private func checkLength(_ length: Int, of part: JIDError.Part) throws(JIDError) {
    guard length > 0 else {
        throw JIDError(.empty, in: part, part == .domain ? "there is none" : "it is empty")
    }
    guard length <= JID.maximumPartLength else {
        throw JIDError(.tooLong, in: part, "\(length) bytes, \(JID.maximumPartLength) are allowed")
    }
}

/// RFC 7622 §3.3.1 names eight characters; the space and all controls are out by the class the local part is made of.
private func checkLocal(_ bytes: Span<UInt8>) throws(JIDError) {
    for position in bytes.indices {
        switch bytes[position] {
        case UInt8(ascii: "\""), UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "/"), UInt8(ascii: ":"),
            UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "@"), 0...0x20, 0x7f:
            throw forbidden(bytes, at: position, in: .local)
        default: try checkC1(bytes, at: position, in: .local)
        }
    }
}

/// Names are checked for what cannot be a label in any form of IDNA. The underscore is no letter of a host name, but
/// names of local networks have it, and the libraries of the field let it pass.
private func checkDomain(_ bytes: Span<UInt8>) throws(JIDError) {
    guard bytes[0] != UInt8(ascii: "[") else { return try checkAddressLiteral(bytes) }
    var labelLength = 0
    for position in bytes.indices {
        switch bytes[position] {
        case UInt8(ascii: "."):
            guard labelLength > 0 else {
                throw JIDError(.empty, in: .domain, "byte \(position) ends a label that is empty")
            }
            labelLength = 0
            continue
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            break
        case 0...0x7f: throw forbidden(bytes, at: position, in: .domain)
        default: try checkC1(bytes, at: position, in: .domain)
        }
        labelLength += 1
    }
}

/// A resource may hold anything but controls (RFC 7622 §3.4.1, the FreeformClass).
private func checkResource(_ bytes: Span<UInt8>) throws(JIDError) {
    for position in bytes.indices {
        switch bytes[position] {
        case 0..<0x20, 0x7f: throw forbidden(bytes, at: position, in: .resource)
        default: try checkC1(bytes, at: position, in: .resource)
        }
    }
}

/// The controls U+0080 to U+009F are two bytes, C2 80 to C2 9F.
private func checkC1(_ bytes: Span<UInt8>, at position: Int, in part: JIDError.Part) throws(JIDError) {
    guard bytes[position] == 0xc2, position + 1 < bytes.count, bytes[position + 1] < 0xa0 else { return }
    throw forbidden(codePoint: bytes[position + 1], at: position, in: part)
}

private func forbidden(_ bytes: Span<UInt8>, at position: Int, in part: JIDError.Part) -> JIDError {
    forbidden(codePoint: bytes[position], at: position, in: part)
}

private func forbidden(codePoint: UInt8, at position: Int, in part: JIDError.Part) -> JIDError {
    let hexadecimal = String(codePoint, radix: 16, uppercase: true)
    let padded = String(repeating: "0", count: 4 - hexadecimal.utf8.count) + hexadecimal
    return JIDError(.forbiddenCharacter, in: part, "U+\(padded) at byte \(position) is not allowed there")
}

/// An IPv6 address in brackets (RFC 3986 §3.2.2), with an optional zone after `%`.
private func checkAddressLiteral(_ bytes: Span<UInt8>) throws(JIDError) {
    let refusal = JIDError(.badAddressLiteral, in: .domain, "it begins with [ and is no IPv6 address in brackets")
    guard bytes.count > 2, bytes[bytes.count - 1] == UInt8(ascii: "]") else { throw refusal }
    var end = bytes.count - 1
    for position in 1..<end where bytes[position] == UInt8(ascii: "%") {
        // The zone names an interface; only its existence is checked, its form is the operating system's.
        guard position + 1 < end else { throw refusal }
        for zone in position + 1..<end {
            switch bytes[zone] {
            case 0...0x20, UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "%"), 0x7f...0xff: throw refusal
            default: break
            }
        }
        end = position
        break
    }
    guard isIPv6(bytes.extracting(1..<end)) else { throw refusal }
}

/// Eight groups of up to four hexadecimal digits, one run of zero groups written `::`, the last two groups possibly
/// written as IPv4 (RFC 4291 §2.2).
private func isIPv6(_ bytes: Span<UInt8>) -> Bool {
    var groups = 0
    var compressed = false
    var position = 0
    while position < bytes.count {
        if bytes[position] == UInt8(ascii: ":") {
            // A colon here is the second of a "::", at the very start the first one.
            if position == 0 {
                guard bytes.count > 1, bytes[1] == UInt8(ascii: ":") else { return false }
                position = 1
            }
            guard !compressed else { return false }
            compressed = true
            position += 1
            continue
        }
        let start = position
        while position < bytes.count, isHexadecimal(bytes[position]) { position += 1 }
        if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
            guard isIPv4(bytes.extracting(start..<bytes.count)) else { return false }
            groups += 2
            position = bytes.count
            break
        }
        guard 1...4 ~= position - start else { return false }
        groups += 1
        guard position < bytes.count else { break }
        guard bytes[position] == UInt8(ascii: ":"), position + 1 < bytes.count else { return false }
        position += 1
    }
    return compressed ? groups < 8 : groups == 8
}

private func isIPv4(_ bytes: Span<UInt8>) -> Bool {
    var numbers = 0
    var value: Int?
    for position in bytes.indices {
        switch bytes[position] {
        case UInt8(ascii: "0")...UInt8(ascii: "9"):
            let digit = Int(bytes[position] - UInt8(ascii: "0"))
            let next = (value ?? 0) * 10 + digit
            guard value != 0, next <= 255 else { return false }
            value = next
        case UInt8(ascii: "."):
            guard value != nil else { return false }
            numbers += 1
            value = nil
        default: return false
        }
    }
    return numbers == 3 && value != nil
}

private func isHexadecimal(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
        UInt8(ascii: "A")...UInt8(ascii: "F"):
        true
    default: false
    }
}
