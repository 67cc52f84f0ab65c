/// Checks an IPv6 address in brackets (RFC 3986 §3.2.2), with an optional zone after `%` (RFC 6874).
func checkAddressLiteral(_ bytes: Span<UInt8>) throws(JIDError) {
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
