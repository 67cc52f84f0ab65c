internal import TapRecord

/// Commands that wait for the driver, in order.
struct CommandQueue: ~Copyable {
    private var commands: [Command] = []
    private var head = 0

    var isEmpty: Bool { head == commands.count }

    /// The direction that the next command forwards.
    var forwarded: Direction? {
        @inline(__always) get {
            if case .forward(let direction) = commands[head] { direction } else { nil }
        }
    }

    @inline(__always)
    mutating func append(_ command: consuming Command) {
        if commands.count == 2 { commands.reserveCapacity(8) }
        commands.append(consume command)
    }

    /// Takes the next command out rather than copying it: a record has many texts to be counted once more. There must be
    /// one.
    @inline(__always)
    mutating func take() -> Command {
        guard head + 1 < commands.count else {
            // Most events have one.
            let command = commands.removeLast()
            if head > 0 {
                // A login's last events have many, and the room for them would stay with the session.
                commands.removeAll(keepingCapacity: commands.capacity <= 3)
                head = 0
            }
            return command
        }
        var command = Command.finish(.client)
        swap(&command, &commands[head])
        head += 1
        return command
    }
}
