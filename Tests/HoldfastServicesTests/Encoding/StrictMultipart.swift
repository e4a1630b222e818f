// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation

/// A reader of multipart content that takes nothing but what RFC 2046 §5.1.1 and RFC 7578 §4 have written.
struct StrictMultipart {
    struct Part: Hashable {
        var name: String
        var fileName: String?
        var contentType: String?
        var content: [UInt8]
    }

    struct Malformed: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    let parts: [Part]

    /// Reads content whose type is `multipart/form-data; boundary=…`.
    init(_ bytes: some Collection<UInt8>, contentType: String?) throws {
        let prefix = "multipart/form-data; boundary="
        guard let contentType, contentType.hasPrefix(prefix) else { throw Malformed("type \(contentType ?? "-")") }
        let boundary = String(contentType.dropFirst(prefix.count))
        let allowed = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'()+_,-./:=?".utf8)
        guard (1...70).contains(boundary.utf8.count), boundary.utf8.allSatisfy(allowed.contains) else {
            throw Malformed("boundary \(boundary)")
        }
        // With a line end before it, the first delimiter is as all others, and no preamble has room.
        let data = Data("\r\n".utf8) + Data(bytes)
        let delimiter = Data("\r\n--\(boundary)".utf8)
        var parts: [Part] = []
        var position = data.startIndex
        guard data.range(of: delimiter)?.lowerBound == position else {
            throw Malformed("no delimiter at the beginning")
        }
        while true {
            position += delimiter.count
            if data[position...] == Data("--\r\n".utf8) { break }
            guard data[position...].starts(with: "\r\n".utf8) else {
                throw Malformed("a delimiter does not end its line")
            }
            position += 2
            guard let following = data.range(of: delimiter, in: position..<data.endIndex) else {
                throw Malformed("the last part does not end")
            }
            parts.append(try StrictMultipart.part(data[position..<following.lowerBound]))
            position = following.lowerBound
        }
        self.parts = parts
    }

    private static func part(_ data: Data) throws -> Part {
        guard let blank = data.range(of: Data("\r\n\r\n".utf8)) else { throw Malformed("a part without a head") }
        guard let head = String(data: data[..<blank.lowerBound], encoding: .utf8) else { throw Malformed("no UTF-8") }
        var fields: [String: String] = [:]
        for line in head.components(separatedBy: "\r\n") {
            let halves = line.components(separatedBy: ": ")
            guard halves.count == 2, !line.contains("\n"), !line.contains("\r") else { throw Malformed("line \(line)") }
            guard fields.updateValue(halves[1], forKey: halves[0].lowercased()) == nil else {
                throw Malformed("two lines \(halves[0])")
            }
        }
        guard let disposition = fields["content-disposition"] else { throw Malformed("no disposition") }
        var part = Part(name: "", contentType: fields["content-type"], content: Array(data[blank.upperBound...]))
        guard let match = disposition.wholeMatch(of: /form-data; name="([^"]*)"(?:; filename="([^"]*)")?/) else {
            throw Malformed("disposition \(disposition)")
        }
        part.name = String(match.1)
        part.fileName = match.2.map(String.init)
        return part
    }
}
