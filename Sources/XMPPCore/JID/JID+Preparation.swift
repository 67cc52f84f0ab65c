/// Brings an address into the form in which two addresses are compared.
///
/// The domain loses one trailing dot (RFC 7622 §3.2); local part and domain are mapped to lower case (§3.2.1, §3.3.1); the
/// resource is case-sensitive and stays. This is the one place where the preparation of parts happens: the PRECIS classes
/// of local part and resource, and IDNA for the domain, belong here.
///
/// An address that needs no change shares its text.
func prepare(_ written: JID.Form) -> JID.Form {
    guard needsPreparation(written) else { return written }
    let local = written.local.map { $0.lowercased() }
    var domain = written.domain.lowercased()
    if domain.utf8.last == UInt8(ascii: ".") { domain.removeLast() }
    var text = ""
    if let local { text += "\(local)@" }
    text += domain
    if let resource = written.resource { text += "/\(resource)" }
    return JID.Form(text: text, localLength: local?.utf8.count ?? 0, domainLength: domain.utf8.count)
}

private func needsPreparation(_ written: JID.Form) -> Bool {
    if let local = written.local, local.utf8.contains(where: isChangedByFolding) { return true }
    return written.domain.utf8.contains(where: isChangedByFolding) || written.domain.utf8.last == UInt8(ascii: ".")
}

/// Whether lower-casing may change a text with this byte: an ASCII capital, or anything outside ASCII.
private func isChangedByFolding(_ byte: UInt8) -> Bool {
    UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte || byte >= 0x80
}
