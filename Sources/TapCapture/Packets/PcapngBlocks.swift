internal import TapRecord
internal import XMPPCore

/// Writes the blocks of a pcapng file (draft-ietf-opsawg-pcapng) with one section, in little-endian byte order.
struct PcapngBlocks {
    /// A block that is being written.
    struct Block {
        fileprivate var bytes: [UInt8]

        mutating func number16(_ number: UInt16) {
            bytes.append(UInt8(truncatingIfNeeded: number))
            bytes.append(UInt8(truncatingIfNeeded: number >> 8))
        }
        mutating func number32(_ number: UInt32) {
            number16(UInt16(truncatingIfNeeded: number))
            number16(UInt16(truncatingIfNeeded: number >> 16))
        }
        mutating func option(_ code: UInt16, _ value: [UInt8]) {
            number16(code)
            number16(UInt16(clamping: value.count))
            bytes += value
            pad()
        }
        mutating func endOptions() { number32(0) }
        fileprivate mutating func pad() { while bytes.count % 4 != 0 { bytes.append(0) } }
    }

    private var bytes: [UInt8] = []

    /// Creates a file that begins with a section header.
    ///
    /// - Parameter tool: The name of the writing program, which is noted in the file.
    init(tool: String) {
        add(0x0A0D_0D0A) { block in
            block.number32(0x1A2B_3C4D)
            block.number16(1)
            block.number16(0)
            // The length of the section is unspecified (-1).
            block.number32(.max)
            block.number32(.max)
            block.option(4, Array(tool.utf8))
            block.endOptions()
        }
    }

    /// Number of bytes that ``takeBytes()`` returns.
    var count: Int { bytes.count }

    /// Removes and returns the bytes to write next.
    mutating func takeBytes() -> [UInt8] {
        defer { bytes.removeAll(keepingCapacity: true) }
        return bytes
    }

    /// Adds an interface with times in nanoseconds.
    ///
    /// - Parameters:
    ///   - link: The `LINKTYPE_` number of the interface.
    ///   - captureLength: Maximum captured bytes of a packet; 0 means no maximum.
    mutating func addInterface(link: UInt16, captureLength: UInt32 = 0, name: String, description: String? = nil) {
        add(1) { block in
            block.number16(link)
            block.number16(0)
            block.number32(captureLength)
            block.option(2, Array(name.utf8))
            if let description { block.option(3, Array(description.utf8)) }
            block.option(9, [9])
            block.endOptions()
        }
    }

    /// Adds a packet (`head` followed by `rest`) and its options.
    mutating func addPacket(
        interface: UInt32,
        at time: Timestamp,
        originalLength: Int,
        _ head: Span<UInt8>,
        _ rest: Span<UInt8>,
        options: (inout Block) -> Void
    ) {
        add(6) { block in
            block.number32(interface)
            let stamp = UInt64(bitPattern: max(0, time.nanoseconds))
            block.number32(UInt32(truncatingIfNeeded: stamp >> 32))
            block.number32(UInt32(truncatingIfNeeded: stamp))
            block.number32(UInt32(clamping: head.count + rest.count))
            block.number32(UInt32(clamping: originalLength))
            block.bytes.append(head)
            block.bytes.append(rest)
            block.pad()
            options(&block)
        }
    }

    /// Adds lines of a TLS key log before all blocks not taken yet, because readers need the secrets before the
    /// packets.
    mutating func insertSecrets(_ lines: [UInt8]) {
        let rest = takeBytes()
        add(0x0A) { block in
            block.number32(0x544C_534B)
            block.number32(UInt32(clamping: lines.count))
            block.bytes += lines
            block.pad()
        }
        bytes += rest
    }

    private mutating func add(_ type: UInt32, _ fill: (inout Block) -> Void) {
        var block = Block(bytes: [])
        swap(&bytes, &block.bytes)
        // The length of each block is a multiple of four, so padding may count from the beginning of the buffer.
        let start = block.bytes.count
        block.number32(type)
        block.number32(0)
        fill(&block)
        let length = UInt32(block.bytes.count - start + 4)
        block.number32(length)
        for index in 0..<4 { block.bytes[start + 4 + index] = UInt8(truncatingIfNeeded: length >> UInt32(8 * index)) }
        swap(&bytes, &block.bytes)
    }
}
