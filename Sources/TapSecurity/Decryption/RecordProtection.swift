internal import COpenSSL

/// Decrypts the records of one direction with one set of keys, in order.
final class RecordProtection {
    /// The sequence number of the next record.
    private(set) var sequence: UInt64 = 0
    /// Whether a record was decrypted with these keys.
    var hasOpened: Bool { sequence > 0 }

    private let protection: CipherSuite.Protection
    private let isTLS13: Bool
    private let encryptsThenMACs: Bool
    /// Whether the nonce is the IV XORed with the sequence number (RFC 8446 §5.3, RFC 7905). Otherwise it consists of
    /// four bytes of IV and eight bytes before the ciphertext (RFC 5288).
    private let isNonceImplicit: Bool
    private let isCCM: Bool
    private let iv: [UInt8]
    private let context: OpaquePointer
    /// The HMAC of CBC suites.
    private let mac: OpaquePointer?
    private var nonce: [UInt8]
    private var additional = [UInt8](repeating: 0, count: 13)

    /// Creates TLS 1.3 keys (RFC 8446 §7.3).
    convenience init(_ suite: CipherSuite, _ protection: CipherSuite.Protection, secret: [UInt8]) throws(OpenSSLError) {
        try self.init(
            suite,
            protection,
            key: KeyDerivation.expand(secret, label: "key", count: suite.keyLength, suite),
            iv: KeyDerivation.expand(secret, label: "iv", count: 12, suite),
            isTLS13: true
        )
    }

    /// Creates the TLS 1.2 keys of one direction from a key block (RFC 5246 §6.3).
    convenience init(
        _ suite: CipherSuite,
        _ protection: CipherSuite.Protection,
        keyBlock: [UInt8],
        isClient: Bool,
        encryptsThenMACs: Bool
    ) throws(OpenSSLError) {
        let lengths = Self.lengths(suite, protection)
        func part(_ start: Int, _ length: Int) -> [UInt8] {
            Array(keyBlock.dropFirst(start + (isClient ? 0 : length)).prefix(length))
        }
        try self.init(
            suite,
            protection,
            key: part(2 * lengths.mac, suite.keyLength),
            iv: part(2 * (lengths.mac + suite.keyLength), lengths.iv),
            macKey: part(0, lengths.mac),
            isTLS13: false,
            encryptsThenMACs: encryptsThenMACs
        )
    }

    /// Returns the length of the key block for both directions, in bytes.
    static func keyBlockLength(_ suite: CipherSuite, _ protection: CipherSuite.Protection) -> Int {
        let lengths = lengths(suite, protection)
        return 2 * (lengths.mac + suite.keyLength + lengths.iv)
    }

    private static func lengths(_ suite: CipherSuite, _ protection: CipherSuite.Protection) -> (mac: Int, iv: Int) {
        switch protection {
        case .gcm, .ccm: (0, 4)
        case .chaCha20Poly1305: (0, 12)
        case .cbc(_, let length): (length, 0)
        }
    }

