internal import TapReplay

/// The value of `--fail-on CLASSES`.
struct FailingClasses {
    let classes: Set<Divergence.Class>

    static func typed(_ text: String) throws(Failure) -> FailingClasses {
        var classes: Set<Divergence.Class> = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let found = Divergence.Class(rawValue: String(name)) else {
                let names = Divergence.Class.allCases.map(\.rawValue).joined(separator: ", ")
                throw .usage("\"\(name)\" is not a class of differences; there are \(names)")
            }
            classes.insert(found)
        }
        return FailingClasses(classes: classes)
    }
}
