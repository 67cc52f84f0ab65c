/// The words of a text, as they are compared: without case and diacritics.
///
/// A word is a run of letters and digits. Text in scripts that are written without spaces (Chinese, Japanese, Thai and others)
/// is divided into pairs of neighbouring characters instead; its last character is a word, too.
///
/// Stores keep the words in their index. A change of them needs another version of the schema.
package enum Words {
    /// Returns the words of a body, in the order of the text.
    package static func of(_ text: String) -> [String] {
        var collector = Collector()
        divide(text, isQuery: false, &collector)
        return collector.words
    }

    /// Appends the words of a body, each followed by a space.
    static func append(of text: String, to bytes: inout [UInt8]) {
        guard !appendASCII(text.utf8Span.span, to: &bytes) else { return }
        var list = ByteList(bytes: bytes)
        // The list would be copied while both hold it.
        bytes = []
        divide(text, isQuery: false, &list)
        bytes = list.bytes
    }

    /// The folded form of each ASCII character; zero for those between words.
    private static let ascii: [UInt8] = (UInt8(0)..<0x80).map { value in
        var folded: UInt8 = 0
        FoldedScalars.forEach(Unicode.Scalar(value)) { letter, kind in
            if kind == .letter { folded = UInt8(truncatingIfNeeded: letter.value) }
        }
        return folded
    }

    /// Appends the words of a text of ASCII, as most messages are, without the tables of Unicode; returns false for another text.
    private static func appendASCII(_ text: Span<UInt8>, to bytes: inout [UInt8]) -> Bool {
        let start = bytes.count
        var isInWord = false
        for index in text.indices {
            guard text[index] < 0x80 else {
                bytes.removeLast(bytes.count - start)
                return false
            }
            let letter = ascii[Int(text[index])]
            if letter != 0 {
                bytes.append(letter)
            } else if isInWord {
                bytes.append(0x20)
            }
            isInWord = letter != 0
        }
        if isInWord { bytes.append(0x20) }
        return true
    }

    /// Returns the words to look for, and the runs of characters without spaces, which must occur as they are.
    static func ofQuery(_ text: String) -> (words: [String], runs: [String]) {
        var collector = Collector()
        divide(text, isQuery: true, &collector)
        return (collector.words, collector.runs)
    }

    /// Returns a text without case and diacritics.
    static func fold(_ text: String) -> String {
        var folded = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { FoldedScalars.forEach(scalar) { letter, _ in folded.append(letter) } }
        return String(folded)
    }

    // MARK: Division

    /// Receives the words of a text.
    private protocol Receiver {
        /// Appends a character to the current word.
        mutating func append(_ scalar: Unicode.Scalar)
        /// Ends the current word, which has at least one character.
        mutating func endWord()
        /// Receives a run of characters without spaces, after its words.
        mutating func add(run: [Unicode.Scalar])
    }

    private struct Collector: Receiver {
        var words: [String] = []
        var runs: [String] = []
        private var word = String.UnicodeScalarView()

        mutating func append(_ scalar: Unicode.Scalar) { word.append(scalar) }

        mutating func endWord() {
            words.append(String(word))
            word = String.UnicodeScalarView()
        }

        mutating func add(run: [Unicode.Scalar]) { runs.append(String(String.UnicodeScalarView(run))) }
    }

    private struct ByteList: Receiver {
        var bytes: [UInt8]

        mutating func append(_ scalar: Unicode.Scalar) {
            if scalar.value < 0x80 {
                bytes.append(UInt8(truncatingIfNeeded: scalar.value))
            } else {
                bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }

        mutating func endWord() { bytes.append(0x20) }
        mutating func add(run: [Unicode.Scalar]) {}
    }

    private static func divide(_ text: String, isQuery: Bool, _ receiver: inout some Receiver) {
        var isInWord = false
        var run: [Unicode.Scalar] = []
        func endWord() {
            if isInWord { receiver.endWord() }
            isInWord = false
        }
        // Few letters follow a run, so callers check that first.
        func endRun() {
            guard let last = run.last else { return }
            for index in run.indices.dropFirst() {
                receiver.append(run[index - 1])
                receiver.append(run[index])
                receiver.endWord()
            }
            if !isQuery || run.count == 1 {
                receiver.append(last)
                receiver.endWord()
            }
            receiver.add(run: run)
            run.removeAll(keepingCapacity: true)
        }
        for scalar in text.unicodeScalars {
            FoldedScalars.forEach(scalar) { letter, kind in
                switch kind {
                case .letter:
                    if !run.isEmpty { endRun() }
                    receiver.append(letter)
                    isInWord = true
                case .unspaced:
                    endWord()
                    run.append(letter)
                case .separator:
                    endWord()
                    if !run.isEmpty { endRun() }
                }
            }
        }
        endWord()
        endRun()
    }
}
