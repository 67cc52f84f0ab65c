internal import TapStore

/// The output formats of `search` and `stats`.
enum AuditForm: String, CaseIterable {
    case text
    case json
    case csv
    case html

    /// Returns the format that the flags choose.
    static func only(json: Bool, csv: Bool, _ format: AuditForm?) throws(Failure) -> AuditForm {
        let chosen = [json ? .json : nil, csv ? .csv : nil, format].compactMap(\.self)
        guard chosen.count <= 1 else {
            throw .usage("--json, --csv and --format exclude each other; leave all but one out")
        }
        return chosen.first ?? .text
    }
}

extension SearchQuery {
    /// A remark for a search that has found nothing; empty if the query has no likely mistake.
    var hint: String {
        guard let account, !account.contains("@") else { return "" }
        return "; --account \(Console.escaped(account)) is a domain, an account is NAME@DOMAIN"
    }
}
