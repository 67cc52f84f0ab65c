internal import TapCapture

/// Messages about the permission to capture packets, for `sniff` and `doctor`.
enum CaptureRight {
    /// The message that the permission is missing, with the remedy.
    static let missing: String = {
        let program = Console.programPath ?? "xmpptap"
        return "this user may not capture packets; run xmpptap as root, or give it the right: "
            + "sudo setcap cap_net_raw=ep \(program) (for one group only, before that: "
            + "sudo chgrp GROUP \(program); sudo chmod 750 \(program))"
    }()

    /// Returns why an interface cannot be captured from, as the end of a sentence.
    static func explanation(_ fault: LiveCapture.Fault) -> String {
        switch fault {
        case .notAllowed: missing
        case .noInterface: "there is no such interface; 'ip link' lists them"
        case .down: "the interface is down; 'sudo ip link set NAME up' starts it"
        case .other(let reason): reason
        }
    }
}
