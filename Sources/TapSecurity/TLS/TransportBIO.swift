internal import COpenSSL
internal import NIOCore

/// The BIO through which OpenSSL reads and writes ciphertext: directly from received buffers, and into a buffer that is
/// taken as a whole.
///
/// OpenSSL's memory BIOs keep the memory of their largest burst. This one releases its buffers when they are empty.
final class TransportBIO {
    /// Bytes from the peer that OpenSSL has not read yet.
    private(set) var input = ByteBuffer()
    /// Bytes from OpenSSL that have not been sent yet.
    private var output = ByteBuffer()

    /// Creates the `BIO *` for an `SSL *`, which owns the reference. The BIO references this object without retaining
    /// it, so this object must outlive the `SSL *`.
    func makeBIO() throws(OpenSSLError) -> OpaquePointer {
        let method = try Self.method.get().pointer
        let bio = try made("BIO_new") { BIO_new(method) }
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    var hasOutput: Bool { output.readableBytes > 0 }

    func append(_ bytes: ByteBuffer) {
        if input.readableBytes == 0 {
            input = bytes
        } else {
            input.writeImmutableBuffer(bytes)
        }
    }

    /// Reserves memory for output that is about to be written, so that the buffer grows only once.
    func reserve(_ count: Int) { output.reserveCapacity(minimumWritableBytes: count) }

    /// Removes and returns the bytes to send; nil if there are none.
    func takeOutput() -> ByteBuffer? {
        guard hasOutput else { return nil }
        defer { output = ByteBuffer() }
        return output
    }

    /// Discards the input, because OpenSSL no longer reads it.
    func dropInput() { input = ByteBuffer() }

    // MARK: Callbacks of OpenSSL

    private func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(target.count, input.readableBytes)
        guard count > 0 else { return 0 }
        input.readWithUnsafeReadableBytes { bytes in
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            return count
        }
        // Releases the buffer of the read as soon as it is consumed.
        if input.readableBytes == 0 { input = ByteBuffer() }
        return count
    }

    private static func of(_ bio: OpaquePointer?) -> TransportBIO? {
        BIO_get_data(bio).map { Unmanaged<TransportBIO>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let allFlags = BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_IO_SPECIAL | BIO_FLAGS_SHOULD_RETRY

    /// `@unchecked Sendable` because nothing changes the method after its creation; it is never freed.
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    private static let method: Result<Method, OpenSSLError> = Result { () throws(OpenSSLError) in
        let method = try made("BIO_meth_new") {
            BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "xmpptap")
        }
        BIO_meth_set_read_ex(method) { bio, data, count, done in
            BIO_clear_flags(bio, TransportBIO.allFlags)
            guard let transport = TransportBIO.of(bio), let data, let done else { return 0 }
            let taken = transport.read(into: UnsafeMutableRawBufferPointer(start: data, count: count))
            done.pointee = taken
            guard taken == 0 else { return 1 }
            BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            return 0
        }
        BIO_meth_set_write_ex(method) { bio, data, count, done in
            BIO_clear_flags(bio, TransportBIO.allFlags)
            guard let transport = TransportBIO.of(bio), let data, let done else { return 0 }
            transport.output.writeBytes(UnsafeRawBufferPointer(start: data, count: count))
            done.pointee = count
            return 1
        }
        BIO_meth_set_ctrl(method) { _, command, _, _ in
            // Only flushing succeeds; all other control requests of OpenSSL are refused.
            command == BIO_CTRL_FLUSH ? 1 : 0
        }
        return Method(pointer: method)
    }
}
