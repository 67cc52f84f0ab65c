internal import Glibc
internal import NIOCore

/// Sends directly on a channel's socket. The channel's queue would add a sixth to the cost of relaying a single stanza.
///
/// Use it only on the channel's event loop, while the channel is active and its queue is empty.
struct DirectSocketWriter {
    private let descriptor: NIOBSDSocket.Handle

    /// Creates a writer to the socket of a channel; nil if the channel has no socket, or is closed.
    init?(_ channel: any Channel) {
        let found = try? channel.pipeline.syncOperations
            .withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
        guard let descriptor = found ?? nil else { return nil }
        self.descriptor = descriptor
    }

    /// Number of bytes that the system has accepted and the peer has not acknowledged; a sent FIN counts as well.
    var unacknowledgedBytes: Int {
        var count: Int32 = 0
        // TIOCOUTQ has the same value as SIOCOUTQ on Linux (tcp(7)).
        return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
    }

    /// Sends as much of a buffer as the system accepts, and removes that from the buffer.
    func send(_ buffer: inout ByteBuffer) {
        while buffer.readableBytes > 0 {
            let count = buffer.withUnsafeReadableBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            }
            if count > 0 {
                buffer.moveReaderIndex(forwardBy: count)
            } else if count == 0 || errno != EINTR {
                return
            }
        }
    }
}
