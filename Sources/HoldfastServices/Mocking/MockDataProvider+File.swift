// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
internal import HoldfastSemantics

extension MockDataProvider {
    /// Creates a provider from a JSON file: an object whose `mocks` is an array of objects, as
    /// `docs/services/mocking-and-logging.md` describes them.
    ///
    /// - Parameters:
    ///   - file: read once, here. Paths of `bodyFile` are relative to its folder, and read for each request.
    ///   - passesUnmatched: as for ``init(_:passesUnmatched:next:)``.
    ///   - next: as for ``init(_:passesUnmatched:next:)``.
    /// - Throws: `ServiceError` `.resourceUnavailable` if the file cannot be read, `.decodingFailed` if it is invalid; the
    ///   message names the mock, counted from 1, and the key.
    public init(contentsOf file: URL, passesUnmatched: Bool = false, next: (any Transport)? = nil) throws {
        let data: Data
        do {
            data = try Data(contentsOf: file)
        } catch {
            throw ServiceError(
                .resourceUnavailable,
                "The file of mocks \(file.lastPathComponent) cannot be read; check its path and permissions.",
                cause: error
            )
        }
        let reader = MockFileReader(name: file.lastPathComponent, folder: file.deletingLastPathComponent())
        self.init(try reader.mocks(in: data), passesUnmatched: passesUnmatched, next: next)
    }
}

/// Reads a file of mocks and says exactly what is wrong with it.
struct MockFileReader {
    let name: String
    let folder: URL

    private static let keys: Set<String> = [
        "url", "method", "requestFields", "status", "fields", "body", "json", "bodyFile",
    ]

    func mocks(in data: Data) throws -> [MockData] {
        let root: Any
        do {
            root = try JSONSerialization.jsonObject(with: data)
        } catch {
            throw ServiceError(.decodingFailed, "\(name) is not valid JSON.", cause: error)
        }
        guard let object = root as? [String: Any], let list = object["mocks"] as? [Any] else {
            throw wrong("the file must be an object whose \"mocks\" is an array")
        }
        if let other = object.keys.filter({ $0 != "mocks" }).min() { throw wrong("there is no key \"\(other)\"") }
        return try list.enumerated().map { index, entry in
            try mock(entry, place: "mock \(index + 1): ")
        }
    }

    private func mock(_ entry: Any, place: String) throws -> MockData {
        guard let entry = entry as? [String: Any] else { throw wrong(place + "it must be an object") }
        if let other = entry.keys.filter({ !Self.keys.contains($0) }).min() {
            throw wrong(
                place + "there is no key \"\(other)\"; the keys are \(Self.keys.sorted().joined(separator: ", "))"
            )
        }
        guard let url: String = try value("url", of: entry, place: place, kind: "a text") else {
            throw wrong(place + "\"url\" is missing")
        }
        let status: Int = try value("status", of: entry, place: place, kind: "a whole number") ?? 200
        var method: HttpMethod?
        if let text: String = try value("method", of: entry, place: place, kind: "a text") {
            method = HttpMethod(validating: text)
            if method == nil { throw wrong(place + "\"method\" is not a method (RFC 9110 §9.1)") }
        }
        var header = try fields("fields", of: entry, place: place)
        let content = try content(of: entry, place: place, header: &header)
        do {
            return try MockData(
                url,
                method: method,
                requestFields: try fields("requestFields", of: entry, place: place),
                status: status,
                fields: header,
                content: content
            )
        } catch let error as ServiceError where error.code == .badRequest {
            throw wrong(place + error.message)
        }
    }

    private func content(of entry: [String: Any], place: String, header: inout HttpHeader) throws
        -> MockData.Content
    {
        let given = ["body", "json", "bodyFile"].filter { entry[$0] != nil }
        guard given.count <= 1 else {
            throw wrong(place + "it has " + given.map { "\"\($0)\"" }.joined(separator: " and ") + "; keep one of them")
        }
        if let text: String = try value("body", of: entry, place: place, kind: "a text") { return .text(text) }
        if let path: String = try value("bodyFile", of: entry, place: place, kind: "a text") {
            return .file(URL(fileURLWithPath: path, relativeTo: folder).absoluteURL)
        }
        guard let json = entry["json"] else { return .empty }
        if !header.contains(.contentType) { header[.contentType] = "application/json" }
        return .data(try JSONSerialization.data(withJSONObject: json, options: [.fragmentsAllowed, .sortedKeys]))
    }

    private func fields(_ key: String, of entry: [String: Any], place: String) throws -> HttpHeader {
        var header = HttpHeader()
        let object: [String: Any] = try value(key, of: entry, place: place, kind: "an object of texts") ?? [:]
        for (name, value) in object.sorted(by: { $0.key < $1.key }) {
            guard let text = value as? String else { throw wrong(place + "\"\(key)\" must be an object of texts") }
            guard header.append(rawName: name, value: text) else {
                throw wrong(place + "\"\(name)\" in \"\(key)\" is not the name of a field (RFC 9110 §5.1)")
            }
        }
        return header
    }

    private func value<Value>(_ key: String, of entry: [String: Any], place: String, kind: String) throws -> Value? {
        guard let found = entry[key] else { return nil }
        guard let value = found as? Value else { throw wrong(place + "\"\(key)\" must be \(kind)") }
        return value
    }

    private func wrong(_ what: String) -> ServiceError {
        ServiceError(.decodingFailed, "In \(name), \(what)" + (what.hasSuffix(".") ? "" : "."))
    }
}
