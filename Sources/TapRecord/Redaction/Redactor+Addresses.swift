import XMPPCore

// Names of people where only metadata may be told: the same address has the same pseudonym throughout a run.
extension Redactor {
    /// An address for use outside the items: itself, or its placeholder from the items.
    public func disclose(address: String) -> String {
        guard policy == .metadata else { return address }
        return pseudonym(of: address) ?? Placeholder.text(.address, size: address.utf8.count)
    }

    /// Whether an address may be told as it is.
    package func shows(address: String?) -> Bool { address.map { disclose(address: $0) == $0 } ?? true }

    /// The name that somebody logs in with, at a domain: the local part of what stands for the address.
    package func disclose(user: String, at domain: String?) -> String {
        guard policy == .metadata else { return user }
        let address = user.contains("@") ? user : "\(user)@\(domain ?? "unknown.invalid")"
        guard let pseudonym = pseudonym(of: address) else { return Placeholder.text(.address, size: user.utf8.count) }
        return user.contains("@") ? pseudonym : String(pseudonym.prefix { $0 != "@" })
    }

    /// A word that somebody has chosen, such as a resource.
    package func disclose(name: String) -> String {
        policy == .metadata ? Placeholder.text(.value, size: name.utf8.count) : name
    }

    /// `anon-1@DOMAIN/anon-2` for an address, which is itself where it is a domain alone; nil where it is no address.
    func pseudonym(of text: String) -> String? {
        let address = Address(text)
        guard address.jid != nil else { return nil }
        if address.local == nil, address.resource == nil { return text }
        let bare = address.comparableBare
        var pseudonym = bare.split(separator: "@", maxSplits: 1).last.map(String.init) ?? address.domain
        if address.local != nil { pseudonym = "anon-\(number(of: bare))@\(pseudonym)" }
        if let resource = address.resource { pseudonym += "/anon-\(number(of: "\(bare)/\(resource)"))" }
        return pseudonym
    }

    private func number(of text: String) -> UInt32 {
        let bytes = Array(text.utf8)
        return registry.number(of: bytes.span)
    }
}
