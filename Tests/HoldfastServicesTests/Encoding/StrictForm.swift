// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastServices
import HoldfastStorage

/// Reads `application/x-www-form-urlencoded` content and takes nothing that it need not.
enum StrictForm {
    struct Malformed: Error {}

    /// The content of a form's body, which must lie in memory.
    static func text(of body: HttpBody) throws -> String {
        let encoded = try body.encode()
        guard encoded.contentType == "application/x-www-form-urlencoded; charset=utf-8",
            case .bytes(let bytes) = encoded.content.form
        else { throw Malformed() }
        return String(decoding: bytes.array, as: UTF8.self)
    }

    static func pairs(in text: String) throws -> [[String]] {
        guard !text.isEmpty else { return [] }
        return try text.split(separator: "&", omittingEmptySubsequences: false).map { pair in
            let parts = pair.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2 else { throw Malformed() }
            return try parts.map { try decoded($0) }
        }
    }

    private static func decoded(_ text: Substring) throws -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let hex = String(rest.prefix(2)), hex.utf8.count == 2, let value = UInt8(hex, radix: 16) else {
                    throw Malformed()
                }
                bytes.append(value)
                rest = rest.dropFirst(2)
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                bytes.append(byte)
            default:
                guard "-._~*".utf8.contains(byte) else { throw Malformed() }
                bytes.append(byte)
            }
        }
        guard let decoded = String(validating: bytes, as: UTF8.self) else { throw Malformed() }
        return decoded
    }
}
