// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import Testing

/// The shared test vectors, from the copies in this bundle unless HOLDFAST_VECTORS names others: a folder with files of these
/// names, or one file, whose name says which vectors it holds: those of Retry-After, of backoff, or else the canonical ones.
enum VectorFile {
    static let canonical = load("canonical-vectors", as: CanonicalVectors.self)
    static let retryAfter = load("retry-after-vectors", as: RetryAfterVectors.self)
    static let backoff = load("backoff-vectors", as: BackoffVectors.self)

    private static func load<Content: Decodable>(_ name: String, as type: Content.Type) -> Content? {
        let file = "\(name).json"
        let location = VectorFile.location(of: file, named: ProcessInfo.processInfo.environment["HOLDFAST_VECTORS"])
        do {
            return try JSONDecoder().decode(Content.self, from: try Data(contentsOf: location))
        } catch {
            Issue.record("\(file) cannot be read from \(location.path): \(error)")
            return nil
        }
    }

    /// Whether the vectors are the copies in this bundle.
    static let isOwn = ProcessInfo.processInfo.environment["HOLDFAST_VECTORS"] == nil

    /// Where one of the files is read; a path that is neither a file nor a folder stays, so that the reading complains.
    static func location(of file: String, named path: String?) -> URL {
        let own = Bundle.module.bundleURL.appendingPathComponent("Fixtures").appendingPathComponent(file)
        guard let path else { return own }
        let named = URL(fileURLWithPath: path)
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else { return named }
        if isFolder.boolValue { return named.appendingPathComponent(file) }
        let kinds = ["retry-after", "backoff"]
        let kind = kinds.first { named.lastPathComponent.contains($0) } ?? "canonical"
        return file.hasPrefix(kind) ? named : own
    }
}

struct CanonicalVectors: Decodable, Sendable {
    var uri: Group<URIVector>
    var iriMapping: Group<URIVector>
    var mustEqual: Group<[String]>
    var mustDiffer: Group<[String]>
    var mayMerge: Group<[String]>
    var queryOptions: Group<QueryVector>
    var noVarySearch: Group<NoVarySearchVector>
    var vary: Group<VaryVector>
    var contentType: Group<ContentTypeVector>
    var body: Group<BodyVector>
    var primaryKey: Group<KeyVector>
    /// How many vectors each group has in the complete file, of which a part may stand here.
    var counts: [String: Int]

    enum CodingKeys: String, CodingKey {
        case uri, vary, body, counts
        case iriMapping = "iri_mapping"
        case mustEqual = "must_equal"
        case mustDiffer = "must_differ"
        case mayMerge = "may_merge"
        case queryOptions = "query_options"
        case noVarySearch = "no_vary_search"
        case contentType = "content_type"
        case primaryKey = "primary_key"
    }

    init(from decoder: any Decoder) throws {
        let groups = try decoder.container(keyedBy: CodingKeys.self)
        func group<Vector>(_ key: CodingKeys) throws -> Group<Vector> {
            try groups.decodeIfPresent(Group<Vector>.self, forKey: key) ?? Group(vectors: [])
        }
        uri = try group(.uri)
        iriMapping = try group(.iriMapping)
        mustEqual = try group(.mustEqual)
        mustDiffer = try group(.mustDiffer)
        mayMerge = try group(.mayMerge)
        queryOptions = try group(.queryOptions)
        noVarySearch = try group(.noVarySearch)
        vary = try group(.vary)
        contentType = try group(.contentType)
        body = try group(.body)
        primaryKey = try group(.primaryKey)
        counts = try groups.decodeIfPresent([String: Int].self, forKey: .counts) ?? [:]
    }

    struct Group<Vector: Decodable & Sendable>: Decodable, Sendable {
        var vectors: [Vector]
    }
}

struct URIVector: Decodable, Sendable, CustomTestStringConvertible {
    var id: String
    var input: String
    var canonical: String?
    var reject: String?
    var userinfo: Bool?

    var testDescription: String { "\(id) \(input)" }
}

struct VaryVector: Decodable, Sendable, CustomTestStringConvertible {
    var id: String
    var vary: String
    var storedRequest: [[String]]
    var presentedRequest: [[String]]
    var matchGeneric: Bool
    var matchSemantic: Bool

    enum CodingKeys: String, CodingKey {
        case id, vary
        case storedRequest = "stored_request"
        case presentedRequest = "presented_request"
        case matchGeneric = "match_generic"
        case matchSemantic = "match_semantic"
    }

    var testDescription: String { "\(id) Vary: \(vary)" }
}

struct KeyVector: Decodable, Sendable, CustomTestStringConvertible {
    var id: String
    var partition: String
    var method: String
    var methodGroup: String
    var uri: String
    var contentType: String
    var contentDigest: String
    var key: String

    enum CodingKeys: String, CodingKey {
        case id, partition, method, uri, key
        case methodGroup = "method_group"
        case contentType = "content_type"
        case contentDigest = "content_sha256"
    }

    var testDescription: String { id }
}

struct RetryAfterVectors: Decodable, Sendable {
    var cases: [Case]

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        var name: String
        var headerLines: [String]
        var receivedAt: String
        var dateHeader: String?
        var age: Int
        var expectedDelay: Double?

        enum CodingKeys: String, CodingKey {
            case name
            case headerLines = "header_lines"
            case receivedAt = "received_at"
            case dateHeader = "date_header"
            case age = "age_s"
            case expectedDelay = "expected_delay_s"
        }

        var testDescription: String { name }
    }
}
