import Glibc

@testable import TapCapture

/// Writes packets and files of packets byte by byte.
enum PacketBuilder {
    /// One end of a connection: an address of 4 or 16 bytes and a port.
    struct End {
        var address: [UInt8]
        var port: UInt16

        static let client = End(address: [192, 0, 2, 1], port: 40_000)
        static let server = End(address: [192, 0, 2, 2], port: 5222)
        static let client6 = End(address: [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1], port: 40_000)
        static let server6 = End(address: [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [2], port: 5222)
    }

    static func big16(_ number: Int) -> [UInt8] { [UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)] }
    static func big32(_ number: UInt32) -> [UInt8] { big16(Int(number >> 16)) + big16(Int(number & 0xFFFF)) }

    static func tcp(
        _ source: End,
        _ destination: End,
        sequence: UInt32,
        acknowledgement: UInt32? = nil,
        flags: TCPSegment.Flags = [],
        _ payload: [UInt8] = []
    ) -> [UInt8] {
        let flags = acknowledgement == nil ? flags : flags.union(.acknowledges)
        return big16(Int(source.port)) + big16(Int(destination.port)) + big32(sequence) + big32(acknowledgement ?? 0)
            + [0x50, flags.rawValue, 0xFF, 0xFF, 0, 0, 0, 0] + payload
    }

    /// An IPv4 packet, or a fragment of one.
    static func version4(
        _ source: End,
        _ destination: End,
        _ payload: [UInt8],
        identification: Int = 1,
        fragment: Int = 0,
        hasMore: Bool = false,
        length: Int? = nil
    ) -> [UInt8] {
        [0x45, 0] + big16(length ?? payload.count + 20) + big16(identification)
            + big16((hasMore ? 0x2000 : 0) | fragment / 8) + [64, 6, 0, 0] + source.address + destination.address
            + payload
    }

    /// An IPv6 packet, with extension headers before the payload.
    static func version6(
        _ source: End,
        _ destination: End,
        _ payload: [UInt8],
        extensions: [UInt8] = [],
        next: UInt8 = 6
    ) -> [UInt8] {
        [0x60, 0, 0, 0] + big16(extensions.count + payload.count) + [next, 64] + source.address + destination.address
            + extensions + payload
    }

    /// A frame of Ethernet, with tags before the type.
    static func ethernet(_ packet: [UInt8], tags: [UInt8] = []) -> [UInt8] {
        let type: [UInt8] = packet.first.map { $0 >> 4 } == 6 ? [0x86, 0xDD] : [0x08, 0x00]
        return [UInt8](repeating: 2, count: 12) + tags + type + packet
    }

    // MARK: Files

    /// A number of a file in its byte order.
    static func number(_ value: UInt32, isLittle: Bool) -> [UInt8] { isLittle ? big32(value).reversed() : big32(value) }

    static func number16(_ value: Int, isLittle: Bool) -> [UInt8] { isLittle ? big16(value).reversed() : big16(value) }

    /// A pcap file: packets with their times in nanoseconds.
    static func pcap(
        _ packets: [(time: Int64, bytes: [UInt8])],
        link: UInt32 = 101,
        isLittle: Bool = true,
        isNano: Bool = false
    ) -> [UInt8] {
        func word(_ value: UInt32) -> [UInt8] { number(value, isLittle: isLittle) }
        var file = word(isNano ? 0xA1B2_3C4D : 0xA1B2_C3D4) + number16(2, isLittle: isLittle)
        file += number16(4, isLittle: isLittle) + word(0) + word(0) + word(262_144) + word(link)
        for (time, bytes) in packets {
            let rest = UInt32(time % 1_000_000_000)
            file += word(UInt32(time / 1_000_000_000)) + word(isNano ? rest : rest / 1000)
            file += word(UInt32(bytes.count)) + word(UInt32(bytes.count)) + bytes
        }
        return file
    }

    /// A block of a pcapng file.
    static func block(_ type: UInt32, _ body: [UInt8], isLittle: Bool = true) -> [UInt8] {
        let padded = body + [UInt8](repeating: 0, count: (4 - body.count % 4) % 4)
        let length = number(UInt32(padded.count + 12), isLittle: isLittle)
        return number(type, isLittle: isLittle) + length + padded + length
    }

    static func section(isLittle: Bool = true) -> [UInt8] {
        block(
            0x0A0D_0D0A,
            number(0x1A2B_3C4D, isLittle: isLittle) + number16(1, isLittle: isLittle)
                + number16(0, isLittle: isLittle) + [UInt8](repeating: 0xFF, count: 8),
            isLittle: isLittle
        )
    }

    static func option(_ code: Int, _ value: [UInt8], isLittle: Bool = true) -> [UInt8] {
        number16(code, isLittle: isLittle) + number16(value.count, isLittle: isLittle) + value
            + [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
    }

    static func interface(_ link: Int, options: [UInt8] = [], isLittle: Bool = true) -> [UInt8] {
        block(
            1,
            number16(link, isLittle: isLittle) + [0, 0] + number(0, isLittle: isLittle) + options,
            isLittle: isLittle
        )
    }

    static func packet(_ bytes: [UInt8], interface: UInt32 = 0, time: UInt64, isLittle: Bool = true) -> [UInt8] {
        func word(_ value: UInt32) -> [UInt8] { number(value, isLittle: isLittle) }
        let length = word(UInt32(bytes.count))
        return block(
            6,
            word(interface) + word(UInt32(time >> 32)) + word(UInt32(truncatingIfNeeded: time)) + length + length
                + bytes,
            isLittle: isLittle
        )
    }

    /// Returns the content that a reader finds in a file.
    static func read(_ make: (InputBytes) throws -> any PacketReader, _ file: [UInt8]) throws -> Content {
        let reader = try make(InputBytes(descriptor: open("/dev/null", O_RDONLY), owned: true, first: file))
        var content = Content()
        while true {
            do throws(PacketFault) {
                let isThere = try reader.next { entry, bytes in
                    switch entry {
                    case .keys(let lines): content.keys.append(lines)
                    case .packet(let packet):
                        content.packets.append((packet, bytes.withUnsafeBytes { Array($0) }))
                    }
                }
                guard isThere else { return content }
            } catch {
                content.fault = error
                return content
            }
        }
    }

    struct Content {
        var packets: [(packet: CapturedPacket, bytes: [UInt8])] = []
        var keys: [[UInt8]] = []
        var fault: PacketFault?
    }
}
