import Foundation
import TapTestKit
import Testing

@testable import TapCapture

/// Logs in the layouts that programs print, in `Samples`: each line of `outcomes.tsv` has a file and the outcomes of its sessions.
struct LogSampleTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Samples")

    /// The outcomes by file: `-` if it shows no XML, `none` if none of its XML can be read.
    static let outcomes: [String: [String]] = {
        let text = (try? String(contentsOf: folder.appending(path: "outcomes.tsv"), encoding: .utf8)) ?? ""
        let lines = text.split(separator: "\n").map { $0.split(separator: "\t", maxSplits: 1).map(String.init) }
        return Dictionary(uniqueKeysWithValues: lines.map { ($0[0], ($0.last ?? "").components(separatedBy: "; ")) })
    }()

    @Test func `Each sample log has an expected outcome`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter {
            $0.hasSuffix(".log")
        }
        #expect(Set(files) == Set(Self.outcomes.keys) && files.count > 50)
    }

    @Test(arguments: outcomes.keys.sorted())
    func `Sessions are read from each program's sample log`(file: String) throws {
        let path = Self.folder.appending(path: file).path
        if Self.outcomes[file] == ["-"] {
            #expect(throws: ReaderFault.self) { try RecordReader([path]) }
            return
        }
        // Remarks on XML that the log cuts come first.
        let found = try LogConversation.outcomes(path: path).filter { !$0.hasSuffix("\n") }
        #expect((found.isEmpty ? ["none"] : found) == Self.outcomes[file])
    }
}
