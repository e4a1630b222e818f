// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension URLRequest {
    /// Spells path and query as the key does, so that what is stored under a key is what was asked for by it.
    ///
    /// A transport that sends `/a/%2e%2e/b` as written would get the answer of a server that takes it for another resource than
    /// `/b`, whose key it has (RFC 3986 §6.2.2). A target of the call's own (``ExactRequestHead``) is sent as it is keyed anyway.
    mutating func spellTargetAsKeyed(in context: CallContext) {
        guard let text = url?.absoluteString, URLRequest.mayBeSpelledOtherwise(text),
            context.exactHead(for: self) == nil, let target = try? TargetURI(text), !target.isSpelled(in: text)
        else { return }
        var canonical = target.canonical
        if let userinfo = target.userinfo, let start = canonical.range(of: "://") {
            canonical.insert(contentsOf: userinfo + "@", at: start.upperBound)
        }
        if let url = URL(string: canonical) { self.url = url }
    }

    /// Whether a URI has an escape or a segment that begins with a dot: nothing else makes its canonical path and query differ.
    private static func mayBeSpelledOtherwise(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var previous: UInt8 = 0
            for byte in bytes {
                if byte == UInt8(ascii: "%") || byte == UInt8(ascii: ".") && previous == UInt8(ascii: "/") {
                    return true
                }
                previous = byte
            }
            return false
        }
    }
}
