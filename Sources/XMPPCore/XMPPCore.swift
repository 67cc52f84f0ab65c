// XMPPCore
