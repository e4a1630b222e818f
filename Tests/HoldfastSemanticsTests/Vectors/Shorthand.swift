// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting

extension SeededGenerator {
    /// Text made mostly of the given characters, with some arbitrary bytes among them.
    mutating func text(from alphabet: [String], upTo count: Int) -> String {
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 0...count, using: &self) {
            if Int.random(in: 0..<12, using: &self) == 0 {
                bytes.append(UInt8.random(in: 0...255, using: &self))
            } else if let piece = alphabet.randomElement(using: &self) {
                bytes += piece.utf8
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The seeds of the property tests; the test's name shows the one that failed.
let propertySeeds: [UInt64] = [1, 42, 0x5EED, 20_260_917]

extension Timestamp {
    /// A fixed instant for tests: Thu, 17 Sep 2026 12:00:00 GMT.
    static let noon = Timestamp(secondsSinceEpoch: 1_789_646_400)

    func plus(_ seconds: Int64) -> Timestamp {
        advanced(by: .seconds(seconds))
    }
}

/// The IMF-fixdate of an instant so many seconds from noon.
func date(_ seconds: Int64) -> String {
    HTTPDate(.noon.plus(seconds)).description
}

func target(_ text: String = "https://example.com/a") throws -> TargetURI {
    try TargetURI(text)
}

/// A stored response to a GET of ``target(_:)``, sent and received at noon.
func stored(_ fields: HeaderFields, status: StatusCode = .ok, decoded: Bool = false) throws -> StoredResponse {
    StoredResponse(
        target: try target(),
        head: ResponseHead(status: status, fields: fields),
        requestTime: .noon,
        responseTime: .noon,
        contentDecoded: decoded
    )
}
