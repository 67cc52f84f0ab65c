internal import COpenSSL

/// What OpenSSL calls back, each finding its engine by the `SSL *`.
extension TLSEngine {
    static func of(_ ssl: OpaquePointer?) -> TLSEngine? {
        guard let ssl, let engine = SSL_get_ex_data(ssl, 0) else { return nil }
        return Unmanaged<TLSEngine>.fromOpaque(engine).takeUnretainedValue()
    }

    /// The client's hello has come and a certificate is wanted: 1 goes on, 0 fails, -1 waits.
    static let identityCallback: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, _ in
        guard let engine = TLSEngine.of(ssl) else { return 0 }
        guard let isShown = engine.showIdentity() else { return -1 }
        return isShown ? 1 : 0
    }

    /// The client offers protocols by ALPN.
    static let protocolCallback:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt8>?,
            UnsafePointer<UInt8>?, UInt32, UnsafeMutableRawPointer?
        ) -> Int32 = { ssl, chosen, length, offered, count, _ in
            guard let engine = TLSEngine.of(ssl), case .chosen(let ours) = engine.offer?.protocols, let offered else {
                return SSL_TLSEXT_ERR_NOACK
            }
            let list = UnsafeBufferPointer(start: offered, count: Int(count))
            for name in ours {
                var index = 0
                while index < list.count {
                    let end = index + 1 + Int(list[index])
                    guard end <= list.count else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                    if list[(index + 1)..<end].elementsEqual(name.utf8) {
                        // The answer points into the offer, which lives as long as OpenSSL needs it.
                        chosen?.pointee = offered + index + 1
                        length?.pointee = list[index]
                        return SSL_TLSEXT_ERR_OK
                    }
                    index = end
                }
            }
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }

    /// OpenSSL goes from step to step; alerts are what is listened for.
    static let infoCallback: @convention(c) (OpaquePointer?, Int32, Int32) -> Void = { ssl, kind, value in
        guard kind & SSL_CB_ALERT != 0, let engine = TLSEngine.of(ssl) else { return }
        engine.observed.noteAlert(
            TLSAlert(code: UInt8(truncatingIfNeeded: value)),
            isFatal: value >> 8 == SSL3_AL_FATAL,
            isReceived: kind & SSL_CB_READ != 0
        )
    }

    /// A secret of the connection, as a line of an SSLKEYLOGFILE.
    static let keyLogCallback: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> Void = { ssl, line in
        guard let engine = TLSEngine.of(ssl), let line else { return }
        engine.context.keyLog?(String(cString: line))
    }
}
