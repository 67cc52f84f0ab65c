/// Preparation of domains (RFC 7622 §3.2): U-labels and NR-LDH labels, in the form for comparison.
enum DomainName {
    /// Maps a domain, converts A-labels to U-labels, checks each label, and removes a trailing dot.
    ///
    /// The mappings are those of RFC 5895, but characters that are valid in labels are kept: for example, only the
    /// capital letters of Cherokee are valid.
    static func prepared(_ text: [Unicode.Scalar]) throws(PreparationFault) -> [Unicode.Scalar] {
        var mapped: [Unicode.Scalar] = []
        mapped.reserveCapacity(text.count)
        for scalar in text { appendMapped(scalar, to: &mapped) }
        mapped = composed(mapped)
        if mapped.last == "." { mapped.removeLast() }

        var labels: [[Unicode.Scalar]] = []
        for label in mapped.split(separator: ".", omittingEmptySubsequences: false) {
            labels.append(try checked(Array(label), number: labels.count + 1))
        }
        // If one label is right-to-left, the rule applies to all (RFC 5893 §2).
        if labels.contains(where: { BidiRule.applies(to: $0) }) {
            for (index, label) in labels.enumerated() {
                if let condition = BidiRule.brokenCondition(by: label) {
                    throw .bidi(condition: condition, label: index + 1)
                }
            }
        }
        return Array(labels.joined(separator: CollectionOfOne(".")))
    }

    /// Converts the U-labels of a prepared domain to A-labels; preparation has ensured that the A-labels fit into the
    /// DNS.
    static func ascii(_ domain: Substring) -> String {
        guard domain.utf8.contains(where: { $0 >= 0x80 }) else { return String(domain) }
        let labels = domain.unicodeScalars.split(separator: ".", omittingEmptySubsequences: false).map { label in
            guard !label.allSatisfy(\.isASCII), let encoded = Punycode.encode(Array(label)) else {
                return String(label)
            }
            return Punycode.prefix + encoded
        }
        return labels.joined(separator: ".")
    }

    /// Appends a character after mapping its width, its case, and the ideographic full stop (RFC 5895 §2).
    private static func appendMapped(_ scalar: Unicode.Scalar, to mapped: inout [Unicode.Scalar]) {
        let narrow = scalar.isLabelCharacter ? scalar : scalar.narrowed
        if narrow.value == 0x3002 {
            mapped.append(".")
        } else if narrow.isLabelCharacter {
            mapped.append(narrow)
        } else {
            mapped += narrow.lowercase
        }
    }

    private static func checked(_ label: [Unicode.Scalar], number: Int) throws(PreparationFault) -> [Unicode.Scalar] {
        guard !label.isEmpty else { throw .emptyLabel(number) }
        guard label.starts(with: Punycode.prefix.unicodeScalars) else {
            if label.allSatisfy(\.isASCII) {
                try checkPlain(label, number)
            } else {
                try checkUnicode(label, number)
            }
            return label
        }
        guard let decoded = Punycode.decode(Array(label.dropFirst(Punycode.prefix.utf8.count))) else {
            throw .label(number, "begins with \(Punycode.prefix) and is not valid Punycode")
        }
        guard !decoded.allSatisfy(\.isASCII), composed(decoded) == decoded else {
            throw .label(number, "begins with \(Punycode.prefix) and encodes a label that has another form")
        }
        try checkUnicode(decoded, number)
        return decoded
    }

    /// Checks an NR-LDH label (RFC 5890 §2.3.2.2), whose length RFC 7622 does not limit.
    ///
    /// The underscore is not allowed in host names, but names in local networks contain it, and common XMPP libraries
    /// accept it.
    private static func checkPlain(_ label: [Unicode.Scalar], _ number: Int) throws(PreparationFault) {
        try checkHyphens(label, number)
        for scalar in label {
            switch scalar {
            case "a"..."z", "0"..."9", "-", "_": break
            default: throw .disallowed(scalar, why: "a label must not contain it")
            }
        }
    }

    /// Checks a U-label (RFC 5891 §4.2, §5.4), and that its A-label fits into the DNS.
    private static func checkUnicode(_ label: [Unicode.Scalar], _ number: Int) throws(PreparationFault) {
        try checkHyphens(label, number)
        guard let first = label.first, !first.isMark else { throw .label(number, "begins with a mark") }
        var context: ContextRules?
        for (position, scalar) in label.enumerated() {
            let category = scalar.precisCategory
            guard scalar.isLabelCharacter else {
                throw category == .unassigned
                    ? .unassigned(scalar) : .disallowed(scalar, why: "a label must not contain it")
            }
            if category == .contextJ || category == .contextO {
                let rules = context ?? ContextRules(label)
                context = rules
                guard rules.allows(at: position) else { throw .outOfContext(scalar) }
            }
        }
        guard Punycode.encode(label) != nil else {
            throw .label(number, "takes more than \(Punycode.maximumLabelLength) bytes in DNS")
        }
    }

    private static func checkHyphens(_ label: [Unicode.Scalar], _ number: Int) throws(PreparationFault) {
        guard label.first != "-", label.last != "-" else { throw .label(number, "begins or ends with a hyphen") }
        guard label.count < 4 || label[2] != "-" || label[3] != "-" else {
            throw .label(number, "has hyphens as its third and fourth character, which are reserved")
        }
    }
}
