@main
struct XMPPTap {
    static func main() {}
}