    private init(
        _ suite: CipherSuite,
        _ protection: CipherSuite.Protection,
        key: [UInt8],
        iv: [UInt8],
        macKey: [UInt8] = [],
        isTLS13: Bool,
        encryptsThenMACs: Bool = false
    ) throws(OpenSSLError) {
        self.protection = protection
        self.isTLS13 = isTLS13
        self.encryptsThenMACs = encryptsThenMACs
        isCCM = if case .ccm = protection { true } else { false }
        isNonceImplicit = if case .chaCha20Poly1305 = protection { true } else { isTLS13 }
        self.iv = iv
        nonce = iv + [UInt8](repeating: 0, count: 12 - iv.count)
        let mac: OpaquePointer? = if case .cbc(let hash, _) = protection { try Self.makeMAC(hash, macKey) } else { nil }
        self.mac = mac
        do throws(OpenSSLError) {
            context = try made("EVP_CIPHER_CTX_new") { EVP_CIPHER_CTX_new() }
        } catch {
            EVP_MAC_CTX_free(mac)
            throw error
        }
        let method = EVP_get_cipherbyname(OBJ_nid2sn(suite.cipher))
        try check("EVP_DecryptInit_ex") { EVP_DecryptInit_ex(context, method, nil, nil, nil) }
        if case .ccm(let tagLength) = protection {
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, 12, nil)
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagLength), nil)
        }
        try check("EVP_DecryptInit_ex") { EVP_DecryptInit_ex(context, nil, nil, key, nil) }
        EVP_CIPHER_CTX_set_padding(context, 0)
    }

    deinit {
        EVP_CIPHER_CTX_free(context)
        EVP_MAC_CTX_free(mac)
    }

    private static func makeMAC(_ hash: StaticString, _ key: [UInt8]) throws(OpenSSLError) -> OpaquePointer {
        let method = try made("EVP_MAC_fetch") { EVP_MAC_fetch(nil, "HMAC", nil) }
        defer { EVP_MAC_free(method) }
        let context = try made("EVP_MAC_CTX_new") { EVP_MAC_CTX_new(method) }
        let parameters = [xmpptap_digest_parameter(hash.pointer), OSSL_PARAM_construct_end()]
        do throws(OpenSSLError) {
            try check("EVP_MAC_init") { EVP_MAC_init(context, key, key.count, parameters) }
        } catch {
            EVP_MAC_CTX_free(context)
            throw error
        }
        return context
    }

    // MARK: Decryption

    /// Returns the content of a record; nil if authentication fails with these keys and this sequence number.
    ///
    /// - Parameters:
    ///   - record: The complete record, with its header of 5 bytes.
    ///   - sequence: The sequence number; nil for the next one. After a success the following number is next.
    func open(_ record: UnsafeRawBufferPointer, sequence number: UInt64? = nil) -> [UInt8]? {
        let number = number ?? sequence
        let content =
            if case .cbc(_, let macLength) = protection {
                openCBC(record, number, macLength)
            } else {
                openAEAD(record, number)
            }
        if content != nil { sequence = number &+ 1 }
        return content
    }

    private func openAEAD(_ record: UnsafeRawBufferPointer, _ number: UInt64) -> [UInt8]? {
        var start = 5
        if isNonceImplicit {
            for index in 0..<8 {
                nonce[4 + index] = iv[4 + index] ^ UInt8(truncatingIfNeeded: number >> (56 - 8 * index))
            }
        } else {
            start += 8
            guard record.count >= start else { return nil }
            for index in 0..<8 { nonce[4 + index] = record[5 + index] }
        }
        let tagLength = protection.tagLength
        let length = record.count - start - tagLength
        guard length >= 0, let base = record.baseAddress else { return nil }
        let ciphertext = base.advanced(by: start).assumingMemoryBound(to: UInt8.self)
        let tag = UnsafeMutableRawPointer(mutating: base.advanced(by: start + length))
        let additionalLength = setAdditional(record, number, length)
        var isAuthentic = false
        let content = [UInt8](unsafeUninitializedCapacity: max(length, 1)) { buffer, count in
            var written: Int32 = 0
            guard EVP_DecryptInit_ex(context, nil, nil, nil, nonce) > 0,
                EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagLength), tag) > 0,
                !isCCM || EVP_DecryptUpdate(context, nil, &written, nil, Int32(length)) > 0,
                EVP_DecryptUpdate(context, nil, &written, additional, Int32(additionalLength)) > 0,
                EVP_DecryptUpdate(context, buffer.baseAddress, &written, ciphertext, Int32(length)) > 0,
                isCCM || EVP_DecryptFinal_ex(context, buffer.baseAddress?.advanced(by: length), &written) > 0
            else { return }
            isAuthentic = true
            count = length
        }
        return isAuthentic ? content : nil
    }

    /// Sets the additional authenticated data, and returns its length.
    private func setAdditional(_ record: UnsafeRawBufferPointer, _ number: UInt64, _ length: Int) -> Int {
        if isTLS13 {
            for index in 0..<5 { additional[index] = record[index] }
            return 5
        }
        for index in 0..<8 { additional[index] = UInt8(truncatingIfNeeded: number >> (56 - 8 * index)) }
        for index in 0..<3 { additional[8 + index] = record[index] }
        additional[11] = UInt8(truncatingIfNeeded: length >> 8)
        additional[12] = UInt8(truncatingIfNeeded: length)
        return 13
    }

    private func openCBC(_ record: UnsafeRawBufferPointer, _ number: UInt64, _ macLength: Int) -> [UInt8]? {
        guard let mac else { return nil }
        let end = record.count - (encryptsThenMACs ? macLength : 0)
        let length = end - 5 - 16
        guard length >= 16, length.isMultiple(of: 16), let base = record.baseAddress else { return nil }
        let bytes = base.assumingMemoryBound(to: UInt8.self)
        if encryptsThenMACs {
            _ = setAdditional(record, number, end - 5)
            let expected = UnsafeRawBufferPointer(rebasing: record[end...])
            guard hasMAC(mac, UnsafeRawBufferPointer(rebasing: record[5..<end]), expected) else { return nil }
        }
        var content = [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            var written: Int32 = 0
            guard EVP_DecryptInit_ex(context, nil, nil, nil, bytes + 5) > 0,
                EVP_DecryptUpdate(context, buffer.baseAddress, &written, bytes + 21, Int32(length)) > 0
            else { return }
            count = Int(written)
        }
        // The last byte is the number of padding bytes before it, which all have the same value (RFC 5246 §6.2.3.2).
        guard content.count == length, let padding = content.last, Int(padding) < length else { return nil }
        let paddingLength = Int(padding) + 1
        guard content.suffix(paddingLength).allSatisfy({ $0 == padding }) else { return nil }
        content.removeLast(paddingLength)
        guard !encryptsThenMACs else { return content }
        let plainLength = content.count - macLength
        guard plainLength >= 0 else { return nil }
        _ = setAdditional(record, number, plainLength)
        let isAuthentic = content.withUnsafeBytes { content in
            hasMAC(
                mac,
                UnsafeRawBufferPointer(rebasing: content[..<plainLength]),
                UnsafeRawBufferPointer(rebasing: content[plainLength...])
            )
        }
        guard isAuthentic else { return nil }
        content.removeLast(macLength)
        return content
    }

    /// Returns whether the MAC over the current additional data and the content is correct.
    private func hasMAC(
        _ mac: OpaquePointer,
        _ content: UnsafeRawBufferPointer,
        _ expected: UnsafeRawBufferPointer
    ) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 64) { computed in
            var count = 0
            return EVP_MAC_init(mac, nil, 0, nil) > 0
                && EVP_MAC_update(mac, additional, 13) > 0
                && EVP_MAC_update(mac, content.assumingMemoryBound(to: UInt8.self).baseAddress, content.count) > 0
                && EVP_MAC_final(mac, computed.baseAddress, &count, computed.count) > 0
                && count == expected.count
                && CRYPTO_memcmp(computed.baseAddress, expected.baseAddress, count) == 0
        }
    }
}
