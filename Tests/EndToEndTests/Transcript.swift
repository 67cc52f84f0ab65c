import Foundation

/// A transcript in the README or the manual: lines that the program prints, with `…` for omitted text.
///
/// A line with only `…` matches any number of lines, and a `…` within a line matches any text. Lines are compared by
/// their shape, because times, sizes, counts, ids, addresses and so on differ between runs.
struct Transcript {
    private static let omission = "…"

    /// The lines as written.
    let lines: [String]

    /// Returns the transcripts in a Markdown text, which are its fenced code blocks, in order.
    static func all(in text: String) -> [Transcript] {
        var all: [Transcript] = []
        var block: [String]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            if line.hasPrefix("```") {
                if let lines = block { all.append(Transcript(lines: lines)) }
                block = block == nil ? [] : nil
            } else {
                block?.append(line)
            }
        }
        return all
    }

    /// Returns the first difference between a run's output and the transcript; nil if they match.
    func difference(from printed: [String]) -> String? {
        var rest = printed[...]
        var mayOmit = false
        for line in lines {
            if line.trimmingCharacters(in: .whitespaces) == Self.omission {
                mayOmit = true
                continue
            }
            if mayOmit {
                guard let index = rest.firstIndex(where: { Self.matches(line, $0) }) else {
                    return "not printed: \(line)\n\(Self.shape(line))"
                }
                rest = rest[index...]
            }
            mayOmit = false
            guard let next = rest.popFirst() else { return "not printed at all: \(line)" }
            guard Self.matches(line, next) else {
                return "told:    \(line)\nprinted: \(next)\n\(Self.shape(line))\n\(Self.shape(next))"
            }
        }
        guard mayOmit || rest.isEmpty else { return "printed and not told: \(rest.joined(separator: "\n"))" }
        return nil
    }

    /// Returns whether a line of the transcript matches a printed line.
    private static func matches(_ told: String, _ printed: String) -> Bool {
        let parts = told.components(separatedBy: omission).map(shape)
        var rest = shape(printed)[...]
        guard let first = parts.first, rest.hasPrefix(first) else { return false }
        rest = rest.dropFirst(first.count)
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            guard let range = rest.firstRange(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        guard parts.count > 1, let last = parts.last else { return rest.isEmpty }
        return rest.hasSuffix(last)
    }

    /// Returns a line with everything that differs between runs replaced.
    static func shape(_ line: String) -> String {
        var shape = line
        // Some servers list their features in an order that differs between runs.
        shape.replace(#/(offers|offered|; features) ([^;)]*)/#) { match in
            "\(match.1) \(match.2.split(separator: ", ").sorted().joined(separator: ", "))"
        }
        shape.replace(#/sasl \(([^)]*)\)/#) { match in
            "sasl \(match.1.split(separator: " ").sorted().joined(separator: " "))"
        }
        for (pattern, stand) in patterns { shape.replace(pattern, with: stand) }
        return shape.trimmingCharacters(in: .whitespaces)
    }

    nonisolated(unsafe) private static let patterns: [(Regex<Substring>, String)] = [
        (/\/tmp\/[\w.\/-]+/, "PATH"),
        (/password [0-9a-f]+/, "password WORD"),
        (/id="[^"]*"|id='[^']*'|id=\S+/, "id=ID"),
        (/for localhost [0-9a-f]{8}/, "for localhost ID"),
        (/go-sendxmpp\.[0-9a-f]+/, "go-sendxmpp.ID"),
        (/\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)?/, "DATE"),
        (/\d\d:\d\d:\d\d\.\d{3}/, "TIME"),
        (/(?:[0-9A-F]{2}:){3,}(?:[0-9A-F]{2})?/, "HASH"),
        (/\d+(?:\.\d+)? (?:µs|ms|s)\b/, "DURATION"),
        // Which request is the slowest differs between runs.
        (/slowest DURATION \(.*\)/, "slowest DURATION (REQUEST)"),
        (/\d+(?:\.\d+)? (?:B|kB|MB)\b/, "SIZE"),
        (/#\d+/, "#N"),
        (/\b\d+(?:\.\d+)*\b/, "N"),
        (/─{3,}/, "RULE"),
        (#/\s+/#, " "),
    ]
}
