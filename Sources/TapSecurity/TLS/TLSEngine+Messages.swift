internal import COpenSSL

/// A message of TLS that went by, without what it says: of the handshake, an alert, or a change of keys.
public struct TLSMessage: Sendable, Hashable {
    /// As in the RFC: `ClientHello`, `Alert close_notify`; `handshake message 99` for one without a name.
    public let name: String
    /// It came from the peer.
    public let isReceived: Bool
    /// Bytes, without the header of its record.
    public let length: Int
}

extension TLSEngine {
    /// Messages that are kept until they are taken; those beyond are only missed in a log at trace.
    private static let mostMessages = 256

    /// Has messages kept for ``takeMessages()``. To be called before the first byte; without it nothing is kept.
    public func keepMessages() { SSL_set_msg_callback(ssl, Self.messageCallback) }

    /// Messages that went by since the last call.
    public func takeMessages() -> [TLSMessage] {
        guard !observed.messages.isEmpty else { return [] }
        defer { observed.messages = [] }
        return observed.messages
    }

    /// OpenSSL has sent or got a message. Contents go no further than their first bytes, which name them.
    private static let messageCallback:
        @convention(c) (
            Int32, Int32, Int32, UnsafeRawPointer?, Int, OpaquePointer?, UnsafeMutableRawPointer?
        ) -> Void = { isSent, _, kind, bytes, count, ssl, _ in
            guard let engine = TLSEngine.of(ssl), let bytes, count > 0, engine.observed.messages.count < mostMessages
            else { return }
            let message = UnsafeRawBufferPointer(start: bytes, count: count)
            let name: String
            switch kind {
            case SSL3_RT_HANDSHAKE: name = handshake(message)
            case SSL3_RT_ALERT where count >= 2: name = "Alert \(TLSAlert(code: message[1]).name)"
            case SSL3_RT_CHANGE_CIPHER_SPEC: name = "ChangeCipherSpec"
            default: return
            }
            engine.observed.messages.append(TLSMessage(name: name, isReceived: isSent == 0, length: count))
        }

    /// The name of a message of the handshake (RFC 8446 §4, RFC 5246 §7.4).
    private static func handshake(_ message: UnsafeRawBufferPointer) -> String {
        switch message.first ?? 255 {
        case 0: "HelloRequest"
        case 1: "ClientHello"
        // A HelloRetryRequest is recognised by its fixed random.
        case 2: message.dropFirst(6).starts(with: [0xCF, 0x21, 0xAD, 0x74]) ? "HelloRetryRequest" : "ServerHello"
        case 4: "NewSessionTicket"
        case 5: "EndOfEarlyData"
        case 8: "EncryptedExtensions"
        case 11: "Certificate"
        case 12: "ServerKeyExchange"
        case 13: "CertificateRequest"
        case 14: "ServerHelloDone"
        case 15: "CertificateVerify"
        case 16: "ClientKeyExchange"
        case 20: "Finished"
        case 22: "CertificateStatus"
        case 24: "KeyUpdate"
        case let type: "handshake message \(type)"
        }
    }
}
