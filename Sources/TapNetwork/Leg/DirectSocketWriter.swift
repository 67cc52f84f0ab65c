internal import Glibc
internal import NIOCore

/// A channel's socket, to send by without the channel's queue, which adds a sixth to what relaying a single stanza costs.
///
/// Only on the channel's event loop, only while the channel is active, and only while its queue is empty.
struct DirectSocketWriter {
    private let descriptor: NIOBSDSocket.Handle

    /// The socket of a channel; nil if it has none, or is closed.
    init?(_ channel: any Channel) {
        let found = try? channel.pipeline.syncOperations
            .withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
        guard let descriptor = found ?? nil else { return nil }
        self.descriptor = descriptor
    }

    /// Bytes that the system has taken and the peer has not acknowledged, its FIN among them.
    var unacknowledgedBytes: Int {
        var count: Int32 = 0
        // SIOCOUTQ, which is this on Linux (tcp(7)).
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
