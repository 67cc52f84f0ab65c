/// Brings an address into the form in which two addresses are compared (RFC 7622 §3.2.1, §3.3.1, §3.4.1).
///
/// The domain loses one trailing dot and is mapped to lower case, its A-labels become U-labels; the local part is mapped
/// to lower case; the resource is case-sensitive. This is the one place where the preparation of parts happens; it is
/// called only where something changes or where tables must say whether it does, so an address that is plain ASCII in
/// lower case never comes here.
func prepare(_ written: JID.Form, _ mappings: Mappings) throws(JIDError) -> JID.Form {
    var text = ""
    var localLength = 0
    if let local = written.local {
        text += try prepareLocal(local, mappings)
        localLength = text.utf8.count
        text += "@"
    }
    let domain = try prepareDomain(written.domain, mappings)
    text += domain
    if let resource = written.resource { text += "/\(try prepareResource(resource, mappings))" }
    return JID.Form(text: text, localLength: localLength, domainLength: domain.utf8.count)
}

private func prepareLocal(_ local: Substring, _ mappings: Mappings) throws(JIDError) -> String {
    guard mappings.contains(.localUnicode) else {
        return mappings.contains(.localCase) ? local.lowercased() : String(local)
    }
    return try prepare(local, .local) { text, tables throws(PreparationFault) in
        let prepared = try Precis(tables: tables).usernameCaseMapped(text)
        // What was wide may by now be one of the characters that a local part excludes.
        for scalar in prepared where scalar.isASCII && isExcludedFromLocal(UInt8(truncatingIfNeeded: scalar.value)) {
            throw .disallowed(scalar, why: "no local part holds it")
        }
        return prepared
    }
}

private func prepareDomain(_ domain: Substring, _ mappings: Mappings) throws(JIDError) -> String {
    if mappings.contains(.domainUnicode) {
        return try prepare(domain, .domain) { text, tables throws(PreparationFault) in
            try DomainName(tables: tables).prepared(text)
        }
    }
    guard mappings.contains(.domainCase) else { return String(domain) }
    return (domain.utf8.last == UInt8(ascii: ".") ? domain.dropLast() : domain).lowercased()
}

private func prepareResource(_ resource: Substring, _ mappings: Mappings) throws(JIDError) -> String {
    guard mappings.contains(.resourceUnicode) else { return String(resource) }
    return try prepare(resource, .resource) { text, tables throws(PreparationFault) in
        try Precis(tables: tables).opaqueString(text)
    }
}

/// Applies the rules of one part to its characters.
private func prepare(
    _ written: Substring,
    _ part: JIDError.Part,
    _ rules: ([Unicode.Scalar], UnicodeTables) throws(PreparationFault) -> [Unicode.Scalar]
) throws(JIDError) -> String {
    let prepared: [Unicode.Scalar]
    do throws(PreparationFault) {
        prepared = try rules(Array(written.unicodeScalars), .shared)
    } catch {
        throw error.error(in: part, written: written)
    }
    var text = String(String.UnicodeScalarView(prepared))
    text.makeContiguousUTF8()
    guard text.utf8.count <= JID.maximumPartLength else {
        throw JIDError(
            .tooLong,
            in: part,
            "\(text.utf8.count) bytes when prepared, \(JID.maximumPartLength) are allowed"
        )
    }
    return text
}
