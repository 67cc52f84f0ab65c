internal import COpenSSL

/// A call into OpenSSL that failed: which one, and what OpenSSL left in its error queue.
package struct OpenSSLError: Error, Sendable {
    /// The call, by its name in OpenSSL's manual.
    package let call: String
    /// OpenSSL's own explanations, the oldest first; empty if it gave none.
    package let reasons: [String]

    /// Takes the reasons out of this thread's error queue.
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
    /// Compares the call; the reasons differ between versions of the library.
    package static func == (left: OpenSSLError, right: OpenSSLError) -> Bool { left.call == right.call }
}

extension OpenSSLError: CustomStringConvertible {
    /// One line: the call and its reasons.
    package var description: String {
        reasons.isEmpty ? "\(call) failed" : "\(call) failed: \(reasons.joined(separator: "; "))"
    }
}

/// Runs a call that returns 1 on success.
///
/// The error queue belongs to the thread and is shared with every other user of OpenSSL on it. It is cleared first, so
/// that the errors in it afterwards are those of this call.
func check(_ call: StaticString, _ body: () -> Int32) throws(OpenSSLError) {
    ERR_clear_error()
    guard body() > 0 else { throw OpenSSLError(call: call) }
}

/// Runs a call that returns an object, or nothing on failure.
func made(_ call: StaticString, _ body: () -> OpaquePointer?) throws(OpenSSLError) -> OpaquePointer {
    ERR_clear_error()
    guard let object = body() else { throw OpenSSLError(call: call) }
    return object
}

/// A certificate in DER as an `X509 *`, which the caller owns; nil if it cannot be read.
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
