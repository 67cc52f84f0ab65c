import TapCapture
import TapRecord

/// Prints the records of the files in the arguments: JSON logs, captures, packet captures and client logs.
@main
enum ReadCapture {
    static func main() throws {
        let reader = try RecordReader(Array(CommandLine.arguments.dropFirst()))
        var form = TextForm()
        while let entry = try reader.next() {
            switch entry {
            case .header(let header): print("written by \(header.tool), level \(header.level)")
            case .record(let line):
                let record = line.record
                let text = LineBuffer.text { form.append(record, content: line.content.span, [.summary], to: &$0) }
                print(text, terminator: "")
            case .damage(let line): print(line)
            case .gap(let missing): print(missing)
            }
        }
    }
}
