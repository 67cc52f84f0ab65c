/// The output formats of `diff`.
enum DiffForm: String, CaseIterable {
    case text
    case json
    case html
}
