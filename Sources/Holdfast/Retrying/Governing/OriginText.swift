// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// The origin of a request as text (RFC 9110 §4.3.1): scheme, host and port, in lower case, without the default port.
///
/// Made on every call, so the usual form, lower case and no port, is a slice of the URL that costs no allocation.
struct OriginText: Sendable, Hashable {
    let text: Substring

    init(_ request: URLRequest) {
        self.init(request.url?.absoluteString ?? "")
    }

    init(_ url: String) {
        let bytes = url.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
            text = ""
            return
        }
        let start = bytes.index(colon, offsetBy: 3, limitedBy: bytes.endIndex) ?? bytes.endIndex
        guard bytes[colon..<start].count == 3, bytes[colon..<start].dropFirst().allSatisfy({ $0 == UInt8(ascii: "/") })
        else {
            text = url[..<colon]
            return
        }
        let rest = bytes[start...]
        let end = rest.firstIndex { OriginText.endsAuthority($0) } ?? rest.endIndex
        let authority = rest[..<end]
        let isPlain =
            authority.allSatisfy { OriginText.isPlain($0) } && bytes[..<colon].allSatisfy { OriginText.isPlain($0) }
        text = isPlain ? url[..<end] : OriginText.normal(scheme: url[..<colon], authority: url[start..<end])
    }

    private static func normal(scheme: Substring, authority: Substring) -> Substring {
        let scheme = scheme.lowercased()
        var host = authority.split(separator: "@", omittingEmptySubsequences: false).last.map { $0.lowercased() } ?? ""
        let port = scheme == "https" ? ":443" : ":80"
        if scheme.hasPrefix("http"), host.hasSuffix(port) { host.removeLast(port.count) }
        if host.hasSuffix(":") { host.removeLast() }
        return "\(scheme)://\(host)"[...]
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }

    /// Whether a byte needs no second look: neither upper case nor a mark of a port or of user information.
    private static func isPlain(_ byte: UInt8) -> Bool {
        byte != UInt8(ascii: ":") && byte != UInt8(ascii: "@") && !(UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte)
    }
}
