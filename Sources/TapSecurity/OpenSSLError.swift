internal import COpenSSL

/// A failed call of OpenSSL, with the contents of OpenSSL's error queue.
package struct OpenSSLError: Error, Sendable {
    /// The name of the call, as in OpenSSL's manual.
    package let call: String
    /// OpenSSL's explanations, the oldest first; empty if OpenSSL gave none.
    package let reasons: [String]

    /// Creates an error with the reasons in this thread's error queue, and clears the queue.
    init(call: StaticString) {
        self.call = call.description
        var reasons: [String] = []
        while true {
            let code = ERR_get_error()
            guard code != 0 else { break }
            let text = [CChar](unsafeUninitializedCapacity: 256) { buffer, count in
                ERR_error_string_n(code, buffer.baseAddress, buffer.count)
                count = buffer.firstIndex(of: 0) ?? 0
            }
            reasons.append(String(decoding: text.map(UInt8.init(bitPattern:)), as: UTF8.self))
        }
        self.reasons = reasons
    }
}

extension OpenSSLError: Equatable {
    /// Compares only the calls, because the reasons differ between versions of the library.
    package static func == (left: OpenSSLError, right: OpenSSLError) -> Bool { left.call == right.call }
}

extension OpenSSLError: CustomStringConvertible {
    /// The call and its reasons in one line.
    package var description: String {
        reasons.isEmpty ? "\(call) failed" : "\(call) failed: \(reasons.joined(separator: "; "))"
    }
}

/// Runs a call of OpenSSL that returns 1 on success, and throws an error otherwise.
///
/// The error queue belongs to the thread, and is shared with all other users of OpenSSL on the thread. It is cleared
/// first, so that it contains only errors of this call afterwards.
func check(_ call: StaticString, _ body: () -> Int32) throws(OpenSSLError) {
    ERR_clear_error()
    guard body() > 0 else { throw OpenSSLError(call: call) }
}

/// Runs a call of OpenSSL that returns an object, and throws an error if it returns nil.
func made(_ call: StaticString, _ body: () -> OpaquePointer?) throws(OpenSSLError) -> OpaquePointer {
    ERR_clear_error()
    guard let object = body() else { throw OpenSSLError(call: call) }
    return object
}

/// Parses a certificate in DER. Returns an `X509 *` that the caller owns; nil if the certificate cannot be parsed.
func parsedCertificate(_ bytes: [UInt8]) -> OpaquePointer? {
    bytes.withUnsafeBufferPointer { buffer in
        var start = buffer.baseAddress
        return d2i_X509(nil, &start, buffer.count)
    }
}

/// Returns the output of an `i2d_` function of OpenSSL; calls it twice, first for the length.
func encoded(
    _ call: StaticString,
    _ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
) throws(OpenSSLError) -> [UInt8] {
    ERR_clear_error()
    let length = write(nil)
    guard length > 0 else { throw OpenSSLError(call: call) }
    var bytes = [UInt8](repeating: 0, count: Int(length))
    let written = bytes.withUnsafeMutableBufferPointer { buffer in
        var start = buffer.baseAddress
        return write(&start)
    }
    guard written == length else { throw OpenSSLError(call: call) }
    return bytes
}
